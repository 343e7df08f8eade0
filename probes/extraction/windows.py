"""Windows of texts as a model reads them in one pass: a padded row for each, or one row for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import numpy as np
import torch

from probes.common.arrays import Ints

_FILL = 64
"""A row for all is filled up to a multiple of this: for every other length oneDNN would prepare
products anew, and keep them."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window of a text, and those of its pieces that count.

    Attributes:
        ids: tokens, special ones included. Shape (length,).
        place: index into `ids` of each piece that counts, grouped by word. Shape (pieces,).
        owner: each piece's word, as its place among the words that the batch keeps. Shape
            (pieces,).
        share: of each piece in its word's vector. Shape (pieces,).
    """

    ids: Ints
    place: Ints
    owner: Ints
    share: Ints


def bare(ids: Sequence[int]) -> Window:
    """A window of which no word is wanted."""
    none = np.empty(0, dtype=np.int64)
    return Window(np.asarray(ids, dtype=np.int64), none, none, none)


@dataclass(frozen=True)
class Rows:
    """One forward pass: what the model reads, and where the words' pieces are in it.

    Attributes:
        inputs: arguments of the model; ``input_ids`` has the shape (rows, length).
        position: index into the flattened (rows × length) positions of each piece that
            counts, grouped by word. Shape (pieces,).
        offset: where each word's pieces start in `position`. Shape (words,).
        weight: share of each piece in its word's vector. Shape (pieces,).
        word: the word's place among the words that the batch keeps. Shape (words,).
    """

    inputs: dict[str, torch.Tensor]
    position: torch.Tensor
    offset: torch.Tensor
    weight: torch.Tensor
    word: torch.Tensor


class Layout(Protocol):
    """How windows become rows."""

    @property
    def pad_id(self) -> int:
        """The token at places that hold no text."""

    def tokens(self, n: int, longest: int, total: int) -> int:
        """What `n` windows take, of which the longest and all have so many tokens."""

    def rows(self, windows: Sequence[Window]) -> Rows:
        """One pass that reads the windows."""


@dataclass(frozen=True)
class Padded:
    """A row for each window, filled on the right."""

    pad_id: int

    def tokens(self, n: int, longest: int, total: int) -> int:
        """See `Layout`."""
        return n * longest

    def rows(self, windows: Sequence[Window]) -> Rows:
        """See `Layout`."""
        length = max(len(window.ids) for window in windows)
        ids = np.full((len(windows), length), self.pad_id, dtype=np.int64)
        mask = np.zeros((len(windows), length), dtype=np.int64)
        for row, window in enumerate(windows):
            ids[row, : len(window.ids)] = window.ids
            mask[row, : len(window.ids)] = 1
        inputs = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
        return _rows(inputs, windows, length * np.arange(len(windows)))


@dataclass(frozen=True)
class Unpadded:
    """One row in which the windows stand one after the other (see `unpadded.attend`).

    Attributes:
        first_position: of each window's first token.
    """

    pad_id: int
    first_position: int

    def tokens(self, n: int, longest: int, total: int) -> int:
        """See `Layout`."""
        return total

    def rows(self, windows: Sequence[Window]) -> Rows:
        """See `Layout`."""
        lengths = np.array([len(window.ids) for window in windows], dtype=np.int64)
        ends = np.cumsum(lengths)
        ids = np.full(-(-ends[-1] // _FILL) * _FILL, self.pad_id, dtype=np.int64)
        positions = np.full_like(ids, self.first_position)
        for window, end in zip(windows, ends, strict=True):
            ids[end - len(window.ids) : end] = window.ids
            positions[end - len(window.ids) : end] += np.arange(len(window.ids))
        # What fills it is a text of its own.
        filled = [*lengths.tolist(), len(ids) - int(ends[-1])]
        runs = [(length, len(list(same))) for length, same in groupby(filled) if length]
        inputs = {
            "input_ids": torch.from_numpy(ids[None]),
            "position_ids": torch.from_numpy(positions[None]),
            "text_lengths": torch.tensor(runs),
        }
        return _rows(inputs, windows, ends - lengths)


def _rows(inputs: dict[str, torch.Tensor], windows: Sequence[Window], starts: Ints) -> Rows:
    """`starts`: where each window begins in the flattened positions."""
    position = [start + window.place for start, window in zip(starts, windows, strict=True)]
    owner = np.concatenate([window.owner for window in windows])
    share = np.concatenate([window.share for window in windows])
    changes = np.flatnonzero(np.diff(owner, prepend=-1))
    return Rows(
        inputs=inputs,
        position=torch.from_numpy(np.concatenate(position)),
        offset=torch.from_numpy(changes),
        weight=torch.from_numpy(share.astype(np.float32)),
        word=torch.from_numpy(owner[changes]),
    )


def in_passes(lengths: Sequence[int], layout: Layout, batch_tokens: int) -> list[slice]:
    """Consecutive windows that share a pass of at most so many tokens; a longer one is alone."""
    found: list[slice] = []
    first = longest = total = 0
    for i, length in enumerate(lengths):
        longest, total = max(longest, length), total + length
        if i > first and layout.tokens(i - first + 1, longest, total) > batch_tokens:
            found.append(slice(first, i))
            first, longest, total = i, length, length
    return [*found, slice(first, len(lengths))] if lengths else []
