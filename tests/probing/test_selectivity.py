"""Control tasks: who gets which random label, and what is made of probes fitted to them."""

from dataclasses import replace

import numpy as np
import pytest
from drawn import view_of
from finding_rows import values_along
from planted_context import PlantedContext, draw, tagged_corpus
from results_by_hand import changed, make_result
from rules import task_of
from scipy.stats import t
from sklearn.metrics import balanced_accuracy_score

from probes.examples.examples import collect_examples
from probes.examples.scoring import control_labels, control_metric, has_types
from probes.measurements.measurement import get_measurement
from probes.records.row import Rows
from probes.tasks.builtin import tasks
from probes.tasks.task import Example
from probes.training.fit import FitSeed


def pos(**splits):
    """Examples of tags in a toy corpus."""
    return collect_examples(tasks.get("pos"), tagged_corpus(splits), "masked")


@pytest.fixture(scope="module")
def examples():
    return pos(train=draw(0, 200), dev=draw(1, 40), test=[*draw(2, 40), ["w999"]])


def test_a_type_has_the_same_label_in_all_splits_but_not_for_all_seeds(examples):
    label_of = [{}, {}]
    for split in ("train", "dev", "test"):
        drawn = control_labels(examples, split, [0, 7])
        for example, *labels in zip(examples.splits[split].examples, *drawn, strict=True):
            for seed in (0, 1):
                assert label_of[seed].setdefault(example.type, labels[seed]) == labels[seed]
    assert len(label_of[0]) == 61
    assert label_of[0] != label_of[1]


def test_labels_do_not_depend_on_the_other_types(examples):
    fewer = pos(train=draw(0, 200), dev=[["w3", "w4"]], test=[["w5", "w3"]])
    of = {
        e.type: label
        for e, label in zip(
            examples.splits["dev"].examples, control_labels(examples, "dev", [3])[0], strict=True
        )
    }
    assert control_labels(fewer, "dev", [3])[0].tolist() == [of["w3"], of["w4"]]


def test_labels_are_drawn_with_their_frequencies_in_the_task():
    many = [[f"w{i}" for i in range(k, k + 10)] for k in range(0, 4000, 10)]
    found = pos(train=many, dev=many, test=many)
    share = control_labels(found, "train", [0, 1, 2]).mean(1)
    # 4,000 draws with a probability of .25 for V: .007 is one standard deviation.
    assert share == pytest.approx([0.25] * 3, abs=0.021)


def test_control_values_of_a_regression_are_values_of_the_task():
    def rule(sentence):
        for i, word in enumerate(sentence.words):
            yield Example(float(int(word[1:]) % 3), (i, i + 1), type=word)

    number = task_of(rule, "regression", "mae", needs=("upos",))
    made = tagged_corpus({name: draw(k, 50) for k, name in enumerate(("train", "dev", "test"))})
    drawn = control_labels(collect_examples(number, made, "masked"), "dev", [0])
    assert drawn.dtype == np.float64
    assert set(drawn[0]) == {0.0, 1.0, 2.0}


def test_without_types_there_is_no_control():
    def rule(sentence):
        for i, tag in enumerate(sentence.upos):
            yield Example(tag, (i, i + 1))

    bare = task_of(rule, needs=("upos",))
    made = tagged_corpus({name: draw(k, 20) for k, name in enumerate(("train", "dev", "test"))})
    assert not has_types(collect_examples(bare, made, "masked"))
    without = changed(make_result(p_best=False), "examples", typed=False)
    _, missing = view_of("selectivity", "selectivity", {"m": without})
    assert missing == {"m": "its examples have no types"}


def with_errors(labels, wrong):
    """The labels, of which the first `wrong` are wrong, or those of a mask."""
    given, places = labels.copy(), slice(wrong) if isinstance(wrong, int) else wrong
    given[places] = 1 - given[places]
    return given


def measured(examples, errors, extent, control_errors):
    """Rows of selectivity of probes with these errors on the task, and on each draw of control labels.

    Every fit is checked to be given the labels of its draw.
    """
    drawn = {split: control_labels(examples, split, range(10)) for split in ("train", "dev")}
    test = control_labels(examples, "test", range(10))

    def control(layer, draw, labels):
        assert draw == FitSeed()
        (number,) = (k for k in range(10) if (drawn["train"][k] == labels["train"]).all())
        assert (drawn["dev"][number] == labels["dev"]).all()
        return with_errors(test[number], control_errors(layer, number))

    gold = examples.targets("test")
    scores = {layer: with_errors(gold, n) for layer, n in errors.items()}
    dev = dict.fromkeys(errors, 0.5)
    context = PlantedContext(examples, scores, dev, extent, control)
    return Rows.of(get_measurement("selectivity")(context).rows), context


