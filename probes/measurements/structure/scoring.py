"""Scores of structural probes from what sentences contribute: intervals, and tests of layers.

Every score is a function of sums over sentences; nothing else is needed of predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats, Ints
from probes.measurements.structure.contributions import Contributions
from probes.measurements.structure.payload import LIKE, METRICS
from probes.measurements.training_variance import Spread, p_best_of
from probes.records.values import Estimate
from probes.statistics.bootstrap import bounds, interval, resample, resampled_sums, summed
from probes.statistics.metrics import metrics
from probes.statistics.partition import FEWEST, Partition
from probes.statistics.rank_correlation import parts_by_length
from probes.statistics.replicates import Replicates
from probes.statistics.sums import ratio, sparse

if TYPE_CHECKING:
    from scipy.sparse import csr_array


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
                values: Floats = getattr(found, metric)[probe].astype(np.float64)
                (known,) = np.nonzero(~np.isnan(values))
                yield parts_by_length(known, values[known], self.lengths).toarray()

    def sums(self, parts: Floats) -> csr_array:
        """What sentences contribute (s, k), summed over each cluster. Shape (clusters, k)."""
        return summed(sparse(parts), self.clusters, self.n_clusters)

    def estimate(
        self, parts: Floats, value: Callable[[Floats], Floats], noise: Floats | float = 0.0
    ) -> Estimate:
        """A score with its 95 % interval, where there are enough clusters for one.

        Args:
            parts: what each sentence contributes. Shape (s, k).
            value: the score, from sums (…, k).
            noise: what else would have come out otherwise, in each resample. Shape (resamples,).
        """
        whole = float(value(parts.sum(0)))
        if np.isnan(whole):
            return Estimate(value=None, interval=None)
        if self.n_used < FEWEST:
            return Estimate(value=whole, interval=None)
        resampled = value(resampled_sums(self.sums(parts), resample(self.n_clusters)))
        return Estimate(value=whole, interval=bounds(interval(resampled + noise)))

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
        like, parts = metrics.get(LIKE[metric]), list(self.parts(found, metric))
        sums = [self.sums(each) for each in parts]
        scores = np.array([float(like.value(each.sum(0))) for each in parts])
        named = f"{name} {metric}"
        return p_best_of(Replicates(scores, like, sums, layers, named, spread.sd, spread.df))


def shares(found: NDArray[np.generic], of: NDArray[np.generic]) -> Floats:
    """Parts of a ratio of sums. (s,) and (s,) to (s, 2)."""
    return np.stack([found, of], axis=1).astype(np.float64)


def mean_share(sums: Floats) -> Floats:
    """The mean of ratios, each of two sums. Shape (…, 2 · n) to (…,)."""
    found: Floats = ratio(sums[..., ::2], sums[..., 1::2]).mean(-1)
    return found


def difference(sums: Floats) -> Floats:
    """The ratio of the first two sums less the mean of the others. Shape (…, 2 + 2 · n) to (…,)."""
    return mean_share(sums[..., :2]) - mean_share(sums[..., 2:])
