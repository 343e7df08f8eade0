"""Texts to measure heads on, their layout in a forward pass, and attention between words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from probes.common.arrays import Ints
from probes.data.sentence import Corpus, Sentence
from probes.examples.examples import NotServedError
from probes.extraction.alignment import Pieces
from probes.extraction.attention_maps import AttentionCollector
from probes.extraction.padding import PaddedWindows
from probes.extraction.shards import Shard
from probes.extraction.views import View, neighbouring, pair_text, plain_text, view_over
from probes.measurements.context import ModelContext
from probes.statistics.partition import Partition, partition


@dataclass(frozen=True)
class Layout:
    """Layout of the windows of a pass that hold a whole text.

    Attributes:
        window: place of each window in the pass. Shape (texts,).
        text: place of its text in the shard. Shape (texts,).
        real: True for tokens, False for padding. Shape (texts, length).
        word: word of each token; -1 for special tokens and padding. Shape (texts, length).
        n_words: number of words of each text. Shape (texts,).
        segment: segment of each token, 0 or 1; -1 for special tokens and padding. None if texts
            have one segment. Shape (texts, length).
    """

    window: torch.Tensor
    text: torch.Tensor
    real: torch.Tensor
    word: torch.Tensor
    n_words: torch.Tensor
    segment: torch.Tensor | None = None

    def to(self, device: torch.device) -> Layout:
        """Move to a device."""
        if self.real.device == device:
            return self
        segment = None if self.segment is None else self.segment.to(device)
        return Layout(
            self.window.to(device),
            self.text.to(device),
            self.real.to(device),
            self.word.to(device),
            self.n_words.to(device),
            segment,
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
    seconds = windows.second.tolist()
    whole = [
        i
        for i, text in enumerate(texts)
        if counts[i] == len(pieces[text].ids) and (pieces[text].second is None or seconds[i])
    ]
    word = np.full((len(whole), length), -1, dtype=np.int64)
    segment = np.full((len(whole), length), -1, dtype=np.int64)
    for row, window in enumerate(whole):
        sizes = np.diff(pieces[texts[window]].bounds)
        place = windows.n_prefix + np.arange(counts[window])
        if second := seconds[window]:
            place[place >= second - windows.n_middle] += windows.n_middle
            segment[row, place] = place >= second
        word[row, place] = np.repeat(np.arange(len(sizes)), sizes)
    n_words = [len(pieces[texts[window]].bounds) - 1 for window in whole]
    kept = torch.tensor(whole, dtype=torch.int64)
    return Layout(
        window=kept,
        text=windows.text[kept],
        real=windows.inputs["attention_mask"][kept].bool(),
        word=torch.from_numpy(word),
        n_words=torch.tensor(n_words, dtype=torch.int64),
        segment=torch.from_numpy(segment) if any(seconds) else None,
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


@dataclass(frozen=True)
class Texts:
    """The texts of a split.

    Attributes:
        sentences: sentences of the split.
        index: place of each text in the view. Shape (texts,).
        left_out: True for texts longer than the model's window. Shape (texts,).
        partition: clusters that intervals resample.
    """

    sentences: Sequence[Sentence]
    index: Ints
    left_out: NDArray[np.bool_]
    partition: Partition
    n_words: int


def view_of(corpus: Corpus, segments: str) -> View:
    """Sentences of dev and test, or pairs of neighbouring sentences of test.

    Raises:
        NotServedError: no two sentences of test are neighbours.
    """
    if segments == "two":
        pairs = neighbouring(corpus.splits["test"])
        if not pairs:
            raise NotServedError(
                "no document of test has two sentences; use --attention-segments one"
            )
        return view_over([pair_text(*pair) for pair in pairs], "segments")
    sentences = (*corpus.splits["dev"], *corpus.splits["test"])
    return view_over([plain_text(sentence) for sentence in sentences], "plain")


def texts_of(context: ModelContext, split: str, segments: str) -> Texts:
    """The texts of a split, in corpus order."""
    sentences = context.corpus.splits[split]
    if segments == "two":
        pairs = neighbouring(sentences)
        texts = [pair_text(*pair) for pair in pairs]
        documents = [first.document for first, _ in pairs]
    else:
        texts = [plain_text(sentence) for sentence in sentences]
        documents = [sentence.document for sentence in sentences]
    index = np.array([context.view.index[text] for text in texts], dtype=np.int64)
    return Texts(
        sentences,
        index,
        context.long_texts[index],
        partition(documents),
        sum(len(text.words) for text in texts),
    )
