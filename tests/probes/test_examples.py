"""Examples that do not fit what their task says are refused, not misread."""

import pytest

from common.errors import UserError
from data.sentence import Corpus, Sentence
from probes.examples import SEEN, UNSEEN, collect_examples
from tasks.task import Example, Task

SENTENCE = Sentence("s", "en", ("a", "b", "c"))
CORPUS = Corpus("c", "1", "MIT", dict.fromkeys(("train", "dev", "test"), (SENTENCE, SENTENCE)))


def collect(*examples, shape="word", kind="classification", hiding="masked"):
    task = Task("t", 1, (), shape, kind, "accuracy", (), lambda s: examples, "")
    return collect_examples(task, CORPUS, hiding)


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


def test_class_labels_may_be_numbers():
    found = collect(Example(1, (0, 1)), Example(12, (1, 2)), Example(2, (2, 3)))
    assert found.classes == ("1", "12", "2")
    assert found.targets("test").tolist() == [0, 1, 2, 0, 1, 2]


def test_one_label_is_nothing_to_tell_apart():
    with pytest.raises(UserError, match="every training example of 'c' has the label 'x'"):
        collect(Example("x", (0, 1)))


def test_the_cut_view_leaves_out_what_it_cuts_away_and_counts_it():
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
    assert found.splits["test"].texts[0].keep == (1, 2)
    masked = collect(before, after, first, other, hiding="masked")
    assert len(masked.splits["test"].examples) == 8
    assert masked.splits["test"].texts[0].mask == 2


def test_test_examples_are_told_apart_by_whether_train_has_their_type():
    splits = {
        "train": (Sentence("a", "en", ("x", "y")),),
        "dev": (SENTENCE,),
        "test": (Sentence("b", "en", ("y", "z", "x")),),
    }
    task = Task("t", 1, (), "word", "classification", "accuracy", (), by_word, "")
    found = collect_examples(task, Corpus("c", "1", "MIT", splits), "masked")
    assert found.splits["test"].group(SEEN).tolist() == [True, False, True]
    assert found.splits["test"].group(UNSEEN).tolist() == [False, True, False]


def by_word(sentence):
    return [Example(word, (i, i + 1), type=word) for i, word in enumerate(sentence.words)]
