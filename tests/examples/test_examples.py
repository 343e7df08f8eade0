"""Examples that do not fit what their task declares are refused, not misread."""

import contextlib

import pytest
from rules import examples_of

from probes.common.errors import UserError
from probes.data.find import find_corpus
from probes.data.sentence import SPLITS, Sentence
from probes.examples.examples import SEEN, UNSEEN, NotServedError, collect_examples
from probes.examples.scoring import Scorer, references
from probes.tasks.builtin import tasks, views_of
from probes.tasks.task import Example
from probes.tasks.validation import TaskError

SENTENCE = Sentence("s", "en", ("a", "b", "c"))


def collect(*examples, **settings):
    return examples_of(lambda s: examples, [SENTENCE, SENTENCE], **settings)


@pytest.mark.parametrize(
    ("examples", "shape", "message"),
    [
        (
            [Example("x", (0, 1)), Example("y", (0, 1), (1, 2))],
            "word",
            "a span2 in a task of shape",
        ),
        ([Example("x", (0, 1)), Example("y", (1, 2))], "pair", "no span2 in a task of shape"),
        ([Example("x", (0, 1), hide=0), Example("y", (1, 2))], "word", "make it two tasks"),
        ([Example("x", (0, 2), hide=0), Example("y", (0, 1), hide=0)], "word", "not its only span"),
    ],
)
def test_examples_that_would_be_misread_are_refused(examples, shape, message):
    with pytest.raises(UserError, match=message):
        collect(*examples, shape=shape)


def test_views_of_tasks_are_those_of_their_examples():
    corpus, found = find_corpus("sample").load(), {}
    for name in tasks:
        with contextlib.suppress(NotServedError):
            found[name] = collect_examples(tasks.get(name), corpus, "cut").view
    assert len(found) > 20
    assert {*found.values()} == {"plain", "cut", "own"}
    assert [name for name, view in found.items() if view not in views_of(name)] == []


def of_split(rule, **task):
    """The examples of a rule that is told the split."""
    splits = ([Sentence(split, "en", ("a", "b", "c"))] for split in SPLITS)
    return examples_of(lambda s: rule(s.id), *splits, **task)


@pytest.mark.parametrize("own", ["train", "dev", "test"])
def test_a_rule_that_brings_words_in_only_one_split_is_refused(own):
    def rule(split):
        words = ("A", "B", "C") if split == own else None
        return [Example(label, (i, i + 1), words=words) for i, label in enumerate("xy")]

    with pytest.raises(TaskError, match="words of its own in some examples and none in others"):
        of_split(rule)


def test_dev_must_have_a_label_of_train_and_test_need_not():
    def labelled(**of):
        return lambda split: [Example(of.get(split, "xy")[i], (i, i + 1)) for i in (0, 1)]

    with pytest.raises(
        NotServedError, match="no dev example of 'c' has a label that occurs in train"
    ):
        of_split(labelled(dev="vw"))
    assert of_split(labelled(dev="vx")).targets("dev").tolist() == [-1, 0]
    assert of_split(labelled(test="vw")).targets("test").tolist() == [-1, -1]


def test_label_sets_of_dev_may_all_be_new():
    def rule(split):
        return [Example((name,) * (split != "dev"), (0, 1)) for name in "xy"]

    assert of_split(rule, kind="multi-label", metric="micro_f1").targets("dev").tolist() == [0, 0]


NUMBERS = {"kind": "regression", "metric": "spearman", "also": ("corpus_spearman", "mae")}


def test_a_perfect_reference_of_numbers_scores_1():
    def rule(split):
        return [Example(label, (0, 1), reference=label) for label in (0.1, 2, -1e6, 1e18)]

    found = of_split(rule, **NUMBERS, reference="the truth")
    scores = references(found, found.targets("train"), Scorer(found, "test"))
    expected = {"spearman": 1, "corpus_spearman": 1, "mae": 0}
    assert scores == {"the truth": pytest.approx(expected)}


@pytest.mark.parametrize("lacks", [0, 1, 6])
def test_a_reference_that_lacks_a_number_has_no_score(lacks):
    def rule(split):
        return [Example(i + 0.5, (0, 1), reference=i + 0.5 if i >= lacks else "") for i in range(6)]

    found = of_split(rule, **NUMBERS, reference="a rule")
    said = references(found, found.targets("train"), Scorer(found, "test"))["a rule"]
    right = {"spearman": 1, "corpus_spearman": 1, "mae": 0}
    assert said == (dict.fromkeys(right) if lacks else pytest.approx(right))


def test_class_labels_may_be_numbers():
    found = collect(Example(1, (0, 1)), Example(12, (1, 2)), Example(2, (2, 3)))
    assert found.classes == ("1", "12", "2")
    assert found.targets("test").tolist() == [0, 1, 2, 0, 1, 2]


def test_a_single_label_is_refused():
    with pytest.raises(UserError, match="every training example of 'c' has the label 'x'"):
        collect(Example("x", (0, 1)))


def test_examples_whose_cue_is_cut_away_are_excluded_and_counted():
    before = Example("x", (2, 3), hide=2, cue=0)
    after = Example("y", (1, 2), hide=1, cue=2)
    first = Example("y", (0, 1), hide=0)
    other = Example("y", (2, 3), hide=2, cue=1)
    found = collect(before, after, first, other, hiding="cut")
    assert found.view == "cut"
    assert [e.hide for e in found.splits["test"].examples] == [2, 2, 2, 2]
    reason = "cue or all text cut away with the hidden word"
    assert found.splits["test"].excluded == {reason: 4}
    assert found.splits["test"].texts[0].words == ("a", "b")
    assert found.splits["test"].texts[0].kept_span == (1, 2)
    masked = collect(before, after, first, other, hiding="masked")
    assert len(masked.splits["test"].examples) == 8
    assert masked.splits["test"].texts[0].mask == 2


def test_test_examples_are_marked_by_whether_their_type_occurs_in_train():
    texts = (("x", "y"), ("x", "c"), ("y", "z", "x"))
    found = examples_of(by_word, *([Sentence("s", "en", words)] for words in texts))
    assert found.splits["test"].group(SEEN).tolist() == [True, False, True]
    assert found.splits["test"].group(UNSEEN).tolist() == [False, True, False]


def by_word(sentence):
    return [Example(word, (i, i + 1), type=word) for i, word in enumerate(sentence.words)]


def test_types_with_several_labels_are_looked_for_in_the_windows_of_examples():
    """Alone, each sentence has the label "first"; in windows of two, the second has another."""

    def rule(text):
        last = len(text) - 1
        yield Example("first" if last == 0 else "second", (last, last + 1), type="w", words=None)

    document = tuple(Sentence(f"s{i}", "en", ("w",), document="d") for i in range(2))
    examples = examples_of(rule, document, window=2, ambiguous=True)
    assert [example.label for example in examples.splits["train"].examples] == ["first", "second"]
