"""Seeds as a random effect: models that differ by seed alone are draws from one recipe.

Scores of a recipe vary over seeds and over test documents (the multi-bootstrap, Sellam et al.
2022). Documents are resampled, the same ones for all seeds. For the few seeds that there usually
are, percentiles of resampled seeds are too narrow. So the part of seeds is drawn from Student's t
instead, with one degree of freedom less than there are seeds. Intervals do not go beyond the bounds
of the metric. Scores of seeds are taken as normal: where some trainings fail, intervals are too
short. `benchmarks/statistics_simulation.py` compares all of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from probes.common.arrays import Floats
from probes.statistics.bootstrap import LEVEL, bounds, interval
from probes.statistics.metrics import mean_of_draws, metric_over_draws
from probes.statistics.replicates import Replicates, p_values_of
from probes.statistics.sums import side_by_side, sparse_matrix

FEW_SEEDS = 5
"""With fewer seeds, tables say what cannot be concluded."""


def mean_over_seeds(seeds: Sequence[Replicates], name: str) -> Replicates:
    """The mean score of a layer over seeds, with the variance over seeds as noise.

    Args:
        seeds: one layer of each seed's result, on the same test examples; two seeds or more.
        name: name of the recipe, which seeds the noise.
    """
    scores = np.array([replicates.scores[0] for replicates in seeds])
    return Replicates(
        mean_of_draws(scores[None]),
        metric_over_draws(seeds[0].metric, len(seeds)),
        [side_by_side([replicates.sums[0] for replicates in seeds])],
        seeds[0].layers,
        name,
        float(np.sqrt(scores.var(ddof=1) / len(seeds))),
        len(seeds) - 1,
    )


def difference_over_seeds(
    first: Sequence[Replicates], second: Sequence[Replicates], name: str, *, paired: bool
) -> Replicates:
    """The mean of the second recipe minus that of the first, at a layer of each.

    If the seeds are paired, the noise is that of differences within pairs. If not, variances add
    up, and the degrees of freedom are those of Welch and Satterthwaite, rounded down.

    Args:
        first, second: see `mean_over_seeds`; if paired, in the same order of seeds.
    """
    one, other = (mean_over_seeds(recipe, name) for recipe in (first, second))
    width = one.sums[0].shape[1]
    variances = [(recipe.sd or 0.0) ** 2 for recipe in (one, other)]
    sd, df = float(np.sqrt(sum(variances))), one.df
    if paired:
        differences = [b.scores[0] - a.scores[0] for a, b in zip(first, second, strict=True)]
        sd = float(np.std(differences, ddof=1) / np.sqrt(len(differences)))
    elif sd:
        parts = zip(variances, (one.df, other.df), strict=True)
        df = int(sum(variances) ** 2 / sum(part**2 / n for part, n in parts))

    def value(sums: Floats) -> Floats:
        change: Floats = other.metric.value(sums[..., width:]) - one.metric.value(sums[..., :width])
        return change

    return replace(
        other,
        scores=other.scores - one.scores,
        metric=replace(other.metric, value=value, bounds=other.metric.differences),
        sums=[side_by_side([one.sums[0], other.sums[0]])],
        sd=sd,
        df=df,
    )


def interval_over_seeds(replicates: Replicates) -> tuple[float, float] | None:
    """The 95 % interval of a number with one row, over documents and seeds."""
    return bounds(interval(replicates.resampled[0], replicates.metric.bounds))


def spread_of_deviations(n: int) -> tuple[float, float]:
    """The 95 % interval of a standard deviation of n normal draws, in units of the estimate."""
    from scipy.stats import chi2  # slow to import

    low, high = np.sqrt((n - 1) / chi2.ppf([(1 + LEVEL) / 2, (1 - LEVEL) / 2], n - 1)).tolist()
    return low, high


def p_values_over_seeds(differences: Sequence[Replicates]) -> list[float]:
    """Two-sided p-values of differences from 0, corrected by max-T over all of them.

    Args:
        differences: each with one row, on the same test examples.
    """
    if not differences:
        return []
    first = differences[0]
    zero = replace(
        first,
        scores=np.zeros(1),
        metric=replace(first.metric, value=lambda sums: np.zeros(sums.shape[:-1])),
        sums=[sparse_matrix(np.zeros((first.n_clusters, 1)))],
        sd=0.0,
        df=1,
    )
    n = len(differences)
    return p_values_of([*differences, zero], [(i, n) for i in range(n)])


class VarianceParts(NamedTuple):
    """Standard deviations of the score of one model of a recipe, by what varies.

    Attributes:
        seeds: over seeds, if each were scored on endless text.
        documents: over test documents, for all seeds alike.
        interaction: the documents that suit one seed and not another.
        training: over training samples of the probe, shared by all seeds or not; None if unknown.
    """

    seeds: float
    documents: float
    interaction: float
    training: float | None


def variance_parts(seeds: Sequence[Replicates], trained: Floats | None) -> VarianceParts:
    """Variance components by the sums of squares of a balanced two-way layout; negative ones are 0.

    A score is linear in its documents up to their influences, which are the entries of the layout
    (Efron & Tibshirani 1993, section 21.3). For a mean over documents of equal size, this is the
    classical analysis of variance of random effects (Searle, Casella & McCulloch 1992, chapter 4).

    Args:
        seeds: see `mean_over_seeds`.
        trained: scores of each seed by the same training samples of the probe. Shape (seeds,
            samples). What samples do to one seed alone is not counted as a part of seeds. None if
            unknown.
    """
    scores = np.array([replicates.scores[0] for replicates in seeds])
    influences = np.stack([replicates.influence[0] for replicates in seeds])
    n = influences.shape[1]
    shared, cells = _components(influences)
    of_all, of_one = (0.0, 0.0) if trained is None else _components(trained)
    # The variance over seeds also holds what documents and training samples do to one seed alone.
    parts = scores.var(ddof=1) - cells * n - of_one, shared * n, cells * n, max(of_all, 0) + of_one
    seed, document, cell, training = np.sqrt(np.clip(parts, 0, None)).tolist()
    return VarianceParts(seed, document, cell, None if trained is None else training)


def _components(table: Floats) -> tuple[float, float]:
    """Variance of columns for all rows alike, and of cells, from a table (rows, columns)."""
    rows, columns = table.shape
    residuals = table - table.mean(0) - table.mean(1, keepdims=True) + table.mean()
    of_cells = float((residuals**2).sum() / ((rows - 1) * (columns - 1)))
    return float(table.mean(0).var(ddof=1)) - of_cells / rows, of_cells
