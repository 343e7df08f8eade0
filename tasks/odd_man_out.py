"""Sentences in which a noun or verb may be replaced (SOMO, Conneau et al. 2018).

The new word is a random training token with the same part of speech and features. Words are
therefore original as often as they are odd, and a rare word gives nothing away. Neither word occurs
elsewhere in the sentence. For both words, counts of bigrams with the neighbours lie in the same
octave. Bigrams are counted in all *other* sentences, since only training sentences would contain
their own bigrams otherwise. `changed_order` describes the coin.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from probes.data.sentence import Sentence
from probes.tasks.changed_order import INTACT, chance
from probes.tasks.task import Example, Excluded, task

TRIES = 50
"""Number of words drawn for each position in a sentence."""

WordKind = tuple[object, ...]
"""Properties that a word shares with its possible replacements."""


class Frequencies(NamedTuple):
    """Counts of a training split: tokens of each kind, and bigrams."""

    tokens: Mapping[WordKind, Sequence[str]]
    words: Counter[tuple[WordKind, str]]
    bigrams: Counter[tuple[str, str]]
    sentences: frozenset[tuple[str, ...]]


def frequencies(train: Sequence[Sentence]) -> Frequencies:
    """Count exchangeable words and all bigrams."""
    tokens: dict[WordKind, list[str]] = defaultdict(list)
    for sentence in train:
        for i, kind in exchangeable(sentence):
            tokens[kind].append(sentence.words[i])
    return Frequencies(
        tokens,
        Counter((kind, word) for kind, words in tokens.items() for word in words),
        Counter(pair for sentence in train for pair in pairwise(sentence.words)),
        frozenset(sentence.words for sentence in train),
    )


def exchangeable(sentence: Sentence) -> list[tuple[int, WordKind]]:
    """Nouns and verbs between two other words, and their kinds.

    Words that begin with a vowel are a separate kind, since articles depend on it.
    """
    return [
        (i, (tag, *sorted(sentence.feats[i].items()), sentence.words[i][0].lower() in "aeiou"))
        for i, tag in enumerate(sentence.upos)
        if tag in ("NOUN", "VERB") and 0 < i < len(sentence) - 1
    ]


@task("odd-man-out", version=2, needs=["upos", "feats"], shape="sentence", metric="accuracy",
      from_train=frequencies,
      group="syntax")  # fmt: skip
def odd_man_out(counts: Frequencies, sentence: Sentence) -> Iterator[Example | Excluded]:
    """Whether a noun or verb of a sentence has been replaced by another one."""
    words, draw = sentence.words, chance("odd-man-out", sentence)
    forms = [word.lower() for word in words]
    places = exchangeable(sentence)
    draw.shuffle(places)
    in_train = sentence.words in counts.sentences
    own_bigrams = Counter(pairwise(words)) if in_train else Counter()
    own_words = Counter((kind, words[i]) for i, kind in places) if in_train else Counter()

    def octaves(i: int, word: str) -> tuple[int, ...]:
        pairs = (words[i - 1], word), (word, words[i + 1])
        return tuple((counts.bigrams[pair] - own_bigrams[pair]).bit_length() for pair in pairs)

    for i, kind in places:
        if counts.words[kind, words[i]] <= own_words[kind, words[i]]:
            continue  # it occurs in no other sentence, so it could not be drawn
        if forms.count(words[i].lower()) > 1:
            continue  # replacements, drawn from all words, hardly ever do
        for replacement in draw.choices(counts.tokens[kind], k=TRIES):
            if replacement.lower() not in forms and octaves(i, replacement) == octaves(i, words[i]):
                changed_words = (*words[:i], replacement, *words[i + 1 :])
                label, shown_words = draw.choice(((INTACT, words), ("odd", changed_words)))
                yield Example(label, (0, len(shown_words)), words=shown_words, type=shown_words[i])
                return
    yield Excluded("no word to exchange")
