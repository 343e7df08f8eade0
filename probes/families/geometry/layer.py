"""The geometry of one layer."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import entr
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.cluster import expected_mutual_information

from probes.common.arrays import Floats, Ints
from probes.families.geometry.cosines import (
    anisotropy,
    cosine_contributions,
    intra_sentence_similarity,
    norms,
    self_similarity,
    unit_vectors,
)
from probes.families.geometry.labelled_words import LabelledGroup, LabelSet, Words
from probes.records.row import Row
from probes.records.values import Estimate
from probes.statistics.bootstrap import estimate_of, means, weights
from probes.statistics.partition import Partition
from probes.statistics.sums import VectorRows, centred, cross_gram, ratio

if TYPE_CHECKING:
    from probes.extraction.reading.vectors import Sharded

DOMINANT = 3
"""Number of dimensions to list."""


@dataclass(frozen=True)
class Contextuality:
    """Contextuality of each sentence and word type at one layer, before averaging.

    Attributes:
        intra_sentence: similarity of each sentence, raw and of random words; NaN for sentences
            with fewer than two words. Shape (sentences, 2).
        self_similarity: self-similarity of each frequent type. Shape (types,).
        explainable: maximum explainable variance of each frequent type, raw and of random words.
            Shape (types, 2).
    """

    intra_sentence: Floats
    self_similarity: Floats
    explainable: Floats


def word_contextuality(rows: VectorRows, words: Words, seed: int) -> Contextuality:
    """Measure each sentence and each frequent word type of a layer.

    Args:
        rows: vectors of the test words. Shape (n, H).
        seed: seed of random words, the same for every layer.
    """
    rng = np.random.default_rng(seed)
    unit = unit_vectors(rows)
    shuffled = rng.permutation(len(rows))
    vectors = (rows, unit), (rows[shuffled], unit[shuffled])
    text = words.sentence, words.n_sentences
    intra = np.stack([intra_sentence_similarity(*x, *text) for x in vectors], axis=1)
    explainable = np.array(
        [
            [
                explainable_variance(rows[occurrences]),
                # As many words of any type, each at most once.
                explainable_variance(rows[rng.choice(len(rows), len(occurrences), replace=False)]),
            ]
            for occurrences in words.frequent
        ]
    ).reshape(-1, 2)
    return Contextuality(intra, self_similarity(unit, words.frequent), explainable)


def geometry_rows(
    layer: int,
    rows: VectorRows,
    words: Words,
    of: Contextuality,
    labels: Mapping[str, LabelSet],
    stored: Sharded,
    seed: int,
) -> Iterator[Row]:
    """Rows of a layer: cosines, context, dimensions, lengths and clusters.

    Args:
        rows: vectors of the test words. Shape (n, H).
        of: contextuality of sentences and types.
        labels: items to cluster, by kind.
        stored: vectors of all splits.
        seed: seed of k-means.
    """
    unit, length = unit_vectors(rows), norms(rows)
    documents = words.partition.n, words.partition.clusters
    expected = anisotropy(unit, words.document, *documents)
    yield Row.estimated("anisotropy", expected, layer)
    yield Row("standardised_anisotropy", _standardised_anisotropy(rows), layer)
    yield from _dominant_dimensions(unit, expected, layer)
    # A sentence of one word has no cosine, and would make the means NaN.
    is_measured = ~np.isnan(of.intra_sentence[:, 0])
    types = len(of.self_similarity)
    over_types = np.arange(types), types, "word types"
    similarities = {
        "self_similarity": _type_similarity(of.self_similarity, expected),
        "intra_sentence_similarity": _similarity(
            of.intra_sentence[is_measured], words.partition.of_sentence[is_measured], *documents
        ),
        "maximum_explainable_variance": _similarity(of.explainable, *over_types),
    }
    for name, (raw, baseline, adjusted) in similarities.items():
        yield Row.estimated(name, raw, layer)
        yield Row.estimated(f"{name}_baseline", baseline, layer)
        yield Row.estimated(f"{name}_adjusted", adjusted, layer)
    yield Row("participation_ratio", participation_ratio(rows), layer)
    yield Row("norm_mean", length.mean(), layer)
    yield Row("norm_sd", length.std(ddof=1) if len(rows) > 1 else None, layer)
    yield Row("zero_vectors", (length == 0).sum(), layer)
    for name, label_set in labels.items():
        if label_set.missing:
            continue
        # Few lemmas of test have several senses, so senses are taken from all splits.
        split = "all" if label_set.by_lemma else "test"
        agreement = clustering(label_set, stored, words.partition, seed)
        for metric, value in zip(("nmi", "ami"), agreement, strict=True):
            yield Row.estimated(metric, value, layer, split=split, axes={"labels": name})


def _similarity(values: Floats, cluster: Ints, n_clusters: int, clusters: str) -> list[Estimate]:
    """Means of raw and baseline values (n, 2), and of their differences."""
    three = np.column_stack([values, values[:, 0] - values[:, 1]])
    return means(three, cluster, n_clusters, clusters)


def _type_similarity(values: Floats, expected: Estimate) -> list[Estimate]:
    """Mean self-similarity of types, raw and minus anisotropy, which is held fixed."""
    places = np.arange(len(values))
    if expected.value is None:
        return [expected] * 3
    columns = np.column_stack([values, values - expected.value])
    raw, adjusted = means(columns, places, len(places), "word types")
    return [raw, expected, adjusted]


def _dominant_dimensions(unit: VectorRows, expected: Estimate, layer: int) -> Iterator[Row]:
    """The dimensions that contribute most, with their shares if the sum is above 0."""
    if expected.value is None:
        return
    parts = cosine_contributions(unit)
    # Shares of a sum near 0 would be huge, and those of a negative one have the wrong sign.
    clear = expected.interval is not None and expected.interval[0] > 0
    for rank, dimension in enumerate(np.argsort(-parts, kind="stable")[:DOMINANT], start=1):
        axes = {"rank": rank, "dimension": int(dimension)}
        yield Row("contribution", parts[dimension], layer, axes=axes)
        share = parts[dimension] / expected.value if clear else None
        yield Row("share_of_anisotropy", share, layer, axes=axes)


def _standardised_anisotropy(rows: VectorRows) -> float | None:
    """Expected cosine of two random words after each dimension is standardised.

    Dimensions without variance become 0. None for fewer than two words.
    """
    if len(rows) < 2:
        return None
    mean, sd = rows.mean(0, dtype=np.float64), rows.std(0, dtype=np.float64)
    scale = np.where(sd > 0, sd, np.inf)
    even = (rows - mean.astype(rows.dtype)) / scale.astype(rows.dtype)
    return float(cosine_contributions(unit_vectors(even)).sum())


def explainable_variance(rows: VectorRows) -> float:
    """Maximum explainable variance σ₁² / Σσ² (Ethayarajh 2019, definition 3), about the mean.

    The share of the variance that one direction explains; 1 if all vectors are equal. The paper's
    formula does not centre vectors. The first direction is then close to their mean, and the
    measure would repeat self-similarity.

    Args:
        rows: shape (n, H).
    """
    wide = rows.astype(np.float64)
    length = float((wide**2).sum())
    wide -= wide.mean(0)
    gram = wide @ wide.T if len(wide) < wide.shape[1] else wide.T @ wide
    total = float(np.trace(gram))
    # Equal vectors differ from their mean by rounding.
    return float(np.linalg.eigvalsh(gram)[-1]) / total if total > 1e-12 * length else 1.0


def participation_ratio(rows: VectorRows) -> float | None:
    """(Σλ)² / Σλ² of the covariance's eigenvalues λ: d if d of them are equal and others 0.

    The effective number of dimensions in which vectors vary (Gao et al. 2017). The sums are tr C
    and ‖C‖²_F, so no eigenvalues are computed. None if the vectors do not vary.
    """
    gram = cross_gram(x := centred(rows), x)
    total, squares = float(np.trace(gram)), float((gram**2).sum())
    return total**2 / squares if squares > 0 else None


STARTS = 5
"""Number of k-means runs to average agreement over. Local optima from different starts can agree
much better or worse."""


def clustering(
    labels: LabelSet, stored: Sharded, partition: Partition, seed: int
) -> list[Estimate]:
    """Compare labels with k-means clusters, as many as labels (Jawahar et al. 2019).

    Args:
        partition: partition of the sentences of test.

    Returns:
        NMI and AMI. For senses, means and intervals over lemmas; otherwise values for all items,
        with intervals over documents (or sentences) and starts.
    """
    clusterings = [kmeans(group.vectors(stored), group.n_classes, seed) for group in labels.groups]
    if labels.by_lemma:
        pairs = zip(labels.groups, clusterings, strict=True)
        agreements = np.array(
            [
                np.mean([cluster_agreement(group.labels, x) for x in runs], axis=0)
                for group, runs in pairs
            ]
        )
        return means(agreements, np.arange(len(agreements)), len(agreements), "lemmas")
    (group,), (clusters,) = labels.groups, clusterings
    return _group_agreement(group, clusters, partition, seed)


def kmeans(vectors: VectorRows, n_clusters: int, seed: int) -> Ints:
    """Cluster of each vector, from several starts. Shape (starts, n).

    There are fewer clusters if fewer vectors differ, such as those of one word at layer 0.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Number of distinct clusters", ConvergenceWarning)
        runs = [KMeans(n_clusters, random_state=STARTS * seed + x) for x in range(STARTS)]
        return np.stack([run.fit_predict(vectors) for run in runs])


