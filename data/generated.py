"""Generated corpora, which are always the same: `numeracy` and `generalisation`.

**numeracy** tests whether vectors show values (Wallace et al. 2019). Each sentence lists five
numbers, as digits or as words. Splits have different numbers from the same range, so a probe must
interpolate and cannot memorise words. A threshold on the value alone finds the largest of a list
with a balanced accuracy of 83.4 %; only higher scores show a comparison.

**generalisation** has sentences in which a linear and a hierarchical rule agree, or differ (Lin,
Tan & Frank 2019). In train and dev, the first auxiliary is the main one, and the first noun is the
subject of the main clause. In test they never are. A probe may learn either rule; the score on test
is the share of words for which it follows the tree instead of the order.

- Auxiliaries: the object has a relative clause in train and dev, the subject in test.
- Nouns: the subject, with or without a relative clause, comes first in train and dev. In test, the
  subject's possessor comes first, as in part of the paper's set, and a relative clause follows.

All relative pronouns are objects. In train, therefore, every auxiliary follows a subject, and main
nouns precede a verb or a relative pronoun, as other nouns do. Sentences for one task have no words
of the other, and test has no words on which the rules agree.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from probes.data.sentence import ROOT, Corpus, Label, Sentence
from probes.data.sources import LabelColumn, Source

VALUE = LabelColumn("value", "word", "regression")
LARGEST = LabelColumn("largest", "word", "classification", uneven=True)
COLUMNS = {column.name: column for column in (VALUE, LARGEST)}
"""Value of a number, and whether it is the largest in the sentence."""

END = 100
"""Upper limit of all numbers, which both notations share."""

LISTED = 5
"""Numbers per sentence, as in the paper."""

LISTS = {"train": 400, "dev": 100, "test": 200}
"""Number of sentences of each notation, by split."""

_SMALL = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
          "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
          "nineteen")  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")

_TEMPLATES = (
    "The numbers are {} .",
    "She wrote {} on the board .",
    "They counted {} votes in the villages .",
    "We need pages {} of the book .",
)


def number_word(number: int) -> str:
    """An English number below 100 as one word, such as ``forty-two``."""
    if number < 20:
        return _SMALL[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_SMALL[ones]}" if ones else "")


NOTATIONS: Mapping[str, Callable[[int], str]] = {"digits": str, "words": number_word}
"""Functions that write a number, by genre; both genres have the same numbers."""


def numbers_by_split() -> dict[str, list[int]]:
    """The numbers from 0 to 99 of each split."""
    numbers = random.Random(0).sample(range(END), END)
    return {"train": numbers[:60], "dev": numbers[60:80], "test": numbers[80:]}


def numeracy() -> dict[str, tuple[Sentence, ...]]:
    """Make the sentences, which are always the same; notations take turns."""
    splits = {}
    for split, numbers in numbers_by_split().items():
        draw = random.Random(split)
        splits[split] = tuple(
            _list_sentence(
                f"{split}-{i + 1}-{genre}",
                genre,
                draw.choice(_TEMPLATES),
                draw.sample(numbers, LISTED),
            )
            for i in range(LISTS[split])
            for genre in NOTATIONS
        )
    return splits


def _list_sentence(name: str, genre: str, template: str, numbers: list[int]) -> Sentence:
    """Fill a template with a list of numbers: ``17 , 4 , 8 , 61 and 90``."""
    words_before, words_after = (part.split() for part in template.split("{}"))
    tokens: list[tuple[str, int | None]] = [(word, None) for word in words_before]
    for number, link in zip(numbers, [*[","] * (LISTED - 2), "and", ""], strict=True):
        tokens.append((NOTATIONS[genre](number), number))
        if link:
            tokens.append((link, None))
    tokens += [(word, None) for word in words_after]

    def column(label: Callable[[int], Label]) -> tuple[Label, ...]:
        return tuple(None if number is None else label(number) for _, number in tokens)

    return Sentence(
        id=name,
        language="en",
        words=tuple(word for word, _ in tokens),
        columns={
            VALUE.layer: column(float),
            LARGEST.layer: column(lambda number: "yes" if number == max(numbers) else "no"),
        },
        genre=genre,
    )


SENTENCES = {"train": 1000, "dev": 200, "test": 500}
"""Number of sentences of each part, by split; all are different."""

DETERMINERS = ("the", "this", "some", "every")
ADJECTIVES = ("old", "young", "small", "tall", "quiet", "clever", "lazy", "friendly")
NOUNS = ("cat", "dog", "horse", "lion", "wolf", "bear", "duck", "tiger", "boy", "girl", "king",
         "queen", "farmer", "sailor", "teacher", "doctor", "painter", "singer", "driver",
         "nurse")  # fmt: skip
SUBJECTS, OBJECTS = ("we", "you", "they", "he", "she"), ("us", "you", "them", "him", "her")
INDEFINITE = ("someone", "somebody", "everyone", "everybody", "anyone", "nobody")
AUXILIARIES = ("will", "would", "can", "could", "may", "might", "must", "should")
ADVERBS = ("today", "perhaps", "soon", "now", "maybe", "sometimes")
TRANSITIVE = ("see", "follow", "help", "hear", "like", "know", "find", "visit", "remember", "call")
TRANSITIVE_PAST = ("saw", "followed", "helped", "heard", "liked", "knew", "found", "visited",
                   "remembered", "called")  # fmt: skip
INTRANSITIVE = ("sleep", "wait", "leave", "sing", "run", "smile", "swim", "win")
INTRANSITIVE_PAST = ("slept", "waited", "left", "sang", "ran", "smiled", "swam", "won")

SLOTS = {
    "today": (ADVERBS, "ADV", "advmod"),
    "we": (SUBJECTS, "PRON", "nsubj"),
    "us": (OBJECTS, "PRON", "obj"),
    "someone": (INDEFINITE, "PRON", "nsubj"),
    "everyone": (INDEFINITE, "PRON", "obj"),
    "else": (("else",), "ADJ", "amod"),
    "will": (AUXILIARIES, "AUX", "aux"),
    "see": (TRANSITIVE, "VERB", "root"),
    "saw": (TRANSITIVE_PAST, "VERB", "root"),
    "sleep": (INTRANSITIVE, "VERB", "root"),
    "slept": (INTRANSITIVE_PAST, "VERB", "root"),
    "who": (("that", "who"), "PRON", "obj"),
    "hear": (TRANSITIVE, "VERB", "acl:relcl"),
    "heard": (TRANSITIVE_PAST, "VERB", "acl:relcl"),
    "the": (DETERMINERS, "DET", "det"),
    "old": (ADJECTIVES, "ADJ", "amod"),
    "cat": (NOUNS, "NOUN", "nsubj"),
    "girl": (NOUNS, "NOUN", "nsubj"),
    "dog": (NOUNS, "NOUN", "obj"),
    "king": (NOUNS, "NOUN", "nmod:poss"),
    "'s": (("'s",), "PART", "case"),
    ".": ((".",), "PUNCT", "punct"),
}
"""Forms, tag and relation of each slot, which is named after one of the forms."""

_SOMEONE, _EVERYONE = "someone else@someone?", "everyone else@everyone?"
_CLAUSE, _PAST_CLAUSE = "who@hear we@hear will@hear hear", "who@heard we@heard heard"
_CAT, _DOG, _GIRL, _KING = (
    f"the@{noun} old@{noun}? old@{noun}? {noun}" for noun in ("cat", "dog", "girl", "king")
)
_KINGS_CAT = f"{_KING}@cat 's@king old@cat? old@cat? cat {_PAST_CLAUSE}@cat"

TEMPLATES = {
    ("auxiliary", "agree"): (
        f"today? we will see {_EVERYONE} {_CLAUSE}@everyone .",
        f"today? {_SOMEONE} will see {_EVERYONE} {_CLAUSE}@everyone .",
    ),
    ("auxiliary", "differ"): (
        f"today? {_SOMEONE} {_CLAUSE}@someone will sleep .",
        f"today? {_SOMEONE} {_CLAUSE}@someone will see {_EVERYONE} .",
    ),
    ("noun", "agree"): (
        f"{_CAT} who@heard {_GIRL}@heard heard@cat slept .",
        f"{_CAT} who@heard {_GIRL}@heard heard@cat saw us .",
        f"{_CAT} {_PAST_CLAUSE}@cat saw {_DOG} .",
        f"{_CAT} saw {_DOG} {_PAST_CLAUSE}@dog .",
        f"{_CAT} saw {_DOG} .",
    ),
    ("noun", "differ"): (f"{_KINGS_CAT} slept .", f"{_KINGS_CAT} saw us ."),
}
"""Templates: slots with ``@head`` (by default the main verb); ``?`` marks optional slots."""


def generalisation() -> dict[str, tuple[Sentence, ...]]:
    """Make the sentences, which are always the same; tasks take turns."""
    made_texts: set[tuple[str, ...]] = set()
    splits = {}
    for split, number in SENTENCES.items():
        draw, sentences = random.Random(split), list[Sentence]()
        while len(sentences) < 2 * number:
            part = ("auxiliary", "noun")[len(sentences) % 2]
            kind = "differ" if split == "test" else "agree"
            template = draw.choice(TEMPLATES[part, kind])
            name = f"{split}-{len(sentences) + 1}-{part}"
            sentence = _template_sentence(name, part, template, draw)
            if sentence.words not in made_texts:
                made_texts.add(sentence.words)
                sentences.append(sentence)
        splits[split] = tuple(sentences)
    return splits


def _template_sentence(name: str, part: str, template: str, draw: random.Random) -> Sentence:
    """Make a sentence of random words, which are all different where there is a choice."""
    kept_slots = [slot for slot in template.split() if slot[-1] != "?" or draw.random() < 0.5]
    slots, above = zip(*(slot.rstrip("?").partition("@")[::2] for slot in kept_slots), strict=True)
    words: list[str] = []
    for slot in slots:
        forms = SLOTS[slot][0]
        words.append(draw.choice([form for form in forms if form not in words] or forms))
    deprels = tuple(SLOTS[slot][2] for slot in slots)
    root = deprels.index("root")
    heads = (slots.index(head) if head else root for head in above)
    return Sentence(
        name,
        "en",
        (words[0].capitalize(), *words[1:]),
        upos=tuple(SLOTS[slot][1] for slot in slots),
        heads=tuple(ROOT if i == root else head for i, head in enumerate(heads)),
        deprels=deprels,
        genre=part,
    )


def read_numeracy(source: Source) -> Corpus:
    """Make the corpus `numeracy`, which has no files."""
    return source.corpus(numeracy())


def read_generalisation(source: Source) -> Corpus:
    """Make the corpus `generalisation`, which has no files."""
    return source.corpus(generalisation())
