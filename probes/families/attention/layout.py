"""The layout of texts in a forward pass, and attention between words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from probes.extraction.alignment import Pieces
from probes.extraction.attention_maps import AttentionCollector
from probes.extraction.padding import PaddedWindows
from probes.extraction.shards import Shard


@dataclass(frozen=True)
class Layout:
    """Layout of the windows of a pass that hold a whole text.

    Attributes:
        window: place of each window in the pass. Shape (texts,).
        text: place of its text in the shard. Shape (texts,).
        real: True for tokens, False for padding. Shape (texts, length).
        word: word of each token; -1 for special tokens and padding. Shape (texts, length).
        n_words: number of words of each text. Shape (texts,).
    """

    window: torch.Tensor
    text: torch.Tensor
    real: torch.Tensor
    word: torch.Tensor
    n_words: torch.Tensor

    def to(self, device: torch.device) -> Layout:
        """Move to a device."""
        if self.real.device == device:
            return self
        return Layout(
            self.window.to(device),
            self.text.to(device),
            self.real.to(device),
            self.word.to(device),
            self.n_words.to(device),
        )

    @cached_property
    def members(self) -> torch.Tensor:
        """1 where a token belongs to a word, else 0. Shape (texts, length, words)."""
        words = torch.arange(int(self.n_words.max()), device=self.word.device)
        return (self.word[..., None] == words).float()

    @cached_property
    def pieces(self) -> torch.Tensor:
        """Number of tokens of each word; 0 beyond the text. Shape (texts, words)."""
        return self.members.sum(1)

    @cached_property
    def is_word(self) -> torch.Tensor:
        """True for words, False beyond the text. Shape (texts, words)."""
        return self.pieces > 0

    @cached_property
    def n_tokens(self) -> torch.Tensor:
        """Number of tokens of each text, including special ones. Shape (texts,)."""
        return self.real.sum(1)

    def of_pass(self, values: torch.Tensor) -> torch.Tensor:
        """Values of the windows that hold a whole text: (windows, …) to (texts, …)."""
        whole = len(self.window) == len(values)
        return values if whole else values[self.window.to(values.device)]

    def between_words(self, maps: torch.Tensor) -> torch.Tensor:
        """Attention between words: summed over tokens attended to, averaged over attending ones.

        Clark et al. (2019), section 4.1. Rows sum to 1 minus attention to special tokens.

        Args:
            maps: shape (texts, heads, length, length).

        Returns:
            shape (texts, heads, words, words); 0 beyond a text's words.
        """
        n, heads, length, _ = maps.shape
        n_words = self.members.shape[2]
        columns = maps.reshape(n, heads * length, length) @ self.members
        columns = columns.view(n, heads, length, n_words).transpose(1, 2)
        mean = (self.members / self.pieces.clamp(min=1)[:, None]).transpose(1, 2)
        rows = mean @ columns.reshape(n, length, heads * n_words)
        return rows.view(n, n_words, heads, n_words).transpose(1, 2)


def layout_of(windows: PaddedWindows, pieces: Sequence[Pieces]) -> Layout:
    """The layout of a pass. `pieces` are those of all texts of the shard."""
    length = windows.inputs["input_ids"].shape[1]
    texts, counts = windows.text.tolist(), windows.n_pieces.tolist()
    whole = [i for i, text in enumerate(texts) if counts[i] == len(pieces[text].ids)]
    word = np.full((len(whole), length), -1, dtype=np.int64)
    for row, window in enumerate(whole):
        sizes = np.diff(pieces[texts[window]].bounds)
        place = windows.n_prefix + np.arange(counts[window])
        word[row, place] = np.repeat(np.arange(len(sizes)), sizes)
    n_words = [len(pieces[texts[window]].bounds) - 1 for window in whole]
    kept = torch.tensor(whole, dtype=torch.int64)
    return Layout(
        window=kept,
        text=windows.text[kept],
        real=windows.inputs["attention_mask"][kept].bool(),
        word=torch.from_numpy(word),
        n_words=torch.tensor(n_words, dtype=torch.int64),
    )


class WholeTexts(AttentionCollector):
    """A collector of maps that skips texts longer than the model's window."""

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin a shard."""
        self.shard, self.texts = shard, pieces

    def prepare(self, windows: PaddedWindows) -> None:
        """Find the layout of a pass."""
        self.layout = layout_of(windows, self.texts)

    def take(self, block: int, maps: torch.Tensor, visible: torch.Tensor) -> None:
        """Pass the maps of whole texts on to `take_whole`."""
        if len(self.layout.window):
            self.layout = self.layout.to(maps.device)
            of = self.layout.of_pass
            self.take_whole(block, of(maps), of(visible))

    def take_whole(self, block: int, maps: torch.Tensor, visible: torch.Tensor) -> None:
        """Read the maps of a block, for the texts of `layout`."""
        raise NotImplementedError
