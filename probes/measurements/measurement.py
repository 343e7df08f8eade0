"""What a measurement is: one question about a model's vectors, with its method, as one plug-in.

A measurement is a class with the attributes and methods below, registered by `@measurement`. The
suite's own are listed here as ``module:Class`` and imported when they are asked for, so that
listing them is fast. Modules of measurements import torch and what needs it inside `compute`: keys,
tables and rows are made without it.
"""

from __future__ import annotations

import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeVar

from probes.common.errors import UserError
from probes.common.registry import Registry
from probes.measurements.pivots import AnyView, Pivot, charts, tables
from probes.records.charts import UNMEASURED, Chart, Curves
from probes.records.probe_spec import ProbeSpec
from probes.records.record import TREES, Extent, Record, covers, subject_title, united
from probes.records.result import Result
from probes.records.row import Place, Row
from probes.records.table import Table
from probes.records.values import Frozen
from probes.tasks.task import Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from probes.data.sentence import Corpus
    from probes.extraction.collectors import Collector
    from probes.extraction.views import View
    from probes.measurements.context import Context
    from probes.records.header import ExampleCounts
    from probes.records.parameters import Parameters

M = TypeVar("M", bound="Measurement")

Level = Literal["standard", "full"]
"""How much evidence is asked for."""

Ask = Literal["examples", "scores", "trained", "results", "base"]
"""What a measurement asks for: a task's examples, to which probes are fitted; the scores that it is
evidence behind, and with them the examples; the probes that the other corpora of a run with
`--transfer` have trained; the scores of all tasks of the run together, of one probe family; or the
base, the first model of the run, with which
each other one is compared, random twins among them. Records of a comparison belong to the other
model and name the base."""

ASKED: tuple[tuple[Ask, ...], ...] = ((), ("scores",), ("base",))
"""What a plug-in may ask for."""

CSV_FIELDS = "metric", "split", "value", "low", "high"
"""Fields of a row that every CSV file of a measurement has."""


class NoOptions(Frozen):
    """The options of a measurement that has none."""


@dataclass(frozen=True)
class Found:
    """What `compute` returns; rows alone may be returned, or yielded, as they are.

    Attributes:
        rows: the numbers.
        arrays: what is stored in the .npz file beside the record, by name.
        parameters: what was fitted, by name, which the cache keeps; see
            `probes.records.parameters`.
        facts: what else there is to know of the rows, such as counts; part of the record's header.
        notes: sentences that tables are followed by.
        examples: of scores, those that the task has found in the corpus.
    """

    rows: Iterable[Row] = ()
    arrays: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)
    parameters: Parameters = field(default_factory=dict)
    facts: Mapping[str, Place] = field(default_factory=dict)
    notes: Sequence[str] = ()
    examples: ExampleCounts | None = None


class Scored(NamedTuple):
    """What is known of the scores that evidence is to stand behind.

    Attributes:
        probe: how the probes were fitted.
        layers: the layers that have scores, ascending.
        best: the best of them on dev.
        typed: whether every example has a type, which control tasks depend on.
        headline: the headline test scores, by layer.
    """

    probe: ProbeSpec
    layers: tuple[int, ...]
    best: int
    typed: bool
    headline: Mapping[int, float | None] = {}

    @property
    def three_layers(self) -> tuple[int, ...]:
        """The lowest layer, the best and the highest, where expensive evidence is gathered."""
        return tuple(sorted({self.layers[0], self.best, self.layers[-1]}))


class Request(NamedTuple):
    """What a run asks a measurement for.

    Attributes:
        layers: the layers to be measured, ascending; of evidence those that have scores.
        n_layers: blocks of the model.
        seeds: fits of each layer on the whole training split.
        level: how much evidence.
        scored: None for scores themselves, and for questions without probes.
    """

    layers: tuple[int, ...]
    n_layers: int
    seeds: int = 1
    level: Level = "standard"
    scored: Scored | None = None

    @property
    def scores(self) -> Scored:
        """What is known of the scores that evidence is to stand behind."""
        assert self.scored is not None
        return self.scored


