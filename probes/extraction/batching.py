"""Which texts share a forward pass, and how many tokens it has."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from probes.extraction.alignment import Pieces
from probes.extraction.views import Text

if TYPE_CHECKING:
    from probes.extraction.encoder import Encoder

A = TypeVar("A")

B = TypeVar("B")

_BATCH_TOKENS = {"cpu": 1024, "mps": 4096, "cuda": 8192}

_STRETCH, _STRETCH_BATCHES = 1 << 17, 16
"""Words (or batches, if those are more) that are tokenised at once: the fewer, the more padding."""


def default_batch_tokens(device: str) -> int:
    """Tokens per forward pass on a type of device.

    Fixed numbers, not measured ones: the size of a batch changes how vectors are rounded.
    """
    return _BATCH_TOKENS.get(device, 4096)


@dataclass(frozen=True)
class Batch:
    """Texts that share a forward pass.

    Attributes:
        index: their indices among all texts to encode.
        pieces: the same texts as subwords.
    """

    index: list[int]
    texts: list[Text]
    pieces: list[Pieces]


def in_batches(
    encoder: Encoder, texts: Sequence[Text], batch_tokens: int
) -> Generator[Batch, None, None]:
    """Batches of texts of similar length, each tokenised while earlier ones are encoded.

    Texts are taken in stretches, those with most words first, and the texts of a stretch are
    grouped by their number of tokens: only two stretches are in memory as subwords. Which texts
    share a batch depends on the texts, the tokenizer and `batch_tokens` alone.
    """

    def split(stretch: list[int]) -> tuple[list[int], list[Pieces]]:
        return stretch, encoder.split([texts[i] for i in stretch])

    n_words = max(_STRETCH, _STRETCH_BATCHES * batch_tokens)
    for stretch, pieces in one_ahead(split, stretches(texts, n_words)):
        for batch in plan_batches(encoder, pieces, batch_tokens):
            index = [stretch[i] for i in batch]
            yield Batch(index, [texts[i] for i in index], [pieces[i] for i in batch])


def one_ahead(function: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
    """`function` of each item; a thread computes the next one while a result is used."""
    thread = ThreadPoolExecutor(1)
    pending: deque[Future[B]] = deque()
    try:
        for item in items:
            pending.append(thread.submit(function, item))
            if len(pending) > 1:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        # Stopping early waits for the call that is running, not for the one after it.
        thread.shutdown(cancel_futures=True)


def stretches(texts: Sequence[Text], n_words: int) -> list[list[int]]:
    """Indices of the texts, longest first, in parts of at least `n_words` words.

    The last part may be smaller. Within a part indices ascend.
    """
    found: list[list[int]] = []
    missing = 0
    for i in sorted(range(len(texts)), key=lambda i: (-len(texts[i].words), i)):
        if missing <= 0:
            found.append([])
            missing = n_words
        found[-1].append(i)
        missing -= len(texts[i].words)
    return [sorted(part) for part in found]


def plan_batches(encoder: Encoder, pieces: Sequence[Pieces], batch_tokens: int) -> list[list[int]]:
    """Group texts of similar length so that no batch, padded, has more than `batch_tokens`.

    Longest first, so that a lack of memory shows early. A text that is longer than
    `batch_tokens` or than the model's window is a batch of its own.
    """
    lengths = [len(p.ids) for p in pieces]
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    n_long = sum(length > encoder.capacity for length in lengths)
    short = order[n_long:]
    parts = split_by_tokens([lengths[i] + encoder.specials for i in short], batch_tokens)
    return [*([i] for i in order[:n_long]), *(short[part] for part in parts)]


def split_by_tokens(lengths: Sequence[int], batch_tokens: int) -> list[slice]:
    """Consecutive items that, padded to the longest of them, have at most `batch_tokens`.

    An item that is longer stands alone.
    """
    found: list[slice] = []
    first = longest = 0
    for i, length in enumerate(lengths):
        longest = max(longest, length)
        if i > first and (i - first + 1) * longest > batch_tokens:
            found.append(slice(first, i))
            first, longest = i, length
    return [*found, slice(first, len(lengths))] if lengths else []
