"""Log-probabilities of tokens under a model's own language-model head.

Of a model that reads from left to right, log p(token | tokens before). Of a masked one the
pseudo-log-likelihood: each token is masked in a copy of the text, and scored there (Salazar et al.
2020). Of a word of several pieces, those after the masked one are masked, too, in further copies
(within-word l2r, Kauf & Ivanova 2023): else a rare word would be given away by its own pieces.
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
from probes.extraction.collectors import Collector, Reader
from probes.extraction.padding import PaddedWindows
from probes.extraction.shards import Shard, kept_words, row_of_each_text
from probes.extraction.store import Store
from probes.extraction.views import Text, View
from probes.extraction.windows import Window
from probes.records.header import ModelRecord

_ROWS = 256
"""Predictions over the vocabulary that are in float32 at once."""


class TokenScores(Collector):
    """Scores the pieces of the kept stretches of written texts.

    Parts, pieces in the order of texts:

    - ``pieces`` (stretches,): how many pieces each stretch has;
    - ``log_p`` (pieces,): log-probability in nats, float32, of a masked model with this piece alone
      masked. NaN where nothing precedes the piece, not even a start token;
    - ``within_word`` (pieces,): the same with the later pieces of the word masked, too; of other
      models ``log_p``;
    - ``rank`` (pieces,): how many tokens of the vocabulary have a higher probability than
      ``log_p``, and half of the others that have the same, float32; -1 where that is NaN.
    """

    name = "token scores"
    version: ClassVar[int] = 2
    reads_logits: ClassVar[bool] = True
    after_start: ClassVar[bool] = True

    @property
    def parts(self) -> tuple[str, ...]:
        """See `Collector`."""
        return "pieces", "log_p", "within_word", "rank"

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """About: one piece for three characters."""
        n_pieces = sum(len(part) for x in shard.texts for part in x.words[slice(*x.keep)]) // 3
        return 4 * shard.n_rows + 12 * n_pieces

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """See `Collector`."""
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
        # First with each piece masked alone, then with the later ones of its word, too.
        self._log_p = torch.full((2 * n,), torch.nan)
        self._rank = torch.full((2 * n,), -1.0)
        self._behind = 0

    def copies(self, windows: Sequence[Window], reader: Reader) -> list[Window]:
        """One window for all pieces, or one for each masked piece.

        Raises:
            UserError: the model reads in both directions and has no mask token.
        """
        if not reader.causal and reader.mask_id is None:
            raise UserError(
                "This model reads in both directions and has no mask token, so that it gives the "
                "tokens of a text no probabilities."
            )
        self._behind = int(reader.causal)
        found: list[Window] = []
        for window in windows:
            piece = window.place - reader.n_prefix + window.first
            row = piece + self._shift[window.text]
            if reader.causal:
                its = replace(window, owner=row).part(window.place > 0)
                found += [its] if len(its.place) else []
            else:
                found += self._masked(window, piece, row, reader)
        return found

    def _masked(self, window: Window, piece: Ints, row: Ints, reader: Reader) -> Iterator[Window]:
        """Copies of a window, each with one piece masked, or with the later ones of its word too.

        Args:
            piece: the pieces to be scored, by their number in the text.
            row: where their scores are kept.
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
        """See `Collector`: where pieces are masked, or the tokens before them."""
        return windows.position - self._behind

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """See `Collector`."""
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
        """See `Collector`.

        Raises:
            UserError: a log-probability is not finite.
        """
        n = len(self._ids)
        if not self._log_p[self._rank > -1].isfinite().all():
            raise UserError(
                "Its language-model head gives a probability that is not a number; the model is "
                "broken, or --dtype is too narrow for it (try --dtype float32)."
            )
        log_p, within = self._log_p[:n], self._log_p[n:]
        return {
            "pieces": torch.from_numpy(np.concatenate(self._counts)).int(),
            "log_p": log_p,
            "within_word": torch.where(within.isnan(), log_p, within),
            "rank": self._rank[:n],
        }


class LossOfWords(TokenScores):
    """Scores of some words of each text, which a masked model reads masked together.

    So it is trained (Devlin et al. 2019), but with pieces that are drawn one by one.

    Args:
        words: by text, the places of the words that are scored.
    """

    name = "loss of words"

    def __init__(self, words: Mapping[Text, Ints]) -> None:
        self._words = words

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """See `Collector`."""
        super().start(shard, pieces)
        kept = [np.isin(np.arange(*text.keep), self._words[text]) for text in shard.texts]
        self._kept = np.concatenate(kept)

    def copies(self, windows: Sequence[Window], reader: Reader) -> list[Window]:
        """One of each window that has pieces of these words. See `TokenScores` for errors."""
        some = [x.part(self._kept[x.owner]) for x in windows]
        return super().copies([x for x in some if len(x.place)], reader)

    def _masked(self, window: Window, piece: Ints, row: Ints, reader: Reader) -> Iterator[Window]:
        assert reader.mask_id is not None
        ids = window.ids.copy()
        ids[window.place] = reader.mask_id
        yield replace(window, ids=ids, owner=row)


@dataclass(frozen=True)
class Scored:
    """The scores of all kept stretches of a view's texts, one after the other.

    Attributes:
        view: the texts.
        pieces: how many pieces of each stretch are scored. Shape (stretches,).
        log_p, within_word: sums over the pieces of each stretch, see `TokenScores`. Shape
            (stretches,).
        rank: of each stretch's only piece; -1 if there are several, or none that is scored. Shape
            (stretches,).
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
        """Where the score of a kept stretch of a text is, counted from the first that is kept."""
        return int(self.first[self.view.index[text]]) + stretch

    def surprisal(self, scoring: str) -> Floats:
        """Of each stretch, in nats. Shape (stretches,).

        Args:
            scoring: "log_p" or "within_word".
        """
        found: Floats = -getattr(self, scoring)
        return found


def scored(
    view: View, shards: Sequence[Shard], parts: Sequence[Mapping[str, NDArray[Any]]]
) -> Scored:
    """What `TokenScores` has found of a view, in the order of its texts.

    Args:
        parts: of each shard.
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
    return Scored(view, n_scored[order], summed("log_p"), summed("within_word"), rank[order])


def stored_scores(view: View, stored: Store) -> Scored:
    """The same from the store of a view."""
    shards = stored.shards(view)
    arrays = {name: stored.arrays(name) for name in TokenScores().parts}
    parts = [{name: arrays[name][i] for name in arrays} for i in range(len(shards))]
    return scored(view, shards, parts)
