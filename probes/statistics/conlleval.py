"""Span F1 over BIO tags, by conlleval's definition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats, Ints
from probes.statistics.sums import ratio, sparse

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from probes.statistics.gold import Gold, Predictions

Spans = set[tuple[int, int, str]]
"""Chunks: start, end, type."""


def gold_and_given_spans(gold: Gold, given: Predictions) -> tuple[Spans, Spans]:
    """The chunks that there are, and those that predictions (n,) of BIO tags make."""
    outside = len(gold.tags) - 1
    found = chunk_spans(gold.tags, np.where(given < 0, outside, given), gold.first)
    return gold.chunks, found


def span_parts(gold: Gold, given: Predictions) -> csr_array:
    """Chunks found right, chunks wanted, chunks given."""
    wanted, found = gold_and_given_spans(gold, given)
    columns = []
    for chunks in (wanted & found, wanted, found):
        starts = np.array([start for start, _, _ in chunks], dtype=np.int64)
        columns.append(np.bincount(gold.place[starts], minlength=gold.n_sentences))
    return sparse(np.stack(columns, axis=1).astype(float))


def span_f1(gold: Gold, sums: Floats) -> Floats:
    """F1 over whole chunks by conlleval's definition (Tjong Kim Sang & Buchholz 2000).

    A chunk starts at B-x, and at I-x after O, after another type, or at the beginning of a
    sentence. It counts if start, end and type are right.
    """
    return ratio(2 * sums[..., 0], sums[..., 1] + sums[..., 2], otherwise=0.0)


def chunk_spans(names: Sequence[str], tags: Ints, first: NDArray[np.bool_]) -> Spans:
    """The chunks (start, end, type) of BIO tags that run over sentences.

    Args:
        names: of the tags.
        tags: indices of names. Shape (n,).
        first: where sentences begin. Shape (n,).
    """
    types = ["", *sorted({name[2:] for name in names if name != "O"})]
    kinds = np.array([types.index("" if name == "O" else name[2:]) for name in names])[tags]
    begins = np.array([name.startswith("B-") for name in names])[tags]
    inside = kinds != 0
    changed = np.ones(len(tags), dtype=bool)
    changed[1:] = kinds[1:] != kinds[:-1]
    starts = inside & (begins | changed | first)
    stops = np.flatnonzero(np.append(starts | ~inside | first, True))
    where = np.flatnonzero(starts)
    ends = stops[np.searchsorted(stops, where, side="right")]
    which = np.array(types, dtype=object)[kinds[where]]
    return set(zip(where.tolist(), ends.tolist(), which.tolist(), strict=True))
