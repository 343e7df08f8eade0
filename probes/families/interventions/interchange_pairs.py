"""Pairs of prefixes that differ in one word and in the continuation that is right after them.

They are made from minimal pairs. *The author that the guards like* is followed by *laughs* rather
than *laugh*, and *the authors that the guards like* by *laugh* rather than *laughs*.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from probes.data.items import WHOLE, Item
from probes.extraction.views import Text

if TYPE_CHECKING:
    from probes.extraction.alignment import Pieces

_COMPARED = re.compile(
    r"[\[\s]*\(\s*(\*|\d+)\s*;\s*%([^%]+)%\s*\)\s*([<>])\s*\(\s*\1\s*;\s*%([^%]+)%\s*\)[\]\s]*"
)
"""A comparison of the surprisals of one region under two conditions."""

Words = tuple[str, ...]


class Choice(NamedTuple):
    """A prefix and two continuations.

    Attributes:
        before: words before the continuation.
        good, bad: the next word, if right and if wrong.
        after: words after it; empty for models that read from left to right.
    """

    before: Words
    good: str
    bad: str
    after: Words


class Contrast(NamedTuple):
    """Two prefixes that differ in one word.

    Attributes:
        prefixes: both, in alphabetical order. In the pairs that are made of it, the base may be
            either of them.
        answers: pairs of continuations; each is right after the prefix in the same place.
        after: see `Choice`.
    """

    prefixes: tuple[Words, Words]
    answers: tuple[tuple[str, str], ...]
    after: Words

    @property
    def changed(self) -> tuple[str, str]:
        """The word in which they differ, of each prefix."""
        ((one, other),) = {x for x in zip(*self.prefixes, strict=True) if x[0] != x[1]}
        return one, other


def choices(item: Item, causal: bool) -> Iterator[Choice]:
    """The choices between two continuations of one prefix that an item's predictions make.

    For a masked model, the words after the continuation must be the same.
    """
    for formula in item.predictions:
        parts = [WHOLE] if formula == WHOLE else formula.split("&")
        for match in filter(None, map(_COMPARED.fullmatch, parts)):
            region, one, relation, other = match.groups()
            good, bad = (one, other) if relation == "<" else (other, one)
            right, wrong = ("".join(item.texts[x]).split() for x in (good, bad))
            n = next((i for i, x in enumerate(zip(right, wrong, strict=False)) if x[0] != x[1]), 0)
            end = None if region == "*" else int(region)
            in_region = n < len("".join(item.texts[good][:end]).split())
            if n and in_region and (causal or right[n + 1 :] == wrong[n + 1 :]):
                after = () if causal else tuple(right[n + 1 :])
                yield Choice(tuple(right[:n]), right[n], wrong[n], after)


def contrasts(given: Iterable[Choice]) -> list[Contrast]:
    """Prefixes of one paradigm that differ in one word and want different continuations.

    A word is paired with the one that shares the most letters at the beginning, such as *author*
    with *authors*.
    """
    alike: dict[tuple[object, ...], tuple[dict[str, None], dict[str, None]]]
    alike = defaultdict(lambda: ({}, {}))
    for before, good, bad, after in given:
        low, high = sorted((good, bad))
        for i, word in enumerate(before):
            rest = before[:i], before[i + 1 :]
            alike[low, high, after, rest][good == high][word] = None
    found: dict[tuple[tuple[Words, Words], Words], dict[tuple[str, str], None]] = defaultdict(dict)
    for (*pair, after, (head, tail)), (wants_low, wants_high) in alike.items():  # type: ignore[misc]
        others = sorted(wants_high.keys() - wants_low.keys())
        for word in sorted(wants_low.keys() - wants_high.keys()) if others else ():
            other = max(others, key=lambda x: len(os.path.commonprefix([x, word])))  # noqa: RUF071
            two = sorted([((*head, word, *tail), pair[0]), ((*head, other, *tail), pair[1])])
            (one, answer), (second, rival) = two
            found[(one, second), after][answer, rival] = None
    return [Contrast(prefixes, tuple(x), after) for (prefixes, after), x in sorted(found.items())]


def with_sides(given: Sequence[Contrast]) -> list[tuple[Contrast, int]]:
    """Contrasts with the class of their first prefix, such as singular (0) or plural (1).

    Classes follow from the words: *author* wants *laughs*, as *pilot* does, which wants *is*. Only
    the largest set of contrasts whose words are so connected is kept, and of these the ones that
    contradict no earlier one.
    """
    links: dict[tuple[str, str], list[tuple[tuple[str, str], int]]] = defaultdict(list)

    def own(contrast: Contrast) -> list[tuple[tuple[str, str], tuple[str, str], int]]:
        one, other = (("word", word) for word in contrast.changed)
        found = [(one, other, 1)]
        for answer, rival in contrast.answers:
            found += [(one, ("answer", answer), 0), (other, ("answer", rival), 0)]
        return found

    for one, other, differ in chain.from_iterable(map(own, given)):
        links[one].append((other, differ))
        links[other].append((one, differ))
    side: dict[tuple[str, str], tuple[int, int]] = {}
    for number, start in enumerate(links):
        waiting = [] if start in side else [start]
        side.setdefault(start, (number, 0))
        for node in waiting:  # grows
            for other, differ in links[node]:
                if other not in side:
                    side[other] = number, side[node][1] ^ differ
                    waiting.append(other)
    sets = Counter(side["word", x.changed[0]][0] for x in given)
    largest = max(sets, key=sets.__getitem__, default=None)
    return [
        (x, side["word", x.changed[0]][1])
        for x in given
        if side["word", x.changed[0]][0] == largest
        and all(side[a][1] ^ side[b][1] == differ for a, b, differ in own(x))
    ]


@dataclass(frozen=True)
class Pair:
    """A base and a source: two prompts for a language model.

    Attributes:
        base, source: texts that begin with the prompts.
        side: class of the base, 0 or 1; that of the source is the other.
        end: number of tokens before the continuation.
        place: number of tokens before the one that differs.
        answers: tokens that are right after the base and after the source, in pairs.
        tokens: tokens of base and source; for a causal model those before the continuation.
        words: the tokens as they are written; the one that differs in both ways.
    """

    base: Text
    source: Text
    side: int
    end: int
    place: int
    answers: tuple[tuple[int, int], ...]
    tokens: tuple[tuple[int, ...], tuple[int, ...]]
    words: Words

    @property
    def shape(self) -> tuple[int, int, int]:
        """What must be equal for pairs to be aligned token by token."""
        return self.end, self.place, len(self.words)


class Candidate(NamedTuple):
    """A contrast with the prefix that is the base, before its words are split into tokens.

    Attributes:
        first: the prefix of the base in `Contrast.prefixes`, 0 or 1.
        side: class of the base.
    """

    contrast: Contrast
    first: int
    side: int

    def text(self, source: bool, answer: tuple[str, str], of_source: bool) -> Text:
        """The text of base or source with the continuation that is right after one of them."""
        before = self.contrast.prefixes[self.first ^ source]
        words = *before, answer[self.first ^ of_source], *self.contrast.after
        return Text((" ".join(words),), (0, 1), written=True)

    def texts(self) -> Iterator[Text]:
        """All texts that `aligned` looks at."""
        for answer in self.contrast.answers:
            yield from (self.text(*x) for x in self._wanted(answer))

    def _wanted(self, answer: tuple[str, str]) -> Iterator[tuple[bool, tuple[str, str], bool]]:
        yield from ((False, answer, False), (False, answer, True), (True, answer, True))

    def aligned(self, pieces: Mapping[Text, Pieces], causal: bool) -> Pair | None:
        """The pair with its tokens; None unless prompts differ in one token.

        Continuations that do not differ in the token right after the shortest prompt are left out.

        Args:
            pieces: tokens of the texts; those that are too long for the model are missing.
        """
        found: Pair | None = None
        for answer in self.contrast.answers:
            texts = [self.text(*x) for x in self._wanted(answer)]
            if not all(text in pieces for text in texts):
                continue
            right, wrong, source = (tuple(pieces[text].ids.tolist()) for text in texts)
            pairs = enumerate(zip(right, wrong, strict=False))
            end = next((i for i, x in pairs if x[0] != x[1]), 0)
            alike = len(source) > end and source[end] == wrong[end] if end else False
            if not causal:
                alike = alike and right[end + 1 :] == wrong[end + 1 :] == source[end + 1 :]
            differ = [i for i, x in enumerate(zip(right, source, strict=False)) if x[0] != x[1]]
            if not alike or len(differ) < 2 or differ[1] != end:
                continue  # they differ in one token before the continuation, and in that
            until = end if causal else None
            tokens = right[:until], source[:until]
            if not causal:
                tokens = tuple((*x[:end], -1, *x[end + 1 :]) for x in tokens)  # type: ignore[assignment]
            answers = ((right[end], wrong[end]),)
            if found is None:
                words = _as_written(texts[0], texts[2], pieces, differ[0], len(tokens[0]))
                words = words if causal else (*words[:end], "[…]", *words[end + 1 :])
                found = Pair(
                    texts[0], texts[2], self.side, end, differ[0], answers, tokens, words
                )  # fmt: skip
            elif found.tokens == tokens and answers[0] not in found.answers:
                found = replace(found, answers=found.answers + answers)
        return found


def _as_written(
    base: Text, source: Text, pieces: Mapping[Text, Pieces], place: int, n: int
) -> Words:
    """The tokens of a pair as they are written."""
    letters = [pieces[text].letters for text in (base, source)]
    ways = [
        [text.words[0][slice(*part)].strip() for part in of[:n].tolist()]
        for text, of in zip((base, source), letters, strict=True)
        if of is not None
    ]
    return tuple(
        "/".join(sorted({way[i] for way in ways})) if i == place else ways[0][i] for i in range(n)
    )


def drawn(given: Sequence[tuple[Contrast, int]], seed: int = 0) -> tuple[list[Candidate], ...]:
    """Candidates for train and for test, in random order; each prefix occurs once.

    Words in which prefixes differ are either in train or in test, if there are several pairs of
    them.
    """
    rng = np.random.default_rng(seed)
    words = sorted({contrast.changed for contrast, _ in given})
    for_test = {words[i] for i in rng.permutation(len(words))[: (len(words) + 1) // 2]}
    parts: tuple[list[Candidate], list[Candidate]] = [], []
    used: set[Words] = set()
    for i in rng.permutation(len(given)).tolist():
        contrast, side = given[i]
        first = int(rng.integers(2))
        if used.isdisjoint(contrast.prefixes):
            used.update(contrast.prefixes)
            alone = len(words) == 1
            part = len(used) // 2 % 2 if alone else contrast.changed in for_test
            parts[part].append(Candidate(contrast, first, side ^ first))
    return parts


def commonest_shape(pairs: Iterable[Pair]) -> tuple[int, int, int] | None:
    """The shape that most pairs have; None if there are none."""
    counts = Counter(pair.shape for pair in pairs)
    return max(counts, key=lambda shape: (counts[shape], shape)) if counts else None
