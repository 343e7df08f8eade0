"""Selectivity: scores on the task less scores on control tasks (Hewitt & Liang 2019).

A control task gives every type (in a word task: every word form) one label, drawn at random from
the labels of the task's training examples. It can only be memorised, type by type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from probes.examples.control_task import control_labels
from probes.examples.scoring import control_metric, number
from probes.measurements.cells import metric_curves, rows_by_layer, score_cell
from probes.measurements.measurement import Found, Level, Number, ProbeMeasurement, Request
from probes.measurements.training_variance import Spread, pooled
from probes.records.base import Frozen
from probes.records.curves import Curves, Point
from probes.records.probe_spec import ProbeSpec
from probes.records.record import Extent, Record
from probes.records.result import Result
from probes.records.table import NOTHING, Cell, Row, Table
from probes.records.titles import task_head
from probes.records.values import Interval
from probes.statistics.bootstrap import bounds, draws_of, interval, replicates
from probes.statistics.formatting import shown_sd
from probes.statistics.metrics import Metric, metrics
from probes.statistics.training_noise import training_noise
from probes.training.families import is_convex

if TYPE_CHECKING:
    from probes.measurements.probe_context import ProbeContext


class LayerSelectivity(Frozen):
    """Test scores of one layer, by `ControlScores.metric`."""

    layer: int
    task: float | None
    """Of the probe whose scores are reported."""
    controls: tuple[float | None, ...]
    """Of a probe fitted to each draw of control labels."""
    value: float | None
    """Task minus the mean control of the draws that every layer has; None if undefined."""
    interval: Interval
    """95 % interval of `value`, over test documents or sentences and over draws; None if there is
    but one draw, so that nothing is known of others."""


class ControlScores(Frozen):
    """What `Selectivity` finds."""

    metric: str
    types: int
    """Number of types of the training examples; each has one random label."""
    seen: float
    """Share of test examples with a type that is in train; only their labels can be memorised."""
    common: int
    """Draws that every layer has."""
    draws: Spread | None
    """Standard deviation of control scores over draws, within layers that have several."""
    layers: tuple[LayerSelectivity, ...]

    def at(self, layer: int) -> LayerSelectivity | None:
        """Of one layer; None if it was not measured."""
        return next((x for x in self.layers if x.layer == layer), None)


class Selectivity(ProbeMeasurement[ControlScores]):
    """Probes fitted to control tasks, with the seed and the schedule of the task's own.

    One draw of control labels for convex probes at every layer, and four more at three layers
    (lowest, best on dev, highest); two draws for other probes at these. With full evidence ten, or
    three, draws at every layer.
    """

    name = "selectivity"
    version = 2
    summary = "score less score on control tasks (Hewitt & Liang 2019)"
    payload: ClassVar[type[ControlScores]] = ControlScores

    FEW_DRAWS = 5
    """At three layers, of convex probes; one of them at every layer."""

    FEWEST_DRAWS = 2
    """At three layers, of other probes."""

    DRAWS, DEAR_DRAWS = 10, 3
    """At every layer, with full evidence: of convex probes, and of others."""

    def fits_at_once(self, probe: ProbeSpec, level: Level) -> int:
        """The first draw is fitted before the others."""
        if not is_convex(probe):
            return self.DEAR_DRAWS - 1
        return (self.DRAWS if level == "full" else self.FEW_DRAWS) - 1

    def cost(self, probe: ProbeSpec) -> float:
        """Convex probes are fitted to several draws together."""
        return 0.65 if is_convex(probe) else 1.0

    def extent(self, request: Request) -> Extent:
        """The number of draws by layer."""
        if not request.scores.typed:
            return {}
        convex = is_convex(request.scores.probe)
        if request.level == "full":
            return dict.fromkeys(request.layers, self.DRAWS if convex else self.DEAR_DRAWS)
        n_draws = self.FEW_DRAWS if convex else self.FEWEST_DRAWS
        few = dict.fromkeys(request.scores.three_layers, n_draws)
        return {**dict.fromkeys(request.layers, 1), **few} if convex else few

    def compute(self, context: ProbeContext) -> Found[ControlScores]:
        """Fit and score; layers with several draws are fitted by themselves."""
        examples = context.examples
        n_draws = max(context.extent.values())
        name = control_metric(context.task.kind, context.task.metric)
        metric = metrics.get(name)
        controls = _ControlTasks(context, n_draws)
        by_layer = dict(
            zip(context.layers, controls.predicted(context.layers, slice(0, 1)), strict=True)
        )
        several = tuple(x for x, n in context.extent.items() if n > 1)
        if several:
            further = controls.predicted(several, slice(1, n_draws))
            for layer, predicted in zip(several, further, strict=True):
                by_layer[layer] = np.concatenate([by_layer[layer], predicted])
        scores = {
            layer: tuple(
                number(metric(controls.gold[draw], predicted[draw : draw + 1])[0])
                for draw in range(len(predicted))
            )
            for layer, predicted in by_layer.items()
        }
        draws, common = pooled(list(scores.values())), min(context.extent.values())
        intervals = controls.intervals(metric, by_layer, common, draws)
        of_task = metric(context.scorers["test"].gold, context.predicted(context.layers))
        found = [
            LayerSelectivity(
                layer=layer,
                task=number(task),
                controls=of_layer,
                value=_difference(number(task), of_layer[:common]),
                interval=between,
            )
            for (layer, of_layer), task, between in zip(
                scores.items(), of_task, intervals, strict=True
            )
        ]
        train = {e.type for e in examples.splits["train"].examples}
        test = [e.type for e in examples.splits["test"].examples]
        return Found(
            ControlScores(
                metric=name,
                types=len(train),
                seen=sum(x in train for x in test) / len(test),
                common=common,
                draws=draws,
                layers=tuple(found),
            )
        )

    def numbers(self, record: Record[ControlScores]) -> Iterator[Number]:
        """The selectivity of each layer."""
        for layer in record.payload.layers:
            low, high = layer.interval or (None, None)
            yield Number("selectivity", layer.value, layer.layer, low, high)

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """By layer, with the share of known types and the spread over draws."""

        def cell(result: Result, layer: int) -> Cell | None:
            found = result.found(self.name)
            at = found.at(layer)
            return at and score_cell(at.value, at.interval, found.metric)

        every = [result.found(self.name) for result in results]
        return [
            Table(
                "selectivity: score on the task less score on its control task",
                ("layer", *(task_head(r, x.metric) for r, x in zip(results, every, strict=True))),
                (
                    *rows_by_layer(results, cell),
                    Row.of("test types seen in train", *(f"{100 * x.seen:.0f} %" for x in every)),
                    Row.of(
                        "SD over draws",
                        *(shown_sd(x.draws.sd, x.metric) if x.draws else NOTHING for x in every),
                    ),
                ),
                notes=(
                    "The control task gives every type a random label (Hewitt & Liang 2019): it "
                    "can only be memorised. ± half a 95 % interval over test documents or "
                    "sentences and over draws of labels. It tells how much a probe memorises, and "
                    "does not choose layers.",
                ),
            )
        ]

    def curves(self, results: Mapping[str, Result]) -> Curves:
        """Selectivity by layer."""
        payloads = {model: result.found(self.name) for model, result in results.items()}
        metric = next((x.metric for x in payloads.values() if x), "")
        found = metric_curves(
            "selectivity",
            "Selectivity by layer",
            "Score less score on a control task, which can only be memorised (Hewitt & Liang "
            "2019). It tells how much a probe memorises, and does not choose layers.",
            metric,
            prefix="selectivity, ",
        )
        for model, payload in payloads.items():
            if payload:
                found.models[model] = [Point(x.layer, x.value, x.interval) for x in payload.layers]
            elif not results[model].examples.typed:
                found.missing[model] = "its examples have no types"
            else:
                found.missing[model] = "there is no record of it"
        return found


class _ControlTasks:
    """Draws of control labels, and the probes that are fitted to them."""

    def __init__(self, context: ProbeContext, n_draws: int) -> None:
        self._context = context
        gold = context.scorers["test"].gold
        labels = {
            split: control_labels(context.examples, split, range(n_draws))
            for split in ("train", "dev", "test")
        }
        self.gold = [
            replace(gold, labels=each, unseen=() if gold.sets is None else gold.unseen)
            for each in labels.pop("test")
        ]
        self._labels = labels

    def predicted(self, layers: Sequence[int], draws: slice) -> NDArray[Any]:
        """Predictions on test of probes fitted to some draws. Shape (L, draws, n, …)."""
        from probes.training.fit import Draw

        labels = {split: each[draws] for split, each in self._labels.items()}
        fits = self._context.fits(layers, [Draw()] * len(labels["train"]), labels)
        return fits.predicted["test"]

    def intervals(
        self, metric: Metric, by_layer: Mapping[int, NDArray[Any]], n: int, spread: Spread | None
    ) -> list[Interval]:
        """Of each layer's selectivity for the first n draws.

        Task and control task share their resamples, to which what other draws would have given is
        added.

        Args:
            spread: of control scores over draws.
        """
        gold = self._context.scorers["test"].gold
        draws, layers = draws_of(gold), list(by_layer)
        if draws is None or spread is None:
            return [None] * len(layers)
        difference = replicates(metric, gold, self._context.predicted(layers), draws)
        for draw in range(n):
            control = np.stack([predicted[draw] for predicted in by_layer.values()])
            difference -= replicates(metric, self.gold[draw], control, draws) / n
        name = f"{self._context.result.key} control labels"
        difference += training_noise(name, layers, spread.sd / n**0.5, spread.df, len(draws))
        return [bounds(pair) for pair in interval(difference)]


def _difference(task: float | None, controls: Sequence[float | None]) -> float | None:
    known = [score for score in controls if score is not None]
    if task is None or len(known) < len(controls):
        return None
    return task - sum(known) / len(known)
