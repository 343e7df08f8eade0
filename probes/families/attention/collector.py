"""Reduction of every attention map to sums, and to the words that attend to each other most."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch

from probes.common.arrays import Floats
from probes.examples.examples import NotServedError
from probes.extraction.reading.alignment import Pieces
from probes.extraction.reading.attention_maps import AttentionCollector
from probes.extraction.reading.collectors import ModelProperties
from probes.extraction.reading.padding import PaddedWindows
from probes.extraction.reading.shards import Shard
from probes.extraction.reading.views import Text
from probes.extraction.reading.windows import Window
from probes.families.attention.annotation import Link
from probes.families.attention.heads import COLUMNS, OFFSETS, SEGMENTS, STATISTICS, TOKENS, TREES
from probes.records.header import ModelRecord
from probes.statistics.of_families.spanning_trees import arborescences, spanning_trees


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
        return Layout(*(getattr(self, field.name).to(device) for field in fields(self)))

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
    def n_tokens(self) -> torch.Tensor:
        """Number of tokens of each text, including special ones. Shape (texts,)."""
        return self.real.sum(1)

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
    # Pieces of two segments have special tokens between them.
    rows, places = np.divmod(windows.position.numpy(), length)
    counts = np.bincount(rows, minlength=len(windows.text))
    of_windows = [pieces[text] for text in windows.text.tolist()]
    indices = [i for i, x in enumerate(of_windows) if counts[i] == len(x.ids)]
    word = np.full((len(indices), length), -1, dtype=np.int64)
    for row, window in enumerate(indices):
        sizes = np.diff(of_windows[window].bounds)
        word[row, places[rows == window]] = np.repeat(np.arange(len(sizes)), sizes)
    index = torch.tensor(indices, dtype=torch.int64)
    return Layout(
        window=index,
        text=windows.text[index],
        real=windows.inputs["attention_mask"][index].bool(),
        word=torch.from_numpy(word),
        n_words=torch.tensor([len(of_windows[i].bounds) - 1 for i in indices], dtype=torch.int64),
    )


class HeadSums(AttentionCollector):
    """Statistics of every head. Texts of several windows, and their words, have NaN and -1.

    Parts, with blocks B and heads H:

    - ``statistics`` (texts, B, H + 1, statistics): see `STATISTICS`; the last head attends to all
      visible tokens alike;
    - ``received`` (words, B, H + 1): mean attention that a word receives from tokens;
    - ``most`` (words, B, H, 2): the other word that each word attends to most, and the one that
      attends most to it; -1 if there is none;
    - ``trees`` (words, B, H, 3): the head of each word in each of `TREES`;
    - ``mean_maps`` (B, H, T, T) and ``n_mean_maps`` (1,): sum and number of the maps of texts
      with T tokens.
    """

    name = "attention"
    version = 3
    parts: tuple[str, ...] = ("statistics", "received", "most", "trees", "mean_maps", "n_mean_maps")
    numbers: ClassVar[tuple[str, ...]] = STATISTICS

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """Upper bound, as no known model has heads of fewer than 32 dimensions."""
        heads = model.n_layers * -(-model.hidden_size // 32)
        of_texts = 4 * (len(shard.texts) * len(self.numbers) + TOKENS**2)
        return heads * (of_texts + shard.n_rows * (4 + 2 * (2 + len(TREES))))

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin a shard with nothing found."""
        self._shard, self._pieces = shard, pieces
        self._block_parts: dict[int, dict[str, torch.Tensor]] = {}
        self._n_mean_maps = 0

    def prepare(self, windows: PaddedWindows) -> None:
        """Find the texts and words of a pass."""
        at = self._layout = layout_of(windows, self._pieces)
        self._n_mean_maps += int((at.n_tokens == TOKENS).sum())
        if len(at.text):
            first = torch.from_numpy(self._shard.starts)[at.text]
            words = torch.arange(at.pieces.shape[1])
            self._rows = (first[:, None] + words)[at.pieces > 0]

    def take(self, block: int, maps: torch.Tensor, visible: torch.Tensor) -> None:
        """Keep statistics, words and trees of the texts that have one window."""
        if block not in self._block_parts:
            self._block_parts[block] = self._empty(maps.shape[1])
        parts = self._block_parts[block]
        at = self._layout = self._layout.to(maps.device)
        if not len(at.text):
            return
        if len(at.text) < len(maps):  # an index copies the maps
            maps, visible = maps[at.window], visible[at.window]
        uniform_maps = uniform(visible)
        map_statistics = [self.statistics(x, at, visible.sum(-1)) for x in (maps, uniform_maps)]
        parts["statistics"][at.text.cpu()] = torch.cat(map_statistics, dim=1).cpu()
        if (is_averaged := at.n_tokens == TOKENS).any():
            parts["mean_maps"] += maps[is_averaged][..., :TOKENS, :TOKENS].sum(0).cpu()
        sums = torch.cat([attention_to(x, at) for x in (maps, uniform_maps)], dim=1) @ at.members
        of_words = {"received": (sums / at.n_tokens[:, None, None]).transpose(1, 2)}
        if "trees" in self.parts:
            between = at.between_words(maps)
            of_words |= {
                "most": most_attended(between),
                "trees": trees_of_maps(between, at.n_words),
            }
        for part, values in of_words.items():
            word_values = values[(at.pieces > 0).to(values.device)]
            parts[part][self._rows] = word_values.to(parts[part].dtype).cpu()

    def statistics(self, maps: torch.Tensor, layout: Layout, visible: torch.Tensor) -> torch.Tensor:
        """Statistics of maps, to which a subclass adds others."""
        return statistics(maps, layout, visible)

    def _empty(self, n_heads: int) -> dict[str, torch.Tensor]:
        """A block's parts before anything is found."""
        n_texts, n_rows = len(self._shard.texts), self._shard.n_rows
        return {
            "statistics": torch.full((n_texts, n_heads + 1, len(self.numbers)), torch.nan),
            "mean_maps": torch.zeros(n_heads, TOKENS, TOKENS),
            "received": torch.full((n_rows, n_heads + 1), torch.nan),
            "most": torch.full((n_rows, n_heads, 2), -1, dtype=torch.int16),
            "trees": torch.full((n_rows, n_heads, len(TREES)), -1, dtype=torch.int16),
        }

    def finish(self) -> dict[str, torch.Tensor]:
        """All parts of the shard, blocks stacked."""
        blocks = [self._block_parts[block] for block in sorted(self._block_parts)]
        parts = {
            part: torch.stack([block[part] for block in blocks], dim=int(part != "mean_maps"))
            for part in self.parts
            if part in blocks[0]
        }
        self._block_parts = {}
        n_mean_maps = {"n_mean_maps": torch.tensor([self._n_mean_maps])}
        return parts | n_mean_maps if "n_mean_maps" in self.parts else parts


