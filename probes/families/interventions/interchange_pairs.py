"""Pairs of prefixes that differ in one word and in the continuation that is right after them.

They are made from minimal pairs. *The author that the guards like* is followed by *laughs* rather
than *laugh*, and *the authors that the guards like* by *laugh* rather than *laughs*.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from probes.data.items import WHOLE, Item
from probes.extraction.reading.views import Text

if TYPE_CHECKING:
    from probes.extraction.reading.alignment import Pieces
    from probes.measurements.context import ModelContext

FEWEST_PAIRS = 5
"""Number of pairs to fit to, and of those to read, that a paradigm must have."""

Words = tuple[str, ...]

Choice = tuple[Words, str, str, Words]
"""Words before a continuation, the right one, the wrong one, and the words after it. For a model
that reads from left to right, nothing is after it."""


class Contrast(NamedTuple):
    """Two prefixes that differ in one word, and their continuations.

    Attributes:
        base, source: words of the prefixes.
        answers: pairs of words; one is right after the base, the other after the source.
        after: words after the continuation; empty for models that read from left to right.
        side: class of the base, such as 0 for singular; that of the source is the other.
    """

    base: Words
    source: Words
    answers: tuple[tuple[str, str], ...]
    after: Words
    side: int = 0

    @property
    def changed(self) -> tuple[str, str]:
        """The word in which they differ."""
        (differ,) = (x for x in zip(self.base, self.source, strict=True) if x[0] != x[1])
        return differ

    def exchanged(self) -> Contrast:
        """The contrast with base and source exchanged."""
        answers = tuple((source, base) for base, source in self.answers)
        return Contrast(self.source, self.base, answers, self.after, 1 - self.side)

    def texts(self) -> list[tuple[Text, Text, Text]]:
        """For each pair of answers, the base with either and the source with its own."""

        def text(before: Words, word: str) -> Text:
            return Text((" ".join((*before, word, *self.after)),), (0, 1), written=True)

        return [
            (text(self.base, of_base), text(self.base, of_source), text(self.source, of_source))
            for of_base, of_source in self.answers
        ]


def choice(item: Item, causal: bool) -> Choice | None:
    """The choice that a minimal pair makes; None if it does not begin with words in common.

    For a masked model, the words after the continuation must be the same.
    """
    if item.predictions != (WHOLE,):
        return None
    right, wrong = ("".join(item.texts[x]).split() for x in ("good", "bad"))
    n = _first_difference(right, wrong)
    if not n or not (causal or right[n + 1 :] == wrong[n + 1 :]):
        return None
    return tuple(right[:n]), right[n], wrong[n], () if causal else tuple(right[n + 1 :])


def _first_difference(first: Sequence[object], second: Sequence[object]) -> int | None:
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (x, y) in pairs if x != y), None)


def contrasts(choices: Iterable[Choice]) -> list[Contrast]:
    """Prefixes of one paradigm that differ in one word and want different continuations.

    A word is paired with the one that shares the most letters at the beginning, such as *author*
    with *authors*.
    """
    words_by_context: dict[tuple[Any, ...], tuple[dict[str, None], dict[str, None]]]
    words_by_context = defaultdict(lambda: ({}, {}))
    for before, good, bad, after in choices:
        low, high = sorted((good, bad))
        for i, word in enumerate(before):
            key = low, high, after, before[:i], before[i + 1 :]
            words_by_context[key][good == high][word] = None
    answers: dict[tuple[Words, Words, Words], dict[tuple[str, str], None]] = defaultdict(dict)
    for (low, high, after, head, tail), (wants_low, wants_high) in words_by_context.items():
        partners = sorted(wants_high.keys() - wants_low.keys())
        for word in sorted(wants_low.keys() - wants_high.keys()) if partners else ():
            partner = max(partners, key=lambda x: len(os.path.commonprefix([x, word])))  # noqa: RUF071
            two = sorted([((*head, word, *tail), low), ((*head, partner, *tail), high)])
            (base, base_answer), (source, source_answer) = two
            answers[base, source, after][base_answer, source_answer] = None
    return [Contrast(*key[:2], tuple(x), key[2]) for key, x in sorted(answers.items())]


def with_sides(all_contrasts: Sequence[Contrast]) -> list[Contrast]:
    """Contrasts with the class of their base.

    Classes follow from the words: *author* wants *laughs*, as *pilot* does, which wants *is*. Only
    the largest set of contrasts whose words are so connected is kept, and of these the ones that
    contradict no earlier one.
    """

    def links_of(contrast: Contrast) -> Iterator[tuple[Any, Any, int]]:
        first, second = contrast.changed
        yield first, second, 1
        for answers in contrast.answers:
            for word, answer in zip((first, second), answers, strict=True):
                yield word, ("answer", answer), 0

    links: dict[Any, list[tuple[Any, int]]] = defaultdict(list)
    for contrast in all_contrasts:
        for first, neighbour, differ in links_of(contrast):
            links[first].append((neighbour, differ))
            links[neighbour].append((first, differ))
    side: dict[Any, tuple[int, int]] = {}  # the set, and the class in it
    for number, start in enumerate(links):
        waiting = [] if start in side else [start]
        side.setdefault(start, (number, 0))
        for node in waiting:  # grows
            for neighbour, differ in links[node]:
                if neighbour not in side:
                    side[neighbour] = number, side[node][1] ^ differ
                    waiting.append(neighbour)
    sets = Counter(side[x.changed[0]][0] for x in all_contrasts)
    return [
        x._replace(side=side[x.changed[0]][1])
        for x in all_contrasts
        if side[x.changed[0]][0] == max(sets, key=sets.__getitem__)
        and all(side[a][1] ^ side[b][1] == differ for a, b, differ in links_of(x))
    ]


def train_and_test_contrasts(
    all_contrasts: Sequence[Contrast],
) -> tuple[list[Contrast], list[Contrast]]:
    """Contrasts for train and for test; each prefix occurs once.

    The order is random, but begins with one contrast for each pair of words in which they differ.
    Words in which prefixes differ are either in train or in test, unless there is one pair of them;
    contrasts of a word of each are left out. Either prefix may be the base.
    """
    rng = np.random.default_rng(0)
    words = sorted({x.changed for x in all_contrasts})
    in_test: dict[str, bool] = {}
    half, order = (len(words) + 1) // 2, rng.permutation(len(words)).tolist()
    for number in sorted(range(len(words)), key=lambda x: x % half):  # in turn
        for word in words[order[number]]:  # may have several partners
            in_test.setdefault(word, number < half)
    parts: tuple[list[Contrast], list[Contrast]] = [], []
    used: set[Words] = set()
    for i in rng.permutation(len(all_contrasts)).tolist():
        exchange = rng.integers(2)
        first, second = (in_test[word] for word in all_contrasts[i].changed)
        if first == second and used.isdisjoint(all_contrasts[i][:2]):
            used.update(all_contrasts[i][:2])
            part = first if len(words) > 1 else len(used) // 2 % 2
            parts[part].append(all_contrasts[i].exchanged() if exchange else all_contrasts[i])
    return _in_turn(parts[0]), _in_turn(parts[1])


def _in_turn(all_contrasts: Sequence[Contrast]) -> list[Contrast]:
    """One contrast for each pair of words, then a second one for each, and so on."""
    of_words: dict[frozenset[str], list[Contrast]] = defaultdict(list)
    for contrast in all_contrasts:
        of_words[frozenset(contrast.changed)].append(contrast)
    return [x for turn in zip_longest(*of_words.values()) for x in turn if x]


@dataclass(frozen=True)
class Pair:
    """A base and a source: two prompts for a language model.

    Attributes:
        base, source: texts that begin with the prompts.
        side: see `Contrast`.
        end: number of tokens before the continuation.
        position: number of tokens before the one that differs.
        answers: tokens that are right after the base and after the source, in pairs.
        tokens: tokens of base and source, for a causal model those before the continuation; -1 for
            the continuation in others.
        words: the tokens as they are written; the one that differs in both ways.
        changed: the word in which the prompts differ, of base and source.
    """

    base: Text
    source: Text
    side: int
    end: int
    position: int
    answers: tuple[tuple[int, int], ...]
    tokens: tuple[tuple[int, ...], ...]
    words: Words
    changed: tuple[str, str]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers that aligned pairs have in common: end, place and number of tokens."""
        return self.end, self.position, len(self.words)


