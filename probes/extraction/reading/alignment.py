"""Alignment of words with their pieces (subwords), by the tokenizer's own word ids.

Texts are tokenised without special tokens; the encoder puts those around each window.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from probes.common.arrays import Ints
from probes.common.errors import UserError
from probes.data.chats import chat_of, texts_of
from probes.extraction.reading.chats import ChatTemplate, Rendered, splitting_alone
from probes.extraction.reading.views import Text

_NONCHARACTER = "\uffff"
"""Prefix for the names of special tokens. Unicode assigns it to no character."""

_LIST, _WORDS_AT_ONCE = 32, 1 << 14
"""Words per text given to the tokenizer, and words per call. Until it is dropped, the tokenizer's
result for a text takes many times the memory of the ids."""

_TEXTS_AT_ONCE = 64
"""Written texts per call."""

_ROOM = 64 << 20
"""Bytes that must be free before a call: a tokenizer that runs out of memory aborts the process."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """A text as subwords.

    Attributes:
        ids: token ids, without special tokens. Shape (pieces,).
        bounds: word w has the pieces `bounds[w]` to `bounds[w + 1]`. Shape (words + 1,).
        unknown: number of kept words that contain the unknown token, which also replaces words
            without a piece. A stretch of a written text counts if half of its pieces are unknown.
        token_words: for a written text, the number of each piece's word, by the tokenizer's own
            words. Shape (pieces,).
        rendered: for a chat, what its template writes.
        letters: for a written text, the first letter and the end of each piece. Shape (pieces, 2).
    """

    ids: Ints
    bounds: Ints
    unknown: int
    token_words: Ints | None = None
    letters: Ints | None = None
    rendered: Rendered | None = None


@dataclass(frozen=True, slots=True)
class TokenTypes:
    """Token types, as the tokenizer assigns them.

    Attributes:
        before, text, after: types of the special tokens before a text, of the text itself, and of
            the special tokens after it.
    """

    before: Sequence[int] = ()
    text: int = 0
    after: Sequence[int] = ()

    @property
    def highest(self) -> int:
        """The largest token type."""
        return max([*self.before, self.text, *self.after])

    def of(self, length: int) -> Ints:
        """Types of a window of `length` tokens, special ones included. Shape (length,)."""
        types = np.full(length, self.text, dtype=np.int64)
        types[: len(self.before)] = self.before
        types[length - len(self.after) :] = self.after
        return types


class PairTemplate(NamedTuple):
    """Places of special tokens (-1) and of two segments (0, 1), with ids and token types."""

    segment: Ints
    ids: Ints
    types: Ints

    def filled(self, pieces: Ints, second: int) -> tuple[Ints, Ints, Ints]:
        """Ids and types of all tokens, and the places of the pieces among them.

        Args:
            pieces: ids of both segments' pieces; the second begins with number `second`.
        """
        sizes = np.array([second, len(pieces) - second])
        places = np.repeat(
            np.arange(len(self.ids)), np.where(self.segment < 0, 1, sizes[self.segment])
        )
        ids, of_pieces = self.ids[places], np.flatnonzero(self.segment[places] >= 0)
        ids[of_pieces] = pieces
        return ids, self.types[places], of_pieces


class WordTokenizer:
    """A fast tokenizer for texts that are already split into words.

    Every word, even the first, is split as in running text after a space, so that a word has the
    same pieces everywhere. A written text is split as a whole, with no space before it. Truncation,
    padding and dropout of merges are switched off. Words that look like special tokens (``[SEP]``,
    ``</s>``) are treated as text. The given tokenizer is not changed.

    Attributes:
        prefix, suffix: ids of the special tokens around a text.
        types: token types.
        mask_id: id of the mask token; None if there is none.
        start_id: id of a start token for decoders whose tokenizer adds none: the beginning-of-text
            token, or else the end-of-text token; None without both.
        highest_id: the largest id that a text can yield, special tokens included.
        chats: the chat template, and special tokens in texts.
        dropout: share of merges that the tokenizer would skip at random.

    Raises:
        UserError: the tokenizer is not a fast one, or splits single words differently from running
            text.
    """

    def __init__(self, tokenizer: Any) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise UserError(
                f"{type(tokenizer).__name__} is not a fast tokenizer and gives no word ids; save a "
                "fast one (tokenizer.json) in the model's folder."
            )
        self.dropout: float = getattr(tokenizer.backend_tokenizer.model, "dropout", None) or 0.0
        self._backend, text_id = _for_text(tokenizer.backend_tokenizer)
        self._unk_id: int | None = tokenizer.unk_token_id
        self.mask_id: int | None = tokenizer.mask_token_id
        starts = tokenizer.bos_token_id, tokenizer.eos_token_id
        self.start_id: int | None = next((i for i in starts if i is not None), None)
        self.chats = ChatTemplate(tokenizer)
        self._space = self._word_prefix()
        self._processor = tokenizer.backend_tokenizer.post_processor
        self.prefix, self.suffix, self.types = self._around(self._processor)
        special_ids = (self._unk_id, self.mask_id, *self.prefix, *self.suffix)
        self.highest_id = max(text_id, *(i for i in special_ids if i is not None), 0)

    def __call__(self, texts: Sequence[Text]) -> list[Pieces]:
        """Split texts into subwords; each distinct word is tokenised once.

        Either all texts are written ones, or none is.

        Raises:
            UserError: a word yields no subword and there is no unknown token; or word ids are out
                of order.
            MemoryError: too little memory is free.
        """
        if texts and texts[0].written:
            return self._split_written(texts)
        index: dict[str, int] = {}
        flat = [index.setdefault(word, len(index)) for text in texts for word in text.words]
        words = np.array(flat, dtype=np.int64)
        lengths = np.array([len(text.words) for text in texts], dtype=np.int64)
        ends = np.cumsum(lengths)
        starts = ends - lengths
        masked = np.array(
            [start + t.mask for start, t in zip(starts, texts, strict=True) if t.mask is not None],
            dtype=np.int64,
        )
        ids, counts = self._split(list(index))
        missing = counts[words] == 0
        missing[masked] = False  # the mask token stands there, whatever the word is
        if missing.any() and self._unk_id is None:
            odd = list(index)[words[missing.argmax()]]
            raise UserError(
                f"The word {odd!r} yields no subword, and this tokenizer has "
                "no unknown token to replace it. Remove the word from the corpus."
            )
        has_unknown = counts == 0
        has_unknown[np.repeat(np.arange(len(counts)), counts)[ids == self._unk_id]] = True
        unknown = has_unknown[words]
        unknown[masked] = False
        # After the pieces of all words come the unknown token and the mask.
        first = np.append(np.where(counts == 0, len(ids), np.cumsum(counts) - counts), len(ids) + 1)
        counts = np.append(np.maximum(counts, 1), 1)
        ids = np.append(ids, [self._unk_id or 0, self.mask_id or 0])
        words[masked] = len(index)
        bounds = np.append(0, np.cumsum(counts[words]))
        ids = ids[np.repeat(first[words] - bounds[:-1], counts[words]) + np.arange(bounds[-1])]
        pieces = []
        for text, start, end in zip(texts, starts, ends, strict=True):
            edges = bounds[start : end + 1] - bounds[start]
            rows = slice(start + text.kept_span[0], start + text.kept_span[1])
            pieces.append(Pieces(ids[bounds[start] : bounds[end]], edges, int(unknown[rows].sum())))
        return pieces

    def tokens(self, ids: Ints) -> list[str]:
        """Tokens as the vocabulary writes them."""
        names = (self._backend.id_to_token(int(i)) or "" for i in ids)
        return [name.removeprefix(_NONCHARACTER) for name in names]

    def _split_written(self, texts: Sequence[Text]) -> list[Pieces]:
        """Split written texts; a piece belongs to the stretch of its first letter."""
        pieces = []
        for first in range(0, len(texts), _TEXTS_AT_ONCE):
            part = texts[first : first + _TEXTS_AT_ONCE]
            chats = [self._rendered(text) for text in part]
            strings = [r.text if r else "".join(t.words) for r, t in zip(chats, part, strict=True)]
            backend = self.chats.backend if part[0].rendered else self._backend
            np.empty(_ROOM, dtype=np.uint8)  # see `_split`
            encodings = backend.encode_batch(strings, add_special_tokens=False)
            for text, chat, string, encoding in zip(part, chats, strings, encodings, strict=True):
                if not encoding.ids and self._unk_id is None:
                    raise UserError(
                        f"The text {string[:40]!r} yields no subword, and this tokenizer has no "
                        "unknown token to replace it. Remove the text from the corpus."
                    )
                owner = stretch_of_pieces(encoding.offsets, text.words, rendered=text.rendered)
                if not encoding.ids:
                    owner = np.array([text.kept_span[0]])
                ids = np.array(encoding.ids or [self._unk_id or 0], dtype=np.int64)
                bounds = np.searchsorted(owner, np.arange(len(text.words) + 1))
                token_words = np.array([-1 if x is None else x for x in encoding.word_ids or [0]])
                parts = (ids[bounds[i] : bounds[i + 1]] for i in range(*text.kept_span))
                unknown = sum(0 < len(x) <= 2 * int((x == self._unk_id).sum()) for x in parts)
                letters = np.array(encoding.offsets or [(0, len(string))], dtype=np.int64)
                pieces.append(Pieces(ids, bounds, unknown, token_words, letters, chat))
        return pieces

    def _rendered(self, text: Text) -> Rendered | None:
        """A chat as its template writes it; None for other texts."""
        if not text.chat:
            return None
        for number, content in enumerate([] if text.special else texts_of(text.words[0]), start=1):
            self.chats.require_plain(content, f"message {number} of a chat")
        for message in [] if text.special else chat_of(text.words[0])[0]:
            self.chats.require_plain(message["role"], "the role of a message")
        return self.chats.render(text.words[0])

    def _split(self, words: Sequence[str]) -> tuple[Ints, Ints]:
        """The pieces of all words, concatenated, and the number of pieces of each word."""
        ids, counts = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for first in range(0, len(words), _WORDS_AT_ONCE):
            part = words[first : first + _WORDS_AT_ONCE]
            lists = [part[i : i + _LIST] for i in range(0, len(part), _LIST)]
            np.empty(_ROOM, dtype=np.uint8)  # only reserves addresses; fails if there are none
            encodings = self._backend.encode_batch(
                [[self._space + word for word in word_list] for word_list in lists],
                is_pretokenized=True,
                add_special_tokens=False,
            )
            for word_list, encoding in zip(lists, encodings, strict=True):
                owner = word_of_pieces(encoding.word_ids, word_list)
                ids.append(np.asarray(encoding.ids, dtype=np.int64))
                counts.append(np.bincount(owner, minlength=len(word_list)))
        return np.concatenate(ids), np.concatenate(counts)

    @cached_property
    def word_starts(self) -> NDArray[np.bool_]:
        """True for pieces that begin a word, by the space before it. Shape (ids,).

        Byte-level vocabularies write the space as Ġ, SentencePiece as ▁. In all others, pieces do
        not begin with a space.
        """
        words = self._backend.encode("we saw", add_special_tokens=False).tokens
        space = words[len(self._backend.encode("we", add_special_tokens=False).ids)][:1]
        vocabulary = self._backend.get_vocab()
        starts = np.zeros(max(vocabulary.values()) + 1, dtype=bool)
        if space in ("Ġ", "▁"):
            starts[[i for piece, i in vocabulary.items() if piece.startswith(space)]] = True
        return starts

    @cached_property
    def pair(self) -> PairTemplate | None:
        """The tokenizer's own template of two segments; None if it puts nothing between them."""
        if self._processor is None:
            return None
        word = self._backend.encode("the", add_special_tokens=False)
        pair = self._processor.process(word, word)
        segment = np.array([-1 if x is None else x for x in pair.sequence_ids])
        first = (segment < 0) | (np.diff(segment, prepend=-1) != 0)
        template = PairTemplate(*(np.array(x)[first] for x in (segment, pair.ids, pair.type_ids)))
        return template if np.ptp(np.flatnonzero(template.segment >= 0)) > 1 else None

    def _word_prefix(self) -> str:
        """Text to put before single words, so that they are split as in running text.

        Byte-level and SentencePiece vocabularies mark a word by the space before it. Tokenizers
        differ in whether they add that space to single words.
        """

        def ids(words: list[str] | str) -> list[int]:
            split = not isinstance(words, str)
            encoding = self._backend.encode(words, is_pretokenized=split, add_special_tokens=False)
            return list(encoding.ids)

        # Skip the first word, which has no space before it.
        text = ids("we saw the birds")
        for space in ("", " "):
            words = [space + word for word in ("we", "saw", "the", "birds")]
            if ids(words)[len(ids(words[:1])) :] == text[len(ids("we")) :]:
                return space
        raise UserError(
            "This tokenizer is not supported: with or without a space before it, a single word is "
            "split differently from running text, so word vectors would not be the model's own."
        )

    def _around(self, post_processor: Any) -> tuple[list[int], list[int], TokenTypes]:
        """The ids of the special tokens before and after a text, and the value of `types`."""
        if post_processor is None:
            return [], [], TokenTypes()
        bare = self._backend.encode("the", add_special_tokens=False)
        full = post_processor.process(bare)
        ids, kinds = full.ids, full.type_ids
        for start in range(len(ids) - len(bare.ids) + 1):
            end = start + len(bare.ids)
            if ids[start:end] == bare.ids:
                types = TokenTypes(kinds[:start], kinds[start], kinds[end:])
                return ids[:start], ids[end:], types
        raise UserError(
            "This tokenizer is not supported: it changes a text's subwords when it adds special "
            "tokens."
        )