class Measurement(ABC):
    """One question with its method.

    Attributes:
        name: lower-case letters, digits and underscores; part of file names.
        version: part of every key, to be raised when the same inputs would give other numbers.
        summary: one line for `--list-measurements`.
        views: how its rows are shown; see `probes.measurements.pivots`.
        options: its settings, each with a default and a description. Each field becomes a flag
            ``--<name>-<field>``, and what is given becomes part of the key.
        asks: what it needs beside a model that has read a corpus; see `Ask`.
        needs: annotation layers of the corpus without which there is nothing to measure.
        of_pairs: name of the measurement of pairs of models that is made along with it; empty for
            none.
        csv_name: name of the CSV file in the folder of model and corpus, without its ending; the
            measurement's own if empty.
        shares_arrays: whether its arrays have neither text nor labels, such as sums over sentences,
            and may be passed on where a licence forbids text.
        reads_all_layers: whether probes have all layers in memory at once, instead of one after the
            other.
        n_concatenated: layers whose features one probe reads.
        reads_head: whether it needs the model's language-model head.
        uses_head: whether it uses that head where there is one.
        of_items: name of the measurement that is made in its place where the corpus has items
            instead of sentences; empty for none.
        of_twins: of evidence, whether it is gathered for random twins too; with full evidence
            everything is.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    summary: ClassVar[str]
    views: ClassVar[Sequence[AnyView]] = (Pivot(),)
    options: ClassVar[type[Frozen]] = NoOptions
    asks: ClassVar[tuple[Ask, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()
    of_pairs: ClassVar[str] = ""
    csv_name: ClassVar[str] = ""
    shares_arrays: ClassVar[bool] = False
    reads_all_layers: ClassVar[bool] = False
    n_concatenated: ClassVar[int] = 1
    reads_head: ClassVar[bool] = False
    uses_head: ClassVar[bool] = False
    of_items: ClassVar[str] = ""
    of_twins: ClassVar[bool] = False

    @abstractmethod
    def compute(self, context: Context) -> Found | Iterable[Row]:
        """Measure the layers of `context.extent`."""

    @property
    def title(self) -> str:
        """What people call it."""
        return self.name.replace("_", " ")

    @property
    def of_tasks(self) -> bool:
        """Whether it is made for each task and probe family, instead of the corpus as a whole."""
        return bool(self.asks) and not self.of_two_models and not self.of_results

    @property
    def is_evidence(self) -> bool:
        """Whether it stands behind scores, with which its records are shown."""
        return "scores" in self.asks

    @property
    def of_trained(self) -> bool:
        """Whether it applies probes that other corpora have trained: its option `trained`."""
        return "trained" in self.asks

    @property
    def of_results(self) -> bool:
        """Whether it is about all tasks that were scored."""
        return "results" in self.asks

    @property
    def of_two_models(self) -> bool:
        """Whether it compares each model with the base."""
        return "base" in self.asks

    # What is to be measured.

    def extent(self, request: Request) -> Extent:
        """How often which layers are to be measured; empty for not at all."""
        return dict.fromkeys(request.layers, 1)

    def lacking(self, layers: frozenset[str]) -> str:
        """Why a corpus with these annotation layers cannot be measured; empty if it can."""
        lacking = [name for name in self.needs if name not in layers]
        return f"it has no {' and no '.join(lacking)}" if lacking else ""

    def missing(self, task: Task, probe: ProbeSpec, level: Level) -> str:
        """Why it is not made for this task and probe family; empty if it is."""
        return ""

    def is_complete(self, record: Record, request: Request) -> bool:
        """Whether a stored record has all that is asked for; of evidence, for these scores."""
        same = request.scored is None or record.behind == request.scored.headline
        return same and covers(record.extent, self.extent(request))

    def united(self, stored: Extent, wanted: Extent) -> Extent:
        """What is measured where a record has less than is wanted: nothing of it is lost.

        Of evidence it is what is wanted, since what is found depends on all that is asked for.
        """
        return wanted if self.is_evidence else united(stored, wanted)

    # What it reads, and what it costs.

    def view(self, corpus: Corpus, options: Any) -> View | None:
        """The texts that the collector reads; None for all sentences."""
        return None

    def collector(self, corpus: Corpus, layers: Sequence[int], options: Any) -> Collector | None:
        """What is to be kept of the model's reading; None for the word vectors of all sentences."""
        return None

    def fits_at_once(self, probe: ProbeSpec, level: Level) -> int:
        """The most fits of a layer that are made together; `--memory` is checked against it."""
        return 1

    # What is shown. Evidence is shown with scores: its `records` are results, and else its own.

    def own(self, record: Record) -> Record | None:
        """Its own record of one that it is shown with; None if a result lacks it."""
        if not self.is_evidence:
            return record
        assert isinstance(record, Result)
        return record.evidence.get(self.name)

    def missing_of(self, result: Result) -> str:
        """Why a result lacks it, where curves name those without."""
        return UNMEASURED

    def tables(self, records: Sequence[Any]) -> Sequence[Table]:
        """What was found for one model and corpus.

        Args:
            records: one, or the results of one probe family, all of which have it.
        """
        from probes.measurements.frame import long_frame

        own = [each for each in map(self.own, records) if each is not None]
        notes = list(dict.fromkeys(note for record in own for note in record.notes))
        title = self.title
        if not self.of_tasks:
            (record,) = own
            title = f"{subject_title(record)} · {title}"
            title += f" · {TREES}" * (record.corpus.other_trees and "heads" in self.needs)
            title += f" from {record.base.name}" if record.base else ""
        return tables(self.views, long_frame(own), title, notes)

    def charts(
        self, records: Mapping[str, Any], paths: Mapping[str, Path] | None = None
    ) -> Sequence[Chart]:
        """What was found for several models, by label, on one corpus, or for one task.

        Args:
            records: of all models; curves list those without its record as missing.
            paths: files, by label, beside which arrays are read.
        """
        from probes.measurements.frame import Findings

        every = {label: self.own(each) for label, each in records.items()}
        own = {label: each for label, each in every.items() if each is not None}
        found = charts(self.views, Findings(own, paths or {}))
        for each in found:
            if isinstance(each, Curves):
                each.missing.update({x: self.missing_of(records[x]) for x in every.keys() - own})
        return found

    @property
    def figure_names(self) -> list[str]:
        """Names of the charts that `python -m probes figure` can draw."""
        return [view.name for view in self.views if not isinstance(view, Pivot)]

    def csv_lines(self, record: Record) -> Iterator[Mapping[str, Place]]:
        """The lines of its CSV file, by column: all numbers as they are."""
        rows, axes = list(record.rows), record.rows.axes
        filled = [name for name in ("n", "p") if any(getattr(row, name) for row in rows)]
        for row in rows:
            places = {axis: row.axes.get(axis) for axis in axes}
            found = {name: getattr(row, name) for name in (*CSV_FIELDS, *filled)}
            yield {"layer": row.layer, **places, **found}


