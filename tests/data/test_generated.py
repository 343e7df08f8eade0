"""Generated sentences: numbers read back by hand, and grammar by patterns of their own."""

import re
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest

from probes.data import generated as g
from probes.data.find import find_corpus
from probes.data.sentence import ROOT
from probes.run.inputs import LazyCorpus
from probes.run.task_choice import Omissions, choose_tasks
from probes.tasks.builtin import tasks
from probes.tasks.columns import task_of
from probes.tasks.depth import depths

CORPUS = find_corpus("generalisation").load()
CARDS = Path(g.__file__).parent / "cards"


def one_of(words):
    return f"(?:{'|'.join(words)})"


DET, ADJ, NOUN = map(one_of, (g.DETERMINERS, g.ADJECTIVES, g.NOUNS))
SUBJ, OBJ, AUX, ADV = map(one_of, (g.SUBJECTS, g.OBJECTS, g.AUXILIARIES, g.ADVERBS))
ANY = f"{one_of(g.INDEFINITE)}(?: else)?"
VT, VI = one_of(g.TRANSITIVE), one_of(g.INTRANSITIVE)
PAST_VT, PAST_VI = one_of(g.TRANSITIVE_PAST), one_of(g.INTRANSITIVE_PAST)
ADJS, WH = f"(?:{ADJ} ){{0,2}}", "(?:that|who)"
CLAUSE = f"{WH} {SUBJ} {PAST_VT}"
PREDICATE = f"(?:{PAST_VI}|{PAST_VT} {OBJ})"

# The main word is in a group of its own, the word that is not in another.
PATTERNS = {
    ("auxiliary", "agree"): [
        f"(?:{ADV} )?(?:{SUBJ}|{ANY}) (?P<main>{AUX}) {VT} {ANY} {WH} {SUBJ} (?P<other>{AUX}) {VT}"
    ],
    ("auxiliary", "differ"): [
        f"(?:{ADV} )?{ANY} {WH} {SUBJ} (?P<other>{AUX}) {VT} (?P<main>{AUX}) (?:{VI}|{VT} {ANY})"
    ],
    ("noun", "agree"): [
        f"{DET} {ADJS}(?P<main>{NOUN}) {WH} {DET} {ADJS}(?P<other>{NOUN}) {PAST_VT} {PREDICATE}",
        f"{DET} {ADJS}(?P<main>{NOUN}) {PAST_VT} {DET} {ADJS}(?P<other>{NOUN})(?: {CLAUSE})?",
        f"{DET} {ADJS}(?P<main>{NOUN}) {CLAUSE} {PAST_VT} {DET} {ADJS}(?P<other>{NOUN})",
    ],
    ("noun", "differ"): [
        f"{DET} {ADJS}(?P<other>{NOUN}) 's {ADJS}(?P<main>{NOUN}) {CLAUSE} {PREDICATE}"
    ],
}
TASK = {"auxiliary": "main-auxiliary", "noun": "subject-noun"}


def parsed(sentence, kind):
    """Index of the main word and of the other one; exactly one pattern must fit."""
    text = " ".join(sentence.words)
    assert text[0].isupper()
    text = text[0].lower() + text[1:]
    (found,) = filter(
        None, (re.fullmatch(rf"{each} \.", text) for each in PATTERNS[sentence.genre, kind])
    )
    return tuple(text[: found.start(name)].count(" ") for name in ("main", "other"))


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_every_sentence_parses_and_its_labels_are_those_of_the_parse(split):
    kind = "differ" if split == "test" else "agree"
    for sentence in CORPUS.splits[split]:
        main, other = parsed(sentence, kind)
        examples = tasks.get(TASK[sentence.genre]).examples(sentence)
        assert {e.span[0]: e.label for e in examples} == {main: "main", other: "other"}
        linear = {min(main, other): "main", max(main, other): "other"}
        assert {e.span[0]: e.reference for e in examples} == linear
        # The rules agree on all of train and dev, and on nothing of test.
        assert {e.label == e.reference for e in examples} == {split != "test"}
        (elsewhere,) = {*TASK.values()} - {TASK[sentence.genre]}
        assert tasks.get(elsewhere).examples(sentence) == []