def _for_text(backend: Tokenizer) -> tuple[Tokenizer, int]:
    """A copy of the tokenizer that treats everything as text, and the largest id it can yield.

    Special tokens get names that no text contains. `encode_special_tokens` is not enough: a
    Unigram vocabulary has ``</s>`` among its pieces and still finds it in text.
    """
    spec = splitting_alone(backend)
    model, added = spec["model"], spec["added_tokens"]
    hidden = {
        token["content"]: _NONCHARACTER + token["content"] for token in added if token["special"]
    }
    ids = [token["id"] for token in added if not token["special"]]
    if isinstance(model["vocab"], dict):
        ids += [i for token, i in model["vocab"].items() if token not in hidden]
        model["vocab"] = {hidden.get(token, token): i for token, i in model["vocab"].items()}
    else:
        ids += [i for i, (token, _) in enumerate(model["vocab"]) if token not in hidden]
        model["vocab"] = [[hidden.get(token, token), score] for token, score in model["vocab"]]
    if model.get("unk_token") is not None:
        model["unk_token"] = hidden.get(model["unk_token"], model["unk_token"])
    for token in added:
        token["content"] = hidden.get(token["content"], token["content"])
    return Tokenizer.from_str(json.dumps(spec)), max(ids, default=0)


def word_of_pieces(word_ids: Sequence[int | None], words: Sequence[str]) -> Ints:
    """Number of each piece's word. Shape (pieces,).

    Raises:
        UserError: a piece belongs to no word, or the words' pieces are out of order.
    """
    owner = np.array([-1 if word is None else word for word in word_ids], dtype=np.int64)
    if (owner < 0).any():
        fault = f"piece {int(np.argmin(owner))} belongs to no word"
    elif (np.diff(owner) < 0).any():
        fault = f"pieces of word {int(owner[1:][np.argmin(np.diff(owner))])} lie after later words'"
    else:
        return owner
    raise UserError(
        f"This tokenizer's pieces do not align with the words of {' '.join(words)!r}: {fault}."
    )


