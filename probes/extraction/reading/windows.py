"""The windows in which a text is read, and the window from which each word's vector is taken.

No torch here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from probes.common.arrays import Floats, Ints

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from probes.extraction.reading.alignment import Pieces

Pooling = Literal["mean", "first", "last"]
"""The pieces that make a word's vector."""

WINDOW_RULE = "half-overlapping windows, word read where farthest from an edge, v1"
"""Part of every key but those of models that may read from left to right."""

LEFT_TO_RIGHT_RULE = "half-overlapping windows, word read with the most left context, v1"
"""Part of their keys. Raise the version of either rule when it changes."""


def window_rule(causal: bool) -> str:
    """The rule by which a model's long texts are read, for keys."""
    return LEFT_TO_RIGHT_RULE if causal else WINDOW_RULE


@dataclass(frozen=True, slots=True)
class Window:
    """A window of a text, and the pieces whose vectors are taken from it.

    Attributes:
        ids: token ids, special tokens included. Shape (length,).
        text: number of the text.
        first: the first of the text's pieces that is in the window.
        position: index into `ids` of each piece that is used, grouped by word. Shape (pieces,).
        owner: the word that each piece belongs to, as its row in the shard. Shape (pieces,).
        share: weight of each piece in its word's vector. Shape (pieces,).
        types: token types, where they are not those of a single text. Shape (length,).
    """

    ids: Ints
    text: int
    first: int
    position: Ints
    owner: Ints
    share: Floats
    types: Ints | None = None

    def part(self, is_kept: NDArray[np.bool_]) -> Window:
        """A copy that uses only some of the pieces. Shape of `is_kept`: (pieces,)."""
        position, owner, share = self.position[is_kept], self.owner[is_kept], self.share[is_kept]
        return replace(self, position=position, owner=owner, share=share)


def windows_of_text(
    pieces: Pieces,
    kept_span: tuple[int, int],
    pooling: Pooling,
    *,
    capacity: int,
    prefix: Sequence[int],
    suffix: Sequence[int],
    causal: bool = False,
    text: int = 0,
    first_row: int = 0,
) -> list[Window]:
    """The windows that must be read for the vectors of a text's words.

    Args:
        pieces: the text as subwords.
        kept_span: the words `[start, end)` whose vectors are kept; windows that hold none of their
            pieces are left out.
        pooling: which pieces make a word's vector.
        capacity: subwords that a window holds, special tokens not counted.
        prefix, suffix: special tokens around each window.
        causal: whether the model reads from left to right; see `window_of_pieces`.
        text: number of the text.
        first_row: the row of its first kept word.
    """
    spans = window_spans(len(pieces.ids), capacity)
    used, owner = pooled_pieces(pieces.bounds, kept_span, pooling)
    share = 1 / np.bincount(owner)[owner]
    parts: list[Any] = [slice(None)]
    if len(spans) > 1:
        window = window_of_pieces(pieces.bounds, spans, causal=causal)[used]
        parts = [np.flatnonzero(window == index) for index in range(len(spans))]
    windows = []
    for (start, end), selected in zip(spans, parts, strict=True):
        position = used[selected] - start + len(prefix)
        if len(position):
            ids = np.array([*prefix, *pieces.ids[start:end], *suffix], dtype=np.int64)
            rows = owner[selected] + first_row
            windows.append(Window(ids, text, start, position, rows, share[selected]))
    return windows


def window_spans(n_pieces: int, capacity: int) -> list[tuple[int, int]]:
    """The windows of a text: one if it fits, else several that overlap by half or more.

    Args:
        n_pieces: subwords of the text.
        capacity: subwords that a window holds, special tokens not counted.

    Returns:
        (start, end) pairs that cover all pieces; if there are several, each has `capacity` pieces.
    """
    if n_pieces <= capacity:
        return [(0, n_pieces)]
    stride = max(1, capacity // 2)
    starts = [*range(0, n_pieces - capacity, stride), n_pieces - capacity]
    return [(start, start + capacity) for start in starts]


def window_of_pieces(
    bounds: Ints, spans: Sequence[tuple[int, int]], *, causal: bool = False
) -> Ints:
    """The window from which each piece's vector is taken.

    A word is read in the window in which it lies farthest from an edge, in the earlier one if
    two are equal. A causal model sees nothing to the right of a word, so that the right edge takes
    nothing away: the word is read in the window with the most context to its left. A word too long
    for any window is treated piece by piece.

    Args:
        bounds: piece bounds of the words. Shape (words + 1,).
        spans: the windows.
        causal: whether the model reads from left to right.

    Returns:
        An index into `spans` for each piece. Shape (pieces,).
    """
    pieces = np.arange(bounds[-1])
    if len(spans) == 1:
        return np.zeros(len(pieces), dtype=np.int64)
    owner = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    word_window = _most_context(bounds[:-1], bounds[1:], spans, causal)[owner]
    piece_window = _most_context(pieces, pieces + 1, spans, causal)
    return np.where(word_window >= 0, word_window, piece_window)


def _most_context(first: Ints, end: Ints, spans: Sequence[tuple[int, int]], causal: bool) -> Ints:
    """For each range of pieces the window to read it in; -1 if none holds it."""
    starts, ends = np.array(spans).T
    best = np.full(len(first), -1, dtype=np.int64)
    margin = np.full(len(first), -1, dtype=np.int64)
    # Walk back from the last window that starts early enough: only a few more hold the range.
    window = np.searchsorted(starts, first, side="right") - 1
    while True:
        left, right = first - starts[window], ends[window] - end
        context = left if causal else np.minimum(left, right)
        context[(window < 0) | (right < 0)] = -1
        if (context < 0).all():
            return best
        better = (context >= 0) & (context >= margin)
        best[better], margin[better] = window[better], context[better]
        window = np.maximum(window - 1, -1)


def pooled_pieces(bounds: Ints, kept_span: tuple[int, int], pooling: Pooling) -> tuple[Ints, Ints]:
    """The pieces that make up each kept word's vector.

    Returns:
        pieces (n,) and, for each, the word it belongs to, counted from `keep[0]` (n,).
    """
    first, end = bounds[kept_span[0] : kept_span[1]], bounds[kept_span[0] + 1 : kept_span[1] + 1]
    if pooling == "first":
        return first, np.arange(len(first))
    if pooling == "last":
        return end - 1, np.arange(len(first))
    return np.arange(bounds[kept_span[0]], bounds[kept_span[1]]), np.repeat(
        np.arange(len(first)), end - first
    )
