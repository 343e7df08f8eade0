"""One test of two models, wherever they are compared."""

import re

import pytest
from board_by_hand import N, put

from probes.__main__ import main
from probes.boards.board import boards
from probes.boards.comparison import compare
from probes.boards.paired import layer_scores
from probes.boards.ranking import Ranking
from probes.measurements.results import find_results
from probes.statistics.formatting import shown_p