def test_selectivity_is_the_score_of_the_task_minus_that_of_the_control(examples):
    rows, context = measured(examples, {4: 100}, {4: 2}, lambda layer, number: 300)
    (row,) = rows.with_metric("selectivity")
    assert (row.layer, row.value) == (4, pytest.approx(200 / 401))
    assert rows.at("accuracy", 4).value == pytest.approx(301 / 401)
    assert values_along(rows, "draw", "accuracy", 4) == pytest.approx([101 / 401] * 2)
    # Sentences are all right or all wrong in both: 10 both wrong, 20 right in the task alone.
    half = 1.96 * np.sqrt(0.5 * 0.5 / 41)
    assert row.interval == pytest.approx((0.5 - half, 0.5 + half), abs=0.03)
    spread = rows.at("control_sd")
    assert (spread.value, spread.n) == (0, 1)
    assert len(context.asked) == 1


ERRORS = (1, 2, 3, 2, 2)
"""Of ten words of every sentence, by draw: their shares have a deviation of √(.02 / 4)."""


@pytest.mark.parametrize("n", [3, 5])
def test_every_draw_counts_and_intervals_know_of_others(n):
    """Every sentence is as right as the next, so that draws alone differ, at all layers alike."""
    alike = pos(train=draw(0, 50), dev=draw(1, 20), test=draw(2, 40))
    place = np.arange(400) % 10
    layers = range(3)
    rows, _ = measured(
        alike, dict.fromkeys(layers, 0), dict.fromkeys(layers, n), lambda _, k: place < ERRORS[k]
    )
    sd = np.std(ERRORS[:n], ddof=1) / 10
    # The same draws at three layers tell no more than at one.
    assert (rows.at("control_sd").value, rows.at("control_sd").n) == (pytest.approx(sd), n - 1)
    value = np.mean(ERRORS[:n]) / 10
    half = t(n - 1).ppf(0.975) * sd / np.sqrt(n)
    for row in rows.with_metric("selectivity"):
        assert row.value == pytest.approx(value)
        # Three standard errors of a quantile of 2,000 draws.
        assert row.interval == pytest.approx((value - half, value + half), abs=0.2 * half)


def test_intervals_end_where_differences_of_scores_do():
    """Two draws, one always right and one never: ± 12.7 · .5 around 0.5."""
    alike, never = pos(train=draw(0, 50), dev=draw(1, 20), test=draw(2, 40)), np.full(400, True)
    rows, _ = measured(alike, {0: 0}, {0: 2}, lambda _, k: never if k else ~never)
    assert rows.at("selectivity", 0)[1:5] == (0.5, 0, -1, 1)


@pytest.mark.slow
def test_intervals_cover_the_selectivity_over_all_draws():
    """Of 200 studies with three draws, whose effects all layers share."""
    rng = np.random.default_rng(3)
    alike = pos(train=draw(0, 20), dev=draw(1, 20), test=draw(2, 40))
    place, covered = np.arange(400) % 10, 0
    for _ in range(200):
        wrong = rng.binomial(10, 0.5, 3)
        rows, _ = measured(alike, {0: 0, 1: 0}, {0: 3, 1: 3}, lambda _, k, w=wrong: place < w[k])
        low, high = rows.at("selectivity", 0).interval
        covered += low <= 0.5 <= high
    assert 0.9 * 200 <= covered <= 0.99 * 200


@pytest.mark.parametrize(
    ("kind", "metric", "expected"),
    [
        ("classification", "accuracy", "accuracy"),
        ("classification", "span_f1", "accuracy"),
        ("classification", "balanced_accuracy", "balanced_accuracy"),
        ("multi-label", "micro_f1", "micro_f1"),
        ("regression", "nspr", "nspr"),
    ],
)
def test_the_metric_of_selectivity(kind, metric, expected):
    assert control_metric(kind, metric) == expected


def test_a_task_with_class_weights_is_compared_by_balanced_accuracy():
    weighted = replace(tasks.get("pos"), metric="balanced_accuracy", also=())
    made = tagged_corpus({"train": draw(0, 50), "dev": draw(1, 20), "test": draw(2, 40)})
    balanced = collect_examples(weighted, made, "masked")
    wrong = (np.arange(400) % 3 == 0, np.arange(400) % 2 == 0)
    rows, context = measured(balanced, {4: 0}, {4: 2}, lambda _, k: wrong[k])
    truth = [balanced.targets("test"), *control_labels(balanced, "test", range(2))]
    given = [context.scores[4], *map(with_errors, truth[1:], wrong)]
    task, *controls = map(balanced_accuracy_score, truth, given)
    assert rows.at("balanced_accuracy", 4).value == pytest.approx(task)
    assert values_along(rows, "draw", "balanced_accuracy", 4) == pytest.approx(controls)
    value = rows.at("selectivity", 4).value
    assert value == pytest.approx(task - np.mean(controls))
    # By accuracy it would be another number.
    assert abs(value - (1 - (2 / 3 + 1 / 2) / 2)) > 0.005


def test_with_very_few_sentences_there_are_no_intervals():
    few = pos(train=draw(0, 50), dev=draw(1, 20), test=draw(2, 19))
    rows, _ = measured(few, {0: 19, 1: 0}, {0: 2, 1: 2}, lambda layer, number: 95)
    assert [x.interval for x in rows.with_metric("selectivity")] == [None, None]
    assert [x.value for x in rows.with_metric("selectivity")] == pytest.approx([0.4, 0.5])
    assert rows.at("control_sd") is not None
