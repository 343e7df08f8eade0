"""Curves over layers with intervals, one per model: for charts, figures and tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from probes.boards.groups import Unit
from probes.records.payload import Interval, LayerResult
from probes.records.result import Result
from probes.records.titles import METRIC_NAMES
from probes.statistics.metrics import is_percent


class Point(NamedTuple):
    """One point of a curve: a layer, or the last layer of a mix, with its value and interval."""

    layer: int
    value: float | None
    interval: Interval = None


@dataclass(frozen=True)
class Curves:
    """One measure of one task, for every model that has it.

    Attributes:
        axis: title of the axis of values.
        metric: the metric that the values are printed as; empty for plain numbers.
        models: points by model.
        levels: values that are the same at every layer, by name.
        missing: why a model has no curve, by model.
    """

    name: str
    title: str
    note: str
    axis: str
    metric: str
    models: dict[str, list[Point]] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def scale(self) -> int:
        """Factor of the drawn values: shares are drawn as percentages."""
        return 100 if is_percent(self.metric) else 1


def all_curves(unit: Unit) -> list[Curves]:
    """All measures of a unit, in reading order."""
    return [scores(unit), selectivity(unit), compression(unit), mixes(unit)]


def scores(unit: Unit) -> Curves:
    """Headline test scores, with baselines and references as levels."""
    metric = unit.first.task.metric
    found = _curves(
        Curves(
            "score",
            "Score by layer",
            "Headline metric on test; bands are 95 % intervals, test sentences resampled.",
            _axis(metric),
            metric,
        ),
        unit,
        lambda r, x: (r.score(x), x.intervals.get(metric)),
        lambda r: "",
    )
    named = {**unit.first.baselines, **unit.first.references}
    for name, given in named.items():
        value = given.get(metric)
        if value is not None:
            found.levels[name] = value
    return found


def selectivity(unit: Unit) -> Curves:
    """Score minus the score on the control task."""

    def numbers(result: Result, layer: LayerResult) -> tuple[float | None, Interval]:
        given = layer.cells[0].selectivity
        return (given.value if given else None), layer.selectivity

    metrics = [r.control.metric for r in unit.results.values() if r.control]
    metric = metrics[0] if metrics else ""
    return _curves(
        Curves(
            "selectivity",
            "Selectivity by layer",
            "Score less score on a control task, which can only be memorised (Hewitt & Liang "
            "2019). It tells how much a probe memorises, and does not choose layers.",
            f"selectivity, {_axis(metric)}",
            metric,
        ),
        unit,
        numbers,
        lambda r: "" if r.control else _quick(r) or "its examples have no types",
    )


def compression(unit: Unit) -> Curves:
    """Length of the uniform code divided by that of the online code of the training labels."""
    found = _curves(
        Curves(
            "compression",
            "Compression by layer (description length)",
            "Length of the uniform code over that of the training labels' online code (Voita & "
            "Titov 2020); more is better.",
            "compression",
            "",
        ),
        unit,
        lambda r, x: (r.compression(x), r.compression_interval(x)),
        lambda r: "" if r.code else _quick(r) or _regression(r) or "it was not measured",
    )
    codes = [r.code for r in unit.results.values() if r.code]
    if codes:
        found.levels["labels alone"] = codes[0].uniform_bits / codes[0].prior_bits
    return found


def mixes(unit: Unit) -> Curves:
    """Test scores of the probe on the mix of layers 0 to k."""
    metric = unit.first.task.metric
    found = Curves(
        "mix",
        "Score on the mix of layers 0 to k",
        "Scalar mixes as Tenney et al. 2019a; what a layer adds is the step to it.",
        _axis(metric),
        metric,
    )
    for model, result in unit.results.items():
        if result.localisation is None:
            found.missing[model] = no_localisation(result)
        else:
            found.models[model] = [
                Point(mix.k, mix.test[metric], mix.intervals.get(metric))
                for mix in result.localisation.mixes
            ]
    return found


def no_localisation(result: Result) -> str:
    """Why a result has no mixes and expected layer."""
    if len(result.layers) <= result.model.n_layers:
        return "not all layers were probed"
    return _quick(result) or "it was not asked for"


def _curves(
    found: Curves,
    unit: Unit,
    numbers: Callable[[Result, LayerResult], tuple[float | None, Interval]],
    why_not: Callable[[Result], str],
) -> Curves:
    for model, result in unit.results.items():
        if why := why_not(result):
            found.missing[model] = why
        else:
            found.models[model] = [Point(x.layer, *numbers(result, x)) for x in result.layers]
    return found


def _quick(result: Result) -> str:
    return "a quick run leaves it out" * result.quick


def _regression(result: Result) -> str:
    return "it is not defined for regression" * (result.task.kind == "regression")


def _axis(metric: str) -> str:
    return METRIC_NAMES.get(metric, metric) + ", %" * is_percent(metric)
