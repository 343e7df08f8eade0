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
from probes.extraction.attention import AttentionCollector as AttentionCollector
from probes.extraction.collectors import Collector as Collector
from probes.measurements.corpus_context import CorpusContext as CorpusContext
from probes.measurements.measurement import CorpusMeasurement as CorpusMeasurement
from probes.measurements.measurement import Found as Found
from probes.measurements.measurement import NoOptions as NoOptions
from probes.measurements.measurement import Number as Number
from probes.measurements.measurement import PairMeasurement as PairMeasurement
from probes.measurements.measurement import ProbeMeasurement as ProbeMeasurement
from probes.measurements.measurement import Request as Request
from probes.measurements.measurement import get_measurement as get_measurement
from probes.measurements.measurement import measurement as measurement
from probes.measurements.plugins import load_file as load_file
from probes.measurements.probe_context import ProbeContext as ProbeContext
from probes.records.base import Frozen as Frozen
from probes.records.charts import Grid as Grid
from probes.records.charts import Panel as Panel
from probes.records.curves import Curves as Curves
from probes.records.curves import Point as Point
from probes.records.parameters import read_parameters as read_parameters
from probes.records.probe_spec import ProbeSpec as ProbeSpec
from probes.records.record import Record as Record
from probes.records.result import Result as Result
from probes.records.table import Cell as Cell
from probes.records.table import Row as Row
from probes.records.table import Table as Table
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
from probes.training.families import probe_family as probe_family
from probes.training.family import ProbeFamily as ProbeFamily
from probes.training.family import shared_input as shared_input
from probes.training.family import shared_input_gradient as shared_input_gradient
from probes.training.fit import Draw as Draw

__version__: str
