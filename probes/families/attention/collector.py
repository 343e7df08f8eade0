"""Reduces every attention map to what the measurement needs: sums, and where words attend most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from probes.extraction.alignment import Pieces
from probes.extraction.padding import PaddedWindows
from probes.extraction.shards import Shard
from probes.families.attention.heads import COLUMNS, OFFSETS, STATISTICS, TOKENS, TREES
from probes.families.attention.layout import Layout, WholeTexts
from probes.records.header import ModelRecord
from probes.statistics.spanning_trees import arborescences, spanning_trees

_AT_ONCE = 1 << 24
"""Weights between words to hold before trees are read from them."""


class HeadSums(WholeTexts):
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
    parts = ("statistics", "mean_maps", "n_mean_maps", "received", "most", "trees")

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """Upper bound, as no known model has heads of fewer than 32 dimensions."""
        heads = model.n_layers * -(-model.hidden_size // 32)
        of_texts = 4 * (len(shard.texts) * len(STATISTICS) + TOKENS**2)
        of_words = shard.n_rows * (4 + 2 * (2 + len(TREES)))
        return heads * (of_texts + of_words)

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin a shard with nothing found."""
        super().start(shard, pieces)
        self._found: dict[int, dict[str, torch.Tensor]] = {}
        self._held: dict[int, torch.Tensor] = {}
        self._n_averaged = 0

    def prepare(self, windows: PaddedWindows) -> None:
        """Find the words of a pass."""
        super().prepare(windows)
        at = self.layout
        self._n_averaged += int((at.n_tokens == TOKENS).sum())
        if len(at.text):
            first = torch.from_numpy(self.shard.starts)[at.text]
            self._rows = (first[:, None] + torch.arange(at.is_word.shape[1]))[at.is_word]

    def take(self, block: int, maps: torch.Tensor, visible: torch.Tensor) -> None:
        """Reserve space for a block, then read its maps."""
        if block not in self._found:
            self._found[block] = self._empty(maps.shape[1])
        super().take(block, maps, visible)

    def _empty(self, n_heads: int) -> dict[str, torch.Tensor]:
        n_texts, n_rows = len(self.shard.texts), self.shard.n_rows
        return {
            "statistics": torch.full((n_texts, n_heads + 1, len(STATISTICS)), torch.nan),
            "mean_maps": torch.zeros(n_heads, TOKENS, TOKENS),
            "received": torch.full((n_rows, n_heads + 1), torch.nan),
            "most": torch.full((n_rows, n_heads, 2), -1, dtype=torch.int16),
            "trees": torch.full((n_rows, n_heads, len(TREES)), -1, dtype=torch.int16),
        }

    def take_whole(self, block: int, maps: torch.Tensor, visible: torch.Tensor) -> None:
        """Keep statistics and words; hold the weights that trees are read from."""
        at, found, seen = self.layout, self._found[block], visible.sum(-1)
        alike = uniform(visible)
        found["statistics"][at.text.cpu()] = torch.cat(
            [statistics(each, at, seen) for each in (maps, alike)], dim=1
        ).cpu()
        if (averaged := at.n_tokens == TOKENS).any():
            found["mean_maps"] += maps[averaged][..., :TOKENS, :TOKENS].sum(0).cpu()
        given = torch.cat([received(each, at) for each in (maps, alike)], dim=1) @ at.members
        self._keep(found["received"], (given / at.n_tokens[:, None, None]).transpose(1, 2))
        between = at.between_words(maps)
        self._keep(found["most"], most_attended(between, at.is_word))
        self._held[block] = between
        if sum(x.numel() for x in self._held.values()) > _AT_ONCE:
            self._read_trees()

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Read the trees still outstanding at the end of a pass."""
        self._read_trees()

    @torch.inference_mode()  # tensors of the pass cannot be changed outside it
    def _read_trees(self) -> None:
        """Read trees from several blocks at once, which is faster."""
        if self._held:
            sizes = [between.shape[1] for between in self._held.values()]
            every = torch.cat([x.to(self.layout.real.device) for x in self._held.values()], dim=1)
            heads = trees(every, self.layout.n_words).split(sizes, dim=2)
            for block, of_block in zip(self._held, heads, strict=True):
                self._keep(self._found[block]["trees"], of_block)
            self._held = {}

    def _keep(self, array: torch.Tensor, values: torch.Tensor) -> None:
        """Store values of shape (texts, words, …) at the rows of their words."""
        array[self._rows] = values[self.layout.is_word].to(array.dtype).cpu()

    def finish(self) -> dict[str, torch.Tensor]:
        """All parts of the shard, blocks stacked."""
        blocks = [self._found[block] for block in sorted(self._found)]
        found = {
            part: torch.stack([block[part] for block in blocks], dim=int(part != "mean_maps"))
            for part in self.parts
            if part != "n_mean_maps"
        }
        self._found = {}
        return {**found, "n_mean_maps": torch.tensor([self._n_averaged])}


def most_attended(between: torch.Tensor, is_word: torch.Tensor) -> torch.Tensor:
    """The other word that each word attends to most, and the one that attends most to it.

    The first of equals; -1 if all weights are 0, such as for words that a decoder cannot see.

    Args:
        between: see `Layout.between_words`. Shape (texts, heads, words, words).
        is_word: shape (texts, words).

    Returns:
        shape (texts, words, heads, 2).
    """
    n_words = is_word.shape[1]
    itself = torch.eye(n_words, dtype=torch.bool, device=between.device)
    others = between.masked_fill(itself, 0)
    found = []
    for dim in (-1, -2):
        weight, place = others.max(dim)
        found.append(place.masked_fill(weight <= 0, -1))
    return torch.stack(found, dim=-1).transpose(1, 2)


def trees(between: torch.Tensor, n_words: torch.Tensor) -> torch.Tensor:
    """The heads of words in each of `TREES`. Shape (texts, words, heads, trees).

    Args:
        between: see `most_attended`.
        n_words: number of words in each text.
    """
    n, heads, width, _ = between.shape
    weights = between.reshape(n * heads, width, width).double().cpu().numpy()
    turned = weights.transpose(0, 2, 1)
    sizes = np.repeat(n_words.cpu().numpy(), heads)
    kept = np.arange(width) < sizes[:, None]
    found = [
        arborescences(weights, sizes),
        arborescences(turned, sizes),
        spanning_trees(-(weights + turned), kept),
    ]
    stacked = torch.from_numpy(np.stack(found, axis=-1))
    return stacked.view(n, heads, width, len(TREES)).transpose(1, 2).to(between.device)


def statistics(maps: torch.Tensor, layout: Layout, visible: torch.Tensor) -> torch.Tensor:
    """All statistics, in the order of `STATISTICS`; NaN where undefined.

    Args:
        maps: shape (texts, heads, length, length).
        visible: number of tokens each token may attend to. Shape (texts, length).

    Returns:
        shape (texts, heads, statistics).
    """
    n_tokens = layout.n_tokens[:, None].float()
    columns = received(maps, layout) / n_tokens[..., None]
    found = {
        "entropy": entropy(maps, layout, visible),
        "first": columns[..., 0],
        "separators": to_separators(columns, layout),
        "vertical": in_columns(maps, layout) / n_tokens,
    }
    for offset in OFFSETS:
        found[f"offset {offset:+d}"] = at_offset(maps, layout, offset) / n_tokens
    found["diagonal"] = torch.stack([found[f"offset {x:+d}"] for x in (-1, 0, 1)]).sum(0)
    return torch.stack([found[name] for name in STATISTICS], dim=-1)


def received(maps: torch.Tensor, layout: Layout) -> torch.Tensor:
    """Total attention that each token receives. Shape (texts, heads, length)."""
    return (layout.real[:, None, None].float() @ maps).squeeze(2)


def entropy(maps: torch.Tensor, layout: Layout, visible: torch.Tensor) -> torch.Tensor:
    """Mean over rows of the entropy as a share of its maximum, the log of the visible tokens.

    Rows that see one token are left out. Shape (texts, heads).
    """
    counted = (layout.real & (visible > 1)).float()
    weight = counted / visible.clamp(min=2).log()
    sums: torch.Tensor = (torch.special.entr(maps).sum(-1) * weight[:, None]).sum(-1)
    return sums / counted.sum(-1, keepdim=True)


def to_separators(columns: torch.Tensor, layout: Layout) -> torch.Tensor:
    """Attention to special tokens after the first word; NaN if there are none.

    Args:
        columns: mean attention to each token. Shape (texts, heads, length).
    """
    begun = (layout.word >= 0).cumsum(-1) > 0
    separators = layout.real & (layout.word < 0) & begun
    sums: torch.Tensor = (columns * separators[:, None]).sum(-1)
    return sums.masked_fill(~separators.any(-1)[:, None], torch.nan)


def at_offset(maps: torch.Tensor, layout: Layout, offset: int) -> torch.Tensor:
    """Attention to the token at an offset (+1 is the next), summed over rows. (texts, heads)."""
    length = maps.shape[-1]
    if abs(offset) >= length:
        return maps.new_zeros(maps.shape[:2])
    first = max(0, -offset)
    real = layout.real[:, first : first + length - abs(offset)]
    return (torch.diagonal(maps, offset, -2, -1) * real[:, None]).sum(-1)


def in_columns(maps: torch.Tensor, layout: Layout) -> torch.Tensor:
    """Attention to the columns that receive most, summed over rows. Shape (texts, heads).

    Columns are chosen on even rows and measured on odd ones, and vice versa. Measured on the rows
    that chose them, they would look strong in any head, most of all in short texts.
    """
    even = torch.arange(maps.shape[-1], device=maps.device) % 2 == 0
    halves = torch.stack([layout.real & even, layout.real & ~even], dim=1)
    given = halves[:, None].float() @ maps  # (texts, heads, 2, length)
    ranked = given.masked_fill(~layout.real[:, None, None], -1).flip(2)
    chosen = ranked.topk(min(COLUMNS, maps.shape[-1])).indices
    return given.gather(-1, chosen).sum((-2, -1))


def uniform(visible: torch.Tensor) -> torch.Tensor:
    """Map of a head that attends to all visible tokens alike. Shape (texts, 1, length, length).

    Args:
        visible: True where a token may attend to another. Shape (texts, length, length).
    """
    maps = visible.float()
    return (maps / maps.sum(-1, keepdim=True).clamp(min=1))[:, None]
