"""Breakdowns by label against scikit-learn and by hand, and by number of word pieces."""

import numpy as np
import pytest
from gold_by_hand import gold_of
from rules import examples_of
from sklearn.metrics import precision_recall_fscore_support

from probes.data.sentence import Sentence
from probes.examples.scoring import ONE_PIECE, SEVERAL_PIECES, by_label, marked_by_pieces
from probes.extraction.reading.alignment import Pieces
from probes.records.values import LabelScore
from probes.tasks.task import Example


def test_by_label_by_hand():
    gold = gold_of([0, 0, 0, 1, -1], classes="abcd", unseen=("e",))
    found = by_label(gold, np.array([0, 0, 1, 1, 2]), chunks=False)
    assert found == {
        "a": LabelScore(n=3, precision=1.0, recall=2 / 3, f1=4 / 5),
        "b": LabelScore(n=1, precision=0.5, recall=1.0, f1=2 / 3),
        # Predicted and never right; never predicted, being unknown to train; d is neither.
        "c": LabelScore(n=0, precision=0.0, recall=None, f1=0.0),
        "e": LabelScore(n=1, precision=None, recall=0.0, f1=0.0),
    }


def test_by_label_is_scikit_learn_s():
    rng = np.random.default_rng(0)
    names = "abcdefg"
    labels, given = rng.integers(0, 7, 500), rng.integers(0, 7, 500)
    found = by_label(gold_of(labels, classes=names), given, chunks=False)
    expected = precision_recall_fscore_support(labels, given, labels=range(7))
    for name, precision, recall, f1, n in zip(names, *expected, strict=True):
        given = found[name].precision, found[name].recall, found[name].f1, found[name].n
        assert given == pytest.approx((precision, recall, f1, n))


def test_chunks_are_scored_by_type_and_end_with_their_sentence():
    classes = ("B-NP", "B-VP", "I-NP", "O")
    # NP, VP | NP NP; given: NP cut short, VP right | one NP right, the other missed.
    gold = gold_of([0, 2, 1, 0, 0], [0, 0, 0, 1, 1], classes)
    found = by_label(gold, np.array([0, 3, 1, 0, 3]), chunks=True)
    assert found == {
        "NP": LabelScore(n=3, precision=0.5, recall=1 / 3, f1=2 / 5),
        "VP": LabelScore(n=1, precision=1.0, recall=1.0, f1=1.0),
    }


def test_regression_has_no_labels():
    assert by_label(gold_of([0.5, 1.0], classes=()), np.array([0.1, 0.2]), chunks=False) == {}


def split_by_letters(texts):
    """A tokenizer with one piece per letter."""
    bounds = [np.cumsum([0, *map(len, text.words)]) for text in texts]
    return [Pieces(np.zeros(b[-1], dtype=np.int64), b, 0) for b in bounds]


def collected(rule, **task):
    return examples_of(rule, [Sentence("s", "en", ("a", "bcd", "e"))], **task)


def test_words_are_marked_by_their_number_of_pieces():
    examples = collected(lambda s: [Example(w, (i, i + 1)) for i, w in enumerate(s.words)])
    found = marked_by_pieces(examples, split_by_letters)
    assert found.splits["test"].group(ONE_PIECE).tolist() == [True, False, True]
    assert found.splits["test"].group(SEVERAL_PIECES).tolist() == [False, True, False]
    assert not found.splits["train"].group(ONE_PIECE).any()


@pytest.mark.parametrize(
    ("examples", "shape"),
    [
        ([Example("x", (0, 1), hide=0), Example("y", (1, 2), hide=1)], "word"),
        ([Example("x", (0, 2)), Example("y", (1, 2))], "span"),
        ([Example("x", (0, 1), (1, 2)), Example("y", (1, 2), (0, 1))], "pair"),
    ],
)
def test_hidden_words_spans_and_pairs_are_not_marked(examples, shape):
    found = collected(lambda s: examples, shape=shape)
    assert marked_by_pieces(found, split_by_letters) is found