def stretch_of_pieces(
    offsets: Sequence[tuple[int, int]], stretches: Sequence[str], *, rendered: bool = False
) -> Ints:
    """Number of the stretch that contains each piece's first letter. Shape (pieces,).

    Args:
        offsets: start and end of each piece in the text.
        stretches: the parts of the text; empty ones have no piece.
        rendered: count a space as a letter: before a message, it may belong to the template.

    Raises:
        UserError: the pieces are out of order.
    """
    text = "".join(stretches)
    if len(stretches) == 1:
        return np.zeros(len(offsets), dtype=np.int64)
    # For each character, the position of the next one that is not a space: pieces may begin with
    # the space before their word.
    letter = np.where([char.isspace() for char in text], len(text), np.arange(len(text)))
    letter = np.append(np.minimum.accumulate(letter[::-1])[::-1], len(text))
    starts = np.array([start for start, _ in offsets], dtype=np.int64)
    starts = starts if rendered else letter[starts]
    ends = np.cumsum([len(part) for part in stretches])
    owner: Ints = np.minimum(np.searchsorted(ends, starts, side="right"), len(stretches) - 1)
    if (np.diff(owner) < 0).any():
        raise UserError(f"This tokenizer's pieces of {text[:60]!r} are out of order.")
    return owner
