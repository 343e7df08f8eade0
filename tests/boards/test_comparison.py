"""Models compared: order, differences, tests, and results that are set apart."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from board_by_hand import N, put
from results_by_hand import changed

from probes.__main__ import main
from probes.boards.paired import LayerScore, best_layer_score, closing_tables, paired_differences
from probes.boards.ranking_tables import ranking_frame
from probes.boards.rankings import make_rankings, named_candidates
from probes.common.errors import UserError
from probes.frames.joined_results import find_results, read_result
from probes.records.probe_spec import PROBES
from probes.statistics.bootstrap import cluster_sums, draws_of
from probes.statistics.gold import Gold
from probes.statistics.metrics import metrics
from probes.statistics.replicates import Replicates
from probes.statistics.significance import all_pairs

SD = 0.02
"""Of the noise that training adds."""


def result(name, dev, task="pos", fingerprint="f", view="plain", digest="e", dtype="float32"):
    """The parts of a result that are read for a comparison."""
    layer = 2
    return SimpleNamespace(
        model=SimpleNamespace(name=name, random_seed=None),
        corpus=SimpleNamespace(fingerprint=fingerprint, limited=False, other_trees=False),
        task=SimpleNamespace(name=task, version=1, metric="accuracy", fpr=None),
        probe=PROBES["linear"],
        plug_ins=(),
        key="",
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
    usual = ("task", "model", "layer", "score", "difference")
    assert table.heads == (*usual, *["p"] * trained)
    first, second = table.texts
    assert table.notes[1] == "pos (accuracy), n = 200."
    assert first == ("pos", "high", "2", "90.0", "", *[""] * trained)
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


def test_differences_end_where_those_of_the_metric_do():
    scores = [scored(result(name, x), n) for name, x, n in (("a", 0.99, 4), ("b", 0.01, 396))]
    noisy = [replace(x, replicates=replace(x.replicates, sd=0.5)) for x in scores]
    (found,) = paired_differences(noisy, [(0, 1)])
    assert found.interval[0] == -1
    assert -0.2 < found.interval[1] < 0.8  # −.98 + 1.96 · .5 · √2


WRONG = {"first": 20, "second": 32, "third": 60, "last": 62}


@pytest.fixture
def stored_results(tmp_path):
    for model, wrong in WRONG.items():
        put(tmp_path, model, "pos", wrong)
    return tmp_path


def in_a_run(folder, *models):
    """By model, the cells of the difference from the first and of p at the end of a run."""
    found = {result.model.name: result for result in find_results(folder).values()}
    (table,) = closing_tables([found[name] for name in models], best_layer_score)
    return {row.cells[1].text: row.cells[4:] for row in table.rows}


def test_p_is_that_of_a_simulation(stored_results):
    """Words resampled, and t with 4 degrees of freedom times .01 added to both models."""
    rng, n = np.random.default_rng(11), 200_000
    for model in ("second", "third"):
        found, tested = in_a_run(stored_results, "first", model)[model]
        share = (WRONG[model] - WRONG["first"]) / N
        assert found.value == pytest.approx(-share)
        moved = rng.binomial(N, share, n) / N - share
        moved += 0.01 * (rng.standard_t(4, n) - rng.standard_t(4, n))
        p = (np.abs(moved) / moved.std() >= share / moved.std()).mean()
        assert tested.value == pytest.approx(p, abs=3 * np.sqrt(p * (1 - p) / 2000) + 1 / 2001)
        ends = np.quantile(moved - share, [0.025, 0.975])
        assert found.interval == pytest.approx(ends, abs=0.006)


def test_a_run_and_compare_say_the_same_of_a_pair(stored_results, capsys):
    order = list(WRONG)
    found = in_a_run(stored_results, *order)
    assert [cell.text for cell in found["first"]] == ["", ""]
    assert main(["compare", *order, "--results", str(stored_results), "--format", "md"]) == 0
    text = capsys.readouterr().out
    for model in order[1:]:
        (row,) = re.findall(rf"^\|  \| {model} \|.*\| (.*) \| (.*) \|$", text, re.MULTILINE)
        difference, p = (cell.text for cell in found[model])
        assert row == (difference, p.replace("<", "&lt;"))
    assert len({found[model][1].text for model in order[1:]}) > 1


def test_random_twins_do_not_change_the_p_of_trained_models(stored_results):
    put(stored_results, "random:first", "pos", 190, random_seed=0)
    put(stored_results, "random-1:first", "pos", 195, random_seed=1)
    names, twins = list(WRONG), ["random:first", "random-1:first"]
    alone, together = in_a_run(stored_results, *names), in_a_run(stored_results, *names, *twins)
    assert {name: together[name] for name in names} == alone


def test_ranks_separate_what_a_run_separates(stored_results):
    run = in_a_run(stored_results, *WRONG)
    above = {model: run[model][1].value < 0.05 for model in WRONG if model != "first"}
    assert above == {"second": False, "third": True, "last": True}
    (ranking,) = make_rankings(named_candidates(find_results(stored_results)))
    frame = ranking_frame(ranking)
    places = dict(zip(frame["model"], frame["place"].map(str), strict=True))
    # The first two are not told apart, nor the last two; .07 lies between second and third.
    assert places == {"first": "1–2", "second": "1–2", "third": "3–4", "last": "3–4"}


def test_without_training_variance_there_is_no_p_anywhere(tmp_path, capsys):
    for model, wrong in (("first", 20), ("last", 200)):
        put(tmp_path, model, "pos", wrong, p_best=None if model == "first" else False)
    (difference,) = in_a_run(tmp_path, "first", "last")["last"]  # and no column of p
    assert difference.interval is not None
    assert main(["compare", "first", "last", "--results", str(tmp_path), "--format", "md"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"\|  \| last \|[^|]*\|[^|]*\|[^|]*\|[^|]*\|$", said, re.MULTILINE)
    assert "Columns without a value are not shown: p." in said
    (ranking,) = make_rankings(named_candidates(find_results(tmp_path)))
    frame = ranking_frame(ranking)
    assert [*frame["place"].map(str)] == ["1", "2"]
    assert frame["untested"].all()


def test_models_on_other_test_examples_are_corrected_by_themselves(tmp_path):
    """As in a leaderboard of two test splits; across them, nothing is tested."""

    def scored(model, wrong, digest):
        path = put(tmp_path, model, "pos", wrong)
        result = read_result(path)
        result = changed(result, "examples", test_digest=digest)
        return best_layer_score(result)

    one = [scored(model, wrong, "d") for model, wrong in WRONG.items()]
    other = [scored(f"{model}, again", wrong, "e") for model, wrong in [("a", 20), ("b", 34)]]
    within = all_pairs(4)
    alone = paired_differences(one, within)
    (pair,) = paired_differences(other, [(0, 1)])
    across = [(0, 4), (3, 5)]
    together = paired_differences([*one, *other], [(4, 5), *across, *within])
    assert together[0] == pair
    assert together[3:] == alone
    assert [(x.p, x.interval) for x in together[1:3]] == [(None, None)] * 2
    assert together[2].value == pytest.approx((WRONG["last"] - 34) / N)
    assert 1 / 2001 < pair.p < 1
