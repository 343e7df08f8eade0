"""Which texts share a forward pass, and how many tokens it has."""

from __future__ import annotations

from collections.abc import Sequence

from probes.extraction.alignment import Pieces

_BATCH_TOKENS = {"cpu": 1024, "mps": 4096, "cuda": 8192}


def default_batch_tokens(device: str) -> int:
    """Tokens per forward pass on a type of device.

    Fixed numbers, not measured ones: the size of a batch changes how vectors are rounded.
    """
    return _BATCH_TOKENS.get(device, 4096)


def plan_batches(
    pieces: Sequence[Pieces], batch_tokens: int, *, capacity: int, specials: int
) -> list[list[int]]:
    """Group texts of similar length so that no batch, padded, has more than `batch_tokens`.

    Longest first, so that a lack of memory shows early. A text that is longer than
    `batch_tokens` or than the model's window is a batch of its own.

    Args:
        pieces: the texts as subwords.
        capacity: subwords that fit into the model's window.
        specials: special tokens around each window.
    """
    lengths = [p.length for p in pieces]
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    n_long = sum(length > capacity for length in lengths)
    short = order[n_long:]
    parts = split_by_tokens([lengths[i] + specials for i in short], batch_tokens)
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
