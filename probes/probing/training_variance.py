"""Training variance: changes of scores with the seed and with the training sample.

A probe fitted from another seed, or on another sample of the same size, scores differently. A test
that ignores this may mistake it for a difference between layers.

Retraining is a fit on the whole training split from another seed; it does not change convex probes.
Samples are bootstrap samples of training documents (or sentences), each fitted from its own seed.
They vary with both, like a new study of the same size. Tests include this variance; the
contribution of samples alone is the difference of the two variances.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from probes.measurements.measurement import EvidenceRequest, Measured, measurement
from probes.measurements.pivots import Pivot
from probes.records.record import FitsPerLayer
from probes.records.result import Result
from probes.records.row import Row
from probes.statistics.bootstrap import cluster_sums, draws_of
from probes.statistics.metrics import metrics
from probes.statistics.replicates import Replicates, Spread, p_best_of, pooled
from probes.training.families import is_seeded

if TYPE_CHECKING:
    from probes.measurements.context import TaskContext


CONVEX_SAMPLES = 5

SEEDS, SAMPLES = 1, 3
"""Numbers of further seeds and of bootstrap samples for probes that are not convex."""


def _fits_per_layer(request: EvidenceRequest) -> FitsPerLayer:
    if not is_seeded(request.probe):
        return dict.fromkeys(request.layers, CONVEX_SAMPLES)
    layers = request.layers if request.level == "full" else request.three_layers
    return dict.fromkeys(layers, SEEDS + SAMPLES)


@measurement(
    "training_variance",
    after="scores",
    version=3,
    also_for_twins=True,
    extent=_fits_per_layer,
    shows=(
        Pivot(
            "standard deviation of test scores over trainings",
            ("layer_training_sd",),
            below=("training_sd", "retraining_sd", "sampling_sd"),
            note="Trainings: bootstrap samples of training documents or sentences, each fitted "
            "from another seed. Seeds alone: other initial parameters and orders of batches on the "
            "whole training split; convex probes do not depend on them. Samples alone: the "
            "difference of the two variances. Tests use the pooled deviation at every layer, "
            "although layers may differ.",
        ),
    ),
)
def training_variance(context: TaskContext) -> Measured:
    """Variance of scores over seeds and training samples; tests between layers.

    Convex probes are fitted to five bootstrap samples at every layer. Others are fitted from one
    further seed and to three bootstrap samples at three layers (lowest, best on dev, highest), with
    full evidence at every layer.

    Rows: standard deviations over seeds on the whole training split, over samples alone, over both,
    and over both at each layer, with degrees of freedom as n; the score of each further fit; and by
    layer the least corrected p of a difference from a layer that scores higher on test (1 if there
    is none, no value if nothing could be tested).
    """
    from probes.training.fit import FitSeed

    result, layers = context.result, context.layers
    convex = not is_seeded(context.spec)
    seeds = [] if convex else [FitSeed(seed=i) for i in range(1, SEEDS + 1)]
    n_samples = CONVEX_SAMPLES if convex else SAMPLES
    samples = [FitSeed(0 if convex else i, sample=i) for i in range(1, n_samples + 1)]
    predicted = context.fits(layers, [*seeds, *samples], from_scored=True).predicted["test"]
    metric = context.task.metric
    scores = {
        layer: [fit_scores[metric] for fit_scores in context.scorers["test"].scores(fits)]
        for layer, fits in zip(layers, predicted, strict=True)
    }
    n_seeds = len(seeds)
    spread = pooled([fits[n_seeds:] for fits in scores.values()])
    of_seeds = {} if convex else {layer: fits[:n_seeds] for layer, fits in scores.items()}
    rows = pooled_deviations(result, spread, of_seeds)
    for layer, layer_scores in scores.items():
        rows.append(deviation_row("layer_training_sd", pooled([layer_scores[n_seeds:]]), layer))
        for i, value in enumerate(layer_scores):
            axes = {"seed": i + 1} if i < n_seeds else {"sample": i + 1 - n_seeds}
            rows.append(Row(metric, value, layer, axes=axes))
    rows += [Row("p_best", p, layer) for layer, p in _p_best_by_layer(context, spread).items()]
    resampled_units = context.examples.splits["train"].partition.clusters
    notes = (f"The pooled deviation has {spread.df} degrees of freedom.",) if spread else ()
    return Measured(rows, facts={"resampled": resampled_units}, notes=notes)


def pooled_deviations(
    result: Result, spread: Spread | None, of_seeds: Mapping[int, Sequence[float | None]]
) -> list[Row]:
    """Standard deviations over trainings, over seeds, and over samples alone.

    Args:
        spread: spread over samples, each fitted from another seed.
        of_seeds: scores of further seeds on the whole training split, by layer; may be empty.
    """
    over_seeds = pooled(
        [[result.score(layer), *layer_scores] for layer, layer_scores in of_seeds.items()]
    )
    return [
        deviation_row("training_sd", spread),
        deviation_row("retraining_sd", over_seeds),
        Row("sampling_sd", _of_samples_alone(spread, over_seeds)),
    ]


def deviation_row(metric: str, spread: Spread | None, layer: int | None = None) -> Row:
    """A standard deviation, with degrees of freedom as n."""
    return Row(metric, spread.sd, layer, n=spread.df) if spread else Row(metric, None, layer)


def _of_samples_alone(spread: Spread | None, seed_spread: Spread | None) -> float | None:
    """Standard deviation over training samples alone, from the difference of variances."""
    if spread is None:
        return None
    return math.sqrt(max(0.0, spread.sd**2 - (seed_spread.sd if seed_spread else 0.0) ** 2))


def training_spread(result: Result) -> Spread | None:
    """The spread of scores over trainings for tests; None without training variance."""
    row = result.row(training_variance.name, "training_sd")
    if row is None or row.value is None:
        return None
    return Spread(row.value, row.n or 0)


def _p_best_by_layer(context: TaskContext, spread: Spread | None) -> dict[int, float | None]:
    """The p-value behind the confidence set of layers, by layer."""
    result, gold = context.result, context.scorers["test"].gold
    layers = result.layers
    metric, predicted = metrics.get(context.task.metric), context.predicted(layers)
    if spread is None or draws_of(gold, metric) is None:
        return dict.fromkeys(layers)
    sums = [cluster_sums(metric.parts(gold, row), gold) for row in predicted]
    scores = np.array(list(result.headline.values()), dtype=np.float64)
    return p_best_of(Replicates(scores, metric, sums, layers, result.key, spread.sd, spread.df))
