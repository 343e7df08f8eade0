"""k-means clusters of vectors against labels (as in Jawahar et al. 2019)."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.special import entr
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.cluster import expected_mutual_information

from probes.common.arrays import Floats, Ints
from probes.measurements.geometry.labelled_words import LabelledGroup, LabelSet, Read
from probes.records.values import Estimate
from probes.statistics.bootstrap import estimate, means, weights
from probes.statistics.partition import Partition
from probes.statistics.sums import Rows, ratio

STARTS = 5
"""Runs of k-means, over which agreement is averaged: it finds a local optimum, and from another
start another one, which can agree much better or worse."""


def clustering(labels: LabelSet, read: Read, partition: Partition, seed: int) -> list[Estimate]:
    """Cluster the items of each group into as many clusters as it has labels, and compare.

    Args:
        partition: of the sentences of the test split.

    Returns:
        NMI and AMI: their means over lemmas where labels are senses, with an interval over lemmas;
        otherwise of all items, with an interval over documents (or sentences) and starts.
    """
    found = [kmeans(group.vectors(read), group.n_classes, seed) for group in labels.groups]
    if labels.by_lemma:
        pairs = zip(labels.groups, found, strict=True)
        both = np.array(
            [np.mean([agreement(group.labels, x) for x in runs], axis=0) for group, runs in pairs]
        )
        return means(both, np.arange(len(both)), len(both), "lemmas")
    (group,), (clusters,) = labels.groups, found
    return _over_documents(group, clusters, partition, seed)


def kmeans(vectors: Rows, n_clusters: int, seed: int) -> Ints:
    """The cluster of each vector, from several starts. Shape (starts, n).

    Fewer clusters are found where fewer vectors are different, as those of a word may all be the
    same at layer 0.
    """

    def run(start: int) -> Ints:
        found: Ints = KMeans(n_clusters, random_state=STARTS * seed + start).fit_predict(vectors)
        return found

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Number of distinct clusters", ConvergenceWarning)
        return np.stack([run(start) for start in range(STARTS)])


def agreement(labels: Ints, clusters: Ints) -> Floats:
    """Mutual information, normalised by the mean entropy and adjusted (Vinh et al. 2010, AMI_sum).

    Args:
        labels, clusters: numbered from 0. Shape (n,).

    Returns:
        both. Shape (2,).
    """
    table = np.zeros((labels.max() + 1, clusters.max() + 1))
    np.add.at(table, (labels, clusters), 1)
    found: Floats = _scores(table[None], _by_chance(table))[0]
    return found


def _over_documents(
    group: LabelledGroup, clusters: Ints, partition: Partition, seed: int
) -> list[Estimate]:
    """Agreement of one group, with intervals over documents and starts.

    In a resample, clusters and what chance explains stay as they are. Mutual information is greater
    in resamples than in the sample, as it is greater in samples than in the population; that bias
    is subtracted (Efron & Tibshirani 1993, section 10.6).
    """
    values = np.mean([agreement(group.labels, each) for each in clusters], axis=0)
    drawn = weights(partition.n)
    if drawn is None:
        return [estimate(float(value), None, partition.clusters) for value in values]
    document = partition.of_sentence[group.sentence]
    each = np.stack([agreement_in_resamples(group.labels, x, document, drawn) for x in clusters])
    starts = np.random.default_rng(seed).multinomial(STARTS, [1 / STARTS] * STARTS, len(drawn))
    replicates = np.einsum("srm,rs->mr", each, starts) / STARTS
    replicates -= np.nanmean(replicates, axis=1, keepdims=True) - values[:, None]
    replicates = np.clip(replicates, np.array([[0.0], [-np.inf]]), 1)
    return [
        estimate(float(value), row, partition.clusters)
        for value, row in zip(values, replicates, strict=True)
    ]


def agreement_in_resamples(labels: Ints, clusters: Ints, document: Ints, drawn: Floats) -> Floats:
    """`agreement` in each resample, chance as in the sample. Shape (resamples, 2).

    Args:
        document: the cluster of sentences that each item is from. Shape (n,).
        drawn: how often each is drawn. Shape (resamples, documents).
    """
    counts = np.zeros((drawn.shape[1], labels.max() + 1, clusters.max() + 1))
    np.add.at(counts, (document, labels, clusters), 1)
    return _scores(np.tensordot(drawn, counts, 1), _by_chance(counts.sum(0)))


def _by_chance(table: Floats) -> float:
    """The mutual information expected of random clusters of the same sizes, in nats."""
    return float(expected_mutual_information(table, int(table.sum())))


def _scores(tables: Floats, by_chance: float) -> Floats:
    """Normalised and adjusted information of contingency tables (…, labels, clusters)."""
    joint = tables / tables.sum((1, 2), keepdims=True)
    entropies = _entropy(joint.sum(1)) + _entropy(joint.sum(2))
    information, mean = entropies - _entropy(joint.reshape(len(joint), -1)), entropies / 2
    adjusted = ratio(information - by_chance, mean - by_chance)
    return np.stack([ratio(information, mean), adjusted], axis=1)


def _entropy(shares: Floats) -> Floats:
    found: Floats = entr(shares).sum(1)
    return found
