"""What the measurement of geometry finds."""

from __future__ import annotations

from probes.records.base import Frozen
from probes.records.values import Estimate
from probes.statistics.partition import Cluster

SIMILARITIES = {
    "self_similarity": "self-similarity",
    "intra_sentence_similarity": "intra-sentence similarity",
    "maximum_explainable_variance": "maximum explainable variance",
}
"""Measures of contextuality, and what they are called."""


class Similarity(Frozen):
    """A measure of contextuality, the value expected without context, and their difference."""

    raw: Estimate
    baseline: Estimate
    adjusted: Estimate
    """`raw` less `baseline`."""


class Dimension(Frozen):
    """A dimension of the vectors."""

    dimension: int
    """From 0."""
    contribution: float
    """To the expected cosine of two random words."""
    share: float | None
    """Of the expected cosine; None where that is not clearly above 0."""


class Clustering(Frozen):
    """How k-means clusters agree with labels."""

    nmi: Estimate
    """Normalised mutual information."""
    ami: Estimate
    """The same adjusted for chance: 0 is expected of random clusters."""


class LayerGeometry(Frozen):
    """What was found for one layer; None where too few words were there."""

    layer: int
    anisotropy: Estimate
    """Expected cosine of two random words."""
    standardised_anisotropy: float | None
    """The same after each dimension is standardised."""
    dominant: tuple[Dimension, ...]
    """Those that contribute most to the anisotropy, the first of them most."""
    self_similarity: Similarity
    intra_sentence_similarity: Similarity
    maximum_explainable_variance: Similarity
    participation_ratio: float | None
    norm_mean: float
    norm_sd: float | None
    zero_vectors: int
    """Words whose vector is 0; each of their cosines counts as 0."""
    position_share: float | None
    """Share of the variance that a word's place in its sentence explains, adjusted for chance."""
    position_share_within_types: float | None
    """The same of the variance within word types."""
    clusters: dict[str, Clustering]
    """By kind of label: upos, chunks, senses."""

    def similarity(self, name: str) -> Similarity:
        """One of `SIMILARITIES`."""
        found: Similarity = getattr(self, name)
        return found


class Labels(Frozen):
    """Labels that clusters are compared with."""

    items: int
    """Words, chunks or occurrences of predicates that are clustered."""
    available: int
    """Those that they are drawn from, where there are too many."""
    classes: int
    """Classes, and as many clusters; of predicates, senses of all lemmas."""
    left_out: int
    """Words of sentences without this annotation, or predicates of lemmas and senses that are too
    rare."""
    lemmas: int = 0
    """Each is clustered by itself; 0 where all items are clustered together."""


class Findings(Frozen):
    """What `Geometry` finds."""

    layers: tuple[LayerGeometry, ...]
    cka: tuple[tuple[float | None, ...], ...]
    """Linear CKA of every two layers, in their order; None where a layer does not vary."""
    words: int
    """Words of the test split."""
    sentences: int
    far_words: int
    """Words whose place is not told from that of others; see `PLACES` in `.position`."""
    in_several_windows: int
    """Sentences longer than the model's window, which are measured like all others."""
    types: int
    """Word types that are frequent enough for self-similarity and explainable variance."""
    resampled: Cluster
    """What intervals of words and sentences resample."""
    labels: dict[str, Labels]
    """By kind of label; those that the corpus has."""
    missing: dict[str, str]
    """Why there are no clusters of a kind of label."""
    dimensions: int
    """Of the vectors."""
