"""Scores in bootstrap resamples of a test split, and tests of the differences between them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import variance
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from probes.common.arrays import Floats
from probes.statistics.bootstrap import (
    Draws,
    all_resampled_sums,
    influence,
    resample,
    resample_blocks,
    resampled_values,
)
from probes.statistics.metrics import Metric
from probes.statistics.significance import Errors, Pair, all_pairs, least_p_of_better, max_t

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Spread(NamedTuple):
    """A standard deviation, with its degrees of freedom."""

    sd: float
    df: int


def pooled(groups: Sequence[Sequence[float | None]], share: float = 1.0) -> Spread | None:
    """The standard deviation within groups: √(Σ squared deviations / Σ degrees of freedom).

    Args:
        share: number that the variance is multiplied by, such as 1/n for the mean of n draws.

    Returns:
        None if no group has two known values.
    """
    squares, df = 0.0, 0
    for group in groups:
        numbers = [value for value in group if value is not None]
        if len(numbers) > 1:
            # `variance` is exact. Equal scores must have no variance, or ties would break.
            squares += variance(numbers) * (len(numbers) - 1)
            df += len(numbers) - 1
    return Spread((squares / df) ** 0.5 * share**0.5, df) if df else None


def training_noise(
    name: str, layers: Sequence[int], sd: float, df: int, n: int, block: int = 0
) -> Floats:
    """Random training noise, to be added to the bootstrap replicates of one result's scores.

    Resampling a test split keeps the trained probes fixed. This noise stands for retraining them:
    independent normal draws for each layer, times the standard deviation over trainings. That
    deviation is itself an estimate, pooled over layers. It is therefore multiplied by √(df / χ²),
    with one draw of χ² for all layers, which gives multivariate t noise.

    Args:
        name: name of the result. The same name, layer and n always give the same draws.
        layers: layers of the rows.
        df: degrees of freedom of `sd`.
        n: number of resamples.
        block: number of the block of resamples; each block has other draws.

    Returns:
        shape (layers, n).
    """
    name += f" {block}" if block else ""
    widths = sd * np.sqrt(df / _generator(name).chisquare(df, n))
    return np.stack([widths * _generator(name, x).standard_normal(n) for x in layers])


def _generator(*names: object) -> np.random.Generator:
    digest = hashlib.sha256(repr(names).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16]))


@dataclass(frozen=True)
class Replicates:
    """Scores of several layers by one metric, and their replicates in resamples of the test split.

    Attributes:
        scores: NaN where undefined. Shape (layers,).
        sums: contributions of clusters to each; see `probes.statistics.bootstrap.cluster_sums`.
        layers: numbers of the layers.
        name: seeds the training noise.
        sd: standard deviation of scores over trainings. None if unknown; then there are no tests.
        df: degrees of freedom of `sd`.
    """

    scores: Floats
    metric: Metric
    sums: Sequence[csr_array]
    layers: Sequence[int]
    name: str
    sd: float | None = None
    df: int = 0

    def row(self, index: int) -> Replicates:
        """Replicates of one layer."""
        at = slice(index, index + 1)
        return replace(
            self, scores=self.scores[at], sums=self.sums[at], layers=list(self.layers)[at]
        )

    @property
    def n_clusters(self) -> int:
        """Number of clusters of the whole split."""
        return int(self.sums[0].shape[0])

    @cached_property
    def values(self) -> Floats:
        """Replicates in the first block, without training noise. Shape (layers, n)."""
        return self._values(resample(self.n_clusters))

    @cached_property
    def noise(self) -> Floats | None:
        """Training noise in the first block; None if `sd` is unknown. Shape (layers, n)."""
        return self._noise(self.values.shape[1], 0)

    @property
    def resampled(self) -> Floats:
        """Replicates in the first block, with training noise if known. Shape (layers, n)."""
        return self.values if self.noise is None else self.values + self.noise

    def within(self, block: int, draws: Draws) -> Floats:
        """Replicates in any block, with training noise if known. Shape (layers, n)."""
        if not block:
            return self.resampled
        if block not in self._further:
            values, noise = self._values(draws), self._noise(len(draws), block)
            self._further[block] = values if noise is None else values + noise
        return self._further[block]

    @cached_property
    def _further(self) -> dict[int, Floats]:
        """Replicates of later blocks, kept for the next test."""
        return {}

    @cached_property
    def influence(self) -> Floats:
        """Influence of each cluster on each score. Shape (layers, clusters)."""
        return np.asarray([influence(self.metric, sums) for sums in self.sums])

    @property
    def training(self) -> Floats:
        """Variance of each score over trainings; 0 if unknown. Shape (layers,)."""
        return np.full(len(self.sums), (self.sd or 0.0) ** 2)

    def _values(self, draws: Draws) -> Floats:
        if self.metric.of_margins:  # there are more sums than examples, nearly all of them 0
            return np.stack([resampled_values(self.metric, x, draws) for x in self.sums])
        return np.asarray([self.metric.value(x) for x in all_resampled_sums(self.sums, draws)])

    def _noise(self, n: int, block: int) -> Floats | None:
        if self.sd is None:
            return None
        return training_noise(self.name, self.layers, self.sd, self.df, n, block)


def p_values_of(cells: Sequence[Replicates], pairs: Sequence[Pair]) -> list[float]:
    """P-values of differences between rows of results on one test split; see `max_t`."""
    scores = np.concatenate([x.scores for x in cells])
    p_values: list[float] = max_t(scores, replicate_blocks(cells), pairs).tolist()
    return p_values


def replicate_blocks(cells: Sequence[Replicates]) -> Iterator[tuple[Floats, Errors]]:
    """Yield the replicates of all rows, block by block, with their errors; see `max_t`."""
    changes = np.concatenate([x.influence for x in cells])
    trained = np.concatenate([x.training for x in cells])
    for block, draws in enumerate(resample_blocks(cells[0].n_clusters)):
        values = np.concatenate([x.within(block, draws) for x in cells])
        yield values, Errors(changes, trained, draws.astype(np.float64))


def p_best_of(replicates: Replicates) -> dict[int, float | None]:
    """`least_p_of_better` of each layer; None where it is undefined."""
    pairs = all_pairs(len(replicates.layers))
    p_values = np.array(p_values_of([replicates], pairs))
    tests = least_p_of_better(replicates.scores, pairs, p_values).tolist()
    by_layer = zip(replicates.layers, tests, strict=True)
    return {layer: None if np.isnan(p) else p for layer, p in by_layer}
