"""Baselines and references: a rule that knows more than a probe is shown is no baseline."""

import pytest
from flat_trees import with_flat_trees
from rules import corpus_of, examples_of

from probes.data.find import find_corpus
from probes.data.sentence import Frame, Sentence
from probes.examples.examples import collect_examples
from probes.examples.scoring import Scorer, baselines, control_labels, has_types, references
from probes.tasks.builtin import tasks
from probes.tasks.task import Example

HIDDEN = {
    # The form of the subject, of which the probe sees nothing; and the frame's lemma.
    *("agreement", "roles", "sense", "srl"),
    # One of the words of a sentence, which the tree or the rule picks.
    *("main-tense", "object-number", "odd-man-out", "subject-number"),
}
"""Tasks whose types have words that the probe is not shown."""

RARE = ("coordination-inversion", "word-content")
"""Tasks that take more than a few sentences."""


@pytest.fixture(scope="module")
def sample():
    return with_flat_trees(find_corpus("sample", limit=60).load())


@pytest.fixture(scope="module")
def whole_sample():
    return find_corpus("sample").load()


@pytest.mark.parametrize("name", [*tasks])
@pytest.mark.parametrize("hiding", ["masked", "cut"])
def test_types_that_a_probe_is_shown(sample, whole_sample, name, hiding):
    corpus = whole_sample if name in RARE else sample
    if lacking := tasks.get(name).missing(sample.layers):
        pytest.skip(f"the sample has no {lacking}")
    found = collect_examples(tasks.get(name), corpus, hiding)
    shown = name not in HIDDEN
    assert found.types_shown == shown, "is it one of HIDDEN?"
    given = found, found.targets("train"), Scorer(found, "test")
    instead = set() if name == "agreement" else {"word majority"}
    assert baselines(*given).keys() - {"majority"} == ({"type majority"} if shown else instead)
    assert ("type majority" in references(*given)) != shown


def subject_and_verb(subject, number, verb):
    return Sentence(
        f"{subject} {verb}", "en", (subject, verb), upos=("NOUN", "VERB"), heads=(1, -1),
        deprels=("nsubj", "root"),
        feats=({"Number": number},
               {"Number": number, "VerbForm": "Fin", "Tense": "Pres"}),
    )  # fmt: skip


def test_the_form_of_the_subject_is_a_reference_of_agreement():
    dogs, cats = ("dogs", "Plur", "bark"), ("cats", "Plur", "meow")
    dog, fox = ("dog", "Sing", "barks"), ("fox", "Sing", "barks")
    train = [dogs, dogs, dog, fox]
    test = [dogs, dog, cats]
    splits = ([subject_and_verb(*x) for x in part] for part in (train, [dog], test))
    corpus = corpus_of(*splits)
    found = collect_examples(tasks.get("agreement"), corpus, "masked")
    given = found, found.targets("train"), Scorer(found, "test")
    # Of equally frequent labels the first, Plur: two of three right, none of the singular.
    assert baselines(*given) == {
        "majority": {"balanced_accuracy": 0.5, "accuracy": pytest.approx(2 / 3)}
    }
    # dogs: Plur; dog: Sing; cats is unknown, and Plur as the majority is.
    assert references(*given)["type majority"] == {"balanced_accuracy": 1, "accuracy": 1}
    assert references(*given)["subject's Number"] == {"balanced_accuracy": 1, "accuracy": 1}


@pytest.mark.parametrize("kind", ["cues_baseline", "cues_reference"])
def test_a_classifier_of_cues_is_fitted_to_train(kind):
    def rule(sentence):
        label, *cues = sentence.words
        yield Example(label, (0, 1), cues=tuple(cues))

    texts = (
        ("a x", "a x z", "b y", "b y z"),
        ("a x", "b y"),
        ("a x", "b y w", "b x", "b y z"),  # x speaks for a
    )
    splits = ([Sentence(x, "en", tuple(x.split())) for x in part] for part in texts)
    found = examples_of(rule, *splits, **{kind: "cues"})
    given = found, found.targets("train"), Scorer(found, "test")
    of_kind, others = baselines(*given), references(*given)
    if kind == "cues_reference":
        of_kind, others = others, of_kind
    assert of_kind["cues"] == {"accuracy": 0.75}
    assert "cues" not in others


def test_words_stand_in_for_a_lemma_by_hand():
    def saw(text, roleset, label):
        words = tuple(text.split())
        frame = Frame(roleset, (1, 2), ((label, (2, len(words))), ("V", (1, 2))))
        return Sentence(text, "en", words, frames=(frame,))

    # By lemma and first word of the argument, "see the" and "saw the" differ; the words do not.
    train = [
        saw("I saw the dog", "see.01", "ARG1"),
        saw("I saw the tree", "see.01", "ARG1"),
        saw("I saw the log", "saw.01", "ARG2"),
        saw("I see a log", "see.01", "ARG2"),
        saw("I see a dog", "see.01", "ARG2"),
    ]
    test = [saw("We saw the board", "saw.01", "ARG2"), saw("We saw the sea", "see.01", "ARG1")]
    found = collect_examples(tasks.get("srl"), corpus_of(train, test=test), "masked")
    given = found, found.targets("train"), Scorer(found, "test")
    assert {name: x["accuracy"] for name, x in baselines(*given).items()} == {
        "majority": 0.5,  # ARG2
        "word majority": 0.5,  # ARG1, since two of three "saw the" are
    }
    assert references(*given)["type majority"]["accuracy"] == 1


@pytest.mark.parametrize(
    ("example", "shown"),
    [
        ({"type": "the"}, True),  # in any case
        ({"type": "man"}, False),  # another word's
        ({"type": "man", "span2": (2, 3)}, True),
        ({"type": "The old", "span": (0, 2)}, True),
        ({"type": "old The", "span": (0, 2)}, True),
        ({"type": "DET"}, False),
        ({"type": ""}, True),
        ({"type": "The", "hide": 0}, False),
        # The encoder reads other words than the sentence's.
        ({"type": "The", "words": ("x", "y", "z")}, False),
        ({"type": "X", "words": ("x", "y", "z")}, True),
    ],
)
def test_what_a_type_is_made_of(example, shown):
    more = {"span": (0, 1)} | example
    rule = [Example(label, **more) for label in "xy"]
    shape = "span pair" if rule[0].span2 else "span"
    text = Sentence("s", "en", ("The", "old", "man"))
    assert examples_of(lambda s: rule, [text], shape=shape).types_shown == shown


def test_control_labels_of_agreement_still_hang_on_the_form_of_the_subject(sample):
    found = collect_examples(tasks.get("agreement"), sample, "masked")
    assert has_types(found)
    labels = control_labels(found, "train", [0, 1])
    types = [example.type for example in found.splits["train"].examples]
    for row in labels:
        assert len({(name, label) for name, label in zip(types, row, strict=True)}) == len({*types})
