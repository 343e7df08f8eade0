"""The models of a run compared: order, differences, tests, and results that are set apart."""

from types import SimpleNamespace

import numpy as np
import pytest

from probes.boards.paired import LayerScore, compare, comparison_tables
from probes.common.errors import UserError
from probes.records.probe_spec import PROBES
from probes.statistics.bootstrap import cluster_sums, draws_of
from probes.statistics.gold import Gold
from probes.statistics.metrics import metrics
from probes.statistics.replicates import Replicates

SD = 0.02
"""Of the noise that training adds."""


def result(name, dev, task="pos", fingerprint="f", view="plain", digest="e", dtype="float32"):
    """The parts of a result that are read for a comparison."""
    layer = 2
    return SimpleNamespace(
        model=SimpleNamespace(name=name),
        corpus=SimpleNamespace(fingerprint=fingerprint, limited=False, other_trees=False),
        task=SimpleNamespace(name=task, version=1, metric="accuracy"),
        probe=PROBES["linear"],
        plug_ins=(),
        key="",
        older=False,
        project=None,
        dtype=dtype,
        view=view,
        silver=False,
        examples=SimpleNamespace(test_digest=digest, n={"test": 200}),
        best_layer=layer,
        score=lambda _, split="test": dev,
    )


def scored(given, n_wrong, n=400, trained=True):
    """Its score, with errors on the first `n_wrong` of `n` test sentences of one word.

    Args:
        trained: whether there is training variance.
    """
    gold = Gold(np.zeros(n, dtype=np.int16), np.arange(n), ("a", "b"), np.zeros(n, dtype=bool), ())
    if draws_of(gold) is None:
        return LayerScore(given, given.best_layer)
    predicted = (np.arange(n) < n_wrong).astype(np.int16)
    metric = metrics.get("accuracy")
    sums = [cluster_sums(metric.parts(gold, predicted), gold)]
    scores = np.array([given.score(given.best_layer)])
    of_training = (SD, 10**6) if trained else ()
    known = Replicates(scores, metric, sums, [0], given.model.name, *of_training)
    return LayerScore(given, given.best_layer, known)


@pytest.mark.parametrize("trained", [True, False])
def test_the_table_has_p_only_where_something_is_tested(trained):
    wrong = {"high": 40, "low": 200}
    found = compare(
        [result("high", 0.9), result("low", 0.5)],
        lambda r: scored(r, wrong[r.model.name], trained=trained),
    )
    # Over sentences, and over trainings where their variance is known.
    half = 1.96 * np.sqrt(0.4 * 0.6 / 400 + trained * 2 * SD**2)
    interval = found[0].standings[1].difference.interval
    assert interval == pytest.approx((-0.4 - half, -0.4 + half), abs=0.008 if trained else 0.006)
    (table,) = comparison_tables(found)
    usual = ("task", "model", "layer", "score", "difference from the first model")
    assert table.heads == (*usual, *["p"] * trained)
    first, second = table.texts
    assert table.notes[1] == "n: pos 200."
    assert first == ("pos (accuracy)", "high", "2", "90.0", "", *[""] * trained)
    assert second[:4] == ("", "low", "2", "50.0")
    assert second[4].startswith("−40.0 [")
    assert second[5:] == ("<.001",) * trained
    assert ("not tested" in table.notes[0]) != trained


def test_a_task_of_one_model_is_left_out():
    assert compare([result("a", 0.9), result("a", 0.9, task="srl")], lambda r: scored(r, 3)) == []


def test_results_that_cannot_be_compared_are_set_apart_with_the_reason():
    (found,) = compare(
        [result("a", 0.9), result("b", 0.8, fingerprint="g"), result("c", 0.7, view="cut"),
         result("d", 0.6, digest="d")],
        lambda r: scored(r, 3),
    )  # fmt: skip
    assert [s.model for s in found.standings] == ["a"]
    assert found.apart == {
        "b": "another corpus text",
        "c": "another view",
        "d": "other test examples",
    }


@pytest.mark.parametrize("damaged", ["a", "b"])
def test_a_model_with_unreadable_predictions_is_set_apart_and_the_others_are_compared(damaged):
    three = [result("a", 0.9), result("b", 0.8), result("c", 0.7)]

    def score_of(given):
        if given.model.name == damaged:
            raise UserError("not readable")
        return scored(given, 3)

    (found,) = compare(three, score_of)
    assert [s.model for s in found.standings] == [name for name in "abc" if name != damaged]
    expected = -0.2 if damaged == "b" else -0.1
    assert found.standings[1].difference.value == pytest.approx(expected)
    assert found.apart == {damaged: "predictions not readable"}
    (table,) = comparison_tables([found])
    assert table.notes[2:] == (f"Not compared: {damaged} on pos (predictions not readable).",)


def test_a_handful_of_sentences_is_not_tested():
    (found,) = compare([result("a", 0.9), result("b", 0.8)], lambda r: scored(r, 3, n=9))
    difference = found.standings[1].difference
    assert difference.value == pytest.approx(-0.1)
    assert (difference.p, difference.interval) == (None, None)
    assert [cell.text for cell in difference.cells] == ["−10.0", "–"]
