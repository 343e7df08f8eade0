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
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

from probes.common.errors import UserError
from probes.common.registry import Registry
from probes.measurements.pivots import Pivot
from probes.measurements.views import AnyView, charts, tables
from probes.records.base import Frozen
from probes.records.charts import UNMEASURED, Chart
from probes.records.curves import Curves
from probes.records.probe_spec import ProbeSpec
from probes.records.record import AnyRecord, Extent, Record, covers, united
from probes.records.result import Result
from probes.records.row import Place, Row
from probes.records.table import Table
from probes.records.titles import TREES, subject_title
from probes.tasks.task import Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from probes.data.sentence import Corpus
    from probes.extraction.collectors import Collector
    from probes.extraction.views import View
    from probes.measurements.corpus_context import CorpusContext
    from probes.measurements.probe_context import ProbeContext
    from probes.records.parameters import Parameters

P = TypeVar("P", bound=Frozen)
M = TypeVar("M", bound="Measurement[Any]")

Level = Literal["standard", "full"]
"""How much evidence is asked for."""


CSV_FIELDS = "metric", "split", "value", "low", "high"
"""Fields of a row that every CSV file of a measurement has."""


class NoOptions(Frozen):
    """The options of a measurement that has none."""


class NoPayload(Frozen):
    """What is stored besides rows by a measurement that finds nothing but rows."""


@dataclass(frozen=True)
class Found(Generic[P]):
    """What `compute` returns; rows alone may be returned, or yielded, as they are.

    Attributes:
        rows: the numbers.
        arrays: what is stored in the .npz file beside the record, by name.
        parameters: what was fitted, by name, which the cache keeps; see
            `probes.records.parameters`.
        facts: what else there is to know of the rows, such as counts; part of the record's header.
        notes: sentences that tables are followed by.
        payload: what is stored besides.
    """

    rows: Iterable[Row] = ()
    arrays: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)
    parameters: Parameters = field(default_factory=dict)
    facts: Mapping[str, Place] = field(default_factory=dict)
    notes: Sequence[str] = ()
    payload: P = field(default_factory=NoPayload)  # type: ignore[assignment]


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
        """The lowest layer, the best and the highest, where dear evidence is gathered."""
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


