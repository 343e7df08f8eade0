"""Training variance: spreads in closed form, and tests that know of them."""

import numpy as np
import pytest
from finding_rows import values_along
from planted_context import PlantedContext, draw, tagged_corpus
from results_by_hand import evidence_record, make_result

from probes.boards.layer_tables import layer_rows
from probes.boards.overview import confidence_set
from probes.examples.examples import collect_examples
from probes.measurements.measurement import EvidenceRequest, get_measurement
from probes.records.probe_spec import PROBES
from probes.records.row import Rows
from probes.statistics.bootstrap import resample
from probes.statistics.replicates import pooled
from probes.tasks.builtin import tasks
from probes.training.fit import FitSeed

N = 400


@pytest.mark.parametrize(
    ("scores", "spread"),
    [
        # Means 2 and 12: squares 1 + 0 + 1, and 4 + 4.
        ([[1.0, 2.0, 3.0], [10.0, 14.0]], (((2 + 8) / (2 + 1)) ** 0.5, 3)),
        ([[0.5, 0.7, 0.9, 0.8]], (np.std([0.5, 0.7, 0.9, 0.8], ddof=1), 3)),
        ([[0.5, 0.5]], (0, 1)),
        # Undefined scores are left out.
        ([[1.0, None, 3.0], [None, 5.0], [], [None]], (2**0.5, 1)),
        ([[1.0], [None, 2.0]], None),
        ([], None),
    ],
)
def test_the_pooled_deviation_in_closed_form(scores, spread):
    found = pooled(scores)
    assert (found and (found.sd, found.df)) == (spread and pytest.approx(spread))


def spread_of(rows, metric):
    """A standard deviation and its degrees of freedom."""
    return rows.at(metric).value, rows.at(metric).n


def p_best(rows):
    return {row.layer: row.value for row in rows.with_metric("p_best")}


def test_a_record_is_complete_if_all_fits_are_there_and_it_is_about_these_scores():
    result = make_result(scores=(0.1, 0.1, 0.2, 0.1))
    about = {"probe": PROBES["mlp"], "best": 2, "typed": True, "headline": result.headline}
    request = EvidenceRequest((0, 1, 2, 3), 3, **about)
    record = result.evidence["training_variance"]

    def complete(extent, **more):
        plain = record.model_copy(update={"extent": extent, **more})
        return get_measurement("training_variance").covers(plain, request)

    assert complete({0: 4, 2: 4, 3: 4})
    assert not complete({0: 4, 2: 2, 3: 4})
    assert not complete({0: 4, 2: 4})
    assert not complete({0: 4, 2: 4, 3: 4}, behind={**record.behind, 1: 0.11})
    assert not complete({0: 4, 2: 4, 3: 4}, behind={0: 0.1, 2: 0.2, 3: 0.1})


@pytest.fixture(scope="module")
def examples():
    """Words alone in their sentences."""
    splits = {"train": draw(0, 50), "dev": draw(1, 20), "test": draw(2, N, length=1)}
    return collect_examples(tasks.get("pos"), tagged_corpus(splits), "masked")


def wrong(examples, first, n):
    """Predictions on test of which `n` are wrong, counted from `first`."""
    given = examples.targets("test").copy()
    given[first : first + n] = 1 - given[first : first + n]
    return given


DEV = {2: 0.8, 3: 0.9, 5: 0.5}


def measured(examples, errors, fits, dev=None, family="linear"):
    """Rows of training variance of layers that err on these words of test, counted from the first.

    Args:
        fits: number of errors of a fit, from layer and draw.
    """
    scores = {layer: wrong(examples, 0, n) for layer, n in errors.items()}
    extent = dict.fromkeys(errors, 5)
    context = PlantedContext(
        examples,
        scores,
        dev or DEV,
        extent,
        lambda layer, draw, labels: wrong(examples, 0, fits(layer, draw)),
        PROBES[family],
    )
    return Rows.of(get_measurement("training_variance")(context).rows), context


def test_convex_probes_are_fitted_to_five_samples(examples):
    errors = {2: 40, 3: 40, 5: 120}
    offset = {1: -8, 2: 0, 3: 8, 4: 0, 5: 0}
    rows, context = measured(
        examples, errors, lambda layer, draw: errors[layer] + offset[draw.sample]
    )
    ((layers, draws, labels),) = context.asked
    assert layers == (2, 3, 5)
    assert draws == [FitSeed(0, i) for i in (1, 2, 3, 4, 5)]
    assert labels is None
    assert [row.layer for row in rows.with_metric("layer_training_sd")] == [2, 3, 5]
    scores = values_along(rows, "sample", "accuracy", 5)
    assert scores == pytest.approx([0.72, 0.7, 0.68, 0.7, 0.7])
    assert rows.along("seed") == []
    assert spread_of(rows, "retraining_sd") == (None, None)
    # Deviations ±8 / 400 at each layer: √(2 · .02² / 4).
    sd = np.sqrt(2 * 0.02**2 / 4)
    assert spread_of(rows, "training_sd") == (pytest.approx(sd), 12)
    assert rows.at("sampling_sd").value == pytest.approx(sd)


