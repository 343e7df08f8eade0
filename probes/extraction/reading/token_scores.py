"""Log-probabilities of tokens under a model's own language-model head.

A model that reads from left to right gives log p(token | tokens before). A masked model gives the
pseudo-log-likelihood: each token is masked in a copy of the text and scored there (Salazar et al.
2020). Further copies also mask the later pieces of the same word (within-word l2r, Kauf & Ivanova
2023); otherwise a rare word would be given away by its own pieces.

Most tokenizers of causal models mark the beginning of a word, by the space before it. The model
then says only at the next piece that a word has ended, so the product over a word's pieces is the
probability that some word *begins* so. The probability of the word itself counts its end, and not
the end of the word before (Pimentel & Meister 2024; Oh & Schuler 2024)::

    p(word | context) = Π p(piece) · p(a word begins | context, word) / p(a word begins | context)

p(a word begins) is the sum over all pieces with a space in front. As in `minicons`, punctuation
without a space before it belongs to the word, the first word of a text has no denominator, and a
text ends with the end of a word.
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
from probes.extraction.reading.alignment import Pieces
from probes.extraction.reading.collectors import Collector, ModelProperties
from probes.extraction.reading.padding import PaddedWindows
from probes.extraction.reading.shards import Shard, kept_words, row_of_each_text
from probes.extraction.reading.store import Store
from probes.extraction.reading.views import Text, View
from probes.extraction.reading.windows import Window
from probes.records.header import ModelRecord


class TokenScores(Collector):
    """Scores the pieces of the kept stretches of written texts.

    Parts, with pieces in the order of texts:

    - ``pieces`` (stretches,): number of pieces of each stretch;
    - ``log_p`` (pieces,): log-probability in nats, float32; masked models have only this piece
      masked. NaN if nothing precedes the piece, not even a start token;
    - ``within_word`` (pieces,): log-probability with the later pieces of the word masked as well;
      equal to ``log_p`` for models that are not masked;
    - ``rank`` (pieces,): number of tokens in the vocabulary with a higher probability, plus half
      of the others with an equal one, float32; -1 where ``log_p`` is NaN;
    - ``word_ends`` (pieces,): what the ends of words add to ``log_p``: log p(a word begins) after
      the piece, if one does or the text ends, minus log p(a word begins) before it, if it begins
      one. 0 if the model is masked or its tokenizer does not mark the beginnings of words.
    """

    name = "token scores"
    version: ClassVar[int] = 3
    reads_logits: ClassVar[bool] = True
    after_start: ClassVar[bool] = True
    scores_word_ends: ClassVar[bool] = True

    @property
    def parts(self) -> tuple[str, ...]:
        """The five parts."""
        return "pieces", "log_p", "within_word", "rank", "word_ends"

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """Estimate the bytes of a shard from one piece per three characters."""
        n_pieces = sum(len(part) for x in shard.texts for part in x.words[slice(*x.kept_span)]) // 3
        return 4 * shard.n_rows + 16 * n_pieces

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin a shard with NaN for every piece."""
        self._pieces = pieces
        kept_spans = [
            (x.bounds[t.kept_span[0]], x.bounds[t.kept_span[1]])
            for x, t in zip(pieces, shard.texts, strict=True)
        ]
        self._kept_pieces = kept_spans
        counts = np.array([end - start for start, end in kept_spans], dtype=np.int64)
        self._ends = np.cumsum(counts)
        # Piece p of a text has the row p + shift.
        self._shift = self._ends - counts - [start for start, _ in kept_spans]
        self._counts = [
            np.diff(x.bounds[t.kept_span[0] : t.kept_span[1] + 1])
            for x, t in zip(pieces, shard.texts, strict=True)
        ]
        parts = [x.ids[start:end] for x, (start, end) in zip(pieces, kept_spans, strict=True)]
        self._ids = torch.from_numpy(np.concatenate(parts))
        n = len(self._ids)
        # First with each piece masked alone, then with the later pieces of the word as well; then
        # what follows the last piece of each text.
        n_rows = 2 * n + len(kept_spans)
        self._log_p = torch.full((n_rows,), torch.nan)
        self._rank = torch.full((n_rows,), -1.0)
        self._begins = torch.zeros(n_rows)
        self._lag = 0
        self._starts = np.zeros(0, dtype=bool)

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
        self._lag = int(reader.causal)
        if reader.causal and self.scores_word_ends:
            self._starts = reader.word_starts
        copies: list[Window] = []
        for window in windows:
            piece = window.position - reader.n_prefix + window.first
            row = piece + self._shift[window.text]
            if reader.causal:
                position = window.position
                if self._starts.any() and row[-1] == self._ends[window.text] - 1:
                    position = np.append(position, position[-1] + 1)
                    row = np.append(row, 2 * len(self._ids) + window.text)
                copy = replace(window, position=position, owner=row, share=np.ones(len(row)))
                copies += [copy.part(position > 0)] if (position > 0).any() else []
            else:
                copies += self._masked(window, piece, row, reader)
        return copies

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
        window_end = window.first + len(window.ids) - reader.n_prefix - reader.n_suffix
        end = np.minimum(ends[np.searchsorted(ends, piece, side="right")], window_end)
        masked_spans = zip(window.position, window.position + end - piece, row, strict=True)
        share = np.ones(1)
        for position, stop, number in masked_spans:
            for last, score_row in ((position + 1, number), (stop, number + len(self._ids))):
                if score_row == number or stop > position + 1:
                    ids = window.ids.copy()
                    ids[position:last] = mask_id
                    positions, owner = np.array([position]), np.array([score_row])
                    yield replace(window, ids=ids, position=positions, owner=owner, share=share)

    def positions(self, windows: PaddedWindows) -> torch.Tensor:
        """Positions of masked pieces, or of the tokens before pieces."""
        return windows.position - self._lag

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Score the pieces of one pass."""
        targets = self._ids[windows.word % len(self._ids)]
        for rows, logits in output.blocks():
            own_logits = logits.gather(1, targets[rows, None].to(logits.device))
            total, score_rows = logits.logsumexp(1), windows.word[rows]
            self._log_p[score_rows] = (own_logits.squeeze(1) - total).cpu()
            # Logits above its own, plus half of those equal to it: one step over the vocabulary.
            above = (logits - own_logits).sign_().sum(1)
            self._rank[score_rows] = ((above + logits.shape[1] - 1) / 2).cpu()
            if self._starts.any():
                starts = np.flatnonzero(self._starts[: logits.shape[1]])
                begins = logits.index_select(1, torch.from_numpy(starts).to(logits.device))
                self._begins[score_rows] = (begins.logsumexp(1) - total).cpu()

    def finish(self) -> dict[str, torch.Tensor]:
        """Collected scores of the shard, by part.

        Raises:
            UserError: a log-probability is not finite.
        """
        n = len(self._ids)
        if not self._log_p[self._rank != -1].isfinite().all():
            raise UserError(
                "The language-model head gave a probability that is not a number. The model is "
                "broken, or --dtype is too narrow (try --dtype float32)."
            )
        log_p, within = self._log_p[:n], self._log_p[n : 2 * n]
        return {
            "pieces": torch.from_numpy(np.concatenate(self._counts)).int(),
            "log_p": log_p,
            "within_word": torch.where(within.isnan(), log_p, within),
            "rank": self._rank[:n],
            "word_ends": self._word_ends(),
        }

    def _word_ends(self) -> torch.Tensor:
        word_ends = torch.zeros(len(self._ids))
        if self._starts.any():
            for text, (x, (start, end)) in enumerate(
                zip(self._pieces, self._kept_pieces, strict=True)
            ):
                # A text ends with the end of a word, and begins where no word has ended.
                begins = np.append(self._starts[x.ids], True)[start : end + 1]
                begins[0] &= start > 0
                rows = [*range(start + self._shift[text], end + self._shift[text])]
                log_p = self._begins[[*rows, 2 * len(word_ends) + text]] * torch.from_numpy(begins)
                word_ends[rows] = log_p.diff()
        return word_ends


class LossOfWords(TokenScores):
    """Scores of some words of each text. A masked model reads all of them masked together.

    This resembles the training of such models (Devlin et al. 2019), which masks random pieces.

    Args:
        words: positions of the words to score, by text.
    """

    name = "loss of words"
    scores_word_ends: ClassVar[bool] = False

    def __init__(self, words: Mapping[Text, Ints]) -> None:
        self._words = words

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin a shard, and find the words to score."""
        super().start(shard, pieces)
        is_scored = [np.isin(np.arange(*text.kept_span), self._words[text]) for text in shard.texts]
        self._is_scored = np.concatenate(is_scored)

    def copies(self, windows: Sequence[Window], reader: ModelProperties) -> list[Window]:
        """One copy of each window with pieces of these words. See `TokenScores` for errors."""
        some = [x.part(self._is_scored[x.owner]) for x in windows]
        return super().copies([x for x in some if len(x.position)], reader)

    def _masked(
        self, window: Window, piece: Ints, row: Ints, reader: ModelProperties
    ) -> Iterator[Window]:
        assert reader.mask_id is not None
        ids = window.ids.copy()
        ids[window.position] = reader.mask_id
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
        word_ends: sums of what the ends of words add. Shape (stretches,).
    """

    view: View
    pieces: Ints
    log_p: Floats
    within_word: Floats
    rank: Floats
    word_ends: Floats

    @cached_property
    def first(self) -> Ints:
        """The first stretch of each text. Shape (texts,)."""
        sizes = kept_words(self.view.texts)
        return np.cumsum(sizes) - sizes

    def score_index(self, text: Text, stretch: int = 0) -> int:
        """Index of the score of a text's stretch; stretches are counted from the first kept one."""
        return int(self.first[self.view.index[text]]) + stretch

    def with_word_ends(self) -> ScoredStretches:
        """The scores with the end of a word counted as part of it; see `TokenScores`."""
        log_p, within_word = self.log_p + self.word_ends, self.within_word + self.word_ends
        return replace(self, log_p=log_p, within_word=within_word)

    def surprisal(self, scoring: str) -> Floats:
        """Surprisal of each stretch in nats. Shape (stretches,).

        Args:
            scoring: "log_p" or "within_word".
        """
        surprisals: Floats = -getattr(self, scoring)
        return surprisals


