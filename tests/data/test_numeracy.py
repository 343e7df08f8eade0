"""Sentences with numbers, read back by hand."""

import pytest

from probes.data.find import find_corpus
from probes.data.numeracy import COLUMNS, END, in_words, numbers_of
from probes.data.registered import corpora
from probes.tasks.columns import task_of

CORPUS = find_corpus("numeracy").load()

ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def read(word):
    """The number that a word is."""
    if word.isdigit():
        return int(word)
    tens, hyphen, one = word.partition("-")
    if tens in TENS:
        return 20 + 10 * TENS.index(tens) + (ONES.index(one) if hyphen else 0)
    if word in ONES:
        return ONES.index(word)
    odd = {"ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fifteen": 15, "eighteen": 18}
    return odd[word] if word in odd else 10 + ONES.index(word.removesuffix("teen"))


def labelled(split, name):
    """The words with a label and the label, sentence by sentence."""
    task = task_of(COLUMNS[name])
    for sentence in CORPUS.splits[split]:
        found = [x for x in task.examples(sentence) if hasattr(x, "label")]
        yield sentence, [(sentence.words[x.span[0]], x.label) for x in found]


def test_numbers_below_100_are_single_words():
    given = {0: "zero", 7: "seven", 10: "ten", 13: "thirteen", 18: "eighteen", 20: "twenty",
             21: "twenty-one", 42: "forty-two", 80: "eighty", 99: "ninety-nine"}  # fmt: skip
    assert {number: in_words(number) for number in given} == given
    assert [read(in_words(number)) for number in range(END)] == list(range(100))


@pytest.mark.parametrize(("split", "n"), [("train", 400), ("dev", 100), ("test", 200)])
def test_labels_are_those_of_the_numbers_that_are_written(split, n):
    genres = []
    pairs = zip(labelled(split, "value"), labelled(split, "largest"), strict=True)
    for (sentence, values), (_, largest) in pairs:
        numbers = [read(word) for word, _ in values]
        assert [value for _, value in values] == numbers
        assert [label == "yes" for _, label in largest] == [x == max(numbers) for x in numbers]
        assert len({*numbers}) == 5
        assert all(word.isdigit() == (sentence.genre == "digits") for word, _ in values)
        genres.append(sentence.genre)
    assert genres == ["digits", "words"] * n


def test_no_number_is_in_two_splits():
    parts = {
        split: {value for _, values in labelled(split, "value") for _, value in values}
        for split in CORPUS.splits
    }
    assert {split: len(numbers) for split, numbers in parts.items()} == {
        "train": 60,
        "dev": 20,
        "test": 20,
    }
    assert set.union(*parts.values()) == set(range(100))
    assert parts == {split: set(numbers) for split, numbers in numbers_of().items()}


def test_the_text_is_always_the_same():
    first, second = (" ".join(s.words) for s in CORPUS.splits["test"][:2])
    assert (first, second) == (
        "They counted 52 , 41 , 78 , 91 and 2 votes in the villages .",
        "She wrote seven , ninety-four , sixty-three , eight and forty-eight on the board .",
    )
    assert CORPUS.fingerprint == corpora.get("numeracy").fingerprint
    ids = [sentence.id for sentence in CORPUS]
    assert len({*ids}) == len(ids)