def test_trees_are_projective_and_have_one_root():
    for s in CORPUS:
        depth = depths(s.heads)
        assert depth.count(0) == 1
        assert s.deprels[s.heads.index(ROOT)] == "root"
        arcs = [(min(i, h), max(i, h)) for i, h in enumerate(s.heads) if h != ROOT]
        assert not any(a < c < b < d for (a, b), (c, d) in product(arcs, arcs))


def test_sentences_are_different_and_always_the_same():
    texts = [" ".join(s.words) for s in CORPUS]
    assert len({*texts}) == len(texts) == len({s.id for s in CORPUS}) == 3400
    assert texts[:2] == [
        "Today we should visit someone else that you can know .",
        "The old lazy duck remembered this quiet queen that you visited .",
    ]
    lines = (CARDS / "generalisation.md").read_text().splitlines()
    counts = [len(CORPUS.splits[split]) for split in CORPUS.splits]
    words = [sum(map(len, CORPUS.splits[split])) for split in CORPUS.splits]
    for name, numbers in (("sentences", counts), ("words", words)):
        assert f"| {name} | " + " | ".join(f"{n:,}" for n in numbers) + " |" in lines


def test_the_best_threshold_on_the_index_scores_what_the_card_says():
    """The nearest to a rule of position alone: it knows train, and fails on test."""
    card = CARDS / "generalisation.md"
    for part, name in TASK.items():

        def score(split, end, name=name):
            examples = [e for s in CORPUS.splits[split] for e in tasks.get(name).examples(s)]
            right = sum((e.span[0] < end) == (e.label == "main") for e in examples)
            return right / len(examples)

        best = max(range(15), key=lambda end: score("train", end))
        assert score("train", best) == 1
        assert f"{100 * score('test', best):.1f} %" in card.read_text(), part


def test_a_run_without_tasks_has_those_of_the_corpus():
    source = find_corpus("generalisation", limit=30)
    none = dict.fromkeys(("tasks", "positions", "include"), ())
    config = SimpleNamespace(
        **none, texts="", metric=None, ranked_by=None, probes=("linear",), task_sites=(None,)
    )
    chosen = choose_tasks(config, LazyCorpus(source), Omissions())
    assert [task.name for task in chosen] == ["main-auxiliary", "subject-noun"]


# -- numeracy -----------------------------------------------------------------------------

NUMBERS = find_corpus("numeracy").load()

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
    task = task_of(g.COLUMNS[name])
    for sentence in NUMBERS.splits[split]:
        found = [x for x in task.examples(sentence) if hasattr(x, "label")]
        yield sentence, [(sentence.words[x.span[0]], x.label) for x in found]


def test_numbers_below_100_are_single_words():
    given = {0: "zero", 7: "seven", 10: "ten", 13: "thirteen", 18: "eighteen", 20: "twenty",
             21: "twenty-one", 42: "forty-two", 80: "eighty", 99: "ninety-nine"}  # fmt: skip
    assert {number: g.number_word(number) for number in given} == given
    assert [read(g.number_word(number)) for number in range(g.END)] == list(range(100))


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
    parts = {}
    for split in NUMBERS.splits:
        parts[split] = {value for _, values in labelled(split, "value") for _, value in values}
    sizes = {split: len(numbers) for split, numbers in parts.items()}
    assert sizes == {"train": 60, "dev": 20, "test": 20}
    assert set.union(*parts.values()) == set(range(100))
    assert parts == {split: set(numbers) for split, numbers in g.numbers_by_split().items()}


def test_numbers_are_always_the_same():
    first, second = (" ".join(s.words) for s in NUMBERS.splits["test"][:2])
    assert (first, second) == (
        "They counted 52 , 41 , 78 , 91 and 2 votes in the villages .",
        "She wrote seven , ninety-four , sixty-three , eight and forty-eight on the board .",
    )
    ids = [sentence.id for sentence in NUMBERS]
    assert len({*ids}) == len(ids)