class Measurement(ABC, Generic[P]):
    """One question with its method.

    Attributes:
        name: lower-case letters, digits and underscores; part of file names.
        version: part of every key, to be raised when the same inputs would give other numbers.
        summary: one line for `--list-measurements`.
        views: how its rows are shown; see `probes.measurements.views`.
        payload: the type of what is stored besides rows; a frozen pydantic model.
        options: its settings, each with a default and a description. Each field becomes a flag
            ``--<name>-<field>``, and what is given becomes part of the key.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    summary: ClassVar[str]
    views: ClassVar[Sequence[AnyView]] = (Pivot(),)
    payload: ClassVar[type[Frozen]] = NoPayload
    options: ClassVar[type[Frozen]] = NoOptions

    def extent(self, request: Request) -> Extent:
        """How often which layers are to be measured; empty for not at all."""
        return dict.fromkeys(request.layers, 1)

    def is_complete(self, record: AnyRecord, request: Request) -> bool:
        """Whether a stored record has all that is asked for."""
        return covers(record.extent, self.extent(request))

    def united(self, stored: Extent, wanted: Extent) -> Extent:
        """What is measured where a record has less than is wanted: nothing of it is lost."""
        return united(stored, wanted)

    def numbers(self, record: Record[P]) -> Iterable[Row]:
        """What a record says in numbers."""
        return record.rows


class ProbeMeasurement(Measurement[P]):
    """A measurement of one task with one probe family: evidence behind its scores.

    Its records are shown with the scores of the same model, corpus, task and family.

    Attributes:
        reads_all_layers: whether all layers are in memory at once, instead of one after the other.
        n_concatenated: layers whose features one probe reads.
        of_twins: whether it is made for random twins too; with full evidence everything is.
    """

    reads_all_layers: ClassVar[bool] = False
    n_concatenated: ClassVar[int] = 1
    of_twins: ClassVar[bool] = False

    def missing(self, task: Task, probe: ProbeSpec, level: Level) -> str:
        """Why it is not made for this task and probe family; empty if it is."""
        return ""

    def is_complete(self, record: AnyRecord, request: Request) -> bool:
        """Whether a stored record has all that is asked for, and is about these scores."""
        same = request.scored is None or record.behind == request.scored.headline
        return same and super().is_complete(record, request)

    def united(self, stored: Extent, wanted: Extent) -> Extent:
        """What is wanted alone: what is found must not depend on what was asked for before."""
        return wanted

    def fits_at_once(self, probe: ProbeSpec, level: Level) -> int:
        """The most fits of a layer that are made together; `--memory` is checked against it."""
        return 1

    def cost(self, probe: ProbeSpec) -> float:
        """Time of one layer and repetition, relative to that of one fit for the scores."""
        return 1.0

    def missing_of(self, result: Result) -> str:
        """Why a result lacks it, where curves name those without."""
        return UNMEASURED

    @abstractmethod
    def compute(self, context: ProbeContext) -> Found[P] | Iterable[Row]:
        """Measure the layers of `context.extent`."""

    def tables(self, results: Sequence[Result]) -> Sequence[Table]:
        """Tables of one model, corpus and probe family; all `results` have its record."""
        from probes.measurements.frame import long_frame

        records = [result.evidence[self.name] for result in results]
        notes = list(dict.fromkeys(note for record in records for note in record.notes))
        return tables(self.views, long_frame(records), self.name.replace("_", " "), notes)

    def curves(self, results: Mapping[str, Result]) -> Curves | Sequence[Curves]:
        """Curves of one task, by model: a chart each.

        Args:
            results: of all models; those without its record are listed as missing.
        """
        from probes.measurements.frame import Findings

        records = {label: each.evidence.get(self.name) for label, each in results.items()}
        measured = {label: record for label, record in records.items() if record}
        found = charts(self.views, Findings(measured))
        curves = [each for each in found if isinstance(each, Curves)]
        for each in curves:
            each.missing.update({x: self.missing_of(results[x]) for x in records.keys() - measured})
        return curves


class CorpusMeasurement(Measurement[P]):
    """A measurement of a model's vectors of a corpus as a whole, without tasks.

    Attributes:
        needs: annotation layers of the corpus without which there is nothing to measure.
        of_pairs: name of the `PairMeasurement` that is made along with it; empty for none.
        csv_name: name of the CSV file in the folder of model and corpus, without its ending; the
            measurement's own if empty.
        shares_arrays: whether its arrays have neither text nor labels, such as sums over sentences,
            and may be passed on where a licence forbids text.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    of_pairs: ClassVar[str] = ""
    csv_name: ClassVar[str] = ""
    shares_arrays: ClassVar[bool] = False

    def missing(self, layers: frozenset[str]) -> str:
        """Why a corpus with these annotation layers cannot be measured; empty if it can."""
        lacking = [name for name in self.needs if name not in layers]
        return f"it has no {' and no '.join(lacking)}" if lacking else ""

    def view(self, corpus: Corpus, options: Any) -> View | None:
        """The texts that the collector reads; None for all sentences."""
        return None

    def collector(self, corpus: Corpus, layers: Sequence[int], options: Any) -> Collector | None:
        """What is to be kept of the model's reading; None for the word vectors of all sentences."""
        return None

    @abstractmethod
    def compute(self, context: CorpusContext) -> Found[P] | Iterable[Row]:
        """Measure the layers of `context.layers`."""

    @property
    def figure_names(self) -> list[str]:
        """Names of the charts that `python -m probes figure` can draw."""
        return [view.name for view in self.views if not isinstance(view, Pivot)]

    def tables(self, record: Record[P]) -> Sequence[Table]:
        """What was found, to be printed at the end of a run."""
        from probes.measurements.frame import long_frame

        title = f"{subject_title(record)} · {self.name.replace('_', ' ')}"
        title += f" · {TREES}" * (record.corpus.other_trees and "heads" in self.needs)
        title += f" from {record.base.name}" if record.base else ""
        return tables(self.views, long_frame([record]), title, record.notes)

    def charts(
        self, records: Mapping[str, Record[P]], paths: Mapping[str, Path] | None = None
    ) -> Sequence[Chart]:
        """What was found for several models on one corpus.

        Args:
            records, paths: by label; arrays are read beside a path.
        """
        from probes.measurements.frame import Findings

        return charts(self.views, Findings(records, paths or {}))

    def csv_lines(self, record: Record[P]) -> Iterator[Mapping[str, Place]]:
        """The lines of its CSV file, by column: all numbers as they are."""
        rows = list(self.numbers(record))
        axes = dict.fromkeys(axis for row in rows for axis in row.axes)
        filled = [name for name in ("n", "p") if any(getattr(row, name) for row in rows)]
        for row in rows:
            places = {axis: row.axes.get(axis) for axis in axes}
            found = {name: getattr(row, name) for name in (*CSV_FIELDS, *filled)}
            yield {"layer": row.layer, **places, **found}


