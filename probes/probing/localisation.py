"""Localisation: the layers at which a task's labels become decodable (Tenney et al. 2019a, §3).

For every k, a scalar mix of layers 0 to k is learnt together with a probe
(probes/training/scalar_mix.py). Then the ordinary probe is fitted on the fixed mix, so that the
score s_k can be compared with those of single layers; s_0 is the score of layer 0. Only convex
probes are used, because MLPs score lower on mixes than on single layers.

Intervals of numbers computed from the scores s_k resample test documents or sentences. Mix weights
do not depend on test; intervals of numbers computed from them use mixes learnt on bootstrap samples
of the training split.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from probes.common.arrays import Floats
from probes.measurements.chart_views import Lines
from probes.measurements.measurement import LOCALISATION, EvidenceRequest, Measured, measurement
from probes.measurements.pivots import Pivot
from probes.records.record import FitsPerLayer
from probes.records.row import Row
from probes.records.values import Estimate, ends
from probes.statistics.bootstrap import LEVEL, bounds, draws_of, interval, replicates
from probes.statistics.metrics import metrics
from probes.statistics.partition import FEWEST
from probes.training.families import why_not_convex

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from probes.examples.scoring import Scorer
    from probes.measurements.context import TaskContext


N_SAMPLES = 2
"""Number of bootstrap samples of the training split for the mix of all layers."""


def _reason_without_all_layers(request: EvidenceRequest) -> str:
    has_all = len(request.layers) == request.n_layers + 1
    return "" if has_all else "not all layers were probed"


def _all_layers_or_none(request: EvidenceRequest) -> FitsPerLayer:
    return {} if _reason_without_all_layers(request) else dict.fromkeys(request.layers, 1)


@measurement(
    LOCALISATION,
    after="scores",
    version=2,
    missing=lambda task, probe, level: why_not_convex(probe, "are fitted on mixes"),
    extent=_all_layers_or_none,
    missing_of=_reason_without_all_layers,
    shows=(
        Pivot(
            "probes on mixes of layers 0 to k",
            ("mix_score",),
            below=("expected_layer", "centre_of_gravity", "kl"),
            note="Scalar mixes as in Tenney et al. 2019a. The expected layer is computed from the "
            "gains, centre of gravity and divergence from the weights of the mix of all layers. "
            "± and brackets: 95 % intervals, over test text for scores and expected layers, over "
            "training text for centres and divergences.",
        ),
        Lines(
            "mix",
            "mix_score",
            "Score on the mix of layers 0 to k",
            "Scalar mixes as in Tenney et al. 2019a. The step to a layer is the layer's gain.",
        ),
    ),
)
def localisation(context: TaskContext) -> Measured:
    """Scalar mixes of layers, expected layer (Tenney et al. 2019a).

    Scores of probes on mixes of layers 0 to k, and layers computed from them; see `rows_of_mixes`.
    The array has the test predictions of these probes.
    """
    weights, strengths, predicted = _fit_mixes(context)
    rows = list(rows_of_mixes(weights, strengths, predicted, context.scorers))
    kind = context.task.kind
    stored = np.float64 if kind == "regression" else predicted["test"].dtype
    return Measured(rows, {"predicted": predicted["test"].astype(stored)})


def _fit_mixes(context: TaskContext) -> tuple[Floats, list[float], dict[str, NDArray[Any]]]:
    """The mix weights, with strengths and predictions of the probe on each mix.

    Returns:
        weights (L + 1 + N_SAMPLES, L + 1), the last ones for mixes of all layers on samples;
        strengths of L + 1 probes; and their predictions on dev and test, each (L + 1, n).
    """
    import torch

    from probes.training.fit import FitSeed, fit, fit_steps
    from probes.training.memory_plan import block_bytes
    from probes.training.scalar_mix import Mixed, layer_overlap, learn_mixes, mix_scales, mix_steps

    data, spec = context.data, context.spec
    layers, n_layers = context.layers, len(context.layers)
    free_memory = context.memory - block_bytes(n_layers, data.width_read)
    at_once, room = data.group_layers(free_memory, spec, 1)
    # Features are held only if those of all layers and of all mixes have room, which are as many.
    features = data.features(layers, room if at_once >= 2 * n_layers else 0)
    train, dev = (data.batches(split, features[split]) for split in ("train", "dev"))
    reach = [*range(n_layers), *[n_layers - 1] * N_SAMPLES]
    samples = [0] * n_layers + list(range(1, N_SAMPLES + 1))
    overlap = layer_overlap(train.features)
    groups = [slice(i, i + at_once) for i in range(0, len(reach), at_once)]
    sentences = data.sentences("train")
    with context.bar(len(groups) * mix_steps(sentences)):
        weights = torch.cat(
            [
                learn_mixes(train, dev, data.n_outputs, spec, overlap, reach[group], samples[group])
                for group in groups
            ]
        )
    scales = mix_scales(weights[:n_layers], overlap)
    strengths: list[float] = []
    parts: dict[str, list[NDArray[Any]]] = {"dev": [], "test": []}
    # The mixes of samples come last: only their weights are used, so no probe is fitted on them.
    groups = groups[: -(-n_layers // at_once)]
    with context.bar(len(groups) * fit_steps(spec, sentences, data.n_outputs, [FitSeed()])):
        for group in groups:
            mixed = {split: Mixed(x, scales[group]) for split, x in features.items()}
            fitted = fit(
                replace(train, features=data.computed_once(mixed["train"], room)),
                replace(dev, features=mixed["dev"]),
                data.n_outputs,
                spec,
                [FitSeed()],
            )
            strengths += fitted.strength[:, 0].tolist()
            for split, predicted in parts.items():
                predicted.append(data.predictions(fitted, mixed[split], spec)[:, 0])
    predictions = {split: np.concatenate(arrays) for split, arrays in parts.items()}
    return weights.cpu().double().numpy(), strengths, predictions


def rows_of_mixes(
    weights: Floats,
    strengths: Sequence[float],
    predicted: Mapping[str, NDArray[Any]],
    scorers: Mapping[str, Scorer],
) -> Iterator[Row]:
    """Scores of all mixes, and numbers computed from them and from mix weights.

    The layer of a row is the last layer of a mix. Rows of weights have the weighted layer on the
    axis `of`, and `sample` if the mix was learnt on a sample. Rows without a layer: headline test
    score of the mix of all layers minus that of layer 0 (`total_gain`); mean layer of the gains
    (`expected_layer`), without a value unless the interval of the total gain is above 0; both with
    intervals over test. For the weights of the mix of all layers: mean layer, and divergence from
    uniform weights, with intervals over train.

    Args:
        weights: weights of the mixes of layers 0 to k for every k, then of the mix of all layers on
            each bootstrap sample of train. Shape (L + 1 + samples, L + 1).
        strengths: L2 strength of the probe on each of the first L + 1 mixes.
        predicted: predictions of these probes on dev and test. Each (L + 1, n).
    """
    n_layers = weights.shape[1]
    gold, metric = scorers["test"].gold, scorers["test"].names[0]
    draws = draws_of(gold, metrics.get(metric))
    resampled = None
    if draws is not None:
        resampled = replicates(metrics.get(metric), gold, predicted["test"], draws)
    scores = {
        split: [mix_scores[metric] for mix_scores in scorers[split].scores(predictions)]
        for split, predictions in predicted.items()
    }
    full = weights[n_layers - 1 :]
    yield from rows_of_gains(np.array(scores["test"], dtype=np.float64), resampled, full)
    for k in range(n_layers):
        yield Row("mix_score", scores["dev"][k], k, split="dev")
        yield Row("mix_strength", strengths[k], k, split="train")
        for layer, weight in enumerate(weights[k, : k + 1].tolist()):
            yield Row("mix_weight", weight, k, split="train", axes={"of": layer})
    for sample, row in enumerate(full[1:].tolist(), 1):
        for layer, weight in enumerate(row):
            axes = {"of": layer, "sample": sample}
            yield Row("mix_weight", weight, n_layers - 1, split="train", axes=axes)


def rows_of_gains(scores: Floats, resampled: Floats | None, weights: Floats) -> Iterator[Row]:
    """Test scores of all mixes, and numbers computed from them and from weights.

    Args:
        scores: test scores. Shape (L + 1,).
        resampled: scores in every resample, (L + 1, n); None if there are too few clusters.
        weights: weights of the mix of all layers, then on each sample. Shape (1 + samples, L + 1).
    """
    n_layers = len(scores)
    yield from rows_of_scores("mix_score", range(n_layers), scores, resampled)
    gain, expected = gain_and_expected_layer(scores, resampled)
    yield Row.estimated("total_gain", gain)
    yield Row.estimated("expected_layer", expected)
    centre = over_samples(centre_of_gravity(weights), n_layers - 1)
    yield Row.estimated("centre_of_gravity", centre)
    yield Row.estimated("kl", over_samples(kl_from_uniform(weights), float(np.log2(n_layers))))


def rows_of_scores(
    metric: str, layers: Sequence[int], scores: Floats, resampled: Floats | None
) -> Iterator[Row]:
    """Test scores with intervals, which need resamples."""
    for index, layer in enumerate(layers):
        between = None if resampled is None else bounds(interval(resampled[index]))
        yield Row(metric, scores[index], layer, *ends(between))


FEW_CLUSTERS = f"fewer than {FEWEST} test sentences or documents"

NO_SCORE = "the metric is undefined on test"

NO_GAIN = "the interval of the total gain is not above 0"


def expected_layer(scores: Floats) -> Floats:
    """Σ_k k · (s_k − s_{k−1}) / (s_L − s_0), k = 1 … L, with raw differences (eq. 4).

    Args:
        scores: cumulative scores s_0 … s_L along the first axis. Shape (L + 1, …).
    """
    steps = np.diff(scores, axis=0)
    layers = np.arange(1, len(scores)).reshape(-1, *[1] * (scores.ndim - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        layer: Floats = (layers * steps).sum(0) / (scores[-1] - scores[0])
    # A resample without any gain has no expected layer.
    return np.where(np.isfinite(layer), layer, np.nan)


def centre_of_gravity(weights: Floats) -> Floats:
    """Σ_j j · s_j of mix weights s (…, L + 1) (eq. 2)."""
    centre: Floats = weights @ np.arange(weights.shape[-1])
    return centre


def kl_from_uniform(weights: Floats) -> Floats:
    """Σ_j s_j log₂(s_j · (L + 1)) in bits, of mix weights s (…, L + 1)."""
    terms = weights * np.log2(np.where(weights > 0, weights * weights.shape[-1], 1.0))
    bits: Floats = terms.sum(-1)
    return bits


def gain_and_expected_layer(scores: Floats, values: Floats | None) -> tuple[Estimate, Estimate]:
    """Total gain and expected layer, each with its percentile interval.

    Args:
        scores: cumulative scores on test. Shape (L + 1,).
        values: scores in every resample, (L + 1, n); None if there are too few sentences.
    """
    if np.isnan(scores).any():
        missing = Estimate(value=None, interval=None, missing=NO_SCORE)
        return missing, missing
    total = float(scores[-1] - scores[0])
    if values is None:
        return (
            Estimate(value=total, interval=None, missing=FEW_CLUSTERS),
            Estimate(value=None, interval=None, missing=FEW_CLUSTERS),
        )
    between = bounds(interval(values[-1] - values[0]))
    gain = Estimate(value=total, interval=between, missing=None if between else NO_SCORE)
    if between is None or between[0] <= 0:
        return gain, Estimate(value=None, interval=None, missing=NO_GAIN if between else NO_SCORE)
    layer = float(expected_layer(scores))
    return gain, Estimate(value=layer, interval=bounds(interval(expected_layer(values))))


def over_samples(values: Floats, most: float) -> Estimate:
    """The value on the whole training split, with a t-interval from bootstrap samples of it.

    The standard error is the root mean square deviation of the samples' values from the value of
    the whole split, with as many degrees of freedom as samples.

    Args:
        values: value of the whole split, then of each sample. Shape (1 + samples,).
        most: the largest possible value; the smallest is 0.
    """
    from scipy.special import stdtrit  # slow to import

    value, n_samples = float(values[0]), len(values) - 1
    error = np.sqrt(((values[1:] - value) ** 2).mean())
    half = float(stdtrit(n_samples, (1 + LEVEL) / 2) * error)
    return Estimate(value=value, interval=(max(0.0, value - half), min(most, value + half)))
