"""Shards: the parts of a view that are encoded and stored each by itself. No torch here.

Which texts a shard has follows from the view and the model's size alone, and which texts share a
forward pass follows from the shard: its bytes are the same whoever makes it, and in whatever order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from probes.common.arrays import Ints
from probes.extraction.views import Text, View

_MOST_WORDS, _FEWEST_WORDS = 1 << 14, 1 << 10

_BYTES = 1 << 27
"""The vectors of all layers of a shard in fp16; a shard is in memory while it is made."""


@dataclass(frozen=True)
class Shard:
    """Some texts of a view.

    Attributes:
        number: its place among the view's shards.
        index: the indices of its texts in the view, ascending. Shape (texts,).
        texts: the texts themselves.
    """

    number: int
    index: Ints
    texts: Sequence[Text]

    @cached_property
    def starts(self) -> Ints:
        """The first row of each text: rows are the kept words, text by text. Shape (texts,)."""
        kept = kept_words(self.texts)
        return np.cumsum(kept) - kept

    @cached_property
    def n_rows(self) -> int:
        """How many words are kept."""
        return int(kept_words(self.texts).sum())


def words_per_shard(n_layers: int, hidden_size: int) -> int:
    """The least number of words of a shard, the last one excepted.

    Args:
        n_layers: layers of the model, the embedding layer included, whether they are asked for or
            not.
    """
    return max(_FEWEST_WORDS, min(_MOST_WORDS, _BYTES // (2 * hidden_size * n_layers)))


def shards_of(view: View, n_words: int) -> list[Shard]:
    """The shards of a view: texts of similar length, the longest first.

    Long texts come first, so that a lack of memory shows early.

    Args:
        n_words: see `words_per_shard`.
    """
    parts: list[list[int]] = []
    missing = 0
    for i in sorted(range(len(view.texts)), key=lambda i: (-view.texts[i].size, i)):
        if missing <= 0:
            parts.append([])
            missing = n_words
        parts[-1].append(i)
        missing -= view.texts[i].size
    return [
        Shard(number, np.array(sorted(part)), [view.texts[i] for i in sorted(part)])
        for number, part in enumerate(parts)
    ]


def row_of_each_text(shards: Sequence[Shard], n_rows: Ints) -> Ints:
    """The first row of each text of a view, rows counted over all shards. Shape (texts,).

    Args:
        n_rows: how many rows each text has. Shape (texts,).
    """
    order = np.concatenate([shard.index for shard in shards])
    starts = np.empty(len(n_rows), dtype=np.int64)
    starts[order] = np.cumsum(n_rows[order]) - n_rows[order]
    return starts


def kept_words(texts: Sequence[Text]) -> Ints:
    """How many words of each text are kept. Shape (texts,)."""
    return np.array([text.keep[1] - text.keep[0] for text in texts], dtype=np.int64)