class SegmentSums(HeadSums):
    """Statistics of every head on texts that are read in the tokenizer's template for pairs.

    There are two more: attention from words' tokens to words of their own and of the other segment.

    Args:
        second: the word with which the second segment of each text begins.
    """

    name = "segments"
    version = 1
    parts = ("statistics", "received")
    numbers = (*STATISTICS, *SEGMENTS)

    def __init__(self, second: Mapping[Text, int]) -> None:
        self._second = second

    @property
    def annotation(self) -> str:
        """Digest of where second segments begin."""
        return hashlib.sha256(repr([*self._second.values()]).encode()).hexdigest()

    def copies(self, windows: Sequence[Window], reader: ModelProperties) -> list[Window]:
        """The windows with the special tokens and token types of pairs.

        Raises:
            NotServedError: the model does not read pairs.
        """
        if reader.causal or reader.pair is None:
            raise NotServedError(
                "it has no second segment: it reads from left to right, or its tokenizer puts "
                "nothing between two texts"
            )
        pair_windows = []
        for window in windows:
            pieces = self._pieces[window.text]
            second = int(pieces.bounds[self._second[self._shard.texts[window.text]]])
            ids, types, positions = reader.pair.filled(pieces.ids, second)
            if len(ids) <= reader.window:
                pair_windows.append(replace(window, ids=ids, types=types, position=positions))
            else:  # not whole, like windows of longer texts
                pair_windows.append(window.part(window.position == window.position[0]))
        return pair_windows

    def statistics(self, maps: torch.Tensor, layout: Layout, visible: torch.Tensor) -> torch.Tensor:
        """The statistics of maps, and the two of segments."""
        of_texts = [self._second[self._shard.texts[text]] for text in layout.text.tolist()]
        second = torch.tensor(of_texts, device=maps.device)[:, None]
        word = layout.word
        members = torch.stack([(word >= 0) & (word < second), word >= second], dim=1).float()
        between = members[:, None] @ maps @ members.transpose(1, 2)[:, None]
        shares = between / members.sum((1, 2))[:, None, None, None]
        within = shares.diagonal(dim1=-2, dim2=-1).sum(-1)
        segments = torch.stack([within, shares.sum((-2, -1)) - within], dim=-1)
        return torch.cat([super().statistics(maps, layout, visible), segments], dim=-1)


