"""Whole attention maps of a sample of test sentences, and gradients with respect to them.

Sentences that do not fit into a window are left out, since a head's map would be in pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from probes.common.arrays import Floats
from probes.examples.examples import NotServedError
from probes.extraction.reading.alignment import Pieces
from probes.extraction.reading.attention_maps import AttentionCollector
from probes.extraction.reading.collectors import ModelProperties
from probes.extraction.reading.padding import PaddedWindows
from probes.extraction.reading.shards import Shard
from probes.extraction.reading.token_scores import LossOfWords, TokenScores
from probes.extraction.reading.views import View
from probes.extraction.reading.windows import Window
from probes.families.attention.collector import layout_of
from probes.records.header import ModelRecord

if TYPE_CHECKING:
    from probes.data.sentence import Corpus
    from probes.measurements.context import ModelContext

N_SENTENCES = 300
"""Sentences to draw. Numbers of heads then vary little, and maps of a base fit into memory."""

MOST_PAIRS = 1 << 19
"""Most pairs of words in a sample, which bounds memory where sentences are long."""


def sample(corpus: Corpus, split: str = "test", n: int = N_SENTENCES) -> list[int]:
    """Numbers of up to n sentences of a split, the same in every run, ascending."""
    sentences = corpus.splits[split]
    # A sentence beyond the bound by itself would end the sample wherever it is drawn.
    short = [i for i, sentence in enumerate(sentences) if len(sentence) ** 2 <= MOST_PAIRS]
    indices = np.random.default_rng(0).permutation(short)[:n].astype(int)
    n_pairs = np.cumsum([len(sentences[i]) ** 2 for i in indices])
    return sorted(indices[n_pairs <= MOST_PAIRS].tolist())


class MapsOfTexts(AttentionCollector):
    """Keeps all maps of a pass, and gives those of each whole text to `add_text`."""

    name = "attention maps"

    @property
    def parts(self) -> tuple[str, ...]:
        """One part for each text."""
        return ()

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """Zero: maps are kept in memory."""
        return 0

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin a shard without maps."""
        self._shard, self._pieces = shard, pieces
        self._parts: dict[str, torch.Tensor] = {}

    def prepare(self, windows: PaddedWindows) -> None:
        """Find the whole texts of a pass."""
        self._layout = layout_of(windows, self._pieces)
        self._blocks: list[torch.Tensor] = []

    def take(self, block: int, maps: torch.Tensor, visible: torch.Tensor) -> None:
        """Keep the maps of a block."""
        self._blocks.append(maps[self._layout.window.to(maps.device)].cpu())

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Take the maps of a pass apart by text."""
        ids = windows.inputs["input_ids"][self._layout.window].cpu()
        texts = zip(self._layout.text.tolist(), self._layout.n_tokens.tolist(), strict=True)
        for row, (text, n) in enumerate(texts):
            maps = torch.stack([block[row, :, :n, :n] for block in self._blocks])
            self.add_text(text, maps, ids[row, :n])

    def add_text(self, text: int, maps: torch.Tensor, ids: torch.Tensor) -> None:
        """Keep the maps of a text.

        Args:
            text: its place in the shard.
            maps: shape (blocks, heads, tokens, tokens).
            ids: its tokens, including special ones. Shape (tokens,).
        """
        self._parts[f"maps {text}"], self._parts[f"ids {text}"] = maps, ids

    def finish(self) -> dict[str, torch.Tensor]:
        """Maps and tokens by place in the shard."""
        return self._parts


class WordMaps(MapsOfTexts):
    """Keeps attention between words, where `MapsOfTexts` keeps that between tokens, in float16."""

    name = "attention between words"

    def take(self, block: int, maps: torch.Tensor, visible: torch.Tensor) -> None:
        """Keep the maps of a block."""
        if not len(self._layout.text):
            return
        layout = self._layout.to(maps.device)
        self._blocks.append(layout.between_words(maps[layout.window]).half().cpu())


def maps_of_texts(
    context: ModelContext, view: View, kind: type[MapsOfTexts] = MapsOfTexts
) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """Number in the view, maps (blocks, heads, tokens, tokens) and tokens of each whole text."""
    for shard, parts in context.read(view, kind()):
        for number, text in enumerate(shard.index.tolist()):
            if f"maps {number}" in parts:
                yield text, parts[f"maps {number}"], parts[f"ids {number}"]


def jensen_shannon(maps: torch.Tensor, other_maps: torch.Tensor) -> torch.Tensor:
    """Jensen–Shannon divergence of rows in nats, between 0 and ln 2. Shape (…, tokens).

    Args:
        maps, other_maps: rows sum to 1. Shape (…, tokens, tokens).
    """
    entropy = torch.special.entr
    terms = entropy((maps + other_maps) / 2) - (entropy(maps) + entropy(other_maps)) / 2
    divergence: torch.Tensor = terms.sum(-1).clamp(min=0)
    return divergence


def change_of_maps(maps: torch.Tensor, base: torch.Tensor) -> Floats:
    """Change of heads: cosine and divergence of two maps of a text. Shape (2, …).

    Args:
        maps, base: shape (…, tokens, tokens).

    Returns:
        the cosine of the flattened maps (Kovaleva et al. 2019, section 4.3), and the
        Jensen–Shannon divergence averaged over tokens; exactly 1 and 0 for equal maps.
    """
    a, b = maps.double(), base.double()
    product, *squares = ((x * y).sum((-2, -1)) for x, y in ((a, b), (a, a), (b,) * 2))
    cosine = product / (squares[0] * squares[1]).sqrt()
    changes: Floats = torch.stack([cosine, jensen_shannon(a, b).mean(-1)]).numpy()
    return changes


class HeadDistances(MapsOfTexts):
    """Mean distance of the heads of each block to each other, and to those of other blocks.

    The part ``distances`` (texts, blocks, 2) is NaN for texts of several windows. A distance is the
    square root of the Jensen–Shannon divergence of two heads' attention from a token, which is a
    metric (Endres & Schindelin 2003), averaged over tokens.
    """

    name = "distances of heads"

    @property
    def parts(self) -> tuple[str, ...]:
        """The only part."""
        return ("distances",)

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """Bytes of two numbers for each text and block."""
        return 16 * len(shard.texts) * model.n_layers

    def add_text(self, text: int, maps: torch.Tensor, ids: torch.Tensor) -> None:
        """Measure the distances of a text."""
        self._parts[str(text)] = mean_distances(maps.double())

    def finish(self) -> dict[str, torch.Tensor]:
        """The distances of the shard."""
        n_blocks = len(self._blocks)
        unread = torch.full((n_blocks, 2), torch.nan, dtype=torch.float64)
        texts = [self._parts.get(str(text), unread) for text in range(len(self._shard.texts))]
        return {"distances": torch.stack(texts)}


def mean_distances(maps: torch.Tensor) -> torch.Tensor:
    """Mean distances of the heads of each block: to each other, to all others. (blocks, 2).

    NaN for a block with one head, and a model with one block.

    Args:
        maps: shape (blocks, heads, tokens, tokens).
    """
    n_blocks, n_heads = maps.shape[:2]
    flat = maps.flatten(0, 1)
    distances = torch.zeros(len(flat), len(flat), dtype=maps.dtype)
    for head in range(len(flat) - 1):
        distances[head, head + 1 :] = jensen_shannon(flat[head + 1 :], flat[head]).sqrt().mean(-1)
    of_blocks = (distances + distances.T).view(n_blocks, n_heads, n_blocks, n_heads).sum((1, 3))
    within = of_blocks.diagonal()
    n_within, n_between = n_heads * (n_heads - 1), n_heads * n_heads * (n_blocks - 1)
    between = of_blocks.sum(1) - within
    return torch.stack([within / n_within, between / n_between], dim=1)


class AttentionGradients(LossOfWords, AttentionCollector):
    """Gradients of the loss with respect to attention, and attention, by the token attended to.

    Kinds of tokens are the first, other special tokens around a text, and the rest, such as those
    that a chat template writes. The loss of a text is the mean over words that a masked model reads
    masked, or over all tokens of a causal one.

    The part ``gradients`` (texts, blocks, kinds, 3) has means over heads: of absolute gradients of
    all weights of attention to such tokens, of the share of a token's attention that they get, and
    of that of uniform attention. NaN for texts of several windows, and means over no weights.
    """

    name = "attention gradients"
    version = 2
    after_start = False
    reads_gradients = True

    @property
    def parts(self) -> tuple[str, ...]:
        """The only part."""
        return ("gradients",)

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """Bytes of nine numbers for each text and block."""
        return 36 * len(shard.texts) * model.n_layers

    def copies(self, windows: Sequence[Window], reader: ModelProperties) -> list[Window]:
        """The windows, of which a masked model reads copies with masked words.

        Raises:
            NotServedError: the model reads in both directions and has no mask token.
        """
        if not reader.causal and reader.mask_id is None:
            raise NotServedError("it reads in both directions and has no mask token")
        return (TokenScores if reader.causal else LossOfWords).copies(self, windows, reader)

    def prepare(self, windows: PaddedWindows) -> None:
        """Begin a pass without maps."""
        self._maps: list[tuple[torch.Tensor, torch.Tensor]] = []

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin a shard with nothing found."""
        super().start(shard, pieces)
        self._of_texts: dict[int, torch.Tensor] = {}

    def take(self, block: int, maps: torch.Tensor, visible: torch.Tensor) -> None:
        """Keep the maps of a block, on which the output depends."""
        self._maps.append((maps, visible))

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Find the gradients of a pass."""
        real = windows.inputs["attention_mask"].bool()
        window = windows.position // real.shape[1]
        weight = 1 / window.bincount()[window]
        targets = self._ids[windows.word % len(self._ids)]
        of_states = torch.zeros_like(output.states)
        for rows, logits in output.blocks():  # logits of all positions may not fit into memory
            log_p = logits.log_softmax(1).gather(1, targets[rows, None].to(logits.device))
            loss = -log_p[:, 0] @ weight[rows].to(logits.device)
            of_states += torch.autograd.grad(loss, output.states)[0]
        maps = [attention for attention, _ in self._maps]
        gradients = torch.autograd.grad(output.states, maps, of_states)
        is_piece = windows.pieces.clone()
        is_piece[:, 0] = False
        first = torch.zeros_like(is_piece)
        first[:, 0] = True
        kinds = torch.stack([first, real & ~first & ~is_piece, is_piece], dim=1).float()
        numbers = [
            gradients_by_kind(attention.detach(), visible, gradient, real, kinds)
            for (attention, visible), gradient in zip(self._maps, gradients, strict=True)
        ]
        for row, text in enumerate(windows.text.tolist()):
            is_whole = windows.n_pieces[row] == len(self._pieces[text].ids)
            self._of_texts[text] = torch.stack([x[row] for x in numbers]).where(is_whole, torch.nan)

    def finish(self) -> dict[str, torch.Tensor]:
        """The numbers of the shard; NaN for texts without a token to predict.

        Raises:
            NotServedError: no text has one.
        """
        if not self._of_texts:
            raise NotServedError("no text has a token that the model could predict")
        unread = torch.full_like(next(iter(self._of_texts.values())), torch.nan)
        texts = [self._of_texts.get(text, unread) for text in range(len(self._pieces))]
        return {"gradients": torch.stack(texts)}


def gradients_by_kind(
    maps: torch.Tensor,
    visible: torch.Tensor,
    gradients: torch.Tensor,
    real: torch.Tensor,
    kinds: torch.Tensor,
) -> torch.Tensor:
    """Mean gradient, share of attention, and of uniform attention. Shape (texts, kinds, 3).

    Args:
        maps, gradients: shape (texts, heads, length, length).
        visible: True where a token may attend to another. Shape (texts, length, length).
        real: True for tokens, False for padding. Shape (texts, length).
        kinds: 1 for tokens of a kind. Shape (texts, kinds, length).
    """
    seen = (visible.cpu() & real[:, :, None]).float()
    n, uniform = real.sum(1, keepdim=True), seen / seen.sum(-1, keepdim=True).clamp(min=1)
    weights, gradient, share, uniform_share = (
        torch.einsum("tij,tkj->tk", seen * x, kinds)
        for x in (seen, gradients.abs().mean(1).cpu(), maps.mean(1).cpu(), uniform)
    )
    return torch.stack([gradient / weights, share / n, uniform_share / n], dim=-1)
