"""k-means clusters of vectors against labels (as in Jawahar et al. 2019)."""

from __future__ import annotations

import warnings

import numpy as np

from probes.common.arrays import Floats, Ints
from probes.measurements.geometry.estimates import estimate, means, weights
from probes.measurements.geometry.labels import Group, LabelSet, Read
from probes.measurements.geometry.payload import Clustering
from probes.measurements.geometry.sums import Rows
from probes.records.values import Estimate
from probes.statistics.partition import Partition

STARTS = 3
"""Runs of k-means, of which the one with the least inertia counts."""


def clustering(labels: LabelSet, read: Read, partition: Partition, seed: int) -> Clustering:
    """Cluster the items of each group into as many clusters as it has labels, and compare.

    Args:
        partition: of the sentences of the test split.

    Returns:
        the mean over lemmas where labels are senses, with an interval over lemmas; otherwise the
        agreement of all items, with an interval over documents or sentences.
    """
    found = [kmeans(group.vectors(read), group.n_classes, seed) for group in labels.groups]
    if labels.about.lemmas:
        both = [
            agreement(group.labels, each) for group, each in zip(labels.groups, found, strict=True)
        ]
        nmi, ami = means(np.array(both), np.arange(len(both)), len(both), "lemmas")
    else:
        (group,), (clusters,) = labels.groups, found
        nmi, ami = _over_documents(group, clusters, partition)
    return Clustering(nmi=nmi, ami=ami)


def kmeans(vectors: Rows, n_clusters: int, seed: int) -> Ints:
    """The cluster of each vector. Shape (n,).

    Fewer clusters are found where fewer vectors are different, as those of a word may all be the
    same at layer 0.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    # With several threads, the order of sums, and with it a border, depends on which is faster.
    with threadpool_limits(1, user_api="openmp"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Number of distinct clusters", ConvergenceWarning)
        found: Ints = KMeans(n_clusters, n_init=STARTS, random_state=seed).fit_predict(vectors)
    return found


def agreement(labels: Ints, clusters: Ints) -> tuple[float, float]:
    """Normalised (arithmetic mean) and adjusted mutual information (Vinh et al. 2010)."""
    from sklearn.metrics import adjusted_mutual_info_score, normalized_mutual_info_score

    return (
        float(normalized_mutual_info_score(labels, clusters)),
        float(adjusted_mutual_info_score(labels, clusters)),
    )


def _over_documents(group: Group, clusters: Ints, partition: Partition) -> list[Estimate]:
    """Agreement with intervals that take the clusters, and what chance explains, as they are."""
    from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information

    values = agreement(group.labels, clusters)
    drawn = weights(partition.n)
    if drawn is None:
        return [estimate(value, None, partition.clusters) for value in values]
    table = contingency_matrix(group.labels, clusters)
    cell = group.labels * table.shape[1] + clusters
    document = partition.of_sentence[group.sentence]
    counts = np.zeros((partition.n, table.size))
    np.add.at(counts, (document, cell), 1)
    information, entropy = _information((drawn @ counts).reshape(-1, *table.shape))
    by_chance = expected_mutual_information(table, len(clusters))
    replicates = (
        information / entropy,
        (information - by_chance) / (entropy - by_chance),
    )
    return [
        estimate(value, each, partition.clusters)
        for value, each in zip(values, replicates, strict=True)
    ]


def _information(tables: Floats) -> tuple[Floats, Floats]:
    """Mutual information of each contingency table, and the mean of both entropies, in nats."""
    joint = tables / tables.sum((1, 2), keepdims=True)
    entropies = [_entropy(joint.sum(axis)) for axis in (1, 2)]
    both = _entropy(joint.reshape(len(joint), -1))
    return entropies[0] + entropies[1] - both, (entropies[0] + entropies[1]) / 2


def _entropy(shares: Floats) -> Floats:
    from scipy.special import entr

    found: Floats = entr(shares).sum(1)
    return found