def aligned_pair(contrast: Contrast, pieces: Mapping[Text, Pieces], causal: bool) -> Pair | None:
    """The pair with its tokens; None unless prompts differ in one token.

    Continuations that do not differ in the token right after the prompt of the first are left out.

    Args:
        pieces: tokens of the texts; those that are too long for the model are missing.
    """
    pair: Pair | None = None
    for texts in contrast.texts():
        if not all(text in pieces for text in texts):
            continue
        right, wrong, source = (pieces[text].ids.tolist() for text in texts)
        end, position = _first_difference(right, wrong), _first_difference(right, source)
        if end is None or position is None or position >= end:
            continue
        same = slice(position + 1, end if causal else None)
        ids = [[*x[:end], -1, *x[end + 1 :]] for x in (right, wrong, source)]
        equal = ids[0][same] == ids[2][same] and (causal or ids[0] == ids[1])
        if not equal or source[end : end + 1] != wrong[end : end + 1]:
            continue
        tokens = tuple(tuple(x[:end] if causal else x) for x in (ids[0], ids[2]))
        answers = ((right[end], wrong[end]),)
        if pair is None:
            ways = [_as_written(text, pieces[text], len(tokens[0])) for text in texts[::2]]
            ways[0][position] = "/".join(sorted({way[position] for way in ways}))
            if not causal:
                ways[0][end] = "[…]"
            fields = texts[0], texts[2], contrast.side, end, position, answers, tokens
            pair = Pair(*fields, tuple(ways[0]), contrast.changed)
        elif pair.tokens == tokens and answers[0] not in pair.answers:
            pair = replace(pair, answers=pair.answers + answers)
    return pair


