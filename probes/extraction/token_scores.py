"""Log-probabilities of tokens under a model's own language-model head.

A model that reads from left to right gives log p(token | tokens before). A masked model gives the
pseudo-log-likelihood: each token is masked in a copy of the text and scored there (Salazar et al.
2020). Further copies also mask the later pieces of the same word (within-word l2r, Kauf & Ivanova
2023); otherwise a rare word would be given away by its own pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from probes.common.arrays import Floats, Ints
from probes.common.errors import UserError
from probes.extraction.alignment import Pieces
from probes.extraction.collectors import Collector, ModelProperties
from probes.extraction.padding import PaddedWindows
from probes.extraction.shards import Shard, kept_words, row_of_each_text
from probes.extraction.store import Store
from probes.extraction.views import Text, View
from probes.extraction.windows import Window
from probes.records.header import ModelRecord

_ROWS = 256
"""Number of predictions over the vocabulary in float32 at once."""


class TokenScores(Collector):
    """Scores the pieces of the kept stretches of written texts.

    Parts, with pieces in the order of texts:

    - ``pieces`` (stretches,): number of pieces of each stretch;
    - ``log_p`` (pieces,): log-probability in nats, float32; masked models have only this piece
      masked. NaN if nothing precedes the piece, not even a start token;
    - ``within_word`` (pieces,): log-probability with the later pieces of the word masked as well;
      equal to ``log_p`` for models that are not masked;
    - ``rank`` (pieces,): number of tokens in the vocabulary with a higher probability, plus half
      of the others with an equal one, float32; -1 where ``log_p`` is NaN.
    """

    name = "token scores"
    version: ClassVar[int] = 2
    reads_logits: ClassVar[bool] = True
    after_start: ClassVar[bool] = True

    @property
    def parts(self) -> tuple[str, ...]:
        """The four parts."""
        return "pieces", "log_p", "within_word", "rank"

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """Estimate the bytes of a shard from one piece per three characters."""
        n_pieces = sum(len(part) for x in shard.texts for part in x.words[slice(*x.keep)]) // 3
        return 4 * shard.n_rows + 12 * n_pieces

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin a shard with NaN for every piece."""
        self._pieces = pieces
        kept = [
            (x.bounds[t.keep[0]], x.bounds[t.keep[1]])
            for x, t in zip(pieces, shard.texts, strict=True)
        ]
        counts = np.array([end - start for start, end in kept], dtype=np.int64)
        ends = np.cumsum(counts)
        # Piece p of a text has the row p + shift.
        self._shift = ends - counts - [start for start, _ in kept]
        self._counts = [
            np.diff(x.bounds[t.keep[0] : t.keep[1] + 1])
            for x, t in zip(pieces, shard.texts, strict=True)
        ]
        parts = [x.ids[start:end] for x, (start, end) in zip(pieces, kept, strict=True)]
        self._ids = torch.from_numpy(np.concatenate(parts))
        n = len(self._ids)
        # First with each piece masked alone, then with the later pieces of the word as well.
        self._log_p = torch.full((2 * n,), torch.nan)
        self._rank = torch.full((2 * n,), -1.0)
        self._behind = 0

    def copies(self, windows: Sequence[Window], reader: ModelProperties) -> list[Window]:
        """One window for all pieces, or one for each masked piece.

        Raises:
            UserError: the model reads in both directions and has no mask token.
        """
        if not reader.causal and reader.mask_id is None:
            raise UserError(
                "This model reads in both directions and has no mask token, so it cannot score "
                "tokens."
            )
        self._behind = int(reader.causal)
        found: list[Window] = []
        for window in windows:
            piece = window.place - reader.n_prefix + window.first
            row = piece + self._shift[window.text]
            if reader.causal:
                kept = replace(window, owner=row).part(window.place > 0)
                found += [kept] if len(kept.place) else []
            else:
                found += self._masked(window, piece, row, reader)
        return found

    def _masked(
        self, window: Window, piece: Ints, row: Ints, reader: ModelProperties
    ) -> Iterator[Window]:
        """Copies of a window with one piece masked, alone or with the later pieces of the word.

        Args:
            piece: numbers in the text of the pieces to score.
            row: rows for their scores.
        """
        words, mask_id = self._pieces[window.text].token_words, reader.mask_id
        assert words is not None
        assert mask_id is not None
        ends = np.append(np.flatnonzero(np.diff(words)) + 1, len(words))
        read = window.first + len(window.ids) - reader.n_prefix - reader.n_suffix
        end = np.minimum(ends[np.searchsorted(ends, piece, side="right")], read)
        places = zip(window.place, window.place + end - piece, row, strict=True)
        share = np.ones(1)
        for place, stop, number in places:
            for last, kept in ((place + 1, number), (stop, number + len(self._ids))):
                if kept == number or stop > place + 1:
                    ids = window.ids.copy()
                    ids[place:last] = mask_id
                    at, owner = np.array([place]), np.array([kept])
                    yield replace(window, ids=ids, place=at, owner=owner, share=share)

    def positions(self, windows: PaddedWindows) -> torch.Tensor:
        """Positions of masked pieces, or of the tokens before pieces."""
        return windows.position - self._behind

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Score the pieces of one pass."""
        targets = self._ids[windows.word % len(self._ids)].to(output.logits.device)
        for first in range(0, len(targets), _ROWS):
            rows = slice(first, first + _ROWS)
            logits = output.logits[rows].float()
            own = logits.gather(1, targets[rows, None])
            place = windows.word[rows]
            self._log_p[place] = (own.squeeze(1) - logits.logsumexp(1)).cpu()
            ties = (logits == own).sum(1) - 1
            self._rank[place] = ((logits > own).sum(1) + ties / 2).float().cpu()

    def finish(self) -> dict[str, torch.Tensor]:
        """Collected scores of the shard, by part.

        Raises:
            UserError: a log-probability is not finite.
        """
        n = len(self._ids)
        if not self._log_p[self._rank > -1].isfinite().all():
            raise UserError(
                "The language-model head gave a probability that is not a number. The model is "
                "broken, or --dtype is too narrow (try --dtype float32)."
            )
        log_p, within = self._log_p[:n], self._log_p[n:]
        return {
            "pieces": torch.from_numpy(np.concatenate(self._counts)).int(),
            "log_p": log_p,
            "within_word": torch.where(within.isnan(), log_p, within),
            "rank": self._rank[:n],
        }


class LossOfWords(TokenScores):
    """Scores of some words of each text. A masked model reads all of them masked together.

    This resembles the training of such models (Devlin et al. 2019), which masks random pieces.

    Args:
        words: positions of the words to score, by text.
    """

    name = "loss of words"

    def __init__(self, words: Mapping[Text, Ints]) -> None:
        self._words = words

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin a shard, and find the words to score."""
        super().start(shard, pieces)
        kept = [np.isin(np.arange(*text.keep), self._words[text]) for text in shard.texts]
        self._kept = np.concatenate(kept)

    def copies(self, windows: Sequence[Window], reader: ModelProperties) -> list[Window]:
        """One copy of each window with pieces of these words. See `TokenScores` for errors."""
        some = [x.part(self._kept[x.owner]) for x in windows]
        return super().copies([x for x in some if len(x.place)], reader)

    def _masked(
        self, window: Window, piece: Ints, row: Ints, reader: ModelProperties
    ) -> Iterator[Window]:
        assert reader.mask_id is not None
        ids = window.ids.copy()
        ids[window.place] = reader.mask_id
        yield replace(window, ids=ids, owner=row)


