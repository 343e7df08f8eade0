"""Where in a model a task's labels come to be decodable (Tenney et al. 2019a, section 3).

Cumulative scores s_k are those of probes on scalar mixes of layers 0 to k (probes/measurements/
cumulative.py). What rests on them has intervals that resample test sentences; mix weights do not
depend on test, so what rests on those has intervals from training again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from probes.common.arrays import Floats
from probes.examples.scoring import Scorer
from probes.records.payload import Estimate, Localisation, MixResult
from probes.statistics.bootstrap import LEVEL, MIN_SENTENCES, bounds, interval, replicates, resample
from probes.statistics.gold import Gold
from probes.statistics.metrics import metrics

FEW_SENTENCES = f"fewer than {MIN_SENTENCES} test sentences"

NO_SCORE = "the metric is undefined on test"

NO_GAIN = "the interval of the total gain is not above 0"

ONE_SEED = "one seed"


def expected_layer(scores: Floats) -> Floats:
    """Σ_k k · (s_k − s_{k−1}) / (s_L − s_0), k = 1 … L, of raw differences (eq. 4).

    Args:
        scores: cumulative scores s_0 … s_L along the first axis. Shape (L + 1, …).
    """
    steps = np.diff(scores, axis=0)
    layers = np.arange(1, len(scores)).reshape(-1, *[1] * (scores.ndim - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = (layers * steps).sum(0) / (scores[-1] - scores[0])
    # A resample without any gain has no such layer.
    return np.where(np.isfinite(found), found, np.nan)


def centre_of_gravity(weights: Floats) -> Floats:
    """Σ_j j · s_j of mix weights s (…, L + 1) (eq. 2)."""
    centre: Floats = weights @ np.arange(weights.shape[-1])
    return centre


def kl_from_uniform(weights: Floats) -> Floats:
    """Σ_j s_j log₂(s_j · (L + 1)) in bits, of mix weights s (…, L + 1)."""
    terms = weights * np.log2(np.where(weights > 0, weights * weights.shape[-1], 1.0))
    bits: Floats = terms.sum(-1)
    return bits


def located(scores: Floats, values: Floats | None) -> tuple[Estimate, Estimate]:
    """Total gain and expected layer, each with its percentile interval.

    Args:
        scores: cumulative scores on test. Shape (L + 1,).
        values: the same in every resample, (L + 1, n); None if there are too few sentences.
    """
    if np.isnan(scores).any():
        missing = Estimate(value=None, interval=None, missing=NO_SCORE)
        return missing, missing
    total = float(scores[-1] - scores[0])
    if values is None:
        return (
            Estimate(value=total, interval=None, missing=FEW_SENTENCES),
            Estimate(value=None, interval=None, missing=FEW_SENTENCES),
        )
    between = bounds(interval(values[-1] - values[0]))
    gain = Estimate(value=total, interval=between, missing=None if between else NO_SCORE)
    if between is None or between[0] <= 0:
        return gain, Estimate(value=None, interval=None, missing=NO_GAIN if between else NO_SCORE)
    layer = float(expected_layer(scores))
    return gain, Estimate(value=layer, interval=bounds(interval(expected_layer(values))))


def over_seeds(values: Floats, most: float) -> Estimate:
    """Seed 0's value with a t-interval from the other seeds' bootstrap samples.

    The standard error is the root mean square deviation of the n − 1 others from seed 0, which
    trained on the sample that they are drawn from; so there are n − 1 degrees of freedom.

    Args:
        values: of each seed. Shape (n,).
        most: the largest value there can be; the least is 0.
    """
    value, n_others = float(values[0]), len(values) - 1
    if not n_others:
        return Estimate(value=value, interval=None, missing=ONE_SEED)
    error = np.sqrt(((values[1:] - value) ** 2).mean())
    half = float(stdtrit(n_others, (1 + LEVEL) / 2) * error)
    return Estimate(value=value, interval=(max(0.0, value - half), min(most, value + half)))


def measure(
    weights: Floats,
    strengths: Sequence[float],
    predicted: Mapping[str, NDArray[Any]],
    scorers: Mapping[str, Scorer],
) -> Localisation:
    """All measures of one model, task and probe family.

    Args:
        weights: of the mixes of layers 0 to k for every k under seed 0, then of the mix of all
            layers under the other seeds. Shape (L + S, L + 1).
        strengths: of the probe on each mix of seed 0.
        predicted: on dev and test, by these probes. Each (L + 1, n).
    """
    n_layers = weights.shape[1]
    gold, names = scorers["test"].gold, scorers["test"].names
    values = _resampled(gold, names, predicted["test"])
    intervals = {name: interval(found) for name, found in values.items()}
    scores = {split: scorers[split].scores(rows) for split, rows in predicted.items()}
    mixes = tuple(
        MixResult(
            k=k,
            weights=tuple(weights[k, : k + 1].tolist()),
            strength=strengths[k],
            dev=scores["dev"][k],
            test=scores["test"][k],
            intervals={name: bounds(intervals[name][k]) if intervals else None for name in names},
        )
        for k in range(n_layers)
    )
    headline = np.array([m.test[names[0]] for m in mixes], dtype=np.float64)
    gain, layer = located(headline, values.get(names[0]))
    full = weights[n_layers - 1 :]
    return Localisation(
        mixes=mixes,
        total_gain=gain,
        expected_layer=layer,
        centre_of_gravity=over_seeds(centre_of_gravity(full), n_layers - 1),
        kl=over_seeds(kl_from_uniform(full), float(np.log2(n_layers))),
        seed_weights=tuple(tuple(row) for row in full.tolist()),
    )


def _resampled(gold: Gold, names: Sequence[str], rows: NDArray[Any]) -> dict[str, Floats]:
    """Each metric of every row in every resample; nothing from very few sentences."""
    if gold.n_sentences < MIN_SENTENCES:
        return {}
    draws = resample(gold.n_sentences)
    return {name: replicates(metrics.get(name), gold, rows, draws) for name in names}
