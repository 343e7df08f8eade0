"""Selectivity: scores on the task less scores on control tasks (Hewitt & Liang 2019).

A control task gives every type (in a word task: every word form) one label, drawn at random from
the labels of the task's training examples. It can only be memorised, type by type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from probes.statistics.bootstrap import MIN_SENTENCES, bounds, interval, replicates, resample
from probes.statistics.formatting import shown_sd
from probes.statistics.gold import Gold
from probes.statistics.metrics import Metric, metrics
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
    interval: Interval
    """95 % interval of the selectivity for the first draw, test sentences resampled."""

    @property
    def value(self) -> float | None:
        """Task minus control, for the first draw, which every layer has; None if undefined."""
        first = self.controls[0]
        return None if self.task is None or first is None else self.task - first


class ControlScores(Frozen):
    """What `Selectivity` finds."""

    metric: str
    types: int
    """Number of types of the training examples; each has one random label."""
    seen: float
    """Share of test examples with a type that is in train; only their labels can be memorised."""
    draws: Spread | None
    """Standard deviation of control scores over draws, within layers that have several."""
    layers: tuple[LayerSelectivity, ...]

    def at(self, layer: int) -> LayerSelectivity | None:
        """Of one layer; None if it was not measured."""
        return next((x for x in self.layers if x.layer == layer), None)


class Selectivity(ProbeMeasurement[ControlScores]):
    """Probes fitted to control tasks, with the seed and the schedule of the task's own.

    One draw of control labels for convex probes at every layer, and four more at three layers
    (lowest, best on dev, highest); one draw for other probes at these. With full evidence ten, or
    three, draws at every layer.
    """

    name = "selectivity"
    summary = "score less score on control tasks (Hewitt & Liang 2019)"
    payload: ClassVar[type[ControlScores]] = ControlScores

    FEW_DRAWS = 5
    """At three layers, of convex probes."""

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
        few = dict.fromkeys(request.scores.three_layers, self.FEW_DRAWS if convex else 1)
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
        intervals = controls.intervals(metric, by_layer)
        of_task = metric(context.scorers["test"].gold, context.predicted(context.layers))
        found = []
        for place, (layer, predicted) in enumerate(by_layer.items()):
            scores = [
                number(metric(controls.gold[draw], predicted[draw : draw + 1])[0])
                for draw in range(len(predicted))
            ]
            found.append(
                LayerSelectivity(
                    layer=layer,
                    task=number(of_task[place]),
                    controls=tuple(scores),
                    interval=intervals[place],
                )
            )
        train = {e.type for e in examples.splits["train"].examples}
        test = [e.type for e in examples.splits["test"].examples]
        return Found(
            ControlScores(
                metric=name,
                types=len(train),
                seen=sum(x in train for x in test) / len(test),
                draws=pooled([x.controls for x in found]),
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
                    "can only be memorised. ± half a 95 % interval over test sentences, for the "
                    "first draw of labels; the spread over draws comes on top. It tells how much a "
                    "probe memorises, and does not choose layers.",
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
            Gold(each, gold.sentence, gold.classes, gold.punctuation, sets=gold.sets)
            for each in labels.pop("test")
        ]
        self._labels = labels

    def predicted(self, layers: Sequence[int], draws: slice) -> NDArray[Any]:
        """Predictions on test of probes fitted to some draws. Shape (L, draws, n, …)."""
        from probes.training.fit import Draw

        labels = {split: each[draws] for split, each in self._labels.items()}
        fits = self._context.fits(layers, [Draw()] * len(labels["train"]), labels)
        return fits.predicted["test"]

    def intervals(self, metric: Metric, by_layer: Mapping[int, NDArray[Any]]) -> list[Interval]:
        """For each layer and the first draw: task and control task share their resamples."""
        gold = self._context.scorers["test"].gold
        if gold.n_sentences < MIN_SENTENCES:
            return [None] * len(by_layer)
        sentences = resample(gold.n_sentences)
        task = self._context.predicted(list(by_layer))
        control = np.stack([predicted[0] for predicted in by_layer.values()])
        difference = replicates(metric, gold, task, sentences) - replicates(
            metric, self.gold[0], control, sentences
        )
        return [bounds(pair) for pair in interval(difference)]
