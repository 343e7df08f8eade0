"""Means over items that were sampled stratum by stratum, such as the pairs of each paradigm.

The paradigms of a benchmark are fixed, so clusters are drawn within each of them (stratified
bootstrap; Davison & Hinkley 1997, section 3.2). Means over several paradigms share these draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from probes.common.arrays import Floats, Ints
from probes.statistics.bootstrap import MOST, RESAMPLES, block
from probes.statistics.partition import FEWEST
from probes.statistics.replicates import Spread, training_noise
from probes.statistics.significance import ErrorSpread, max_t
from probes.statistics.sums import ratio

_STRATA = 1 << 20
"""Seeds per block of resamples; more than there are strata."""


@dataclass(frozen=True)
class Strata:
    """Items with their clusters, which are drawn together, and their strata.

    Attributes:
        cluster: cluster of each item, numbered from 0. Shape (items,).
        stratum: stratum of each item, numbered from 0; one for each cluster. Shape (items,).
    """

    cluster: Ints
    stratum: Ints

    @classmethod
    def of(cls, clusters: Sequence[str], strata: Sequence[str]) -> Strata:
        """Make strata from names; if a cluster lies in several strata, all are merged.

        Strata of fewer than `FEWEST` clusters are merged into one. A mean drawn within n clusters
        has only (n - 1) / n of its variance, and none if n is 1.
        """
        cluster_numbers = {name: i for i, name in enumerate(dict.fromkeys(clusters))}
        strata_numbers = {name: i for i, name in enumerate(dict.fromkeys(strata))}
        cluster = np.array([cluster_numbers[name] for name in clusters], dtype=np.int64)
        stratum = np.array([strata_numbers[name] for name in strata], dtype=np.int64)
        if len(set(zip(clusters, strata, strict=True))) > len(cluster_numbers):
            stratum = np.zeros_like(stratum)
        of_cluster = stratum[np.unique(cluster, return_index=True)[1]]
        few = np.flatnonzero(np.bincount(of_cluster, minlength=1) < FEWEST)
        stratum = np.where(np.isin(stratum, few), few.min(initial=len(strata_numbers)), stratum)
        return cls(cluster, np.unique(stratum, return_inverse=True)[1])

    def n_clusters(self, group: Ints) -> int:
        """Number of clusters of a group of items."""
        return len(np.unique(self.cluster[group]))

    def means(
        self, values: Floats, groups: Sequence[Ints], fewest: int = FEWEST
    ) -> Iterator[tuple[Floats, Floats]]:
        """Yield means (k,) and replicates (resamples, k) of each group of items.

        Replicates of a group are NaN with fewer than `fewest` clusters. All values share the draws,
        so that differences are paired.

        Args:
            values: shape (items, k).
            groups: indices of items; groups may overlap.
        """
        sums = [np.zeros((RESAMPLES, values.shape[1])) for _ in groups]
        counts = [np.zeros(RESAMPLES) for _ in groups]
        for cluster, n_clusters, draws in self._strata():
            for i, group in enumerate(groups):
                items = group[cluster[group] >= 0]
                if len(items):
                    of_item = cluster[items]
                    parts = [np.bincount(of_item, column, n_clusters) for column in values[items].T]
                    sums[i] += draws @ np.stack(parts, axis=1)
                    counts[i] += draws @ np.bincount(of_item, minlength=n_clusters)
        for group, total, n in zip(groups, sums, counts, strict=True):
            replicates = ratio(total, n[:, None])
            if self.n_clusters(group) < fewest:
                replicates[:] = np.nan
            yield values[group].mean(0), replicates

    def p_values(
        self, values: Floats, groups: Sequence[Ints], noise: Sequence[tuple[str, Spread]] = ()
    ) -> Floats:
        """Two-sided p-values of the means of each group against 0. Shape (groups, k).

        `probes.statistics.significance.max_t` corrects for testing all of them. NaN where fewer
        than `FEWEST` clusters have a nonzero sum: resamples that draw few of these have tiny
        standard errors.

        Args:
            values, groups: see `means`.
            noise: name, which seeds it, and spread of further noise of each mean, such as that of
                draws of controls, in the order of groups and columns; empty for none.
        """
        means = np.stack([values[group].mean(0) for group in groups])
        influence = np.zeros((len(values), *means.shape))
        member = np.zeros((len(values), len(groups)))
        for i, group in enumerate(groups):
            member[group, i] = 1 / len(group)
            influence[group, i] = (values[group] - means[i]) / len(group)
        flat = influence.reshape(len(values), -1)
        differ = np.stack(
            [
                (_summed(self.cluster[group], values[group]) != 0).sum(0) >= FEWEST
                for group in groups
            ]
        )
        shifts_and_errors = (self._resampled(flat, member, number) for number in range(MOST))
        if noise:
            blocks_without = enumerate(shifts_and_errors)
            shifts_and_errors = (_with_noise(*x, noise, number) for number, x in blocks_without)
        blocks = (
            (np.vstack([(means.reshape(-1, 1) + shift), np.zeros(RESAMPLES)]), errors)
            for shift, errors in shifts_and_errors
        )
        (tested,) = np.nonzero(differ.ravel())
        p_values = np.full(means.size, np.nan)
        if len(tested):
            pairs = [(int(cell), means.size) for cell in tested]
            p_values[tested] = max_t(np.append(means.ravel(), 0.0), blocks, pairs)
        return p_values.reshape(means.shape)

    def _resampled(
        self, influence: Floats, member: Floats, block_number: int
    ) -> tuple[Floats, ErrorSpread]:
        """Shifts of means in a block of resamples, and their standard errors.

        Args:
            influence: influence of each item on each mean. Shape (items, groups · k).
            member: weight of each item in each group; weights add up to 1. Shape (items, groups).
        """
        shift, squares = np.zeros((2, RESAMPLES, influence.shape[1]))
        sample_squares, size = np.zeros(influence.shape[1]), np.zeros((RESAMPLES, member.shape[1]))
        for cluster, n, draws in self._strata(block_number):
            inside = cluster >= 0
            sums = _summed(cluster[inside], influence[inside])
            size += draws @ _summed(cluster[inside], member[inside])
            # Most groups have no items in this stratum.
            at = np.flatnonzero(sums.any(0))
            sums = sums[:, at]
            total = draws @ sums
            shift[:, at] += total
            if n > 1:
                squares[:, at] += (draws @ sums**2 - total**2 / n).clip(0) * n / (n - 1)
                of_sample = ((sums**2).sum(0) - sums.sum(0) ** 2 / n).clip(0) * n / (n - 1)
                sample_squares[at] += of_sample
        shift /= np.repeat(size, influence.shape[1] // member.shape[1], axis=1)
        return shift.T, ErrorSpread(np.sqrt(sample_squares), np.sqrt(squares).T)

    def _strata(self, block_number: int = 0) -> Iterator[tuple[Ints, int, Floats]]:
        """Yield each stratum: cluster of each item (-1 if outside), number of clusters, draws."""
        for stratum in np.unique(self.stratum).tolist():  # a part of the items may lack some
            inside = self.stratum == stratum
            distinct, cluster_index = np.unique(self.cluster[inside], return_inverse=True)
            cluster = np.full(len(inside), -1)
            cluster[inside] = cluster_index
            draws = block(len(distinct), seed=stratum + block_number * _STRATA)
            yield cluster, len(distinct), draws.astype(np.float64)


def _with_noise(
    shift: Floats, errors: ErrorSpread, noise: Sequence[tuple[str, Spread]], block_number: int
) -> tuple[Floats, ErrorSpread]:
    """Shifts and standard errors of means with t noise; see `training_noise`."""
    added = [training_noise(x, [0], *y, shift.shape[1], block_number)[0] for x, y in noise]
    sd = np.array([spread.sd for _, spread in noise])
    sample, resamples = np.hypot(errors.sample, sd), np.hypot(errors.resamples, sd[:, None])
    return shift + np.stack(added), ErrorSpread(sample, resamples)


def _summed(cluster: Ints, values: Floats) -> Floats:
    """The sums of the rows of each cluster. Shape (clusters, k)."""
    _, cluster_index = np.unique(cluster, return_inverse=True)
    return np.stack([np.bincount(cluster_index, column) for column in values.T], axis=1)
