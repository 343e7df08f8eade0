"""Cosines of random words, of words of one type, and of words of one sentence.

Means over all pairs are exact without visiting pairs: with unit vectors û_i and their sum S, the
mean cosine of two different words is (‖S‖² − Σ‖û_i‖²) / (n (n − 1)). A zero vector has cosine 0
with all others.
"""

from __future__ import annotations

import numpy as np

from probes.common.arrays import Floats, Ints
from probes.records.values import Estimate
from probes.statistics.bootstrap import estimate_of, missing_estimate, weights
from probes.statistics.sums import VectorRows, group_sums, row_slices


def norms(rows: VectorRows) -> Floats:
    """The Euclidean length of each row. Shape (n,)."""
    squares: Floats = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    return np.sqrt(squares)


def unit_vectors(rows: VectorRows) -> VectorRows:
    """The rows divided by their lengths; a zero row stays one. Shape (n, H)."""
    length = norms(rows)
    unit: VectorRows = rows / np.where(length > 0, length, 1.0).astype(rows.dtype)[:, None]
    return unit


def cosine_contributions(unit: VectorRows) -> Floats:
    """Contribution of each dimension to the expected cosine of two random words.

    Exact over all pairs, unlike the sample of Timkey & van Schijndel (2021, eq. 3). The sum over
    dimensions is the expected cosine.

    Args:
        unit: unit vectors of at least two words.

    Returns:
        shape (H,).
    """
    n = len(unit)
    sums = unit.sum(0, dtype=np.float64)
    squares = np.einsum("ij,ij->j", unit, unit, dtype=np.float64)
    contributions: Floats = (sums**2 - squares) / (n * (n - 1))
    return contributions


def anisotropy(unit: VectorRows, document: Ints, n_documents: int, clusters: str) -> Estimate:
    """Expected cosine of two random words (Ethayarajh 2019, section 3.3), with its interval.

    Args:
        unit: unit vectors.
        document: cluster of each word. Shape (n,).
        clusters: name of the clusters, in the plural.
    """
    if len(unit) < 2:
        return missing_estimate("fewer than two words")
    copies = weights(n_documents)
    replicates = None if copies is None else cosine_in_resamples(unit, document, copies)
    return estimate_of(float(cosine_contributions(unit).sum()), replicates, clusters)


def cosine_in_resamples(unit: VectorRows, document: Ints, copies: Floats) -> Floats:
    """Expected cosine of two random words in each resample. Shape (resamples,).

    The words of a document's copy are paired with each other and with those of other documents, but
    not with those of another copy, since two random documents differ.

    Args:
        unit, document: see `anisotropy`.
        copies: number of copies of each document. Shape (resamples, documents).
    """
    n_documents = copies.shape[1]
    sums = group_sums(unit, document, n_documents)
    within = (sums**2).sum(1)
    itself = np.bincount(document, norms(unit) ** 2, n_documents)
    words = np.bincount(document, minlength=n_documents).astype(np.float64)
    cosines = ((copies @ sums) ** 2).sum(1) - copies**2 @ within + copies @ (within - itself)
    pairs = (copies @ words) ** 2 - copies**2 @ words**2 + copies @ (words**2 - words)
    expected: Floats = cosines / pairs
    return expected


def self_similarity(unit: VectorRows, occurrences: list[Ints]) -> Floats:
    """Mean cosine of two occurrences of a word type (Ethayarajh 2019, definition 1).

    Args:
        occurrences: rows of each type, at least two.

    Returns:
        shape (types,).
    """
    return np.array([cosine_contributions(unit[rows]).sum() for rows in occurrences])


def intra_sentence_similarity(
    rows: VectorRows, unit: VectorRows, sentence: Ints, n_sentences: int
) -> Floats:
    """Mean cosine of a sentence's words with their mean (Ethayarajh 2019, definition 2).

    Args:
        rows, unit: vectors and unit vectors.
        sentence: sentence of each word. Shape (n,).

    Returns:
        shape (sentences,); NaN for sentences with fewer than two words.
    """
    directions = unit_vectors(group_sums(rows, sentence, n_sentences))
    cosines = np.empty(len(rows))
    for block in row_slices(len(rows)):
        means = directions[sentence[block]]
        cosines[block] = np.einsum("ij,ij->i", unit[block], means, dtype=np.float64)
    lengths = np.bincount(sentence, minlength=n_sentences)
    sums = np.bincount(sentence, cosines, n_sentences)
    return np.where(lengths > 1, sums / np.maximum(lengths, 1), np.nan)