def joined_token_scores(
    view: View, shards: Sequence[Shard], parts: Sequence[Mapping[str, NDArray[Any]]]
) -> ScoredStretches:
    """Join the results of `TokenScores` for the shards of a view, in the order of texts.

    Args:
        parts: collected arrays of each shard.
    """
    sizes = kept_words(view.texts)
    first = np.cumsum(sizes) - sizes
    order = np.repeat(row_of_each_text(shards, sizes) - first, sizes) + np.arange(int(sizes.sum()))
    arrays = {name: np.concatenate([x[name] for x in parts]) for name in TokenScores().parts}
    counts = arrays["pieces"].astype(np.int64)
    stretch = np.repeat(np.arange(len(counts)), counts)
    is_scored = ~np.isnan(arrays["log_p"])

    def summed(part: str) -> Floats:
        values = arrays[part][is_scored].astype(np.float64)
        sums: Floats = np.bincount(stretch[is_scored], values, len(counts)).astype(np.float64)
        return sums[order]

    n_scored = np.bincount(stretch[is_scored], minlength=len(counts))
    rank: Floats = np.full(len(counts), -1.0)
    rank[stretch] = arrays["rank"]
    rank[(counts != 1) | (n_scored != 1)] = -1
    log_p, within_word, word_ends = map(summed, ("log_p", "within_word", "word_ends"))
    return ScoredStretches(view, n_scored[order], log_p, within_word, rank[order], word_ends)


def stored_scores(view: View, stored: Store) -> ScoredStretches:
    """Read the scores of a view from a store."""
    shards = stored.shards(view)
    arrays = {name: stored.arrays(name) for name in TokenScores().parts}
    parts = [{name: arrays[name][i] for name in arrays} for i in range(len(shards))]
    return joined_token_scores(view, shards, parts)
