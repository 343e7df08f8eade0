"""Which texts share a forward pass, and how many tokens of it this machine runs fastest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from common.errors import out_of_memory
from probes.alignment import Pieces
from probes.encoder import Encoder

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


def plan_batches(
    pieces: Sequence[Pieces], capacity: int, specials: int, batch_tokens: int
) -> list[list[int]]:
    """Group texts of near-equal length so that no batch exceeds `batch_tokens`.

    Args:
        capacity: subwords that fit into the model's window.
        specials: special tokens around each window.

    Longest first, so that what does not fit in memory shows at once. A text that is longer
    than `batch_tokens` stands alone.
    """
    lengths = [len(p.ids) for p in pieces]
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    batches: list[list[int]] = []
    for i in order:
        if batches:
            longest = min(capacity, lengths[batches[-1][0]]) + specials
            fits = (len(batches[-1]) + 1) * longest <= batch_tokens
            if fits and lengths[batches[-1][0]] <= capacity:
                batches[-1].append(i)
                continue
        batches.append([i])
    return batches


def measured_batch_tokens(encoder: Encoder, pieces: Sequence[Pieces]) -> int:
    """The number of tokens per forward pass at which this model runs fastest here.

    Sizes are tried from the smallest up, on windows of the length that the median token
    stands in, and where memory is scarce also on the longest. No size is tried that would
    spend more than a small share of the whole work.
    """
    kind = encoder.device.type
    lengths = np.sort([min(len(p.ids), encoder.capacity) + encoder.specials for p in pieces])
    tokens = np.cumsum(lengths)
    typical, longest = int(lengths[np.searchsorted(tokens, tokens[-1] / 2)]), int(lengths[-1])
    seconds: dict[int, float] = {}  # per token, the better of two
    for attempt in range(_ATTEMPTS):
        for size in _affordable(kind, int(tokens[-1])):
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
