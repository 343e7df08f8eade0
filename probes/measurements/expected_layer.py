"""Expected layer, total gain, and what mix weights say (Tenney et al. 2019a, section 3)."""

from __future__ import annotations

import numpy as np

from probes.common.arrays import Floats
from probes.records.values import Estimate
from probes.statistics.bootstrap import LEVEL, bounds, interval
from probes.statistics.partition import FEWEST

FEW_CLUSTERS = f"fewer than {FEWEST} test sentences or documents"

NO_SCORE = "the metric is undefined on test"

NO_GAIN = "the interval of the total gain is not above 0"


def expected_layer(scores: Floats) -> Floats:
    """Σ_k k · (s_k − s_{k−1}) / (s_L − s_0), k = 1 … L, of raw differences (eq. 4).

    Args:
        scores: cumulative scores s_0 … s_L along the first axis. Shape (L + 1, …).
    """
    steps = np.diff(scores, axis=0)
    layers = np.arange(1, len(scores)).reshape(-1, *[1] * (scores.ndim - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = (layers * steps).sum(0) / (scores[-1] - scores[0])
    # It is undefined in a resample without any gain.
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


def gain_and_expected_layer(scores: Floats, values: Floats | None) -> tuple[Estimate, Estimate]:
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

    The standard error is the root mean square deviation of the samples' values from that of the
    split which they are drawn from: as many degrees of freedom as samples.

    Args:
        values: of the whole split, then of each sample. Shape (1 + samples,).
        most: the largest possible value; the smallest is 0.
    """
    from scipy.special import stdtrit  # here, since importing scipy is slow

    value, n_samples = float(values[0]), len(values) - 1
    error = np.sqrt(((values[1:] - value) ** 2).mean())
    half = float(stdtrit(n_samples, (1 + LEVEL) / 2) * error)
    return Estimate(value=value, interval=(max(0.0, value - half), min(most, value + half)))