def cluster_agreement(labels: Ints, clusters: Ints) -> Floats:
    """Mutual information, normalised by the mean entropy and adjusted (Vinh et al. 2010, AMI_sum).

    Args:
        labels, clusters: numbered from 0. Shape (n,).

    Returns:
        NMI and AMI. Shape (2,).
    """
    table = np.zeros((labels.max() + 1, clusters.max() + 1))
    np.add.at(table, (labels, clusters), 1)
    scores: Floats = _information_scores(table[None], _chance_information(table))[0]
    return scores


def _group_agreement(
    group: LabelledGroup, clusters: Ints, partition: Partition, seed: int
) -> list[Estimate]:
    """Agreement of one group, with intervals over documents and starts.

    Resamples keep the clusters and the correction for chance. Mutual information is greater in
    resamples than in the sample, as in samples than in the population; this bias is subtracted
    (Efron & Tibshirani 1993, section 10.6).
    """
    values = np.mean([cluster_agreement(group.labels, run) for run in clusters], axis=0)
    copies = weights(partition.n)
    if copies is None:
        return [estimate_of(float(value), None, partition.clusters) for value in values]
    document = partition.of_sentence[group.sentence]
    runs = np.stack([agreement_in_resamples(group.labels, x, document, copies) for x in clusters])
    starts = np.random.default_rng(seed).multinomial(STARTS, [1 / STARTS] * STARTS, len(copies))
    replicates = np.einsum("srm,rs->mr", runs, starts) / STARTS
    replicates -= np.nanmean(replicates, axis=1, keepdims=True) - values[:, None]
    replicates = np.clip(replicates, np.array([[0.0], [-np.inf]]), 1)
    return [
        estimate_of(float(value), row, partition.clusters)
        for value, row in zip(values, replicates, strict=True)
    ]


