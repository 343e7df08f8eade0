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
from probes.statistics.bootstrap import Draws, blocks, influence, resample, resampled_sums
from probes.statistics.metrics import Metric
from probes.statistics.significance import Errors, Pair, all_pairs, max_t, p_best

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Spread(NamedTuple):
    """A standard deviation, with its degrees of freedom."""

    sd: float
    df: int


def pooled(groups: Sequence[Sequence[float | None]]) -> Spread | None:
    """The standard deviation within groups: √(Σ squared deviations / Σ degrees of freedom)."""
    squares, df = 0.0, 0
    for group in groups:
        known = [value for value in group if value is not None]
        if len(known) > 1:
            # Exact: equal scores have no variance, which would break ties between layers.
            squares += variance(known) * (len(known) - 1)
            df += len(known) - 1
    return Spread((squares / df) ** 0.5, df) if df else None


def training_noise(
    name: str, layers: Sequence[int], sd: float, df: int, n: int, block: int = 0
) -> Floats:
    """Draws of what further trainings would add to the scores of one result's probes.

    Resampling a test split takes the probes as they are. To the replicates of each layer is added
    a draw from the normal distribution times the standard deviation over trainings, for each layer
    by itself. Since the deviation is an estimate, pooled over layers, it is multiplied by
    √(df / χ²), with one draw of χ² for all layers: their noise together has a multivariate t
    distribution.

    Args:
        name: of the result; the same name, layer and n have the same draws, whatever they are
            compared with.
        layers: of the rows.
        df: degrees of freedom of `sd`.
        n: number of resamples.
        block: of resamples; each has draws of its own.

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
    """Scores of several layers by one metric, and in any resample of their test split.

    Attributes:
        scores: NaN where undefined. Shape (layers,).
        sums: what clusters contribute to each; see `probes.statistics.bootstrap.cluster_sums`.
        layers: their numbers.
        name: by which the noise of training is drawn.
        sd: standard deviation of scores over trainings; None if that is not known, and then there
            are no tests.
        df: degrees of freedom of `sd`.
    """

    scores: Floats
    metric: Metric
    sums: Sequence[csr_array]
    layers: Sequence[int]
    name: str
    sd: float | None = None
    df: int = 0

    def row(self, place: int) -> Replicates:
        """Those of one layer."""
        at = slice(place, place + 1)
        return replace(
            self, scores=self.scores[at], sums=self.sums[at], layers=list(self.layers)[at]
        )

    @property
    def n_clusters(self) -> int:
        """Of the whole split."""
        found: int = self.sums[0].shape[0]
        return found

    @cached_property
    def values(self) -> Floats:
        """In the first block of resamples, over the test split alone. Shape (layers, n)."""
        return self._values(resample(self.n_clusters))

    @cached_property
    def noise(self) -> Floats | None:
        """What other trainings would add there, if that is known. Shape (layers, n)."""
        return self._noise(self.values.shape[1], 0)

    @property
    def resampled(self) -> Floats:
        """In the first block, with the noise of training if it is known. Shape (layers, n)."""
        return self.values if self.noise is None else self.values + self.noise

    def within(self, block: int, draws: Draws) -> Floats:
        """The same in any block. Shape (layers, n)."""
        if not block:
            return self.resampled
        if block not in self._further:
            values, noise = self._values(draws), self._noise(len(draws), block)
            self._further[block] = values if noise is None else values + noise
        return self._further[block]

    @cached_property
    def _further(self) -> dict[int, Floats]:
        """Replicates of further blocks, kept for the next test."""
        return {}

    @cached_property
    def influence(self) -> Floats:
        """See `probes.statistics.bootstrap.influence`. Shape (layers, clusters)."""
        return np.asarray([influence(self.metric, each) for each in self.sums])

    @property
    def training(self) -> Floats:
        """Variance of each score over trainings; 0 if it is not known. Shape (layers,)."""
        return np.full(len(self.sums), (self.sd or 0.0) ** 2)

    def _values(self, draws: Draws) -> Floats:
        return np.asarray([self.metric.value(resampled_sums(each, draws)) for each in self.sums])

    def _noise(self, n: int, block: int) -> Floats | None:
        if self.sd is None:
            return None
        return training_noise(self.name, self.layers, self.sd, self.df, n, block)


def p_values_of(cells: Sequence[Replicates], pairs: Sequence[Pair]) -> list[float]:
    """P-values of differences between the rows of these, all of one test split; see `max_t`."""
    scores = np.concatenate([x.scores for x in cells])
    found: list[float] = max_t(scores, drawn(cells), pairs).tolist()
    return found


def drawn(cells: Sequence[Replicates]) -> Iterator[tuple[Floats, Errors]]:
    """Replicates of the rows of these, block by block, with their errors; see `max_t`."""
    changes = np.concatenate([x.influence for x in cells])
    trained = np.concatenate([x.training for x in cells])
    for block, draws in enumerate(blocks(cells[0].n_clusters)):
        values = np.concatenate([x.within(block, draws) for x in cells])
        yield values, Errors(changes, trained, draws.astype(np.float64))


def p_best_of(found: Replicates) -> dict[int, float | None]:
    """By layer, what `probes.statistics.significance.p_best` says; None where it is undefined."""
    pairs = all_pairs(len(found.layers))
    tests = p_best(found.scores, pairs, np.array(p_values_of([found], pairs))).tolist()
    return {layer: None if np.isnan(p) else p for layer, p in zip(found.layers, tests, strict=True)}
