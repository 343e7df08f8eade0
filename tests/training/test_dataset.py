"""Labels that probes are trained on: their order, weights, unit, range and precision."""

from itertools import chain
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from rules import corpus_of, task_of
from tiny_runs import of_all_layers

from probes.data.sentence import Sentence
from probes.examples.examples import collect_examples
from probes.tasks.task import Example
from probes.training.dataset import ProbingData
from probes.training.features import InMemory

pytestmark = pytest.mark.usefixtures("plug_ins", "short_schedule")

WORDS = [("a", "bird", "sang"), ("the", "old", "house", "is", "near"), ("some", "dogs")]
LETTERS = np.array([len(word) for words in WORDS for word in words])


def data_of(label, splits, kind, metric, also=()):
    """Data of a task whose labels a function makes of words; `splits` has pairs (words, document)."""

    def rule(sentence):
        for i, word in enumerate(sentence.words):
            yield Example(label(word), (i, i + 1), type=word)

    sentences = {
        split: [
            Sentence(f"{split}{i}", "en", words, document=document)
            for i, (words, document) in enumerate(given)
        ]
        for split, given in splits.items()
    }
    corpus = corpus_of(**sentences)
    examples = collect_examples(task_of(rule, kind, metric, also=also), corpus, "masked")
    view = examples.view_of(corpus)
    vectors = SimpleNamespace(
        n_layers=1,
        manifest={"model": {"hidden_size": 2}},
        starts=np.zeros(len(view.index), dtype=np.int64),
    )
    return ProbingData(examples, view, vectors, torch.device("cpu"), project=None)


def probing_data(label, documents=("", "", "")):
    """Data of a task whose numbers a function makes of the length of a word."""
    given = [(WORDS[i % len(WORDS)], document) for i, document in enumerate(documents)]
    splits = dict.fromkeys(("train", "dev", "test"), given)
    return data_of(lambda word: label(len(word)), splits, "regression", "spearman", ("mae",))


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


@pytest.mark.parametrize("n_documents", [25, 5])
def test_training_samples_are_drawn_from_documents_where_there_are_enough(n_documents):
    data = probing_data(lambda n: n, documents=[f"d{i % n_documents}" for i in range(60)])
    sentences = data.sentences("train")
    batches = data.batches("train", InMemory(torch.zeros(1, len(sentences), 2)))
    assert sentences.tolist() != sorted(sentences.tolist())
    enough = n_documents == 25
    assert torch.equal(batches.clusters, sentences % 25 if enough else sentences)


def worded(metric="accuracy"):
    """Data of a task with the first letter of each word, of which dev has one more."""
    given = [(words, "") for words in WORDS]
    splits = {"train": given, "dev": [*given, (("zebra",), "")], "test": given}
    return data_of(lambda word: word[0], splits, "classification", metric)


def held(data, split):
    return InMemory(torch.zeros(1, len(data.examples.splits[split].examples), 2))


def test_batches_have_the_real_labels_in_training_order():
    data = worded()
    train = data.batches("train", held(data, "train"))
    given = data.examples.targets("train")
    order = np.argsort(train.sentences.numpy(), kind="stable")
    assert not np.array_equal(order, np.arange(len(given)))
    assert np.array_equal(train.labels[0].numpy()[order], given)
    assert torch.equal(train.sentences, data.sentences("train"))
    assert train.weights.tolist() == [[1.0] * len(given)]


def test_other_labels_are_put_in_the_same_order_as_the_real_ones():
    data = worded()
    real = data.targets("train")
    labels = np.concatenate([real, real[:, ::-1], real])
    found = data.batches("train", held(data, "train"), {"train": labels})
    plain = data.batches("train", held(data, "train"))
    assert found.labels.shape == (3, real.shape[1])
    assert torch.equal(found.labels[0], plain.labels[0])
    assert not torch.equal(found.labels[1], plain.labels[0])
    assert found.weights.shape == (1, real.shape[1])


def test_an_example_whose_label_train_lacks_has_no_weight():
    data = worded()
    dev = data.batches("dev", held(data, "dev"))
    assert dev.weights[0].tolist() == [1.0] * 10 + [0.0]
    assert dev.labels.min() >= 0


def test_class_weights_are_those_of_each_cells_labels():
    data = worded("balanced_accuracy")
    real = data.targets("train")
    one_of_each = np.arange(real.shape[1])[None] < data.n_outputs
    labels = np.concatenate(
        [real, real[:, ::-1], np.where(one_of_each, np.arange(real.shape[1]), 0)]
    )
    found = data.batches("train", held(data, "train"), {"train": labels})
    assert found.weights.shape == labels.shape
    for row, weights in zip(found.labels.numpy(), found.weights.numpy(), strict=True):
        # Every class of these labels weighs as much as any other, and an example 1 on average.
        total = np.bincount(row, weights)
        np.testing.assert_allclose(total, len(row) / data.n_outputs, rtol=1e-6)


