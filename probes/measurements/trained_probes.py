"""Probes that another corpus has trained."""

from __future__ import annotations

from typing import NamedTuple

from probes.records.parameters import Parameters
from probes.records.result import Result


class Trained(NamedTuple):
    """Probes trained on another corpus: their scores there, and their parameters.

    With `--threshold-from`, the scores have the threshold from negatives as evidence.
    """

    result: Result
    parameters: Parameters
