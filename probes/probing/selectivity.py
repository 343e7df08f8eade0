"""Selectivity: scores on the task minus scores on control tasks (Hewitt & Liang 2019).

A control task gives every type (such as a word form) one label, drawn at random from the labels of
the training examples. It can only be memorised, type by type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from probes.examples.scoring import NO_TYPES, control_labels, control_metric, known_number
from probes.measurements.chart_views import Lines
from probes.measurements.measurement import EvidenceRequest, Measured, measurement
from probes.measurements.pivots import Pivot
from probes.records.record import FitsPerLayer
from probes.records.row import Row
from probes.records.values import Interval, ends
from probes.statistics.bootstrap import bounds, draws_of, interval, replicates
from probes.statistics.metrics import Metric, metrics
from probes.statistics.replicates import Spread, pooled, training_noise
from probes.training.families import is_seeded

if TYPE_CHECKING:
    from probes.measurements.context import TaskContext


_NOTE = (
    "The control task gives every type a random label (Hewitt & Liang 2019): it can only be "
    "memorised. It shows how much a probe memorises; layers are not chosen by it."
)


N_CONTROLS, N_CONVEX_CONTROLS = 3, 10
"""Draws per layer; the second number with full evidence."""


def _reason_without_controls(request: EvidenceRequest) -> str:
    return "" if request.typed else NO_TYPES


def _controls_per_layer(request: EvidenceRequest) -> FitsPerLayer:
    if _reason_without_controls(request):
        return {}
    full, convex = request.level == "full", not is_seeded(request.probe)
    layers = request.layers if full or convex else request.three_layers
    return dict.fromkeys(layers, N_CONVEX_CONTROLS if full and convex else N_CONTROLS)


@measurement(
    "selectivity",
    after="scores",
    version=3,
    extent=_controls_per_layer,
    missing_of=_reason_without_controls,
    shows=(
        Pivot(
            "score on the task minus score on its control task",
            ("selectivity",),
            below=("types_seen", "control_sd"),
            note=f"{_NOTE} ± half the width of a 95 % interval over test documents or sentences "
            "and over draws of labels.",
        ),
        Lines("selectivity", "selectivity", "Selectivity by layer", _NOTE),
    ),
)
def selectivity(context: TaskContext) -> Measured:
    """Score minus score on control tasks (Hewitt & Liang 2019).

    Probes are fitted to control tasks with the seed and schedule of the reported probe. There are
    three draws of control labels, for convex probes at every layer, for others at three layers
    (lowest, best on dev, highest). With full evidence, all probes have them at every layer, and
    convex probes have ten draws.

    Rows by layer: selectivity; the reported probe's score by the control metric; and the score of a
    probe fitted to each draw. Rows without a layer: number of types in train, share of test
    examples with such a type, and standard deviation of control scores over draws, within layers.
    """
    examples, layers = context.examples, context.layers
    (n_draws,) = set(context.extent.values())
    name = control_metric(context.task.kind, context.task.metric)
    metric = metrics.get(name)
    controls = _ControlTasks(context, n_draws)
    predicted = controls.predicted()
    scores = [
        tuple(
            known_number(metric(gold, of_draw[None])[0])
            for gold, of_draw in zip(controls.gold, of_layer, strict=True)
        )
        for of_layer in predicted
    ]
    draws = pooled(scores)
    if draws is not None:
        # Layers share draws, whose effects are correlated: they count once.
        draws = Spread(sd=draws.sd, df=n_draws - 1)
    intervals = controls.intervals(metric, predicted, draws)
    of_task = metric(context.scorers["test"].gold, context.predicted(layers))
    rows = []
    for layer, of_layer, task, between in zip(layers, scores, of_task, intervals, strict=True):
        value = _score_minus_controls(known_number(task), of_layer)
        rows.append(Row("selectivity", value, layer, *ends(between)))
        rows.append(Row(name, task, layer))
        for draw, score in enumerate(of_layer, start=1):
            rows.append(Row(name, score, layer, axes={"draw": draw}))
    train = {e.type for e in examples.splits["train"].examples}
    test = [e.type for e in examples.splits["test"].examples]
    rows.append(Row("control_types", len(train), split="train"))
    rows.append(Row("types_seen", sum(x in train for x in test) / len(test)))
    if draws is not None:
        rows.append(Row("control_sd", draws.sd, n=draws.df))
    return Measured(rows, facts={"unit": name})


class _ControlTasks:
    """Draws of control labels, and the probes fitted to them."""

    def __init__(self, context: TaskContext, n_draws: int) -> None:
        self._context = context
        gold = context.scorers["test"].gold
        labels = {
            split: control_labels(context.examples, split, range(n_draws))
            for split in ("train", "dev", "test")
        }
        self.gold = [
            replace(gold, labels=draw_labels, unseen=() if gold.sets is None else gold.unseen)
            for draw_labels in labels.pop("test")
        ]
        self._labels = labels

    def predicted(self) -> NDArray[Any]:
        """Test predictions by layer and draw. Shape (L, draws, n, …)."""
        from probes.training.fit import FitSeed

        draws = [FitSeed()] * len(self.gold)
        return self._context.fits(self._context.layers, draws, self._labels).predicted["test"]

    def intervals(
        self, metric: Metric, predicted: NDArray[Any], spread: Spread | None
    ) -> list[Interval]:
        """Intervals of each layer's selectivity.

        Task and control task share resamples, with variation over other draws added.

        Args:
            predicted: see the method `predicted`.
            spread: spread of control scores over draws.
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
        return [bounds(pair) for pair in interval(difference, metric.differences)]


def _score_minus_controls(task: float | None, controls: Sequence[float | None]) -> float | None:
    known_scores = [score for score in controls if score is not None]
    if task is None or len(known_scores) < len(controls):
        return None
    return task - sum(known_scores) / len(known_scores)