def test_class_weights_of_dev_are_those_of_train_and_a_class_that_train_lacks_weighs_nothing():
    data = worded("balanced_accuracy")
    n_train, n_dev = (data.targets(split).shape[1] for split in ("train", "dev"))
    labels = {
        "train": np.array([[0, 0, 0, 1] * n_train])[:, :n_train],
        "dev": np.arange(n_dev)[None] % 3,
    }
    found = data.batches("dev", held(data, "dev"), labels).weights[0]
    zeros = (labels["train"] == 0).sum()
    expected = [n_train / (2 * zeros), n_train / (2 * (n_train - zeros)), 0.0]
    assert found.tolist() == pytest.approx([expected[i % 3] for i in range(n_dev)])


def test_control_labels_are_standardised_as_the_real_ones():
    data = probing_data(lambda n: 5 + 2 * n)
    labels = np.stack([data.examples.targets("train"), np.full(len(LETTERS), 7.0)])
    found = data.standardised(labels)
    assert found.dtype == np.float32
    assert np.array_equal(found[:1], data.targets("train"))
    np.testing.assert_allclose(data.in_labels_unit(found)[1], 7, rtol=1e-6)
    assert data.batches("train", held(data, "train"), {"train": found}).weights.tolist() == [
        [1.0] * 10
    ]


LENGTHS = """\
from probes import Example, task

def lengths(name, scale, origin):
    @task(name, version=1, needs=["upos"], kind="regression", metric="corpus_spearman", also=["mae"])
    def letters(sentence):
        "How many letters a word has, in some unit and from some origin."
        for i, word in enumerate(sentence.words):
            yield Example(origin + scale * min(len(word), 6), (i, i + 1), type=word)

lengths("letters", 1, 0)
lengths("millimetres", 0.004, 0)
lengths("years", 32, 1900)
"""


def values_of(result, *metrics):
    """Values of these metrics by layer, in scores, selectivity and localisation."""
    evidence = (result.evidence_rows(name) for name in ("selectivity", "localisation"))
    rows = (*(row for row in result.rows if row.layer is not None), *chain(*evidence))
    return [row.value for row in rows if row.metric in metrics]


def test_unit_and_origin_of_a_number_change_no_score(write, run_with):
    # Float32 holds every 128th second of these; float64 holds each.
    text = LENGTHS + 'lengths("seconds", 1, 1.7e9)\n'
    plain, *others = run_with(
        write(text),
        tasks=("letters", "millimetres", "years", "seconds"),
        evidence=("selectivity", "localisation"),
    ).results
    assert plain.score(plain.best_layer) > 0.3
    for other, scale in zip(others, (0.004, 32, 1), strict=True):
        assert other.layers == plain.layers
        ours, theirs = (values_of(result, "corpus_spearman") for result in (other, plain))
        assert ours == pytest.approx(theirs, abs=0.001)
        # How libraries round may depend on where arrays lie in memory, and the steps of a mix
        # amplify that: weights of a mix of two near equal layers moved by .05.
        ours, theirs = (values_of(result, "mix_score", "mix_weight") for result in (other, plain))
        assert ours == pytest.approx(theirs, abs=0.02)
        for layer in plain.layers:
            error, of_plain = (result.at("mae", layer).value for result in (other, plain))
            assert error == pytest.approx(scale * of_plain, rel=0.001)
            loss, of_plain = (
                result.at("dev_loss", layer, "dev").value for result in (other, plain)
            )
            assert loss == pytest.approx(scale**2 * of_plain, rel=0.002)
    # What is stored gives the recorded scores: read back, or reading them would fail.
    assert of_all_layers(others[-1]) is not None


@pytest.mark.parametrize("family", ["linear", "mlp"])
def test_constant_labels_are_predicted_exactly(write, run_with, family):
    # The mean of many tenths is no tenth in floating point.
    text = LENGTHS + 'lengths("constant", 0, 0.1)\n'
    (found,) = run_with(write(text), tasks=("constant",), probes=(family,)).results
    assert all(found.at("corpus_spearman", layer).value is None for layer in found.layers)
    if family == "linear":
        assert all(found.at("mae", layer).value < 1e-6 for layer in found.layers)


APART = """\
from probes import Example, task

@task("apart", version=1, needs=["upos"], kind="regression", metric="corpus_spearman")
def apart(sentence):
    "Small numbers in train, large ones in dev."
    for i, word in enumerate(sentence.words):
        yield Example(1e18 if "dev" in sentence.id else 0.001 * len(word), (i, i + 1), type=word)
"""


@pytest.mark.parametrize("family", ["linear", "mlp"])
def test_a_dev_loss_that_is_not_finite_is_refused(write, run_with, tmp_path, family):
    results = run_with(write(APART), tasks=("apart", "pos"), probes=(family,))
    assert [result.task.name for result in results.results] == ["pos"]
    said = f"Task 'apart', {family} probes: the dev loss is not finite, probably because labels"
    assert results.failed[f"tiny-bert · apart · {family}"].startswith(said)
    assert not list((tmp_path / "results").rglob("apart-*.json"))