class PairMeasurement(CorpusMeasurement[P]):
    """A comparison of two models on a corpus: `compute` is given the base as `context.base`.

    The first model of a run is the base of all others, random twins among them. Records belong to
    the other model and name the base; layers are the other model's, and the base's in `axes`.
    """


EVIDENCE = {
    "training_variance": "probes.measurements.training_variance:TrainingVariance",
    "selectivity": "probes.measurements.selectivity:Selectivity",
    "conditional_probing": "probes.measurements.conditional_probing:ConditionalProbing",
    "description_length": "probes.measurements.description_length:DescriptionLength",
    "localisation": "probes.measurements.localisation:Localisation",
}
"""The evidence behind scores, most valuable first."""

CORPUS = {
    "structure": "probes.measurements.structure.structure:Structure",
    "geometry": "probes.measurements.geometry.geometry:Geometry",
    "attention": "probes.measurements.attention.attention:Attention",
    "attention_change": "probes.measurements.attention.change:AttentionChange",
    "model_similarity": "probes.measurements.geometry.model_similarity:ModelSimilarity",
}
"""Measurements of a corpus as a whole, which `--measurements` asks for."""

ON_REQUEST = {
    "held_out_genres": "probes.measurements.held_out_genres:HeldOutGenres",
    "principal_angles": "probes.measurements.principal_angles:PrincipalAngles",
}
"""Further evidence, which is gathered where it is named."""

LEVELS = ("none", "standard", "full")
"""Values of `--evidence` that are not names of measurements."""

RESERVED = ("probes", *LEVELS)
"""Words that no measurement may be called."""

measurements: Registry[str | type[Measurement[Any]]] = Registry("measurement")
"""Classes of plug-ins, and the suite's own as ``module:Class``."""

measurements.add("scores", "probes.measurements.scores:ScoreMeasurement")
for _name, _place in (EVIDENCE | ON_REQUEST | CORPUS).items():
    measurements.add(_name, _place)


def measurement(cls: type[M]) -> type[M]:
    """Register the decorated class.

    Raises:
        UserError: it is no `ProbeMeasurement` or `CorpusMeasurement`, lacks an attribute, a method
            or a default, or its name is taken or cannot be used.
    """
    if not (isinstance(cls, type) and issubclass(cls, (ProbeMeasurement, CorpusMeasurement))):
        raise UserError(
            f"{getattr(cls, '__name__', cls)}: a measurement has to be a subclass of "
            "ProbeMeasurement or CorpusMeasurement."
        )
    attributes = [x for x in ("name", "summary") if not hasattr(cls, x)]
    if lacking := [*attributes, *sorted(cls.__abstractmethods__)]:
        raise UserError(f"Measurement {cls.__name__}: it has no {' and no '.join(lacking)}.")
    require_usable(cls.name)
    for which in ("payload", "options"):
        given = getattr(cls, which)
        if not (isinstance(given, type) and issubclass(given, Frozen)):
            raise UserError(f"Measurement {cls.name!r}: {which} has to be a subclass of Frozen.")
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


def get_measurement(name: str) -> Measurement[Any]:
    """The measurement called `name`.

    Raises:
        UserError: there is none; the message suggests the closest name.
    """
    entry = measurements.get(name)
    if isinstance(entry, str):
        module, _, cls = entry.partition(":")
        entry = getattr(importlib.import_module(module), cls)
    found: Measurement[Any] = entry()
    return found


def probe_measurements() -> Iterator[ProbeMeasurement[Any]]:
    """All measurements of evidence, the suite's own first."""
    for name in measurements:
        found = get_measurement(name)
        if isinstance(found, ProbeMeasurement) and name != "scores":
            yield found


def as_found(found: Found[P] | Iterable[Row]) -> Found[P]:
    """What `compute` has returned; rows that it yields are computed here."""
    return found if isinstance(found, Found) else Found(tuple(found))


def as_payload(record: AnyRecord) -> AnyRecord:
    """The record with its payload in the measurement's own type, if that is known.

    Raises:
        ValidationError: the payload is not one of this measurement.
    """
    if record.measurement not in measurements:
        return record
    payload = get_measurement(record.measurement).payload.model_validate(record.payload)
    return record.model_copy(update={"payload": payload})


measurements.mark_as_shipped()
