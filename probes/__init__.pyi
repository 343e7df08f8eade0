# The stable names: what plug-ins and notebooks import from `probes`, one line each.
# probes/__init__.py reads this table, and type checkers do.

from probes.cli.api import run_probes as run_probes
from probes.cli.results import Results as Results
from probes.common.errors import UserError as UserError
from probes.data.downloads import Remote as Remote
from probes.data.registered import Registered as Registered
from probes.data.registered import corpora as corpora
from probes.data.sentence import ROOT as ROOT
from probes.data.sentence import SPLITS as SPLITS
from probes.data.sentence import Corpus as Corpus
from probes.data.sentence import Frame as Frame
from probes.data.sentence import Sentence as Sentence
from probes.measurements.plugins import load_file as load_file
from probes.records.probe_spec import ProbeSpec as ProbeSpec
from probes.statistics.gold import Gold as Gold
from probes.statistics.metrics import Metric as Metric
from probes.statistics.metrics import class_parts as class_parts
from probes.statistics.metrics import mean_parts as mean_parts
from probes.statistics.metrics import mean_value as mean_value
from probes.statistics.metrics import metrics as metrics
from probes.tasks.builtin import get_task as get_task
from probes.tasks.task import Example as Example
from probes.tasks.task import Excluded as Excluded
from probes.tasks.task import Task as Task
from probes.tasks.task import task as task
from probes.training.families import family as family
from probes.training.family import Head as Head
from probes.training.family import shared_input as shared_input
from probes.training.family import shared_input_gradient as shared_input_gradient

__version__: str
