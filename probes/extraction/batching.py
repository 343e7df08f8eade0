"""Which texts share a forward pass, and how many tokens of it this machine runs fastest."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from probes.common.errors import out_of_memory
from probes.extraction.alignment import Pieces
from probes.extraction.views import Text
from probes.extraction.windows import in_passes

if TYPE_CHECKING:
    from probes.extraction.encoder import Encoder

A = TypeVar("A")

B = TypeVar("B")

CANDIDATES = {
    "cpu": (512, 1024, 2048),
    "mps": (2048, 4096, 8192, 16384),
    "cuda": (4096, 8192, 16384, 32768, 65536),
}
"""Tokens per forward pass that are tried, by kind of device. Beyond these a CPU gains nothing,
and padding grows."""

UNMEASURED = {"cpu": 1024, "mps": 4096, "cuda": 8192}
"""Tokens per forward pass where a view is too small to be worth a measurement."""

_SHARE = 0.03
"""Most that a measurement may cost, as a share of the view's tokens."""

_ATTEMPTS = 2
"""How often each size is tried: the first pass of all finds cold caches, and machines waver."""

_SAMPLE = 1024
"""Texts of all lengths by which the measurement knows how long they are."""

_STRETCH, _STRETCH_BATCHES = 1 << 17, 16
"""Words, and batches if those are more, that are tokenised at once. Padding grows as it shrinks."""


@dataclass(frozen=True)
class Batch:
    """Texts that share a forward pass.

    Attributes:
        index: which texts they are of those to encode.
        pieces: the same as subwords.
    """

    index: list[int]
    texts: list[Text]
    pieces: list[Pieces]


def in_batches(
    encoder: Encoder, texts: Sequence[Text], batch_tokens: int
) -> Generator[Batch, None, None]:
    """Batches of near-equal length, tokenised while those before are encoded.

    Texts are taken in stretches, those of most words first, and those of a stretch grouped by their
    tokens: only two stretches are in memory as subwords. Which texts share a batch follows from the
    texts, the tokenizer and `batch_tokens`.
    """

    def split(stretch: list[int]) -> tuple[list[int], list[Pieces]]:
        return stretch, encoder.split([texts[i] for i in stretch])

    least = max(_STRETCH, _STRETCH_BATCHES * batch_tokens)
    for stretch, pieces in one_ahead(split, stretches(texts, least)):
        for batch in plan_batches(encoder, pieces, batch_tokens):
            index = [stretch[i] for i in batch]
            yield Batch(index, [texts[i] for i in index], [pieces[i] for i in batch])


def one_ahead(function: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
    """`function` of each item, that of the next computed in a thread meanwhile."""
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
        # Whoever stops in between waits for what has begun, not for what has not.
        thread.shutdown(cancel_futures=True)


def stretches(texts: Sequence[Text], least: int) -> list[list[int]]:
    """Indices of the texts, most words first, in parts of at least so many; ascending in each.

    The last part may have fewer.
    """
    found: list[list[int]] = []
    missing = 0
    for i in _by_words(texts):
        if missing <= 0:
            found.append([])
            missing = least
        found[-1].append(i)
        missing -= len(texts[i].words)
    return [sorted(part) for part in found]


def _by_words(texts: Sequence[Text]) -> list[int]:
    return sorted(range(len(texts)), key=lambda i: (-len(texts[i].words), i))


def plan_batches(encoder: Encoder, pieces: Sequence[Pieces], batch_tokens: int) -> list[list[int]]:
    """Group texts of near-equal length so that no batch takes more than `batch_tokens`.

    Longest first, so that what does not fit in memory shows early. A text that is longer
    than `batch_tokens` stands alone, and so does one that is longer than the model's window.
    """
    lengths = [len(p.ids) for p in pieces]
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    n_long = sum(length > encoder.capacity for length in lengths)
    short = order[n_long:]
    passes = in_passes([lengths[i] + encoder.specials for i in short], encoder.layout, batch_tokens)
    return [*([i] for i in order[:n_long]), *(short[part] for part in passes)]


def measured_batch_tokens(encoder: Encoder, texts: Sequence[Text]) -> int:
    """The number of tokens per forward pass at which this model runs fastest here.

    Sizes are tried from the smallest up, on windows of the length that the median token
    stands in, and where memory is scarce also on the longest. No size is tried that would
    spend more than a small share of the whole work.
    """
    kind = encoder.device.type
    sample = [texts[i] for i in _by_words(texts)[:: math.ceil(len(texts) / _SAMPLE)]]
    pieces = encoder.split(sample)
    lengths = np.sort([min(len(p.ids), encoder.capacity) + encoder.specials for p in pieces])
    tokens = np.cumsum(lengths)
    in_all = int(tokens[-1] * len(texts) / len(sample))
    typical, longest = int(lengths[np.searchsorted(tokens, tokens[-1] / 2)]), int(lengths[-1])
    seconds: dict[int, float] = {}  # per token, the better of two
    for attempt in range(_ATTEMPTS):
        for size in _affordable(kind, in_all):
            rows = max(1, size // typical)
            try:
                if kind != "cpu" and attempt == 0:
                    encoder.seconds(max(1, size // longest), longest)
                found = encoder.seconds(rows, typical) / (rows * typical)
            except (MemoryError, RuntimeError) as error:
                if not out_of_memory(error):
                    raise
                break
            seconds[size] = min(found, seconds.get(size, found))
    return min(seconds, key=seconds.__getitem__, default=UNMEASURED.get(kind, 4096))


def _affordable(kind: str, n_tokens: int) -> list[int]:
    """The sizes that can be tried without spending too much on it."""
    sizes = CANDIDATES.get(kind, CANDIDATES["mps"])
    costs = np.cumsum(sizes) * _ATTEMPTS
    return [size for size, cost in zip(sizes, costs, strict=True) if cost <= _SHARE * n_tokens]