def test_other_probes_are_fitted_from_other_seeds_too(examples):
    errors = {2: 40, 3: 40, 5: 120}
    rows, context = measured(
        examples,
        errors,
        lambda layer, draw: errors[layer] + 4 * draw.seed + 40 * draw.sample,
        family="mlp",
    )
    ((_, draws, _),) = context.asked
    # Each sample is fitted from a seed of its own.
    assert draws == [FitSeed(1, 0), FitSeed(1, 1), FitSeed(2, 2), FitSeed(3, 3)]
    assert values_along(rows, "seed", "accuracy", 2) == pytest.approx([0.89])
    assert values_along(rows, "sample", "accuracy", 2) == pytest.approx([0.79, 0.68, 0.57])
    # Seed 0 is that of the scores: .9 and .89.
    assert spread_of(rows, "retraining_sd") == (pytest.approx(0.01 / 2**0.5), 3)
    assert spread_of(rows, "training_sd") == (pytest.approx(0.11), 6)
    assert rows.at("sampling_sd").value == pytest.approx(np.sqrt(0.11**2 - 0.01**2 / 2))


def test_without_variance_tests_are_those_over_sentences(examples):
    errors = {2: 42, 3: 40, 5: 120}
    rows, _ = measured(examples, errors, lambda layer, draw: errors[layer])
    assert spread_of(rows, "training_sd") == (0, 12)
    # The layers differ in two words. Where these occur k times in a resample, the difference is
    # |k − 2| / √(k (1 − k / N)) standard errors from its value, which is √2 of them from 0.
    k = resample(N)[:, 40:42].sum(1)
    of_two = (((k == 0) | (k >= 6)).sum() + 1) / 2001
    # Eighty words are never as far apart, not even where the two do not occur.
    assert p_best(rows) == pytest.approx({2: of_two, 3: 1, 5: 1 / 2001})


@pytest.mark.parametrize("step", [2, 6, 10, 20])
def test_tests_know_of_the_variance_of_training(examples, step):
    """Against a simulation of its own: sentences resampled, and noise of training in both."""
    errors = {3: 40, 5: 64}
    offset = {1: -step, 2: -step, 3: 0, 4: step, 5: step}
    rows, _ = measured(
        examples, errors, lambda layer, draw: errors[layer] + offset[draw.sample], {3: 0.9, 5: 0.5}
    )
    sd, df = np.sqrt(4 * (step / N) ** 2 / 4), 8
    assert spread_of(rows, "training_sd") == (pytest.approx(sd), df)
    rng = np.random.default_rng(77)
    n = 40_000
    # The layers differ in words 40 to 63. One estimate of the deviation serves both: the
    # difference of two normal draws over one χ² is √2 t.
    moved = rng.binomial(N, 24 / N, n) / N - 24 / N + sd * 2**0.5 * rng.standard_t(df, n)
    p = (np.abs(moved) >= 24 / N).mean()
    assert p_best(rows)[5] == pytest.approx(p, abs=3 * np.sqrt(p * (1 - p) / 2000) + 0.001)
    assert p_best(rows)[3] == 1.0


def test_a_layer_that_is_better_on_test_than_the_best_on_dev_takes_its_place(examples):
    errors = {2: 20, 3: 100, 5: 200}
    rows, context = measured(
        examples, errors, lambda layer, draw: errors[layer] + (draw.sample == 1)
    )
    assert context.result.best_number == 3
    assert p_best(rows) == pytest.approx({2: 1, 3: 1 / 2001, 5: 1 / 2001})
    record = evidence_record(context.result, "training_variance", rows)
    result = context.result.with_evidence(record)
    assert confidence_set(result) == {2}
    marks = [
        (cell.best, cell.tied, cell.beaten) for _, cell in (r.cells for r in layer_rows([result]))
    ]
    assert marks == [(False, True, False), (True, False, True), (False, False, False)]


def test_very_few_sentences_are_not_tested():
    splits = {"train": draw(0, 50), "dev": draw(1, 20), "test": draw(2, 19)}
    few = collect_examples(tasks.get("pos"), tagged_corpus(splits), "masked")
    rows, _ = measured(few, {2: 0, 3: 10, 5: 90}, lambda layer, draw: 10 * draw.sample)
    assert p_best(rows) == {2: None, 3: None, 5: None}
    assert rows.at("training_sd").n == 12
