"""Spearman's rank correlation: within sentences, by length (NSpr), and over a corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats, Ints
from probes.statistics.gold import Gold, Predictions
from probes.statistics.sums import ratio, sparse_matrix

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NSPR_LENGTHS = range(5, 51)


def centred_ranks(values: NDArray[Any]) -> Floats:
    """Ranks along the last axis, ties averaged, minus their mean."""
    import pandas as pd  # scipy.stats takes half a second to import

    rows = pd.DataFrame(values.reshape(-1, values.shape[-1]))
    ranks: Floats = rows.rank(axis=1).to_numpy(copy=True).reshape(values.shape)
    ranks -= ranks.mean(-1, keepdims=True)
    return ranks


def spearman(predicted: NDArray[Any], gold: NDArray[Any]) -> Floats:
    """Spearman's rank correlation along the last axis, ties sharing their mean rank.

    0 where `predicted` is constant; NaN where `gold` is. Shape (…, n) to (…,).
    """
    gold_ranks, predicted_ranks = centred_ranks(gold), centred_ranks(predicted)
    scale = np.sqrt((gold_ranks**2).sum(-1) * (predicted_ranks**2).sum(-1))
    rho = ratio((gold_ranks * predicted_ranks).sum(-1), scale, otherwise=0.0)
    return np.where((gold_ranks != 0).any(-1), rho, np.nan)


def _sentence_spearman(gold: Gold, predicted: Predictions) -> tuple[Ints, Floats]:
    """`spearman` within each sentence that has two different gold values.

    Returns:
        the sentences (s,) and their correlations (s,).
    """
    sentences, scores = [], []
    for group, examples in gold.by_length:
        rho = spearman(predicted[examples], gold.labels[examples])
        varied = ~np.isnan(rho)
        sentences.append(group[varied])
        scores.append(rho[varied])
    return np.concatenate(sentences), np.concatenate(scores)


def nspr_parts(gold: Gold, predicted: Predictions) -> csr_array:
    """Each sentence's correlation and 1, in the columns of the sentence's length."""
    sentences, rho = _sentence_spearman(gold, predicted)
    return parts_by_length(sentences, rho, np.diff(gold.bounds))


def parts_by_length(sentences: Ints, rho: Floats, lengths: Ints) -> csr_array:
    """Contributions of correlations within sentences to `nspr`. Shape (n, columns).

    Args:
        sentences: the sentences that have a correlation. Shape (s,).
        rho: their correlations. Shape (s,).
        lengths: lengths of all n sentences.
    """
    column = lengths[sentences] - NSPR_LENGTHS.start
    in_range = (column >= 0) & (column < len(NSPR_LENGTHS))
    sentences, rho, column = sentences[in_range], rho[in_range], column[in_range]
    n = len(NSPR_LENGTHS)
    data = np.concatenate([rho, np.ones(len(rho))])
    index = (np.tile(sentences, 2), np.concatenate([column, n + column]))
    return sparse_matrix((data, index), (len(lengths), 2 * n))


def nspr(sums: Floats) -> Floats:
    """Spearman within sentences, averaged per length 5 to 50, then over lengths.

    The NSpr metric of Hewitt & Manning 2019. NaN if no sentence is of such a length.
    """
    total, count = np.split(sums, 2, axis=-1)
    return ratio(ratio(total, count, otherwise=0.0).sum(-1), (count > 0).sum(-1))


def nspr_sentences(gold: Gold) -> int:
    """Number of sentences that `nspr` covers."""
    return int(nspr_parts(gold, gold.labels)[:, len(NSPR_LENGTHS) :].sum())


def spearman_parts(gold: Gold, predicted: Predictions) -> csr_array:
    """Each sentence's correlation, and 1; zeros for a sentence that has none."""
    sentences, rho = _sentence_spearman(gold, predicted)
    parts = np.zeros((gold.n_sentences, 2))
    parts[sentences] = np.stack([rho, np.ones(len(rho))], axis=1)
    return sparse_matrix(parts)


def moment_parts(gold: Gold, predicted: Predictions) -> csr_array:
    """Each sentence's sums, squares and products of ranks; resamples keep the sample's ranks."""
    x, y = centred_ranks(gold.labels), centred_ranks(predicted)
    terms = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)
    return sparse_matrix(np.add.reduceat(terms, gold.bounds[:-1], axis=0))


def correlation(sums: Floats) -> Floats:
    """Spearman over all examples at once, ties sharing their mean rank.

    NaN if all gold values are equal; constant predictions score 0.
    """
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    gold_squares, predicted_squares = xx - x * x / n, yy - y * y / n
    rho = ratio(xy - x * y / n, np.sqrt(gold_squares * predicted_squares), otherwise=0.0)
    return np.where(gold_squares > 0, rho, np.nan)
