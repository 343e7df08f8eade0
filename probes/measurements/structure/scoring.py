"""What sentences contribute to the scores of structural probes, and the scores.

Every score is a function of sums over sentences, so that intervals and tests need no predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats, Ints
from probes.measurements.structure.decoding import correlations, lowest, spanning_trees
from probes.measurements.structure.payload import BINS
from probes.measurements.structure.trees import Trees
from probes.statistics.bootstrap import bounds, interval, resample
from probes.statistics.metrics import mean_value
from probes.statistics.partition import FEWEST, Partition
from probes.statistics.rank_correlation import NSPR_LENGTHS, nspr
from probes.statistics.sums import sparse
from probes.records.values import Interval

Predicted = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Sentences:
    """What is known of a split's sentences before anything is predicted.

    Attributes:
        trees: of the split.
        clusters: the document of each sentence, or whatever is resampled. Shape (s,).
        n_clusters: of the whole split.
    """

    trees: Trees
    clusters: Ints
    n_clusters: int

    @classmethod
    def of(cls, trees: Trees, partition: Partition) -> Sentences:
        """Those of a split that is resampled by `partition`."""
        return cls(trees, partition.of_sentence[trees.sentences], partition.n)

    @property
    def enough(self) -> bool:
        """Whether there are enough clusters for intervals and tests."""
        return len(np.unique(self.clusters)) >= FEWEST

    def sums(self, parts: Floats) -> Floats:
        """What sentences contribute (s, k), summed over each cluster. Shape (clusters, k)."""
        n = len(self.clusters)
        members = sparse((np.ones(n), (self.clusters, np.arange(n))), (self.n_clusters, n))
        found: Floats = members @ parts
        return found

    def by_length(self, values: Floats) -> Floats:
        """The parts of `nspr` from a correlation of each sentence; NaN for none. Shape (s, k)."""
        column = self.trees.lengths - NSPR_LENGTHS.start
        known = (column >= 0) & (column < len(NSPR_LENGTHS)) & ~np.isnan(values)
        found = np.zeros((2, len(values), len(NSPR_LENGTHS)))
        found[0, known, column[known]] = values[known]
        found[1, known, column[known]] = 1
        return np.concatenate(list(found), axis=1)


def score(
    parts: Floats, value: Callable[[Floats], Floats], sentences: Sentences
) -> tuple[float | None, Interval]:
    """A score and its 95 % interval, the latter None with too few documents or sentences.

    Args:
        parts: what each sentence contributes. Shape (s, k).
        value: the score from sums (…, k).
    """
    whole = float(value(parts.sum(0)))
    if np.isnan(whole):
        return None, None
    if not sentences.enough:
        return whole, None
    draws = resample(sentences.n_clusters).astype(np.float64)
    return whole, bounds(interval(value(draws @ sentences.sums(parts))))
