"""Paired bootstrap tests with Holm's correction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from probes.common.arrays import Floats
from probes.statistics.bootstrap import bounds, interval


def paired_p(first: Floats, second: Floats) -> Floats:
    """Two-sided bootstrap p-values of differences between replicates, over the last axis.

    Twice the smaller share of resamples on either side of 0, with one resample added to each side:
    the level at which the percentile interval just touches 0. NaN values are left out; p is NaN
    if all values are.
    """
    difference = first - second
    n = (~np.isnan(difference)).sum(-1)
    below = ((difference <= 0).sum(-1) + 1) / (n + 1)
    above = ((difference >= 0).sum(-1) + 1) / (n + 1)
    p: Floats = np.where(n > 0, np.minimum(1.0, 2 * np.minimum(below, above)), np.nan)
    return p


def paired_tests(
    differences: Sequence[Floats | None],
) -> list[tuple[tuple[float, float] | None, float | None]]:
    """95 % interval and Holm-corrected p-value of differences between replicates.

    Args:
        differences: each of shape (resamples,); None for one that could not be resampled.

    Returns:
        an interval and a p-value for each difference; None where undefined.
    """
    made = [i for i, row in enumerate(differences) if row is not None]
    found = np.array([differences[i] for i in made], dtype=np.float64)
    tests: list[tuple[tuple[float, float] | None, float | None]] = [(None, None)] * len(differences)
    if made:
        p_values = holm(paired_p(found, np.zeros_like(found))).tolist()
        for i, pair, p in zip(made, interval(found), p_values, strict=True):
            tests[i] = bounds(pair), None if np.isnan(p) else p
    return tests


def holm(p_values: Sequence[float] | Floats) -> Floats:
    """P-values corrected for multiple comparisons by Holm's step-down method (Holm 1979).

    NaN stands for a comparison that was not made, and is not counted.
    """
    p = np.asarray(p_values, dtype=np.float64)
    corrected = np.full_like(p, np.nan)
    (tested,) = np.nonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    steps = np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1))
    corrected[order] = np.minimum(1.0, steps)
    return corrected
