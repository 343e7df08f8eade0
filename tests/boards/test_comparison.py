"""The models of a run compared: order, differences, tests, and results that are set apart."""

from types import SimpleNamespace

import numpy as np
import pytest

from probes.boards.paired import LayerScore, closing_tables
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
    (table,) = closing_tables(
        [result("high", 0.9), result("low", 0.5)],
        lambda r: scored(r, wrong[r.model.name], trained=trained),
    )
    # Over sentences, and over trainings where their variance is known.
    half = 1.96 * np.sqrt(0.4 * 0.6 / 400 + trained * 2 * SD**2)
    interval = table.rows[1].cells[4].interval
    assert interval == pytest.approx((-0.4 - half, -0.4 + half), abs=0.008 if trained else 0.006)
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
    two = [result("a", 0.9), result("a", 0.9, task="srl")]
    assert closing_tables(two, lambda r: scored(r, 3)) == []


def test_results_that_cannot_be_compared_are_set_apart_with_the_reason():
    (table,) = closing_tables(
        [result("a", 0.9), result("b", 0.8, fingerprint="g"), result("c", 0.7, view="cut"),
         result("d", 0.6, digest="d")],
        lambda r: scored(r, 3),
    )  # fmt: skip
    assert [row[1] for row in table.texts] == ["a"]
    whys = {"b": "another corpus text", "c": "another view", "d": "other test examples"}
    assert table.notes[2:] == tuple(f"Not compared: {x} on pos ({y})." for x, y in whys.items())


@pytest.mark.parametrize("damaged", ["a", "b"])
def test_a_model_with_unreadable_predictions_is_set_apart_and_the_others_are_compared(damaged):
    three = [result("a", 0.9), result("b", 0.8), result("c", 0.7)]

    def score_of(given):
        if given.model.name == damaged:
            raise UserError("not readable")
        return scored(given, 3)

    (table,) = closing_tables(three, score_of)
    assert [row[1] for row in table.texts] == [name for name in "abc" if name != damaged]
    expected = -0.2 if damaged == "b" else -0.1
    assert table.rows[1].cells[4].value == pytest.approx(expected)
    assert table.notes[2:] == (f"Not compared: {damaged} on pos (predictions not readable).",)


def test_a_handful_of_sentences_is_not_tested():
    two = [result("a", 0.9), result("b", 0.8)]
    (table,) = closing_tables(two, lambda r: scored(r, 3, n=9))
    assert table.heads[-1] == "difference from the first model"
    assert table.texts[1][4] == "−10.0"
    assert table.rows[1].cells[4].interval is None