def agreement_in_resamples(labels: Ints, clusters: Ints, document: Ints, copies: Floats) -> Floats:
    """`cluster_agreement` by resample, with the sample's correction for chance. (resamples, 2).

    Args:
        document: cluster of sentences of each item. Shape (n,).
        copies: number of copies of each cluster. Shape (resamples, documents).
    """
    counts = np.zeros((copies.shape[1], labels.max() + 1, clusters.max() + 1))
    np.add.at(counts, (document, labels, clusters), 1)
    return _information_scores(np.tensordot(copies, counts, 1), _chance_information(counts.sum(0)))


def _chance_information(table: Floats) -> float:
    """Expected mutual information of random clusters of the same sizes, in nats."""
    return float(expected_mutual_information(table, int(table.sum())))


def _information_scores(tables: Floats, by_chance: float) -> Floats:
    """NMI and AMI of contingency tables (…, labels, clusters)."""
    joint = tables / tables.sum((1, 2), keepdims=True)
    entropies = entr(joint.sum(1)).sum(1) + entr(joint.sum(2)).sum(1)
    information, mean = entropies - entr(joint.reshape(len(joint), -1)).sum(1), entropies / 2
    adjusted = ratio(information - by_chance, mean - by_chance)
    return np.stack([ratio(information, mean), adjusted], axis=1)
