"""A collector of the answers that each layer gives through the model's own head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch

from probes.extraction.reading.alignment import Pieces
from probes.extraction.reading.collectors import Collector, ModelProperties, layer_states
from probes.extraction.reading.padding import PaddedWindows
from probes.extraction.reading.shards import Shard
from probes.extraction.reading.views import Text
from probes.extraction.reading.windows import Pooling, Window
from probes.records.header import ModelRecord

_ROWS = 256
"""Number of predictions over the vocabulary in memory at once."""


class LensAnswers(Collector):
    """Probabilities of answers in the place of each kept word, at every layer.

    The part ``answers`` (words, layers, answers) has Σ p(token) · weight over the tokens of an
    answer, where p is the softmax over the tokens of all answers, in float64; NaN for the first
    word if the model reads left to right. Words of several tokens, and unknown ones, are in no
    answer.

    Args:
        layers: layers to read.
        answers: words of each answer, with their weights.
        after: predict the word after each kept word, as in texts cut before a hidden word, instead
            of the kept word.

    Attributes:
        has_token: True for answers that have a token; set when reading begins.
    """

    name = "lens"
    model_arguments: ClassVar[Mapping[str, Any]] = {"output_hidden_states": True}
    applies_head = True

    def __init__(
        self, layers: Sequence[int], answers: Sequence[Mapping[str, float]], *, after: bool = False
    ) -> None:
        self.layers, self.answers, self._after = tuple(layers), answers, after
        self.pooling: Pooling = "last" if after else "first"
        self.has_token: list[bool] = []

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts."""
        return ("answers",)

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """Size of the answers of a shard."""
        return 8 * shard.n_rows * len(self.layers) * len(self.answers)

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin a shard with nothing found."""
        shape = shard.n_rows, len(self.layers), len(self.answers)
        self._probabilities = torch.full(shape, torch.nan, dtype=torch.float64)

    def copies(self, windows: Sequence[Window], reader: ModelProperties) -> list[Window]:
        """The windows, without the first word if the model is causal."""
        if not self.has_token:
            self._find_tokens(reader)
        self._offset = int(reader.causal and not self._after)
        read_windows = []
        for window in windows:
            is_read = window.position >= self._offset
            if is_read.any():
                some = {x: getattr(window, x)[is_read] for x in ("position", "owner", "share")}
                read_windows.append(replace(window, **some))
        return read_windows

    def _find_tokens(self, reader: ModelProperties) -> None:
        words = sorted({word for answer in self.answers for word in answer})
        pieces = reader.split([Text((word,), (0, 1)) for word in words])
        # The unknown token may stand for any word.
        word_pieces = ((w, x) for w, x in zip(words, pieces, strict=True) if not x.unknown)
        token = {w: int(x.ids[0]) for w, x in word_pieces if len(x.ids) == 1}
        places = {i: n for n, i in enumerate(sorted(set(token.values())))}
        self._tokens = torch.tensor(list(places), dtype=torch.long)
        self._weights = torch.zeros(len(places), len(self.answers), dtype=torch.float64)
        for column, answer in enumerate(self.answers):
            for word, weight in answer.items():
                if word in token:
                    self._weights[places[token[word]], column] += weight
        self.has_token = (self._weights > 0).any(0).tolist()

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Read the answers of a pass."""
        states = layer_states(output)
        for index, layer in enumerate(self.layers):
            flat = states[layer].reshape(-1, states[layer].shape[-1])
            at = (windows.position - self._offset).to(flat.device)
            for first in range(0, len(at), _ROWS):
                rows = slice(first, first + _ROWS)
                logits = self.head(flat[at[rows]], layer)
                probabilities = logits[:, self._tokens.to(logits.device)].cpu().double().softmax(1)
                self._probabilities[windows.word[rows], index] = probabilities @ self._weights

    def finish(self) -> dict[str, torch.Tensor]:
        """The answers of the shard."""
        return {"answers": self._probabilities}
