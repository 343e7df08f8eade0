"""Chunks of BIO tags, and their F1, by conlleval's definition.

conlleval is the scorer of the CoNLL-2000 shared task (Tjong Kim Sang & Buchholz 2000). A chunk
starts at B-x, and at I-x after O, after another type, or at the beginning of a sentence. A
predicted chunk is right if its start, end and type are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats, Ints
from probes.statistics.sums import ratio

Chunks = set[tuple[int, int, str]]
"""Start, end and type of each chunk."""


def chunk_spans(names: Sequence[str], tags: Ints, first: NDArray[np.bool_]) -> Chunks:
    """The chunks of a sequence of BIO tags.

    Args:
        names: the tags by name.
        tags: indices into `names`. Shape (n,).
        first: which tags begin a sentence. Shape (n,).
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


def chunk_f1(n_right: Floats, n_gold: Floats, n_predicted: Floats) -> Floats:
    """F1 of chunks from their counts; 0 where there are no chunks at all, as in conlleval."""
    return ratio(2 * n_right, n_gold + n_predicted, otherwise=0.0)
