"""The geometry of one layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from probes.common.arrays import Floats, Ints
from probes.measurements.geometry.clusters import clustering
from probes.measurements.geometry.cosines import (
    anisotropy,
    contributions,
    intra_sentence_similarity,
    norms,
    self_similarity,
    unit_vectors,
)
from probes.measurements.geometry.estimates import means
from probes.measurements.geometry.labels import LabelSet, Read
from probes.measurements.geometry.payload import Dimension, LayerGeometry, Similarity
from probes.measurements.geometry.position import position_share
from probes.measurements.geometry.spectra import explainable_variance, participation_ratio
from probes.measurements.geometry.sums import Rows
from probes.measurements.geometry.words import Words
from probes.records.values import Estimate

DOMINANT = 3
"""Dimensions that are named."""


@dataclass(frozen=True)
class Measured:
    """What was found for one layer.

    Attributes:
        intra_sentence: similarity of each sentence, raw and of random words; NaN for those without
            two words. Shape (sentences, 2).
        self_similarity: of each frequent type. Shape (types,).
        explainable: maximum explainable variance of each, raw and of random words. Shape
            (types, 2).
    """

    payload: LayerGeometry
    intra_sentence: Floats
    self_similarity: Floats
    explainable: Floats


def measured(
    layer: int,
    rows: Rows,
    words: Words,
    labels: Mapping[str, LabelSet],
    read: Read,
    seed: int,
) -> Measured:
    """Measure a layer.

    Args:
        rows: vectors of the test words. Shape (n, H).
        labels: what is clustered.
        read: gives any rows of the layer, for clusters.
        seed: of random words and of k-means; every layer has the same random words.
    """
    rng = np.random.default_rng(seed)
    unit, length = unit_vectors(rows), norms(rows)
    shuffled = rng.permutation(len(rows))
    intra = np.stack(
        [
            intra_sentence_similarity(rows[order], unit[order], words.sentence, words.n_sentences)
            for order in (np.arange(len(rows)), shuffled)
        ],
        axis=1,
    )
    explainable = np.array(
        [
            [explainable_variance(rows[some]) for some in (own, drawn_like(own, len(rows), rng))]
            for own in words.frequent
        ]
    ).reshape(-1, 2)
    of_types = self_similarity(unit, words.frequent)
    expected = anisotropy(unit, words.document, words.partition.n, words.partition.clusters)
    kept = ~np.isnan(intra[:, 0])
    payload = LayerGeometry(
        layer=layer,
        anisotropy=expected,
        standardised_anisotropy=_standardised(rows),
        dominant=_dominant(unit, expected),
        self_similarity=_of_types(of_types, expected),
        intra_sentence_similarity=_similarity(
            intra[kept],
            words.partition.of_sentence[kept],
            words.partition.n,
            words.partition.clusters,
        ),
        maximum_explainable_variance=_similarity(
            explainable, np.arange(len(explainable)), len(explainable), "word types"
        ),
        participation_ratio=participation_ratio(rows),
        norm_mean=float(length.mean()),
        norm_sd=float(length.std(ddof=1)) if len(rows) > 1 else None,
        zero_vectors=int((length == 0).sum()),
        position_share=position_share(rows, words.position, np.zeros_like(words.type)),
        position_share_within_types=position_share(rows, words.position, words.type),
        clusters={
            name: clustering(each, read, words.partition, seed)
            for name, each in labels.items()
            if not each.missing
        },
    )
    return Measured(payload, intra, of_types, explainable)


def drawn_like(own: Ints, n: int, rng: np.random.Generator) -> Ints:
    """As many different words as a type has occurrences, of whatever type. Shape (occurrences,)."""
    return rng.choice(n, len(own), replace=False)


def _similarity(values: Floats, cluster: Ints, n_clusters: int, what: str) -> Similarity:
    """The means of raw and baseline values (n, 2), and of their differences."""
    three = np.column_stack([values, values[:, 0] - values[:, 1]])
    raw, baseline, adjusted = means(three, cluster, n_clusters, what)
    return Similarity(raw=raw, baseline=baseline, adjusted=adjusted)


def _of_types(values: Floats, expected: Estimate) -> Similarity:
    """The mean self-similarity of types, raw and less the anisotropy, which is taken as it is."""
    places = np.arange(len(values))
    if expected.value is None:
        return Similarity(raw=expected, baseline=expected, adjusted=expected)
    both = np.column_stack([values, values - expected.value])
    raw, adjusted = means(both, places, len(places), "word types")
    return Similarity(raw=raw, baseline=expected, adjusted=adjusted)


def _dominant(unit: Rows, expected: Estimate) -> tuple[Dimension, ...]:
    """The dimensions that contribute most, with their shares where the whole is above 0."""
    if expected.value is None:
        return ()
    parts = contributions(unit)
    clear = expected.interval is not None and expected.interval[0] > 0
    return tuple(
        Dimension(
            dimension=int(place),
            contribution=float(parts[place]),
            share=float(parts[place] / expected.value) if clear else None,
        )
        for place in np.argsort(-parts, kind="stable")[:DOMINANT]
    )


def _standardised(rows: Rows) -> float | None:
    """The expected cosine of two random words after each dimension is standardised.

    Dimensions without variance become 0. None for fewer than two words.
    """
    if len(rows) < 2:
        return None
    mean, sd = rows.mean(0, dtype=np.float64), rows.std(0, dtype=np.float64)
    scale = np.where(sd > 0, sd, np.inf)
    even = (rows - mean.astype(rows.dtype)) / scale.astype(rows.dtype)
    return float(contributions(unit_vectors(even)).sum())
