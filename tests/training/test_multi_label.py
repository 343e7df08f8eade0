"""Multi-label tasks: loss, codes, metrics and whole runs, against torch, scikit-learn and by hand."""

import numpy as np
import pytest
import torch
from gold_by_hand import gold_of
from planted_examples import SETS
from rules import corpus_of, task_of
from sklearn.metrics import accuracy_score, f1_score

from probes.common.errors import UserError
from probes.data.sentence import Frame, Sentence
from probes.examples.examples import collect_examples
from probes.examples.scoring import (
    Scorer,
    baselines,
    by_label,
    control_labels,
    count_examples,
    require_metrics,
)
from probes.statistics.bootstrap import replicates, resample
from probes.statistics.metrics import metrics
from probes.tasks.builtin import tasks
from probes.training.losses import BinaryCrossEntropy


@pytest.mark.parametrize("n_labels", [1, 8, 11])
def test_decisions_are_packed_as_numpy_packs_them(n_labels):
    torch.manual_seed(0)
    outputs = torch.randn(2, 3, n_labels, 7)
    given = BinaryCrossEntropy(SETS).decide(outputs).numpy()
    expected = np.packbits(np.moveaxis(outputs.numpy() > 0, 2, -1), axis=-1)
    assert given.tobytes() == expected.tobytes()
    assert given.shape == expected.shape


def test_prior_biases_give_the_frequencies():
    labels, weights = torch.tensor([[1, 2, 2, 0]]), torch.tensor([[1.0, 1.0, 1.0, 2.0]])
    loss = BinaryCrossEntropy(SETS)
    bias = loss.start(labels, weights, 3)
    # Label 0 is held by three of weight 5, label 1 by two, label 2 by none.
    assert bias.sigmoid()[0].tolist() == pytest.approx([3.5 / 6, 2.5 / 6, 0.5 / 6])


