"""Measurements: one question about a model's vectors each, with its method, as one plug-in.

A measurement is a function from a context to rows, registered by `@measurement(name, …)`. Modules
of the suite are listed here by name and imported when they are used, which keeps the command line
fast. They import torch inside the function: keys, tables and rows are made without it.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from probes.common.errors import UserError
from probes.common.registry import Registry, did_you_mean
from probes.measurements.catalogue import measurement_families, registered
from probes.records.values import Frozen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pydantic.fields import FieldInfo

    from probes.data.sentence import Corpus
    from probes.extraction.reading.alignment import WordTokenizer
    from probes.extraction.reading.collectors import Collector
    from probes.extraction.reading.views import Text, View
    from probes.measurements.pivots import AnyView, ChartView
    from probes.records.header import ExampleCounts
    from probes.records.parameters import Parameters
    from probes.records.probe_spec import ProbeSpec
    from probes.records.record import FitsPerLayer, Record
    from probes.records.result import Result
    from probes.records.row import AxisValue, Row
    from probes.tables.table import Table

Level = Literal["standard", "full"]
"""Levels of evidence."""

CSV_FIELDS = "metric", "split", "value", "low", "high"
"""Fields of a row that every CSV file of a measurement has."""


class NoOptions(Frozen):
    """The options of a measurement that has none."""


@dataclass(frozen=True)
class Measured:
    """Findings that a measurement returns. One that has only rows may yield them instead.

    Attributes:
        rows: the numbers.
        arrays: arrays by name, stored in the .npz file next to the record.
        parameters: fitted parameters by name. They are kept in the cache, from which they may be
            pruned; `read_parameters` reads them.
        facts: further facts about the rows, such as counts; part of the record's header.
        notes: sentences printed below the record's first table. ``[mixes] …`` is printed below the
            table with the title "mixes".
        examples: for scores, the examples of the task in the corpus.
    """

    rows: Iterable[Row] = ()
    arrays: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)
    parameters: Parameters = field(default_factory=dict)
    facts: Mapping[str, AxisValue] = field(default_factory=dict)
    notes: Sequence[str] = ()
    examples: ExampleCounts | None = None


class UseColumn(NamedTuple):
    """Numbers by layer that are shown beside the scores of a task, in `show --by use`.

    Attributes:
        name: what they say of a layer, in a word or two.
        note: a sentence that explains them.
        metric, where: of the rows; see `probes.measurements.row_filters.Where`.
        axis: the axis that names the task; empty if rows have none.
        task: the only task that they say something of; empty for every task of the record.
        decodable: metric of the record with the probe's accuracy on the same examples; empty if
            these numbers are no percentage of right answers, which is to be compared with it.
        tested: whether ▽ marks numbers whose p is .05 or more.
    """

    name: str
    note: str
    metric: str
    where: Mapping[str, Any]
    axis: str = ""
    task: str = ""
    decodable: str = ""
    tested: bool = False


@dataclass(frozen=True)
class Request:
    """Request of a run to a measurement.

    Attributes:
        layers: the layers of `--layers`, ascending; for evidence, all layers that have scores.
        n_layers: number of blocks of the model.
        seeds: number of fits of each layer on the whole training split.
        level: "full" for `--evidence full`, otherwise "standard".
    """

    layers: tuple[int, ...]
    n_layers: int
    seeds: int = 1
    level: Level = "standard"


@dataclass(frozen=True, kw_only=True)
class EvidenceRequest(Request):
    """Request for evidence behind scores.

    Attributes:
        probe: settings of the probes.
        best: the layer with the best score on dev.
        typed: whether every example has a type, which control tasks need.
        headline: the headline test scores, by layer.
    """

    probe: ProbeSpec
    best: int
    typed: bool
    headline: Mapping[int, float | None] = field(default_factory=dict)

    @classmethod
    def behind(cls, scores: Result, seeds: int = 1, level: Level = "full") -> EvidenceRequest:
        """Request for evidence behind all scores of a result."""
        return cls(
            tuple(scores.extent),
            scores.model.n_layers,
            seeds,
            level,
            probe=scores.probe,
            best=scores.best_layer,
            typed=scores.examples.typed,
            headline=scores.headline,
        )

    @property
    def three_layers(self) -> tuple[int, ...]:
        """The lowest, the best and the highest layer, for expensive evidence."""
        return tuple(sorted({self.layers[0], self.best, self.layers[-1]}))


def _every_layer(request: Request) -> FitsPerLayer:
    return dict.fromkeys(request.layers, 1)


def _no_reason(*_: Any) -> str:
    return ""


def _none(*_: Any) -> None:
    return None


def _no_more_tables(record: Record) -> Sequence[Table]:
    return ()


def csv_lines(record: Record) -> Iterator[Mapping[str, AxisValue]]:
    """The lines of a CSV file, by column: all rows of a record, unrounded."""
    rows, axes = list(record.rows), record.rows.axes
    filled = [name for name in ("n", "p") if any(getattr(row, name) for row in rows)]
    for row in rows:
        axis_values = {axis: row.axes.get(axis) for axis in axes}
        fields = {name: getattr(row, name) for name in (*CSV_FIELDS, *filled)}
        yield {"layer": row.layer, **axis_values, **fields}


@dataclass(frozen=True, eq=False)
class Measurement:
    """One question with its method. The arguments of `@measurement` are these attributes.

    Attributes:
        name: lower-case letters, digits and underscores; part of file names.
        function: gets a context, and yields rows or returns `Measured`.
        of: "model" for a model that has read a corpus (`ModelContext`); "task" for each task and
            probe family (`TaskContext`); "pair" for each other model and the base, which is the
            first model of the run (`PairContext`). Random twins are among the other models. The
            record belongs to the other model and names the base.
        after: "scores" makes a measurement of a task evidence, which is shown with the scores. A
            measurement of a model then covers all tasks that were scored with one probe family
            (`context.tasks`). For a pair, the measurement that it is made along with.
        version: part of the key. Raise it when the same input would give other numbers.
        needs: annotation layers without which a corpus is refused.
        options: settings, each with a default and a description. Each field becomes a flag
            ``--<name>-<field>``. Given values are part of the key.
        shows: tables and charts of the rows. By default a table of all numbers by layer, and a
            chart of their curves. Those of evidence see one task at a time. A view may be an
            object with ``name``, ``title``, ``note``, ``missing(shown_records)``, which returns
            reasons by model, and ``chart(shown_records, style)``, which returns a chart.
        use_columns: numbers by layer that `show --by use` shows with the scores.
        extent: called with a `Request`; returns the number of repetitions by layer, empty to
            measure nothing. A stored record is kept if it has all of these layers.
        missing: called with (task, probe, level); returns why it is not measured, or "".
        also_for_twins: whether evidence of random twins is always gathered, not only if it is full.
        reads: called with (corpus, options); returns the texts that the collector reads, None for
            all sentences.
        collector: called with (corpus, layers, options); returns the `Collector` of forward passes,
            None for word vectors.
        check: called with (tokenizer, a text, options) before a run reads texts or chats; raises a
            UserError if these options do not suit the tokenizer.
        head: "needed" or "used" if the measurement needs, or can use, a language-model head.
        shares_arrays: whether the arrays have neither text nor labels, such as sums over sentences,
            and may be passed on where a licence forbids text.
        variant_for_items: the measurement to make instead for a corpus of items.
        items: kind of items that a measurement after scores can read instead of scored tasks.
        missing_of: called with the `EvidenceRequest` of stored scores; returns a further reason
            why they lack this measurement, such as their layers, or "".
        more_tables: called with a record; returns tables that follow those of the views.
        csv_lines: called with a record; returns the lines of its CSV file, by column.
        csv_name: name of that file without its ending; by default the measurement's name.
    """

    name: str
    function: Callable[[Any], Measured | Iterable[Row]]
    of: Literal["task", "model", "pair"] = "model"
    after: str = ""
    version: int = 1
    needs: tuple[str, ...] = ()
    options: type[Frozen] = NoOptions
    shows: Sequence[AnyView] = ()
    use_columns: Sequence[UseColumn] = ()
    extent: Callable[[Any], FitsPerLayer] = _every_layer
    missing: Callable[[Any, ProbeSpec, Level], str] = _no_reason
    also_for_twins: bool = False
    reads: Callable[[Corpus, Any], View | None] = _none
    collector: Callable[[Corpus, Sequence[int], Any], Collector | None] = _none
    check: Callable[[WordTokenizer, Text, Any], None] = _none
    head: Literal["", "needed", "used"] = ""
    shares_arrays: bool = False
    variant_for_items: str = ""
    items: str = ""
    missing_of: Callable[[EvidenceRequest], str] = _no_reason
    more_tables: Callable[[Record], Sequence[Table]] = _no_more_tables
    csv_lines: Callable[[Record], Iterable[Mapping[str, AxisValue]]] = csv_lines
    csv_name: str = ""

    def __call__(self, context: Any) -> Measured | Iterable[Row]:
        """Measure the layers of `context.extent`."""
        return self.function(context)

    @property
    def title(self) -> str:
        """Name in texts."""
        return self.name.replace("_", " ")

    @property
    def summary(self) -> str:
        """One line for `--list-measurements`: the first of its docstring."""
        line = (inspect.getdoc(self.function) or "").partition("\n")[0].rstrip(".")
        return line if line[:2].isupper() else line[:1].lower() + line[1:]

    @property
    def is_evidence(self) -> bool:
        """Whether it stands behind scores, with which its records are shown."""
        return self.of == "task" and bool(self.after)

    @property
    def spans_tasks(self) -> bool:
        """Whether it is about all tasks that were scored."""
        return self.of == "model" and bool(self.after)

    def reads_items(self, kind: str) -> bool:
        """Whether it measures a corpus that consists of items of a kind."""
        return kind in (*self.needs, self.items)

    def missing_annotation(self, layers: frozenset[str]) -> str:
        """The reason why a corpus with these annotation layers cannot be measured, or ''."""
        layer_names = [name for name in self.needs if name not in layers]
        return f"it has no {' and no '.join(layer_names)}" if layer_names else ""

    def reason_missing(self, result: Result) -> str:
        """The reason why a result lacks this evidence, for tables and charts."""
        from probes.records.result import UNMEASURED

        # The task of a stored result lacks what the function of a plug-in may ask of one.
        is_plug_in = measurements.origin(self.name) is not None
        reason = "" if is_plug_in else self.missing(result.task, result.probe, "full")
        return reason or self.missing_of(EvidenceRequest.behind(result)) or UNMEASURED

    def covers(self, record: Record, request: Request) -> bool:
        """Whether a stored record has all that is requested, and evidence has the same scores."""
        from probes.records.record import includes

        same = not isinstance(request, EvidenceRequest) or record.behind == request.headline
        return same and includes(record.extent, self.extent(request))

    def merged(self, stored: FitsPerLayer, requested: FitsPerLayer) -> FitsPerLayer:
        """Fits to compute if a stored record has less than is requested, so that nothing is lost.

        All layers of both, each as often as the most: the predictions of scores make up one array.
        Evidence is recomputed for exactly the requested layers: it depends on the whole request.
        """
        from probes.records.record import merged_fits

        fits = merged_fits(stored, requested)
        return requested if self.is_evidence else dict.fromkeys(fits, max(fits.values()))

    def own_record(self, record: Record) -> Record | None:
        """The evidence of this name in a result, None without it; other records are returned."""
        if not self.is_evidence:
            return record
        return cast("Result", record).evidence.get(self.name)

    @property
    def charts(self) -> list[ChartView]:
        """The charts among its views."""
        from probes.measurements.pivots import Pivot

        return [view for view in self.shows if not isinstance(view, Pivot)]

    @property
    def figure_names(self) -> list[str]:
        """Names of the charts that `python -m probes figure` can draw."""
        return [view.name for view in self.charts]


LOCALISATION, NEGATIVES_THRESHOLD = "localisation", "negatives_threshold"

_PROBING = "probes.probing"

EVIDENCE = {
    "training_variance": f"{_PROBING}.training_variance",
    "selectivity": f"{_PROBING}.selectivity",
    "conditional_probing": f"{_PROBING}.conditional_probing",
    "description_length": f"{_PROBING}.description_length",
    LOCALISATION: f"{_PROBING}.localisation",
    "sparse_probing": f"{_PROBING}.sparse_probing",
}
"""The evidence behind scores, most valuable first, and the module of each."""

CORPUS = registered("measurements")
"""Measurements of a corpus as a whole, which `--measurements` asks for, and the module of each."""

ON_REQUEST = {name: f"{_PROBING}.{name}" for name in ("malformed", NEGATIVES_THRESHOLD)}
ON_REQUEST |= registered("evidence")
"""Further evidence, which is gathered where it is named."""

TRANSFER = "".join(family.transfer for family in measurement_families().values())
"""The evidence that `--transfer` asks for; empty if no family has it."""

BY_FLAG = {"threshold_from": NEGATIVES_THRESHOLD, "transfer": TRANSFER}
"""The evidence that is gathered where a flag is given, by the flag."""

_MODULES = {"scores": f"{_PROBING}.scores", **EVIDENCE, **ON_REQUEST, **CORPUS}

LEVELS = ("none", "standard", "full")
"""Values of `--evidence` that are not names of measurements."""

RESERVED = ("probes", *LEVELS)
"""Words that no measurement may be called."""

measurements: Registry[Measurement | None] = Registry("measurement")
"""Measurements by name; None for one of the suite's own, which its module makes."""

