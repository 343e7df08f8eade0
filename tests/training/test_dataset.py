"""Labels that probes are trained on, and errors in the unit of the task."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from probes.data.sentence import Corpus, Sentence
from probes.examples.examples import collect_examples
from probes.tasks.task import Example, Task
from probes.training.dataset import ProbingData

WORDS = [("a", "bird", "sang"), ("the", "old", "house", "is", "near"), ("some", "dogs")]
LETTERS = np.array([len(word) for words in WORDS for word in words])


def probing_data(label):
    """What probes read for numbers that a function makes of the length of a word."""

    def rule(sentence):
        for i, word in enumerate(sentence.words):
            yield Example(label(len(word)), (i, i + 1), type=word)

    splits = {
        split: tuple(Sentence(f"{split}{i}", "en", words) for i, words in enumerate(WORDS))
        for split in ("train", "dev", "test")
    }
    corpus = Corpus("c", "1", "MIT", splits)
    number = Task("number", 1, (), "word", "regression", "spearman", ("mae",), rule, "")
    examples = collect_examples(number, corpus, "masked")
    view = examples.view_of(corpus)
    vectors = SimpleNamespace(
        n_layers=1,
        manifest={"model": {"hidden_size": 2}},
        starts=np.zeros(len(view.index), dtype=np.int64),
    )
    return ProbingData(examples, view, vectors, torch.device("cpu"), project=None)


@pytest.mark.parametrize(
    ("scale", "origin"), [(0.004, 0), (1 / 3, 0), (1e-9, 0), (0.1, -40), (32, 1900), (1e15, 0)]
)
def test_labels_are_the_same_to_the_bit_in_any_unit_and_from_any_origin(scale, origin):
    plain, other = probing_data(lambda n: n), probing_data(lambda n: origin + scale * n)
    for split in ("train", "dev"):
        assert other.targets(split).dtype == np.float32
        assert np.array_equal(other.targets(split), plain.targets(split))
    expected = (LETTERS - LETTERS.mean()) / LETTERS.std()
    assert np.array_equal(plain.targets("dev")[0], expected.astype(np.float32))


@pytest.mark.parametrize(("scale", "origin"), [(0.001, 1e6), (1, 1.7e9), (0.01, -1e10)])
def test_labels_far_from_0_keep_the_resolution_of_float64(scale, origin):
    other = probing_data(lambda n: origin + scale * n)
    expected = (LETTERS - LETTERS.mean()) / LETTERS.std()
    # The numbers, their mean and their deviation are each rounded, the labels once more.
    tolerance = 4 * np.spacing(abs(origin)) / (scale * LETTERS.std()) + 3e-7
    assert tolerance < 1e-3
    np.testing.assert_allclose(other.targets("dev")[0], expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("scale", "origin"), [(1, 0), (0.001, 1e6), (1, 1.7e9), (0, 0.1)])
def test_errors_are_in_the_unit_of_the_task(scale, origin):
    found = probing_data(lambda n: origin + scale * n)
    # Predicting the mean is wrong by the mean deviation.
    said = found.in_labels_unit(np.zeros((1, len(LETTERS)), dtype=np.float32))
    (scores,) = found.scorers["test"].scores(said)
    expected = scale * np.abs(LETTERS - LETTERS.mean()).mean()
    assert scores["mae"] == pytest.approx(expected, rel=1e-5, abs=1e-12)
