"""Compares the attention of two models on the same tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from scipy.special import rel_entr

from probes.common.arrays import Floats
from probes.examples.examples import NotServedError
from probes.extraction.padding import PaddedWindows
from probes.extraction.views import View, plain_text, view_over
from probes.families.attention.live import PerText, Together, by_text, sample
from probes.measurements.context import ModelContext, PairContext
from probes.measurements.measurement import Found
from probes.records.row import Place, Row
from probes.records.values import Estimate
from probes.statistics.bootstrap import means

Tokens = dict[int, tuple[int, ...]]
"""Token ids of each text, including special ones, by the text's place in the view."""


def changes_of(context: PairContext, n_sentences: int, seed: int = 0) -> Found:
    """Change of the heads of `context.layers` from the base, on a sample of test sentences.

    Raises:
        NotServedError: see `changes`; or no sentence fits both windows.
    """
    test = context.corpus.splits["test"]
    drawn = sample(test, n_sentences, seed)
    view = view_over((plain_text(test[i]) for i in drawn), "plain")
    found = changes(context, context.base, view)
    text = {i: view.index[plain_text(test[i])] for i in drawn}
    kept = [i for i in drawn if text[i] in found]
    if not kept:
        raise NotServedError("no test sentence fits into the window of both models")
    blocks = [layer - 1 for layer in context.layers]
    # (sentences, layers, heads and their mean, 2)
    every = np.stack([found[text[i]] for i in kept])[:, :, blocks].transpose(0, 2, 3, 1)
    every = np.concatenate([every.mean(2, keepdims=True), every], axis=2)
    partition = context.partition("test")
    documents, cluster = np.unique(partition.of_sentence[kept], return_inverse=True)
    estimates = means(every.reshape(len(kept), -1), cluster, len(documents), partition.clusters)
    left_out = len(drawn) - len(kept)
    note = (
        f"{len(kept):,} test sentences; intervals over {partition.clusters}. Divergence: "
        "Jensen–Shannon, in nats, of a token's attention, at most .693."
    )
    long = f"{left_out:,} sentences longer than a window are left out."
    return Found(
        rows=tuple(_rows(context, estimates, every.shape[2])),
        facts={"sentences": len(kept), "left_out": left_out, "resampled": partition.clusters},
        notes=(note, *[long] * (left_out > 0)),
    )


def _rows(context: PairContext, estimates: Sequence[Estimate], width: int) -> Iterator[Row]:
    """Cosine and divergence for each layer: first the mean over heads, then each head."""
    pairs = iter(zip(estimates[::2], estimates[1::2], strict=True))
    for layer in context.layers:
        for head in range(width):
            axes: dict[str, Place] = {"base": context.base.model.name}
            if head:
                axes["head"] = head
            for name, found in zip(("cosine", "divergence"), next(pairs), strict=True):
                low, high = found.interval or (None, None)
                yield Row(name, found.value, layer, low, high, axes=axes)


def changes(context: ModelContext, base: ModelContext, view: View) -> dict[int, Floats]:
    """Change of each text's maps from those of the base.

    The base is read first, and all of its maps are kept in memory, in float32.

    Returns:
        cosine and divergence (see `change_of_maps`) by the text's place in the view; texts that
        do not fit both windows are missing. Shape (2, blocks, heads).

    Raises:
        NotServedError: the models have other numbers of layers or heads, or other tokens.
    """
    if context.model.n_layers != base.model.n_layers:
        raise NotServedError(
            f"{context.model.name} has {context.model.n_layers} layers, {base.model.name} "
            f"{base.model.n_layers}: their heads do not correspond"
        )
    of_base = HeadMaps()
    maps = by_text(base.read(view, of_base))
    compared = Compared(maps, of_base.tokens, f"{context.model.name} and {base.model.name}")
    return {text: x.numpy() for text, x in by_text(context.read(view, compared)).items()}


def change_of_maps(maps: Floats, base: Floats) -> tuple[Floats, Floats]:
    """Cosine and divergence of two maps: exactly 1 and 0 if they are equal.

    Args:
        maps, base: maps of one text. Shape (…, length, length).

    Returns:
        the cosine of the maps as vectors (Kovaleva et al. 2019, section 4.3), and the
        Jensen–Shannon divergence of rows in nats, averaged over rows. Each (…,).
    """
    one, other = (x.astype(np.float64) for x in (maps, base))
    product, *squares = ((x * y).sum((-2, -1)) for x, y in ((one, other), (one, one), (other,) * 2))
    mixture = (one + other) / 2
    divergence = (rel_entr(one, mixture) + rel_entr(other, mixture)).sum(-1) / 2
    cosine: Floats = product / np.sqrt(squares[0] * squares[1])
    return cosine, divergence.clip(min=0).mean(-1)


class HeadMaps(Together, PerText):
    """All maps of each text. (blocks, heads, length, length).

    Attributes:
        tokens: the tokens of each text.
    """

    name = "attention maps"

    def __init__(self) -> None:
        self.tokens: Tokens = {}

    def prepare(self, windows: PaddedWindows) -> None:
        """Note the tokens of the texts of a pass."""
        super().prepare(windows)
        self._places = self.shard.index[self.layout.text.numpy()].tolist()
        for place, window, real in zip(
            self._places, self.layout.window, self.layout.real, strict=True
        ):
            ids = windows.inputs["input_ids"][window][real]
            self.tokens[place] = tuple(ids.tolist())

    def read_together(self, maps: torch.Tensor) -> None:
        """Keep the maps of each text without padding."""
        lengths, host = self.layout.n_tokens.tolist(), maps.cpu()
        for text, of_text, n in zip(self.layout.text.tolist(), host, lengths, strict=True):
            self.keep(text, of_text[..., :n, :n])

    def keep(self, text: int, maps: torch.Tensor) -> None:
        """Keep a text's maps."""
        self.found[text] = maps.clone()


class Compared(HeadMaps):
    """Change from the maps of another model, float64. (2, blocks, heads).

    Args:
        base, base_tokens: maps and tokens of the other model, from `HeadMaps`.
        models: names of both, for messages.
    """

    name = "change of attention maps"

    def __init__(self, base: Mapping[int, torch.Tensor], base_tokens: Tokens, models: str) -> None:
        super().__init__()
        self._base, self._base_tokens, self._models = base, base_tokens, models

    def keep(self, text: int, maps: torch.Tensor) -> None:
        """Keep the change, if the text fitted the other model's window.

        Raises:
            NotServedError: it has other heads or tokens.
        """
        place = int(self.shard.index[text])
        if place not in self._base:
            return
        base = self._base[place]
        if self.tokens[place] != self._base_tokens[place]:
            raise NotServedError(f"{self._models} have other tokens for the same words")
        if base.shape != maps.shape:
            raise NotServedError(
                f"{self._models} have {maps.shape[1]} and {base.shape[1]} heads in a layer, which "
                "do not correspond"
            )
        self.found[text] = torch.from_numpy(np.stack(change_of_maps(maps.numpy(), base.numpy())))