for _name in _MODULES:
    measurements.add(_name, None)

_instances: dict[str, Measurement] = {}
"""The suite's own, as far as their modules are imported."""


def measurement(
    name: str, **about: Any
) -> Callable[[Callable[[Any], Measured | Iterable[Row]]], Measurement]:
    """Make a measurement of the decorated function, and register it.

    The first line of the function's docstring is the measurement's summary.

    Args:
        name: see `Measurement`.
        about: further attributes of a `Measurement`; `of` is "task" where `after` is "scores",
            unless it is given.

    Raises:
        UserError: an attribute does not exist or cannot be used, the function has no docstring, or
            the name is taken.
    """
    if callable(name):
        raise UserError('@measurement: it needs a name: @measurement("my_norms").')
    require_usable(name)
    prefix = f"Measurement {name!r}"
    if after := about.get("after"):
        about.setdefault("of", "task")
    for attribute in about:
        if attribute not in Measurement.__dataclass_fields__:
            # The first two, name and function, are not for the decorator.
            hint = did_you_mean(attribute, [*Measurement.__dataclass_fields__][2:])
            raise UserError(f"{prefix}: there is no attribute {attribute!r}. {hint}")
    of = about.get("of", "model")
    if of not in ("task", "model", "pair"):
        raise UserError(f'{prefix}: of is {of!r}; it can be "task", "model" or "pair".')
    # Scores themselves are of a task, and after nothing.
    if of == "task" and not after and name not in _MODULES:
        raise UserError(f'{prefix}: of a task it has to be after="scores".')
    if after and after not in (measurements if of == "pair" else ("scores",)):
        raise UserError(f"{prefix}: after is {after!r}, which nothing of a {of} can be after.")
    options = about.get("options", NoOptions)
    if not (isinstance(options, type) and issubclass(options, Frozen)):
        raise UserError(f"{prefix}: options has to be a subclass of Frozen.")

    def register(function: Callable[[Any], Measured | Iterable[Row]]) -> Measurement:
        from probes.measurements.pivots import ByLayer, Pivot

        instance = Measurement(name, function, **{"shows": (Pivot(), ByLayer(name)), **about})
        if not instance.summary:
            raise UserError(f"{prefix}: its docstring has no first line, which is its summary.")
        if _MODULES.get(name) == getattr(function, "__module__", ""):
            _instances[name] = instance
            return instance
        for option, field_of in options.model_fields.items():
            if field_of.is_required():
                raise UserError(f"{prefix}: the option {option!r} has no default.")
        measurements.add(name, instance)
        return instance

    return register


def require_usable(name: object) -> None:
    """Raise UserError if the name of a measurement cannot be part of file names and flags."""
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
    instance = measurements.get(name)
    if instance is None:
        importlib.import_module(_MODULES[name])
        instance = _instances[name]
    return instance


def option_fields(name: str) -> Mapping[str, FieldInfo]:
    """Fields of a measurement's options, which become flags; imports no module of the suite."""
    if name in _MODULES:
        families = measurement_families().values()
        return next((x.options[name].model_fields for x in families if name in x.options), {})
    return get_measurement(name).options.model_fields


def probe_measurements() -> list[Measurement]:
    """All measurements that stand behind scores, the suite's own first."""
    return [m for m in map(get_measurement, measurements) if m.is_evidence]


def corpus_measurements() -> list[Measurement]:
    """All measurements of a corpus as a whole, pairs of models among them."""
    return [m for m in map(get_measurement, measurements) if m.of != "task"]


def as_measured(output: Measured | Iterable[Row]) -> Measured:
    """`Measured` of a measurement's return value; rows that it yields are computed here."""
    return output if isinstance(output, Measured) else Measured(tuple(output))


measurements.mark_as_shipped()
