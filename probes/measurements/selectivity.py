"""Selectivity: scores on the task less scores on control tasks (Hewitt & Liang 2019).

A control task gives every type (in a word task: every word form) one label, drawn at random from
the labels of the task's training examples. It can only be memorised, type by type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import NDArray

from probes.examples.control_task import control_labels
from probes.examples.scoring import control_metric, number
from probes.measurements.cells import metric_curves, rows_by_layer, score_cell, task_head
from probes.measurements.measurement import Found, Level, ProbeMeasurement, Request
from probes.measurements.training_variance import Spread, pooled
from probes.records.base import Frozen
from probes.records.curves import Curves, Point
from probes.records.probe_spec import ProbeSpec
from probes.records.record import Extent, Record
from probes.records.result import Result
from probes.records.row import Row
from probes.records.table import NOTHING, Cell, Table, TableRow
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
    """Task minus the mean control of all draws; None if undefined."""
    interval: Interval
    """95 % interval of `value`, over test documents or sentences and over draws."""


class ControlScores(Frozen):
    """What `Selectivity` finds."""

    metric: str
    types: int
    """Number of types of the training examples; each has one random label."""
    seen: float
    """Share of test examples with a type that is in train; only their labels can be memorised."""
    common: int
    """Draws of each layer."""
    draws: Spread | None
    """Standard deviation of control scores over draws, within layers; None if it is undefined. Its
    degrees of freedom are those of one layer, since all have the same draws."""
    layers: tuple[LayerSelectivity, ...]

    def at(self, layer: int) -> LayerSelectivity | None:
        """Of one layer; None if it was not measured."""
        return next((x for x in self.layers if x.layer == layer), None)


class Selectivity(ProbeMeasurement[ControlScores]):
    """Probes fitted to control tasks, with the seed and the schedule of the task's own.

    Three draws of control labels, which also tell how much draws differ: of convex probes at every
    layer, of others at three (lowest, best on dev, highest). With full evidence every layer has
    them, and convex probes have ten.
    """

    name = "selectivity"
    version = 3
    summary = "score less score on control tasks (Hewitt & Liang 2019)"
    payload: ClassVar[type[ControlScores]] = ControlScores

    DRAWS, CONVEX_DRAWS = 3, 10
    """At each layer; the latter with full evidence."""

    def fits_at_once(self, probe: ProbeSpec, level: Level) -> int:
        """All draws."""
        return self.CONVEX_DRAWS if level == "full" and is_convex(probe) else self.DRAWS

    def cost(self, probe: ProbeSpec) -> float:
        """Convex probes are fitted to several draws together."""
        return 0.65 if is_convex(probe) else 1.0

    def extent(self, request: Request) -> Extent:
        """The number of draws by layer."""
        scored = request.scores
        if not scored.typed:
            return {}
        every = request.level == "full" or is_convex(scored.probe)
        layers = request.layers if every else scored.three_layers
        return dict.fromkeys(layers, self.fits_at_once(scored.probe, request.level))

    def compute(self, context: ProbeContext) -> Found[ControlScores]:
        """Fit and score."""
        examples, layers = context.examples, context.layers
        (n_draws,) = set(context.extent.values())
        name = control_metric(context.task.kind, context.task.metric)
        metric = metrics.get(name)
        controls = _ControlTasks(context, n_draws)
        predicted = controls.predicted()
        scores = [
            tuple(
                number(metric(gold, of_draw[None])[0])
                for gold, of_draw in zip(controls.gold, of_layer, strict=True)
            )
            for of_layer in predicted
        ]
        draws = pooled(scores)
        if draws is not None:
            # Layers have the same draws, whose effects go together: they count once.
            draws = Spread(sd=draws.sd, df=n_draws - 1)
        intervals = controls.intervals(metric, predicted, draws)
        of_task = metric(context.scorers["test"].gold, context.predicted(layers))
        found = [
            LayerSelectivity(
                layer=layer,
                task=number(task),
                controls=of_layer,
                value=_difference(number(task), of_layer),
                interval=between,
            )
            for layer, of_layer, task, between in zip(
                layers, scores, of_task, intervals, strict=True
            )
        ]
        train = {e.type for e in examples.splits["train"].examples}
        test = [e.type for e in examples.splits["test"].examples]
        return Found(
            payload=ControlScores(
                metric=name,
                types=len(train),
                seen=sum(x in train for x in test) / len(test),
                common=n_draws,
                draws=draws,
                layers=tuple(found),
            )
        )

    def numbers(self, record: Record[ControlScores]) -> Iterator[Row]:
        """The selectivity of each layer."""
        for layer in record.payload.layers:
            low, high = layer.interval or (None, None)
            yield Row("selectivity", layer.value, layer.layer, low, high)

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
                    TableRow.of(
                        "test types seen in train", *(f"{100 * x.seen:.0f} %" for x in every)
                    ),
                    TableRow.of(
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

    def predicted(self) -> NDArray[Any]:
        """Predictions on test of the probe of each layer and draw. Shape (L, draws, n, …)."""
        from probes.training.fit import Draw

        draws = [Draw()] * len(self.gold)
        return self._context.fits(self._context.layers, draws, self._labels).predicted["test"]

    def intervals(
        self, metric: Metric, predicted: NDArray[Any], spread: Spread | None
    ) -> list[Interval]:
        """Of each layer's selectivity.

        Task and control task share their resamples, to which what other draws would have given is
        added.

        Args:
            predicted: as of `predicted`.
            spread: of control scores over draws.
        """
        gold, layers, n = self._context.scorers["test"].gold, self._context.layers, len(self.gold)
        draws = draws_of(gold)
        if draws is None or spread is None:
            return [None] * len(layers)
        difference = replicates(metric, gold, self._context.predicted(layers), draws)
        for draw, control in enumerate(self.gold):
            difference -= replicates(metric, control, predicted[:, draw], draws) / n
        name = f"{self._context.result.key} control labels"
        difference += training_noise(name, layers, spread.sd / n**0.5, spread.df, len(draws))
        return [bounds(pair) for pair in interval(difference)]


def _difference(task: float | None, controls: Sequence[float | None]) -> float | None:
    known = [score for score in controls if score is not None]
    if task is None or len(known) < len(controls):
        return None
    return task - sum(known) / len(known)
