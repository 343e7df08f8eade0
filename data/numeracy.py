"""Generated sentences with numbers, to test whether vectors show values (Wallace et al. 2019).

Each sentence lists five numbers, as digits or as words. Splits have different numbers from the same
range, so a probe must interpolate and cannot memorise words. A threshold on the value alone finds
the largest of a list with a balanced accuracy of 83.4 %; only higher scores show a comparison.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from probes.data.sentence import Corpus, Label, Sentence
from probes.data.sources import LabelColumn, Source

VALUE = LabelColumn("value", "word", "regression")
LARGEST = LabelColumn("largest", "word", "classification", uneven=True)
COLUMNS = {column.name: column for column in (VALUE, LARGEST)}
"""Value of a number, and whether it is the largest in the sentence."""

END = 100
"""Upper limit of all numbers, which both notations share."""

LISTED = 5
"""Numbers per sentence, as in the paper."""

SENTENCES = {"train": 400, "dev": 100, "test": 200}
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


def in_words(number: int) -> str:
    """An English number below 100 as one word, such as ``forty-two``."""
    if number < 20:
        return _SMALL[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_SMALL[ones]}" if ones else "")


NOTATIONS: Mapping[str, Callable[[int], str]] = {"digits": str, "words": in_words}
"""Functions that write a number, by genre; both genres have the same numbers."""


def numbers_of() -> dict[str, list[int]]:
    """The numbers from 0 to 99 of each split."""
    mixed = random.Random(0).sample(range(END), END)
    return {"train": mixed[:60], "dev": mixed[60:80], "test": mixed[80:]}


def make_splits() -> dict[str, tuple[Sentence, ...]]:
    """Make the sentences, which are always the same; notations take turns."""
    splits = {}
    for split, numbers in numbers_of().items():
        draw = random.Random(split)
        splits[split] = tuple(
            _sentence(
                f"{split}-{i + 1}-{genre}",
                genre,
                draw.choice(_TEMPLATES),
                draw.sample(numbers, LISTED),
            )
            for i in range(SENTENCES[split])
            for genre in NOTATIONS
        )
    return splits


def read_corpus(source: Source) -> Corpus:
    """Make the corpus, which has no files."""
    return Corpus(source.name, source.version, source.licence, make_splits())


def _sentence(name: str, genre: str, template: str, listed: list[int]) -> Sentence:
    """Fill a template with a list of numbers: ``17 , 4 , 8 , 61 and 90``."""
    before, after = (part.split() for part in template.split("{}"))
    found: list[tuple[str, int | None]] = [(word, None) for word in before]
    for number, link in zip(listed, [*[","] * (LISTED - 2), "and", ""], strict=True):
        found.append((NOTATIONS[genre](number), number))
        found += [(link, None)] * bool(link)
    found += [(word, None) for word in after]

    def column(label: Callable[[int], Label]) -> tuple[Label, ...]:
        return tuple(None if number is None else label(number) for _, number in found)

    return Sentence(
        id=name,
        language="en",
        words=tuple(word for word, _ in found),
        columns={
            VALUE.layer: column(float),
            LARGEST.layer: column(lambda number: "yes" if number == max(listed) else "no"),
        },
        genre=genre,
    )