@dataclass(frozen=True)
class ScoredStretches:
    """Scores of all kept stretches of a view's texts, in order.

    Attributes:
        view: the texts.
        pieces: number of scored pieces in each stretch. Shape (stretches,).
        log_p, within_word: sums over the pieces of each stretch; see `TokenScores`. Each
            (stretches,).
        rank: rank of each stretch's only piece; -1 if there are several, or the piece has no
            score. Shape (stretches,).
    """

    view: View
    pieces: Ints
    log_p: Floats
    within_word: Floats
    rank: Floats

    @cached_property
    def first(self) -> Ints:
        """The first stretch of each text. Shape (texts,)."""
        kept = kept_words(self.view.texts)
        return np.cumsum(kept) - kept

    def place(self, text: Text, stretch: int = 0) -> int:
        """Index of the score of a text's stretch; stretches are counted from the first kept one."""
        return int(self.first[self.view.index[text]]) + stretch

    def surprisal(self, scoring: str) -> Floats:
        """Surprisal of each stretch in nats. Shape (stretches,).

        Args:
            scoring: "log_p" or "within_word".
        """
        found: Floats = -getattr(self, scoring)
        return found


def scored(
    view: View, shards: Sequence[Shard], parts: Sequence[Mapping[str, NDArray[Any]]]
) -> ScoredStretches:
    """Join the results of `TokenScores` for the shards of a view, in the order of texts.

    Args:
        parts: collected arrays of each shard.
    """
    kept = kept_words(view.texts)
    own = np.cumsum(kept) - kept
    order = np.repeat(row_of_each_text(shards, kept) - own, kept) + np.arange(int(kept.sum()))
    whole = {name: np.concatenate([each[name] for each in parts]) for name in TokenScores().parts}
    counts = whole["pieces"].astype(np.int64)
    stretch = np.repeat(np.arange(len(counts)), counts)
    there = ~np.isnan(whole["log_p"])

    def summed(part: str) -> Floats:
        values = whole[part][there].astype(np.float64)
        found: Floats = np.bincount(stretch[there], values, len(counts)).astype(np.float64)
        return found[order]

    n_scored = np.bincount(stretch[there], minlength=len(counts))
    rank: Floats = np.full(len(counts), -1.0)
    rank[stretch] = whole["rank"]
    rank[(counts != 1) | (n_scored != 1)] = -1
    return ScoredStretches(
        view, n_scored[order], summed("log_p"), summed("within_word"), rank[order]
    )


def stored_scores(view: View, stored: Store) -> ScoredStretches:
    """Read the scores of a view from a store."""
    shards = stored.shards(view)
    arrays = {name: stored.arrays(name) for name in TokenScores().parts}
    parts = [{name: arrays[name][i] for name in arrays} for i in range(len(shards))]
    return scored(view, shards, parts)
