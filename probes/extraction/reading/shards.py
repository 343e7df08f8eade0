"""Shards: the parts of a view, each encoded and stored by itself. No torch here.

The whole view is cut into batches first, and a shard is some of these: batches are as full as if
everything were one shard. Which texts a shard has is written into the store when it is begun, and
which of them share a forward pass follows from the shard: its bytes are the same whoever makes it,
and in whatever order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from probes.common.arrays import Ints
from probes.extraction.reading.views import Text, View

_MOST_BYTES = {"cpu": 1 << 27, "mps": 1 << 29, "cuda": 1 << 31}
"""Bytes of a shard by kind of device; a shard is in memory while it is made."""

_MOST_BATCHES = 16
"""Maximum number of batches; with more, processes that share the work would wait longer."""


@dataclass(frozen=True)
class Shard:
    """Some texts of a view.

    Attributes:
        number: position among the view's shards.
        index: indices of the texts in the view, ascending. Shape (texts,).
    """

    number: int
    index: Ints
    texts: Sequence[Text]

    @cached_property
    def starts(self) -> Ints:
        """The first row of each text: rows are the kept words, text by text. Shape (texts,)."""
        n_words = kept_words(self.texts)
        return np.cumsum(n_words) - n_words

    @cached_property
    def n_rows(self) -> int:
        """Number of kept words."""
        return int(kept_words(self.texts).sum())


def shard_numbers(
    view: View, batches: Sequence[Sequence[int]], n_bytes_of_text: Ints, device: str
) -> list[int]:
    """Cut a view into shards of whole batches.

    A shard has at least one batch, and no other batch that would take it beyond the bytes of its
    kind of device.

    Args:
        batches: which texts share a forward pass, the longest texts first.
        n_bytes_of_text: bytes that are stored of each text. Shape (texts,).
        device: "cpu", "mps" or "cuda".

    Returns:
        the number of the shard of each text of the view.
    """
    most = _MOST_BYTES.get(device, _MOST_BYTES["cpu"])
    shard_of_text, number, n_batches, n_bytes = [0] * len(view.texts), -1, 0, 0
    for batch in batches:
        more = int(n_bytes_of_text[list(batch)].sum())
        if number < 0 or n_batches == _MOST_BATCHES or n_bytes + more > most:
            number, n_batches, n_bytes = number + 1, 0, 0
        n_batches, n_bytes = n_batches + 1, n_bytes + more
        for i in batch:
            shard_of_text[i] = number
    return shard_of_text


def shards_of(view: View, numbers: Sequence[int]) -> list[Shard]:
    """The shards of a view, by the number of each text's shard; see `shard_numbers`."""
    order = np.argsort(numbers, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(numbers))[:-1]) if len(numbers) else []
    return [Shard(number, part, [view.texts[i] for i in part]) for number, part in enumerate(parts)]


def single_shard(view: View) -> Shard:
    """All texts of a view as one shard."""
    return Shard(0, np.arange(len(view.texts)), view.texts)


def row_of_each_text(shards: Sequence[Shard], n_rows: Ints) -> Ints:
    """The first row of each text of a view, rows counted over all shards. Shape (texts,).

    Args:
        n_rows: number of rows of each text. Shape (texts,).
    """
    order = np.concatenate([shard.index for shard in shards])
    starts = np.empty(len(n_rows), dtype=np.int64)
    starts[order] = np.cumsum(n_rows[order]) - n_rows[order]
    return starts


def kept_words(texts: Sequence[Text]) -> Ints:
    """Number of kept words of each text. Shape (texts,)."""
    return np.array([text.kept_span[1] - text.kept_span[0] for text in texts], dtype=np.int64)