class LinkWeights(AttentionCollector):
    """Weight of each link: the greatest attention from a word of one span to one of the other.

    The part ``weights`` (links, blocks, heads + 1) has the links text by text. The last head
    attends to all visible tokens alike. Texts of several windows have NaN.

    Args:
        links: links of every text of the view.
    """

    name = "links"
    parts = ("weights",)

    def __init__(self, links: Mapping[Text, Sequence[Link]]) -> None:
        self._links = links

    @property
    def annotation(self) -> str:
        """Digest of the links."""
        links = [(text.words, links) for text, links in self._links.items()]
        return hashlib.sha256(repr(links).encode()).hexdigest()

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """Upper bound, as no known model has heads of fewer than 32 dimensions."""
        n_links = sum(len(self._links[text]) for text in shard.texts)
        return 4 * model.n_layers * (1 - -model.hidden_size // 32) * n_links

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin a shard without weights."""
        self._pieces, self._texts = pieces, [self._links[text] for text in shard.texts]
        self._first = np.cumsum([0, *map(len, self._texts)])
        self._weights: dict[int, Floats] = {}

    def prepare(self, windows: PaddedWindows) -> None:
        """Find the pairs of words of the links of a pass."""
        self._layout = layout_of(windows, self._pieces)
        pairs = [
            (row, source, target, link)
            for row, text in enumerate(self._layout.text.tolist())
            for link, (span, to) in enumerate(self._texts[text], start=self._first[text])
            for source in range(*span)
            for target in range(*to)
        ]
        self._pairs = np.array(pairs, dtype=np.int64).reshape(-1, 4).T

    def take(self, block: int, maps: torch.Tensor, visible: torch.Tensor) -> None:
        """Keep the weights of the links of whole texts."""
        shape = self._first[-1], maps.shape[1] + 1
        weights = self._weights.setdefault(block, np.full(shape, np.nan, np.float32))
        row, source, target, link = self._pairs
        if not len(link):
            return
        layout = self._layout = self._layout.to(maps.device)
        word_maps = [layout.between_words(x[layout.window]) for x in (maps, uniform(visible))]
        of_pairs = torch.cat(word_maps, dim=1)[row, :, source, target].cpu().numpy()
        first = np.flatnonzero(np.diff(link, prepend=-1))
        weights[link[first]] = np.maximum.reduceat(of_pairs, first)

    def finish(self) -> dict[str, torch.Tensor]:
        """The weights of the shard."""
        weights = [self._weights[block] for block in sorted(self._weights)]
        return {"weights": torch.from_numpy(np.stack(weights, axis=1))}


def most_attended(between: torch.Tensor) -> torch.Tensor:
    """The other word that each word attends to most, and the one that attends most to it.

    The first of equals; -1 if all weights are 0, such as for words that a decoder cannot see.

    Args:
        between: see `Layout.between_words`. Shape (texts, heads, words, words).

    Returns:
        shape (texts, words, heads, 2).
    """
    itself = torch.eye(between.shape[-1], dtype=torch.bool, device=between.device)
    between_others = between.masked_fill(itself, 0)
    partners = []
    for dim in (-1, -2):
        weight, partner = between_others.max(dim)
        partners.append(partner.masked_fill(weight <= 0, -1))
    return torch.stack(partners, dim=-1).transpose(1, 2)


def trees_of_maps(between: torch.Tensor, n_words: torch.Tensor) -> torch.Tensor:
    """The heads of words in each of `TREES`. Shape (texts, words, heads, trees).

    Args:
        between: see `most_attended`.
        n_words: number of words in each text.
    """
    n, heads, width, _ = between.shape
    weights = between.reshape(n * heads, width, width).double().cpu().numpy()
    turned = weights.transpose(0, 2, 1)
    sizes = np.repeat(n_words.cpu().numpy(), heads)
    is_word = np.arange(width) < sizes[:, None]
    trees = [
        arborescences(weights, sizes),
        arborescences(turned, sizes),
        spanning_trees(-(weights + turned), is_word),
    ]
    stacked = torch.from_numpy(np.stack(trees, axis=-1))
    return stacked.view(n, heads, width, len(TREES)).transpose(1, 2)


def statistics(maps: torch.Tensor, layout: Layout, visible: torch.Tensor) -> torch.Tensor:
    """All statistics, in the order of `STATISTICS`; NaN where undefined.

    Args:
        maps: shape (texts, heads, length, length).
        visible: number of tokens each token may attend to. Shape (texts, length).

    Returns:
        shape (texts, heads, statistics).
    """
    n_tokens = layout.n_tokens[:, None].float()
    columns = attention_to(maps, layout) / n_tokens[..., None]
    # A row's entropy is a share of the greatest; rows that see one token are left out.
    counted = (layout.real & (visible > 1)).float()
    weight = counted / visible.clamp(min=2).log()
    entropy = (torch.special.entr(maps).sum(-1) * weight[:, None]).sum(-1)
    # Separators are the special tokens after the first word.
    is_separator = layout.real & (layout.word < 0) & ((layout.word >= 0).cumsum(-1) > 0)
    separators = (columns * is_separator[:, None]).sum(-1)
    values = {
        "entropy": entropy / counted.sum(-1, keepdim=True),
        "first": columns[..., 0],
        "separators": separators.masked_fill(~is_separator.any(-1)[:, None], torch.nan),
        "vertical": column_attention(maps, layout) / n_tokens,
    }
    for offset in OFFSETS:
        diagonal, first = torch.diagonal(maps, offset, -2, -1), max(0, -offset)
        real = layout.real[:, first : first + diagonal.shape[-1]]
        values[f"offset {offset:+d}"] = (diagonal * real[:, None]).sum(-1) / n_tokens
    values["diagonal"] = torch.stack([values[f"offset {x:+d}"] for x in (-1, 0, 1)]).sum(0)
    return torch.stack([values[name] for name in STATISTICS], dim=-1)


def attention_to(maps: torch.Tensor, layout: Layout) -> torch.Tensor:
    """Total attention that each token receives. Shape (texts, heads, length)."""
    return (layout.real[:, None, None].float() @ maps).squeeze(2)


def column_attention(maps: torch.Tensor, layout: Layout) -> torch.Tensor:
    """Attention to the columns that receive most, summed over rows. Shape (texts, heads).

    Columns are chosen on even rows and measured on odd ones, and vice versa. Measured on the rows
    that chose them, they would look strong in any head, most of all in short texts.
    """
    even = torch.arange(maps.shape[-1], device=maps.device) % 2 == 0
    halves = torch.stack([layout.real & even, layout.real & ~even], dim=1)
    column_sums = halves[:, None].float() @ maps  # (texts, heads, 2, length)
    ranked = column_sums.masked_fill(~layout.real[:, None, None], -1).flip(2)
    columns = ranked.topk(min(COLUMNS, maps.shape[-1])).indices
    return column_sums.gather(-1, columns).sum((-2, -1))


def uniform(visible: torch.Tensor) -> torch.Tensor:
    """Map of a head that attends to all visible tokens alike. Shape (texts, 1, length, length).

    Args:
        visible: True where a token may attend to another. Shape (texts, length, length).
    """
    maps = visible.float()
    return (maps / maps.sum(-1, keepdim=True).clamp(min=1))[:, None]