def _as_written(text: Text, pieces: Pieces, n: int) -> list[str]:
    """The first tokens of a text as they are written."""
    assert pieces.letters is not None
    return [text.words[0][slice(*part)].strip() for part in pieces.letters[:n].tolist()]


def pieces_of(context: ModelContext, texts: Iterable[Text]) -> dict[Text, Pieces]:
    """Pieces of texts, without those that are too long for the model."""
    tokenizer = context.tokenizer
    assert tokenizer is not None, "given vectors have no language-model head"
    distinct = list(dict.fromkeys(texts))
    # A decoder whose tokenizer adds no start token reads one all the same.
    starts_alone = context.model.causal and tokenizer.start_id is not None
    n_prefix = len(tokenizer.prefix) or int(starts_alone)
    room = context.model.window - n_prefix - len(tokenizer.suffix)
    pieces = zip(distinct, tokenizer(distinct), strict=True)
    return {text: of_text for text, of_text in pieces if len(of_text.ids) <= room}


def contrasts_by_paradigm(
    items: Sequence[Item], causal: bool, n_train: int, n_test: int
) -> dict[str, list[list[Contrast]]]:
    """Contrasts for train and for test, by paradigm; more than are wanted, as shapes differ."""
    choices: dict[str, list[Choice | None]] = defaultdict(list)
    for item in items:
        choices[item.paradigm].append(choice(item, causal))
    parts = {}
    for paradigm, of_paradigm in choices.items():
        train, test = train_and_test_contrasts(with_sides(contrasts(filter(None, of_paradigm))))
        parts[paradigm] = [train[: 8 * n_train], test[: 8 * n_test]]
    return parts


def aligned_pairs(
    parts: Sequence[Sequence[Contrast]],
    pieces: Mapping[Text, Pieces],
    causal: bool,
    sizes: Sequence[int],
) -> list[list[Pair]]:
    """Pairs for train and for test, all of the commonest shape; at most so many of each."""
    pairs = [[x for x in (aligned_pair(y, pieces, causal) for y in part) if x] for part in parts]
    shapes = Counter(pair.shape for part in pairs for pair in part)
    shape = max(shapes, key=lambda x: (shapes[x], x), default=None)
    return [
        [pair for pair in part if pair.shape == shape][:size]
        for part, size in zip(pairs, sizes, strict=True)
    ]
