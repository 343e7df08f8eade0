"""SentEval's tasks, on sentences written by hand."""

from collections import Counter
from dataclasses import replace
from itertools import chain, pairwise
from math import log2

import pytest
from rules import examples_of
from sentences import sentence_of

from probes.common.errors import UserError
from probes.data.find import find_corpus
from probes.data.sentence import ROOT, Sentence
from probes.examples.examples import collect_examples
from probes.examples.scoring import Scorer, references
from probes.tasks.builtin import tasks
from probes.tasks.task import Example, Excluded, task
from probes.tasks.validation import TaskError
from probes.tasks.word_content import mid_frequency

PAST = {"VerbForm": "Fin", "Tense": "Past"}
PRES = {"VerbForm": "Fin", "Tense": "Pres"}
SING, PLUR = {"Number": "Sing"}, {"Number": "Plur"}


def of(name, sentence, train=None):
    made = tasks.get(name)
    return (made if train is None else made.informed(train)).examples(sentence)


def whole_sentence(text, upos, heads, deprels, feats=None, lemmas=""):
    """With features and lemmas, by default none and the words."""
    words = text.split()
    layers = {"feats": feats or ({},) * len(words), "lemmas": tuple(lemmas.split() or words)}
    return sentence_of(text, upos, heads, deprels, **layers)


# The boys who sing had seen two cats
BOYS = whole_sentence(
    "The boys who sing had seen two cats",
    "DET NOUN PRON VERB AUX VERB NUM NOUN",
    (1, 5, 3, 1, 5, ROOT, 7, 5),
    "det nsubj nsubj acl:relcl aux root nummod obj",
    ({}, PLUR, {}, PRES, PAST, {"VerbForm": "Part", "Tense": "Past"}, {}, PLUR),
)


def test_tense_is_that_of_the_finite_verb_of_the_main_clause():
    assert of("main-tense", BOYS) == [Example("Past", (0, 8), type="had")]
    feats = list(BOYS.feats)
    feats[4] = {"VerbForm": "Fin", "Tense": "Fut"}
    assert of("main-tense", replace(BOYS, feats=tuple(feats))) == [
        Excluded("no verb in either tense")
    ]
    feats[4] = feats[5] = PRES
    assert of("main-tense", replace(BOYS, feats=tuple(feats))) == [
        Excluded("several verbs in past or present")
    ]


def test_number_is_that_of_the_only_noun_that_is_subject_or_object_of_the_root():
    assert of("subject-number", BOYS) == [Example("Plur", (0, 8), type="boys")]
    assert of("object-number", BOYS) == [Example("Plur", (0, 8), type="cats")]
    passive = replace(BOYS, deprels=("det", "nsubj:pass", *BOYS.deprels[2:-1], "obl"))
    assert of("subject-number", passive) == [Example("Plur", (0, 8), type="boys")]
    assert of("object-number", passive) == [Excluded("no noun is obj of the root")]
    tools = replace(BOYS, feats=({}, {"Number": "Ptan"}, *BOYS.feats[2:-1], {}))
    assert [e.label for e in of("subject-number", tools)] == ["Plur"]
    assert of("object-number", tools) == [Excluded("noun without Number")]
    two = replace(BOYS, deprels=("det", *BOYS.deprels[1:-1], "nsubj"))
    assert of("subject-number", two) == [Excluded("several nouns are nsubj of the root")]


WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]