LOCALISATION = "localisation"

EVIDENCE = {
    "training_variance": "probes.measurements.training_variance:TrainingVariance",
    "selectivity": "probes.measurements.selectivity:Selectivity",
    "conditional_probing": "probes.measurements.conditional_probing:ConditionalProbing",
    "description_length": "probes.measurements.description_length:DescriptionLength",
    LOCALISATION: "probes.measurements.localisation:Localisation",
}
"""The evidence behind scores, most valuable first."""

CORPUS = {
    "structure": "probes.measurements.structure.structure:Structure",
    "geometry": "probes.measurements.geometry.geometry:Geometry",
    "attention": "probes.measurements.attention.attention:Attention",
    "attention_change": "probes.measurements.attention.change:AttentionChange",
    "parallel": "probes.measurements.geometry.parallel:Parallel",
    "pairs": "probes.measurements.behaviour.pairs:Pairs",
    "ablation": "probes.measurements.intervening.ablation:Ablation",
    "erasure": "probes.measurements.intervening.erasure:Erasure",
    "completion": "probes.measurements.behaviour.completion:Completion",
    "model_similarity": "probes.measurements.geometry.model_similarity:ModelSimilarity",
}
"""Measurements of a corpus as a whole, which `--measurements` asks for."""

TRANSFER = "corpus_transfer"