@pytest.fixture(scope="module")
def noisy():
    """300 examples of 11 labels in sentences of 3, the last label unseen in train."""
    rng = np.random.default_rng(3)
    held = rng.random((300, 11)) < np.linspace(0.05, 0.6, 11)
    held[:, 10] = rng.random(300) < 0.05
    table, labels = np.unique(held, axis=0, return_inverse=True)
    said = np.where(rng.random((2, 300, 10)) < 0.2, rng.random((2, 300, 10)) < 0.5, held[:, :10])
    gold = gold_of(labels, np.arange(300) // 3, "abcdefghij", unseen=("z",), sets=table)
    both = np.concatenate([said, np.zeros((2, 300, 1), dtype=bool)], axis=2)
    return gold, np.packbits(said, axis=-1), held, both


def test_metrics_are_scikit_learns(noisy):
    gold, given, held, said = noisy
    expected = {
        "micro_f1": [f1_score(held, row, average="micro") for row in said],
        "macro_f1": [f1_score(held, row, average="macro", zero_division=0) for row in said],
        "exact_match": [accuracy_score(held, row) for row in said],
    }
    frequent = np.flatnonzero(held.sum(0) >= 20)
    assert len(frequent) < 11
    expected["macro_f1_20"] = [
        f1_score(held, row, labels=frequent, average="macro", zero_division=0) for row in said
    ]
    for name, values in expected.items():
        assert metrics.get(name)(gold, given) == pytest.approx(values), name
    part = np.arange(300) % 5 < 2
    assert metrics.get("micro_f1")(gold.part(part), given[:, part]) == pytest.approx(
        [f1_score(held[part], row[part], average="micro") for row in said]
    )


def test_a_resample_is_scored_as_the_sentences_it_draws(noisy):
    gold, given, held, said = noisy
    (draw,) = resample(gold.n_sentences)[:1]
    rows = np.repeat(np.arange(300), np.repeat(draw.astype(int), 3))
    expected = {
        "micro_f1": [f1_score(held[rows], row[rows], average="micro") for row in said],
        "exact_match": [accuracy_score(held[rows], row[rows]) for row in said],
    }
    for name, values in expected.items():
        ours = replicates(metrics.get(name), gold, given, draw[None])
        assert ours[:, 0] == pytest.approx(values)


def test_scores_by_label_are_scikit_learns(noisy):
    gold, given, held, said = noisy
    found = by_label(gold, given[0], chunks=False)
    f1 = f1_score(held, said[0], average=None, zero_division=0)
    assert [found[name].f1 for name in "abcdefghijz"] == pytest.approx(f1.tolist())
    assert [found[name].n for name in "abcdefghijz"] == held.sum(0).tolist()
    assert found["z"].precision is None


def verb_with_roles(word, *roles):
    frames = (Frame(f"{word}.01", (0, 1), tuple((role, (0, 1)) for role in roles)),)
    return Sentence(word, "en", (word,), upos=("VERB",), frames=frames)


TRAIN = [
    verb_with_roles("eat", "ARG0", "ARG1"),
    verb_with_roles("eat", "ARG0"),
    verb_with_roles("eat", "ARG0", "ARG1"),
    verb_with_roles("rain"),
    verb_with_roles("rain"),
    verb_with_roles("give", "ARG0", "ARG2"),
]
TEST = [
    verb_with_roles("eat", "ARG0", "ARG9"),
    verb_with_roles("rain", "ARG1"),
    verb_with_roles("walk", "ARG0"),
]


def of_hand(train=TRAIN, test=TEST):
    return collect_examples(tasks.get("roles"), corpus_of(train, test=test), "masked")


def test_labels_are_indices_of_sets_and_unseen_labels_are_counted():
    found = of_hand()
    assert found.classes == ("ARG0", "ARG1", "ARG2")
    assert found.label_sets == (
        (),
        ("ARG0",),
        ("ARG0", "ARG1"),
        ("ARG0", "ARG2"),
        ("ARG0", "ARG9"),
        ("ARG1",),
    )
    assert found.targets("train").tolist() == [2, 1, 2, 0, 0, 3]
    assert found.targets("test").tolist() == [4, 5, 1]
    assert found.label_counts == {
        "ARG0": (4, 4, 2),
        "ARG1": (2, 2, 1),
        "ARG2": (1, 1, 0),
        "ARG9": (0, 0, 1),
    }
    counts = count_examples(found, Scorer(found, "test"))
    assert counts.unseen_test_labels == {"ARG9": 1}


def test_the_majority_baseline_predicts_labels_of_more_than_half_of_examples():
    found = of_hand()
    given = baselines(found, found.targets("train"), Scorer(found, "test"))
    # {ARG0} for all: two right of three said, of four wanted.
    assert given["majority"] == {"micro_f1": 4 / 7, "macro_f1_20": None, "exact_match": 1 / 3}
    # eat: ARG0 and ARG1; rain: nothing; walk: ARG0, as for all. Two right of three said.
    assert given["type majority"]["micro_f1"] == 4 / 7
    assert given["type majority"]["exact_match"] == 1 / 3


def test_control_labels_are_sets_of_train_one_for_each_type():
    found = of_hand([*TRAIN, *(verb_with_roles(f"w{i}", "ARG0") for i in range(4))])
    drawn = control_labels(found, "train", range(200))
    assert (drawn[:, 0] == drawn[:, 1]).all()
    # Drawn as often as train has them: .02 is two standard deviations of 1,400 draws.
    of_types = drawn[:, [0, 3, 5, 6, 7, 8, 9]]
    share = np.bincount(of_types.ravel(), minlength=6) / of_types.size
    assert share == pytest.approx([0.2, 0.5, 0.2, 0.1, 0, 0], abs=0.025)


def test_a_metric_that_does_not_score_sets_is_refused():
    task = task_of(list, "multi-label")
    with pytest.raises(UserError, match=r"'accuracy' does not score multi-label .* micro_f1"):
        require_metrics(task)
    require_metrics(tasks.get("roles"))