def many(n=400):
    """Sentences of six words and a full stop, all different, the first with a capital."""
    for i in range(n):
        middle = [WORDS[i // 10**k % 10] + str(k) for k in range(5)]
        yield Sentence(f"s{i}", "en", ("The", *middle, "."), upos=("DET", *["NOUN"] * 5, "PUNCT"))


def changed_words(sentence, example):
    """Indices of the words that the sentence and its example do not share."""
    return [i for i, (a, b) in enumerate(zip(sentence.words, example.words, strict=True)) if a != b]


def test_a_shifted_bigram_is_two_words_within_the_sentence():
    places, labels = Counter(), Counter()
    for each in many():
        (example,) = of("bigram-shift", each)
        moved = changed_words(each, example)
        labels[example.label] += 1
        if example.label == "intact":
            assert moved == []
            continue
        i, j = moved
        assert (j, i >= 1, j <= 5) == (i + 1, True, True)
        assert example.words[i : i + 2] == (each.words[j], each.words[i])
        assert sorted(example.words) == sorted(each.words)
        places[i] += 1
    # Four standard deviations of a fair coin thrown 400 times are 40.
    assert abs(labels["shifted"] - 200) < 40
    assert set(places) == {1, 2, 3, 4}
    assert max(places.values()) < 2 * min(places.values())


def test_what_is_changed_depends_on_the_words_alone():
    for each in many(20):
        again = replace(each, id="another", document="d", genre="g")
        assert of("bigram-shift", again) == of("bigram-shift", each)


@pytest.mark.parametrize(
    ("text", "upos"),
    [("Hi there", "INTJ ADV"), ("We run .", "PRON VERB PUNCT"), ("No no No .", "X X X PUNCT")],
)
def test_sentences_without_two_words_to_exchange_are_left_out(text, upos):
    short = Sentence("s", "en", tuple(text.split()), upos=tuple(upos.split()))
    assert of("bigram-shift", short) == [Excluded("no two words to exchange")]


def coordination(second, first="Birds", lemma="bird", link=", and", **changes):
    """``Birds left , and SECOND might sing .``"""
    n = len(link.split())
    verb = 4 + n
    made = whole_sentence(
        f"{first} left {link} {second} might sing .",
        f"NOUN VERB {'PUNCT ' * (n - 1)}CCONJ PROPN AUX VERB PUNCT",
        (1, ROOT, *[verb] * n, verb, verb, 1, 1),
        f"nsubj root {'punct ' * (n - 1)}cc nsubj aux conj punct",
        lemmas=f"{lemma} leave {link} {second} may sing .",
    )
    return replace(made, **changes)


@pytest.mark.parametrize(
    ("first", "lemma", "link", "begun", "continued"),
    [
        ("Birds", "bird", ", and", "{0}", "birds"),
        ("Birds", "bird", "but", "{0}", "birds"),
        ("I", "I", ", or", "{0}", "I"),
        ("Anna", "Anna", ", and", "{0}", "Anna"),
        ("NATO", "nato", ", and", "{0}", "NATO"),
        ("birds", "bird", ", and", "{1}", "birds"),
    ],
)
def test_clauses_change_places_and_capitals_stay_where_they_belong(
    first, lemma, link, begun, continued
):
    labels = Counter()
    for word in WORDS:
        s = coordination(word, first, lemma, link)
        (example,) = of("coordination-inversion", s)
        start = begun.format(word.capitalize(), word)
        inverted = f"{start} might sing {link} {continued} left ."
        shown = {"intact": " ".join(s.words), "inverted": inverted}[example.label]
        assert " ".join(example.words) == shown
        # Of the function words, only *might* is in a clause: the second of the intact sentence.
        assert example.cues == (f"{int(example.label == 'intact')}: might",)
        # The shorter clause is the first of the sentence as it was.
        assert example.reference == example.label
        labels[example.label] += 1
    assert len(labels) == 2


def test_only_two_whole_clauses_with_subjects_of_their_own_change_places():
    def left_out(**changes):
        return of("coordination-inversion", coordination("Ann", **changes)) == [
            Excluded("not two coordinate clauses")
        ]

    assert not left_out()
    whole = coordination("Ann")
    for i, relation in ((4, "obj"), (0, "obj"), (6, "advcl"), (0, "conj")):
        assert left_out(deprels=(*whole.deprels[:i], relation, *whole.deprels[i + 1 :])), i
    assert left_out(upos=(*whole.upos[:3], "ADV", *whole.upos[4:]))  # no conjunction
    assert left_out(upos=("CCONJ", *whole.upos[1:]))  # there would be two in the middle
    assert left_out(upos=(*whole.upos[:-1], "NOUN"))  # something after the clauses
    assert left_out(heads=(*whole.heads[:5], 1, *whole.heads[6:]))  # a word of the first within


def texts(*lines):
    return [Sentence(str(i), "en", tuple(line.split())) for i, line in enumerate(lines)]


def test_words_of_middling_frequency_are_in_ten_sentences_and_in_no_more_than_a_hundredth():
    rare, few, many = ["rare"] * 9, ["Few few x1"] * 10, ["often"] * 13
    train = texts(*rare, *few, *many, *["the"] * 1180)
    assert len(train) == 1212
    assert mid_frequency(train) == {"few"}  # "often" is in 13 of them
    train = texts(*(f"word{'a' * k}" for k in range(150) for _ in range(10)))
    assert mid_frequency(train) == {f"word{'a' * k}" for k in range(100)}


def test_the_word_of_a_sentence_is_the_only_known_one_that_it_has():
    train = texts(*["two"] * 12, *["ten"] * 12, *["the"] * 1176)
    (one, both, none) = texts("The TWO of two", "ten or two", "the")
    assert of("word-content", one, train) == [Example("two", (0, 4))]
    assert of("word-content", both, train) == [Excluded("several of the words")]
    assert of("word-content", none, train) == [Excluded("none of the words")]


@pytest.fixture(scope="module")
def sample():
    return find_corpus("sample").load()


def test_an_odd_word_is_of_the_same_kind_and_its_bigrams_as_frequent(sample):
    """Counted again by lists, for some sentences of train and some of test."""
    train = sample.splits["train"]
    made = tasks.get("odd-man-out").informed(train)
    kinds = {
        (word, tag, *feats.items())
        for s in train
        for word, tag, feats in zip(s.words, s.upos, s.feats, strict=True)
    }
    pairs = [[*pairwise(s.words)] for s in train]
    found = [
        (split, number, s, example)
        for split in ("train", "test")
        for number, s in enumerate(sample.splits[split][:60])
        for example in made.examples(s)
        if isinstance(example, Example)
    ]
    assert all(x.words == s.words for _, _, s, x in found if x.label == "intact")
    odd = [each for each in found if each[-1].label != "intact"]
    assert len(odd) > 30
    for split, number, s, example in odd:
        (i,) = changed_words(s, example)
        was, now = s.words[i], example.words[i]
        assert example.type == now
        assert s.upos[i] in ("NOUN", "VERB")
        assert (now, s.upos[i], *s.feats[i].items()) in kinds
        assert (was[0] in "aeiouAEIOU") == (now[0] in "aeiouAEIOU")
        for word, words in ((was, s.words), (now, example.words)):
            assert [*map(str.lower, words)].count(word.lower()) == 1
        counts = Counter(chain(*pairs[:number], *pairs[number + (split == "train") :]))
        before, after = (
            [int(log2(counts[x])) if counts[x] else -1 for x in pairwise(words[i - 1 : i + 2])]
            for words in (s.words, example.words)
        )
        assert before == after


def test_a_word_is_odd_as_often_as_it_is_at_home(sample):
    found = collect_examples(tasks.get("odd-man-out"), sample, "masked")
    scores = references(found, found.targets("train"), Scorer(found, "test"))
    n = len(found.splits["test"].examples)
    # Chance, within three standard deviations.
    assert abs(scores["type majority"]["accuracy"] - 0.5) < 3 * 0.5 / n**0.5


def test_examples_depend_on_no_sentence_but_those_of_train(sample):
    for name in ("odd-man-out", "bigram-shift", "word-content"):
        whole = collect_examples(tasks.get(name), sample, "masked")
        splits = dict(sample.splits) | {"test": sample.splits["test"][::-2]}
        half = collect_examples(tasks.get(name), replace(sample, splits=splits), "masked")
        assert half.splits["dev"].examples == whole.splits["dev"].examples
        assert {*half.splits["test"].examples} < {*whole.splits["test"].examples}


def test_a_rule_that_fails_on_the_training_sentences_is_named():
    with pytest.raises(TaskError, match="'t', training sentences: the rule raised IndexError"):
        examples_of(lambda known, s: [], [BOYS], from_train=lambda train: train[5])
    with pytest.raises(UserError, match="from_train= would not see stand_ins="):
        task("t", version=1, needs=["upos"], metric="accuracy", stand_ins={"upos": "xpos"},
             from_train=len)  # fmt: skip
