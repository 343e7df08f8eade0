"""Means over items that were sampled stratum by stratum, such as the pairs of each paradigm.

The paradigms of a benchmark are no sample, so that clusters are drawn within each of them (the
stratified bootstrap; Davison & Hinkley 1997, section 3.2). Means over several share these draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from probes.common.arrays import Floats, Ints
from probes.statistics.bootstrap import RESAMPLES, block
from probes.statistics.partition import FEWEST
from probes.statistics.sums import ratio


@dataclass(frozen=True)
class Strata:
    """Items, what is drawn together, and from which stratum.

    Attributes:
        cluster: of each item, numbered from 0. Shape (items,).
        stratum: of each item, numbered from 0; all items of a cluster have the same. Shape
            (items,).
    """

    cluster: Ints
    stratum: Ints

    @classmethod
    def of(cls, clusters: Sequence[str], strata: Sequence[str]) -> Strata:
        """The same by name; if a cluster lies in several strata, there is one stratum."""
        names = {name: i for i, name in enumerate(dict.fromkeys(clusters))}
        places = {name: i for i, name in enumerate(dict.fromkeys(strata))}
        cluster = np.array([names[name] for name in clusters], dtype=np.int64)
        stratum = np.array([places[name] for name in strata], dtype=np.int64)
        if len(set(zip(clusters, strata, strict=True))) > len(names):
            stratum = np.zeros_like(stratum)
        return cls(cluster, stratum)

    def means(self, values: Floats, groups: Sequence[Ints]) -> Iterator[tuple[Floats, Floats]]:
        """The means of each group of items, and in each resample. Shapes (k,) and (resamples, k).

        Replicates are NaN with fewer than `FEWEST` clusters. The first n clusters of a stratum are
        drawn alike whatever is measured, so that differences are paired.

        Args:
            values: shape (items, k).
            groups: items by their numbers; may overlap.
        """
        sums = [np.zeros((RESAMPLES, values.shape[1])) for _ in groups]
        counts = [np.zeros(RESAMPLES) for _ in groups]
        for stratum in range(int(self.stratum.max(initial=-1)) + 1):
            own = self.stratum == stratum
            _, place = np.unique(self.cluster[own], return_inverse=True)
            number = np.full(len(own), -1)
            number[own] = place
            n_clusters = int(place.max()) + 1
            draws = block(n_clusters, seed=stratum).astype(np.float64)
            for i, group in enumerate(groups):
                here = group[own[group]]
                if len(here):
                    of = number[here]
                    its = [np.bincount(of, column, n_clusters) for column in values[here].T]
                    sums[i] += draws @ np.stack(its, axis=1)
                    counts[i] += draws @ np.bincount(of, minlength=n_clusters)
        for group, total, n in zip(groups, sums, counts, strict=True):
            found = ratio(total, n[:, None])
            if len(np.unique(self.cluster[group])) < FEWEST:
                found[:] = np.nan
            yield values[group].mean(0), found
