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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

from probes.common.errors import UserError
from probes.common.registry import Registry
from probes.records.base import Frozen
from probes.records.charts import Chart
from probes.records.curves import Curves
from probes.records.probe_spec import ProbeSpec
from probes.records.record import AnyRecord, Extent, Record, covers, united
from probes.records.result import Result
from probes.records.table import Table
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


class Number(NamedTuple):
    """One number that a measurement found, for CSV files.

    Attributes:
        metric: its name; with the suite's own measurements, a column of `leaderboard.csv`.
        layer: None for a number of the model as a whole.
        axes: what else it is a number of, such as a head or a rank, by name.
        beside: what stands beside it, by name, such as a baseline and its kind: columns after the
            interval.
    """

    metric: str
    value: float | None
    layer: int | None = None
    low: float | None = None
    high: float | None = None
    split: str = "test"
    axes: Mapping[str, int | str] = {}
    beside: Mapping[str, float | int | str | None] = {}


@dataclass(frozen=True)
class Found(Generic[P]):
    """What `compute` returns.

    Attributes:
        payload: what is stored in the record.
        arrays: what is stored in the .npz file beside it, by name.
        parameters: what was fitted, by name, which the cache keeps; see
            `probes.records.parameters`.
    """

    payload: P
    arrays: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)
    parameters: Parameters = field(default_factory=dict)


class NoOptions(Frozen):
    """The options of a measurement that has none."""


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
        payload: the type of what is found; a frozen pydantic model.
        options: its settings, each with a default and a description. Each field becomes a flag
            ``--<name>-<field>``, and what is given becomes part of the key.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    summary: ClassVar[str]
    payload: ClassVar[type[Frozen]]
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

    def numbers(self, record: Record[P]) -> Iterator[Number]:
        """What a record says in numbers, for CSV files."""
        return iter(())


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

    @abstractmethod
    def compute(self, context: ProbeContext) -> Found[P]:
        """Measure the layers of `context.extent`."""

    def tables(self, results: Sequence[Result]) -> Sequence[Table]:
        """Tables of one model, corpus and probe family; all `results` have its record."""
        return ()

    def curves(self, results: Mapping[str, Result]) -> Curves | Sequence[Curves] | None:
        """Curves of one task, by model, for one chart or several; None if it has none to draw.

        Args:
            results: of all models; those without its record are listed as missing.
        """
        return None


class CorpusMeasurement(Measurement[P]):
    """A measurement of a model's vectors of a corpus as a whole, without tasks.

    Attributes:
        figures: names of the charts that `python -m probes figure` can draw.
        of_pairs: name of the `PairMeasurement` that is made along with it; empty for none.
        csv_name: name of the CSV file in the folder of model and corpus, without its ending; the
            measurement's own if empty.
        shares_arrays: whether its arrays have neither text nor labels, such as sums over sentences,
            and may be passed on where a licence forbids text.
    """

    figures: ClassVar[tuple[str, ...]] = ()
    of_pairs: ClassVar[str] = ""
    csv_name: ClassVar[str] = ""
    shares_arrays: ClassVar[bool] = False

    def missing(self, layers: frozenset[str]) -> str:
        """Why a corpus with these annotation layers cannot be measured; empty if it can."""
        return ""

    def view(self, corpus: Corpus, options: Any) -> View | None:
        """The texts that the collector reads; None for all sentences."""
        return None

    def collector(self, corpus: Corpus, layers: Sequence[int], options: Any) -> Collector | None:
        """What is to be kept of the model's reading; None for the word vectors of all sentences."""
        return None

    @abstractmethod
    def compute(self, context: CorpusContext) -> Found[P]:
        """Measure the layers of `context.layers`."""

    @abstractmethod
    def tables(self, record: Record[P]) -> Sequence[Table]:
        """What was found, to be printed at the end of a run."""

    def charts(self, records: Mapping[str, Record[P]]) -> Sequence[Chart]:
        """What was found for several models, by label, on one corpus."""
        return ()


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
    attributes = [x for x in ("name", "summary", "payload") if not hasattr(cls, x)]
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
