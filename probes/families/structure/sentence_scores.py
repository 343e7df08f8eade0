"""Scores of structural probes with intervals and tests of layers.

Every score is a function of sums over sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats, Ints
from probes.families.structure.contributions import Contributions
from probes.families.structure.trees import Trees
from probes.records.row import Row
from probes.statistics.bootstrap import bounds, interval, resample, resampled_sums, summed
from probes.statistics.metrics import mean_value, metrics
from probes.statistics.partition import FEWEST, Partition
from probes.statistics.rank_correlation import parts_by_length
from probes.statistics.replicates import Replicates, Spread, p_best_of
from probes.statistics.sums import ratio, sparse

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SCORES = {
    "uuas": metrics.get("accuracy"),
    "dspr": metrics.get("nspr"),
    "root_accuracy": metrics.get("root_accuracy"),
    "nspr": metrics.get("nspr"),
}
"""Scores of structural probes, with the metrics of tasks that are computed from the same sums."""


@dataclass(frozen=True)
class MeasuredSentences:
    """The measured sentences of a split, with the clusters that intervals resample.

    Attributes:
        split: name of the split.
        lengths: number of words of each sentence. Shape (s,).
        edges: number of gold edges, by distance of the words. Shape (s, bins).
        clusters: document of each sentence, or the sentence itself. Shape (s,).
        n_clusters: number of clusters in the whole split.
    """

    split: str
    lengths: Ints
    edges: NDArray[np.uint16]
    clusters: Ints
    n_clusters: int

    @classmethod
    def of(
        cls, split: str, trees: Trees, edges: NDArray[np.uint16], partition: Partition
    ) -> MeasuredSentences:
        """Select the measured sentences of a split."""
        clusters = partition.of_sentence[trees.sentences]
        return cls(split, trees.lengths, edges, clusters, partition.n)

    @property
    def n_used(self) -> int:
        """Number of clusters with a measured sentence."""
        return len(np.unique(self.clusters))

    def parts(self, found: Contributions, metric: str) -> Iterator[Floats]:
        """Parts of a score, for each probe in turn. Each (s, k)."""
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
        """Sum parts (s, k) over each cluster. Shape (clusters, k)."""
        return summed(sparse(parts), self.clusters, self.n_clusters)

    def row(
        self,
        metric: str,
        layer: int | None,
        parts: Floats,
        value: Callable[[Floats], Floats] = mean_value,
        noise: Floats | float = 0.0,
        **axes: int | str,
    ) -> Row:
        """A score with its 95 % interval, if there are enough clusters.

        Args:
            parts: parts of the score for each sentence. Shape (s, k).
            value: computes the score from sums (…, k).
            noise: further random variation to add to each resample. Shape (resamples,).
        """
        whole, ends = float(value(parts.sum(0))), None
        if self.n_used >= FEWEST and not np.isnan(whole):
            resampled = value(resampled_sums(self.sums(parts), resample(self.n_clusters)))
            ends = bounds(interval(resampled + noise))
        low, high = ends or (None, None)
        known = None if np.isnan(whole) else whole
        return Row(metric, known, layer, low, high, self.split, axes=axes)

    def rows(self, found: Contributions, layer: int, rank: int) -> Iterator[Row]:
        """All scores of one probe."""
        for metric, like in SCORES.items():
            (parts,) = self.parts(found, metric)
            yield self.row(metric, layer, parts, like.value, rank=rank)

    def values(self, found: Contributions, metric: str) -> list[float]:
        """One score for each probe; NaN where undefined."""
        return [float(SCORES[metric].value(x.sum(0))) for x in self.parts(found, metric)]

    def p_best(
        self,
        name: str,
        metric: str,
        layers: Sequence[int],
        found: Contributions,
        spread: Spread | None,
    ) -> dict[int, float | None]:
        """The p-value behind the confidence set of layers, by layer.

        The least corrected p of a difference from a layer that scores higher; 1 if no layer does,
        None if nothing can be tested. Tests include the variance of training.

        Args:
            name: seeds the noise of training.
            found: contributions of one probe per layer.
            spread: spread of scores over trainings.
        """
        if self.n_used < FEWEST or spread is None or len(layers) < 2:
            return dict.fromkeys(layers)
        sums = [self.sums(each) for each in self.parts(found, metric)]
        scores, named = np.array(self.values(found, metric)), f"{name} {metric}"
        tested = Replicates(scores, SCORES[metric], sums, layers, named, spread.sd, spread.df)
        return p_best_of(tested)


def shares(found: NDArray[np.generic], of: NDArray[np.generic]) -> Floats:
    """Parts of a ratio of sums. (s,) and (s,) to (s, 2)."""
    return np.stack([found, of], axis=1).astype(np.float64)


def mean_share(sums: Floats) -> Floats:
    """Mean of n ratios of two sums each. Shape (…, 2 · n) to (…,)."""
    found: Floats = ratio(sums[..., ::2], sums[..., 1::2]).mean(-1)
    return found


def difference(sums: Floats) -> Floats:
    """Ratio of the first two sums minus the mean of the others. Shape (…, 2 + 2 · n) to (…,)."""
    return mean_share(sums[..., :2]) - mean_share(sums[..., 2:])