ON_REQUEST = {
    "cloze": "probes.measurements.behaviour.cloze:Cloze",
    "lens": "probes.measurements.behaviour.lens:Lens",
    "malformed": "probes.measurements.malformed:Malformed",
    TRANSFER: "probes.measurements.corpus_transfer:CorpusTransfer",
}
"""Further evidence, which is gathered where it is named."""

LEVELS = ("none", "standard", "full")
"""Values of `--evidence` that are not names of measurements."""

RESERVED = ("probes", *LEVELS)
"""Words that no measurement may be called."""

measurements: Registry[str | type[Measurement]] = Registry("measurement")
"""Classes of plug-ins, and the suite's own as ``module:Class``."""

measurements.add("scores", "probes.measurements.scores:ScoreMeasurement")
for _name, _place in (EVIDENCE | ON_REQUEST | CORPUS).items():
    measurements.add(_name, _place)


def measurement(cls: type[M]) -> type[M]:
    """Register the decorated class.

    Raises:
        UserError: it is no `Measurement`, lacks an attribute, a method or a default, asks for
            something that there is not, or its name is taken or cannot be used.
    """
    if not (isinstance(cls, type) and issubclass(cls, Measurement)):
        raise UserError(
            f"{getattr(cls, '__name__', cls)}: a measurement has to be a subclass of Measurement."
        )
    attributes = [x for x in ("name", "summary") if not hasattr(cls, x)]
    if lacking := [*attributes, *sorted(cls.__abstractmethods__)]:
        raise UserError(f"Measurement {cls.__name__}: it has no {' and no '.join(lacking)}.")
    require_usable(cls.name)
    if cls.asks not in ASKED:
        raise UserError(
            f"Measurement {cls.name!r}: asks is {cls.asks!r}; it can be ('scores',), ('base',) or "
            "(), for nothing but a model and a corpus."
        )
    if not (isinstance(cls.options, type) and issubclass(cls.options, Frozen)):
        raise UserError(f"Measurement {cls.name!r}: options has to be a subclass of Frozen.")
    for option, about in cls.options.model_fields.items():
        if about.is_required():
            raise UserError(f"Measurement {cls.name!r}: the option {option!r} has no default.")
    measurements.add(cls.name, cls)
    return cls


def require_usable(name: object) -> None:
    """Check the name of a measurement.

    Raises:
        UserError: it cannot be part of file names and flags.
    """
    if not (isinstance(name, str) and re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name)):
        raise UserError(
            f"Measurement {name!r}: the name becomes part of file names; use up to 40 of a-z, 0-9 "
            "and _, and begin with a letter."
        )
    if name in RESERVED:
        raise UserError(f"Measurement {name!r}: --measurements or --evidence uses this word.")


def get_measurement(name: str) -> Measurement:
    """The measurement called `name`.

    Raises:
        UserError: there is none; the message suggests the closest name.
    """
    entry = measurements.get(name)
    if isinstance(entry, str):
        module, _, cls = entry.partition(":")
        entry = getattr(importlib.import_module(module), cls)
    found: Measurement = entry()
    return found


def probe_measurements() -> list[Measurement]:
    """All measurements that stand behind scores, the suite's own first."""
    return [each for each in map(get_measurement, measurements) if each.is_evidence]


def corpus_measurements() -> list[Measurement]:
    """All measurements of a corpus as a whole, pairs of models among them."""
    return [each for each in map(get_measurement, measurements) if not each.of_tasks]


def as_found(found: Found | Iterable[Row]) -> Found:
    """What `compute` has returned; rows that it yields are computed here."""
    return found if isinstance(found, Found) else Found(tuple(found))


measurements.mark_as_shipped()
