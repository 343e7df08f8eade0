"""Batches of texts, and their windows, padded to one length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from probes.compute.memory import to_device
from probes.extraction.reading.alignment import Pieces, TokenTypes
from probes.extraction.reading.windows import Window


@dataclass(frozen=True)
class PaddedWindows:
    """The input of one forward pass, and where the words' pieces are in it.

    Attributes:
        inputs: ``input_ids`` and ``attention_mask``, each of shape (windows, length), and
            ``token_type_ids`` where the model takes them and one is not 0.
        position: index of each piece that is used into the flattened (windows × length) positions,
            grouped by word. Shape (pieces,).
        offset: where each word's pieces start in `position`. Shape (words,).
        weight: share of each piece in its word's vector. Shape (pieces,).
        word: the row of each word in the shard. Shape (words,).
        text: number of each window's text in the shard. Shape (windows,).
        first: the first of the text's pieces that is in each window. Shape (windows,).
        n_prefix: special tokens before the pieces of each window: piece p of the text is at
            position ``n_prefix + p - first``.
        n_pieces: pieces in each window. Shape (windows,).
    """

    inputs: dict[str, torch.Tensor]
    position: torch.Tensor
    offset: torch.Tensor
    weight: torch.Tensor
    word: torch.Tensor
    text: torch.Tensor
    first: torch.Tensor
    n_prefix: int
    n_pieces: torch.Tensor

    @property
    def pieces(self) -> torch.Tensor:
        """True for tokens that are pieces of words. Shape (windows, length)."""
        return self._tokens(self.n_prefix, self.n_prefix + self.n_pieces)

    def pieces_between(self, n_prefix: int, n_suffix: int) -> torch.Tensor:
        """True for all but so many tokens at both ends. Shape (windows, length)."""
        return self._tokens(n_prefix, self.inputs["attention_mask"].sum(1) - n_suffix)

    def _tokens(self, first: int, end: torch.Tensor) -> torch.Tensor:
        """True for tokens from the first up to the end in each window (windows,)."""
        positions = torch.arange(self.inputs["input_ids"].shape[1])
        return (positions >= first) & (positions < end[:, None])

    def plan(self, device: torch.device) -> Sequence[torch.Tensor]:
        """`position`, `offset`, `weight` and `word` on a device, to which they are copied once."""
        if device not in self._plans:
            plan = self.position, self.offset, self.weight, self.word
            self._plans[device] = [to_device(part, device) for part in plan]
        return self._plans[device]

    @cached_property
    def _plans(self) -> dict[torch.device, Sequence[torch.Tensor]]:
        return {}


def pad_windows(
    windows: Sequence[Window],
    pad_id: int,
    *,
    n_prefix: int = 0,
    n_suffix: int = 0,
    types: TokenTypes | None = None,
) -> PaddedWindows:
    """Pad `windows` on the right with `pad_id` to the length of the longest.

    Args:
        n_prefix, n_suffix: special tokens before and after the pieces of each window.
        types: the tokenizer's token types, if the model takes any; padding has type 0.
    """
    length = max(len(window.ids) for window in windows)
    ids = np.full((len(windows), length), pad_id, dtype=np.int64)
    mask = np.zeros((len(windows), length), dtype=np.int64)
    for row, window in enumerate(windows):
        ids[row, : len(window.ids)] = window.ids
        mask[row, : len(window.ids)] = 1
    position = [row * length + window.position for row, window in enumerate(windows)]
    owner = np.concatenate([window.owner for window in windows])
    share = np.concatenate([window.share for window in windows])
    first_pieces = np.flatnonzero(np.diff(owner, prepend=-1))
    inputs = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
    if types is not None:
        token_types = np.zeros_like(ids)
        for row, window in enumerate(windows):
            n = len(window.ids)
            token_types[row, :n] = types.of(n) if window.types is None else window.types
        # Where they are missing, every model that takes them reads 0, or tells none apart.
        if token_types.any():
            inputs["token_type_ids"] = torch.from_numpy(token_types)
    return PaddedWindows(
        inputs=inputs,
        position=torch.from_numpy(np.concatenate(position)),
        offset=torch.from_numpy(first_pieces),
        weight=torch.from_numpy(share.astype(np.float32)),
        word=torch.from_numpy(owner[first_pieces]),
        text=torch.tensor([window.text for window in windows]),
        first=torch.tensor([window.first for window in windows]),
        n_prefix=n_prefix,
        n_pieces=torch.from_numpy(mask.sum(1) - n_prefix - n_suffix),
    )


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
    lengths = [len(p.ids) for p in pieces]
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    n_long = sum(length > capacity for length in lengths)
    short = order[n_long:]
    parts = split_by_tokens([lengths[i] + specials for i in short], batch_tokens)
    return [*([i] for i in order[:n_long]), *(short[part] for part in parts)]


def split_by_tokens(lengths: Sequence[int], batch_tokens: int) -> list[slice]:
    """Consecutive items that, padded to the longest of them, have at most `batch_tokens`.

    An item that is longer stands alone.
    """
    slices: list[slice] = []
    first = longest = 0
    for i, length in enumerate(lengths):
        longest = max(longest, length)
        if i > first and (i - first + 1) * longest > batch_tokens:
            slices.append(slice(first, i))
            first, longest = i, length
    return [*slices, slice(first, len(lengths))] if lengths else []
