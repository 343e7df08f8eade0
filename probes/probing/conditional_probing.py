"""Conditional probing: what a layer adds to layer 0 (Hewitt, Ethayarajh, Liang & Manning 2021).

The conditional V-information of layer k given layer 0 is the number of bits saved on the labels by
a probe on both layers concatenated, compared with a probe on layer 0. The paper's second probe
reads [layer 0; zeros]. Under the penalty, weights of zeros are 0, so this is the probe on layer 0
alone. Both probes have the same prior. Only convex probes are used, since their
optimum does not depend on the start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from probes.measurements.chart_views import Lines
from probes.measurements.measurement import EvidenceRequest, measurement
from probes.measurements.pivots import Pivot
from probes.records.record import FitsPerLayer
from probes.records.row import Row
from probes.records.values import Interval, ends
from probes.statistics.bootstrap import Draws, bounds, draws_of, interval, replicates
from probes.statistics.gold import Gold
from probes.statistics.metrics import Metric, mean_value, metrics
from probes.statistics.sums import sparse_matrix
from probes.training.families import why_not_convex

if TYPE_CHECKING:
    from torch import Tensor

    from probes.common.arrays import Floats
    from probes.measurements.context import TaskContext
    from probes.training.batches import Batches
    from probes.training.features import Features

_NOTE = (
    "A probe on layers 0 and k concatenated, compared with one on layer 0 (conditional probing, "
    "Hewitt et al. 2021)."
)


def _reason_of_layers(request: EvidenceRequest) -> str:
    if 0 not in request.layers:
        return "layer 0 was not probed"
    return "only layer 0 was probed" if len(request.layers) == 1 else ""


def _layers_above_embeddings(request: EvidenceRequest) -> FitsPerLayer:
    if _reason_of_layers(request):
        return {}
    full = request.level == "full"
    layers = request.layers if full else (request.best or request.layers[-1],)
    return {layer: 1 for layer in layers if layer}


@measurement(
    "conditional_probing",
    after="scores",
    version=2,
    missing=lambda task, probe, level: why_not_convex(probe, "are fitted on concatenated layers"),
    extent=_layers_above_embeddings,
    missing_of=_reason_of_layers,
    shows=(
        Pivot(
            "bits per example that a layer adds to layer 0",
            ("added_bits",),
            below=("examples_left_out",),
            note="Bits saved on test labels by a probe on layers 0 and k concatenated, compared "
            "with one on layer 0 (Hewitt et al. 2021). ± half the width of a 95 % interval over "
            "test documents or sentences, without training variation. A layer without information "
            "costs about d (K − 1) / (2 n ln 2) bits (d dimensions, K classes, n training "
            "examples).",
        ),
        Pivot(
            "points that a layer adds to layer 0",
            ("added_points",),
            note="Score of the probe on both layers minus score of the probe on layer 0.",
        ),
        Lines("conditional", "added_bits", "Bits that a layer adds to layer 0", _NOTE),
        Lines("conditional_points", "added_points", "Points that a layer adds to layer 0", _NOTE),
    ),
)
def conditional_probing(context: TaskContext) -> Iterator[Row]:
    """Bits and points that a layer adds to layer 0 (Hewitt et al. 2021).

    Convex probes on layers 0 and k are compared with one on layer 0, at the best layer on dev (or
    the highest, if that is layer 0); with full evidence at every layer.

    Rows by layer: bits per example added to layer 0 (not for regressions), and points of the
    headline metric; and the number of test examples without bits, since train lacks their label.
    """
    from probes.measurements.context import rows_of
    from probes.training.fit import FitSeed, fit_steps

    data, gold = context.data, context.scorers["test"].gold
    groups = list(context.groups(context.layers, 1, 2))
    shape = context.spec, data.sentences("train"), data.n_outputs
    steps = fit_steps(*shape, [FitSeed()])
    of_layers = (0, *context.layers)
    # Before features are held: probes that are not stored are fitted again.
    scored = context.scored_probes(of_layers) if data.n_outputs else None
    with context.bar((1 + len(groups)) * steps):
        start = scored and rows_of(scored, of_layers, [0])
        baseline = _fit_and_test(context, data.features((0,), groups[0][1]), start)
        outputs = [
            _fit_and_test(
                context,
                data.concatenated(0, *group),
                scored and rows_of(scored, of_layers, group[0]),
            )
            for group in groups
        ]
    metric = metrics.get(context.task.metric)
    predicted = np.concatenate([group.predicted for group in outputs])
    points = metric(gold, predicted) - metric(gold, baseline.predicted)
    points_intervals = _intervals(
        gold,
        metric,
        lambda draws: (
            replicates(metric, gold, predicted, draws)
            - replicates(metric, gold, baseline.predicted, draws)
        ),
        len(points),
    )
    bits: Floats = np.full(len(points), np.nan)
    bits_intervals: list[Interval] = [None] * len(points)
    # Probes of numbers give no probability, and so no bits.
    if data.n_outputs:
        gained = np.concatenate([group.log_probabilities for group in outputs])
        gained = (gained - baseline.log_probabilities) / np.log(2)
        mean = _weighted_mean(baseline.weights)
        bits = mean(gold, gained)
        bits_intervals = _intervals(
            gold, mean, lambda draws: replicates(mean, gold, gained, draws), len(bits)
        )
    for index, layer in enumerate(context.layers):
        if data.n_outputs:
            yield Row("added_bits", bits[index], layer, *ends(bits_intervals[index]))
        yield Row("added_points", points[index], layer, *ends(points_intervals[index]))
    if left_out := int((baseline.weights == 0).sum()):
        yield Row("examples_left_out", left_out)


class _TestOutputs(NamedTuple):
    """Outputs of L probes for n test examples.

    Attributes:
        predicted: shape (L, n, …).
        log_probabilities: natural logs for the labels; meaningless for a regression. Shape (L, n).
        weights: weights of examples in a mean of bits; see `_weights`. Shape (n,).
    """

    predicted: NDArray[Any]
    log_probabilities: Floats
    weights: Floats


def _fit_and_test(
    context: TaskContext, features: Mapping[str, Features], start: list[Tensor] | None
) -> _TestOutputs:
    """Fit a probe to each layer of `features`, and predict test.

    Args:
        start: probes of the last of the layers that are concatenated.
    """
    from torch.nn.functional import pad

    from probes.training.fit import FitSeed, fit, log_probabilities

    data, spec = context.data, context.spec
    train, dev, test = (data.batches(x, features[x]) for x in ("train", "dev", "test"))
    if start is not None:
        weight, bias = start
        start = [pad(weight, (train.features.shape[2] - weight.shape[3], 0)), bias]
    fitted = fit(train, dev, data.n_outputs, spec, [FitSeed()], start=start)
    predicted = data.predictions(fitted, test.features, spec)[:, 0]
    log_probs = np.zeros((len(predicted), 1, len(test.weights[0])))
    if data.n_outputs:
        log_probs = log_probabilities(fitted, test, spec).cpu().double().numpy()
    return _TestOutputs(predicted, log_probs[:, 0], _weights(context.scorers["test"].gold, test))


def _weights(gold: Gold, test: Batches) -> Floats:
    """Weight of each example in a mean of bits: that of its class in training. Shape (n,).

    0 if train lacks the label, or one label of the set.
    """
    weights: Floats = test.weights[0].cpu().double().numpy()
    if gold.sets is not None:
        weights = weights * ~gold.sets[gold.labels, len(gold.classes) :].any(1)
    return weights


def _weighted_mean(weights: Floats) -> Metric:
    """Weighted mean of a number per example (n,), as a function of sums over sentences."""

    def parts(gold: Gold, values: Floats) -> Any:
        terms = np.stack([weights * values, weights], axis=1)
        return sparse_matrix(np.add.reduceat(terms, gold.bounds[:-1]))

    return Metric(parts, mean_value)


def _intervals(
    gold: Gold, metric: Metric, replicated: Callable[[Draws], Floats], n: int
) -> list[Interval]:
    """Intervals of n numbers, from a function that gives each of them in every resample."""
    draws = draws_of(gold, metric)
    if draws is None:
        return [None] * n
    return [bounds(pair) for pair in interval(replicated(draws))]
