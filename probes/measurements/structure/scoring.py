"""Scores of structural probes from what sentences contribute: intervals, and tests of layers.

Every score is a function of sums over sentences; nothing else is needed of predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats, Ints
from probes.measurements.structure.contributions import Contributions
from probes.measurements.structure.payload import LIKE, METRICS
from probes.measurements.training_variance import Spread
from probes.records.values import Estimate
from probes.statistics.bootstrap import (
    bounds,
    interval,
    replicates_and_influences,
    resample,
)
from probes.statistics.metrics import metrics
from probes.statistics.partition import FEWEST, Partition
from probes.statistics.rank_correlation import NSPR_LENGTHS
from probes.statistics.significance import Errors, all_pairs, max_t, p_best
from probes.statistics.sums import ratio, sparse
from probes.statistics.training_noise import training_noise


@dataclass(frozen=True)
class Sample:
    """The sentences of a split, and what is resampled of them.

    Attributes:
        lengths: words of each. Shape (s,).
        edges: gold edges, by distance of the words. Shape (s, bins).
        clusters: the document of each sentence, or the sentence itself. Shape (s,).
        n_clusters: of the whole split.
    """

    lengths: Ints
    edges: NDArray[np.uint16]
    clusters: Ints
    n_clusters: int

    @classmethod
    def of(
        cls, lengths: Ints, edges: NDArray[np.uint16], sentences: Ints, partition: Partition
    ) -> Sample:
        """Those sentences of a split that are measured."""
        return cls(lengths, edges, partition.of_sentence[sentences], partition.n)

    @property
    def n_used(self) -> int:
        """Clusters with a sentence that is measured."""
        return len(np.unique(self.clusters))

    def parts(self, found: Contributions, metric: str) -> Iterator[Floats]:
        """What each sentence contributes to a score, probe by probe. Each (s, k)."""
        for probe in range(len(found.roots)):
            if metric == "uuas":
                yield shares(found.hits[probe].sum(-1), self.edges.sum(-1))
            elif metric == "root_accuracy":
                yield shares(found.roots[probe], np.ones(len(self.lengths)))
            else:
                values: NDArray[np.float32] = getattr(found, metric)[probe]
                yield self._by_length(values.astype(np.float64))

    def _by_length(self, values: Floats) -> Floats:
        """As of `probes.statistics.rank_correlation.nspr_parts`; NaN where there is none."""
        column = self.lengths - NSPR_LENGTHS.start
        known = (column >= 0) & (column < len(NSPR_LENGTHS)) & ~np.isnan(values)
        found = np.zeros((2, len(values), len(NSPR_LENGTHS)))
        found[0, known, column[known]] = values[known]
        found[1, known, column[known]] = 1
        return np.concatenate(list(found), axis=1)

    def sums(self, parts: Floats) -> Floats:
        """What sentences contribute (s, k), summed over each cluster. Shape (clusters, k)."""
        n = len(self.clusters)
        members = sparse((np.ones(n), (self.clusters, np.arange(n))), (self.n_clusters, n))
        found: Floats = members @ parts
        return found

    def estimate(self, parts: Floats, value: Callable[[Floats], Floats]) -> Estimate:
        """A score with its 95 % interval, where there are enough clusters for one.

        Args:
            parts: what each sentence contributes. Shape (s, k).
            value: the score, from sums (…, k).
        """
        whole = float(value(parts.sum(0)))
        if np.isnan(whole):
            return Estimate(value=None, interval=None)
        if self.n_used < FEWEST:
            return Estimate(value=whole, interval=None)
        resampled = value(resample(self.n_clusters).astype(np.float64) @ self.sums(parts))
        return Estimate(value=whole, interval=bounds(interval(resampled)))

    def scores(self, found: Contributions) -> list[dict[str, Estimate]]:
        """All scores of each probe, by metric."""
        by_metric = {
            metric: [
                self.estimate(parts, metrics.get(LIKE[metric]).value)
                for parts in self.parts(found, metric)
            ]
            for metric in METRICS
        }
        return [
            {metric: found[i] for metric, found in by_metric.items()}
            for i in range(len(found.roots))
        ]

    def values(self, found: Contributions) -> list[dict[str, float | None]]:
        """All scores of each probe, by metric, without intervals."""
        by_metric = {
            metric: [
                float(metrics.get(LIKE[metric]).value(parts.sum(0)))
                for parts in self.parts(found, metric)
            ]
            for metric in METRICS
        }
        return [
            {metric: None if np.isnan(x[i]) else x[i] for metric, x in by_metric.items()}
            for i in range(len(found.roots))
        ]

    def p_best(
        self,
        name: str,
        metric: str,
        layers: Sequence[int],
        found: Contributions,
        spread: Spread | None,
    ) -> dict[int, float | None]:
        """See `Findings.p_best`; the tests know what other trainings would change.

        Args:
            name: by which the noise of training is drawn.
            found: of one probe for each layer.
            spread: of scores over trainings.
        """
        if self.n_used < FEWEST or spread is None or len(layers) < 2:
            return dict.fromkeys(layers)
        draws = resample(self.n_clusters)
        like, parts = metrics.get(LIKE[metric]), list(self.parts(found, metric))
        sums = [sparse(self.sums(each)) for each in parts]
        values, influences = replicates_and_influences(like, sums, draws)
        values += training_noise(f"{name} {metric}", layers, spread.sd, spread.df, len(draws))
        trained = np.full(len(layers), spread.sd**2)
        errors = Errors(influences, trained, draws.astype(np.float64))
        scores = np.array([float(like.value(each.sum(0))) for each in parts])
        pairs = all_pairs(len(layers))
        p_values = p_best(scores, pairs, max_t(scores, values, pairs, errors)).tolist()
        return {x: None if np.isnan(p) else p for x, p in zip(layers, p_values, strict=True)}


def shares(found: NDArray[np.generic], of: NDArray[np.generic]) -> Floats:
    """Parts of a ratio of sums. (s,) and (s,) to (s, 2)."""
    return np.stack([found, of], axis=1).astype(np.float64)


def difference(sums: Floats) -> Floats:
    """The ratio of the first two sums less that of the last two. Shape (…, 4) to (…,)."""
    return ratio(sums[..., 0], sums[..., 1]) - ratio(sums[..., 2], sums[..., 3])
