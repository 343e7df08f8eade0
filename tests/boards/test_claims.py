"""Each claim in each of its outcomes, on results made for it."""

import json

import numpy as np
import pytest
from results_by_hand import evidence_record, make_result, with_layers

from probes.boards.claims.literature import CAVEAT, CLAIMS
from probes.boards.claims.model_scores import (
    MissingError,
    ModelScores,
    last_drop,
    late_middle,
    lower,
    middle,
    peaks,
    within,
)
from probes.boards.separability import confidence_set
from probes.measurements.localisation import Mixes, MixResult
from probes.records.values import Estimate

BY_NAME = {claim.name: claim for claim in CLAIMS}
UP = (0.1, 0.3, 0.5, 0.7, 0.6, 0.4, 0.2)
"""Six layers, best in the middle at 3."""


def at(task, best, also=(), n=6, **more):
    """A result whose best layer is `best` and cannot be separated from the layers in `also`."""
    scores = [1 - abs(layer - best) / 100 - (layer > best) / 1000 for layer in range(n + 1)]
    p = [None if x == best else 0.5 if x in also else 0.001 for x in range(n + 1)]
    return make_result(task, scores, p, **more)


def model_scores(*results, noise=0.0, n=500):
    """Scores whose resamples scatter around them by `noise`."""
    rng = np.random.default_rng(0)
    values = {}
    for result in results:
        scores = np.array([result.score(x) for x in result.layers], dtype=float)[:, None]
        values[result.task.name] = scores + noise * rng.standard_normal((len(scores), n))
    return ModelScores({r.task.name: r for r in results}, values.get)


def verdict(name, *results, **more):
    return BY_NAME[name].on(model_scores(*results, **more)).verdict


def test_bands_are_those_of_the_primer():
    twelve, large = make_result(scores=[0.1] * 13), make_result(scores=[0.1] * 25)
    assert within(twelve, lower) == {0, 1, 2}
    assert within(twelve, middle) == {3, 4, 5, 6, 7, 8, 9}
    assert within(twelve, late_middle) == {8, 9}
    assert within(large, late_middle) == {15, 16, 17, 18, 19}
    assert within(make_result(scores=UP), middle) == {2, 3, 4}
    assert within(make_result(scores=UP), late_middle) == {4}


@pytest.mark.parametrize(
    ("claim", "task", "supported", "contradicted", "undecided"),
    [
        ("syntax-middle", "depth", (3, (2, 4)), (5, (6,)), (4, (5,))),
        ("agreement-late-middle", "agreement", (4, ()), (3, (2,)), (4, (3,))),
        ("chunks-low", "chunking", (1, (0,)), (2, (3,)), (1, (2,))),
        ("chunks-middle", "chunking", (2, (3,)), (1, (0,)), (1, (2,))),
        ("pos-middle", "pos", (2, ()), (6, ()), (3, (1,))),
    ],
)
def test_peaks(claim, task, supported, contradicted, undecided):
    assert verdict(claim, at(task, *supported)) == "supported"
    assert verdict(claim, at(task, *contradicted)) == "contradicted"
    assert verdict(claim, at(task, *undecided)) == "undecided"
    assert verdict(claim, at("other", 3)) == "not tested"


def test_the_reason_gives_the_numbers():
    result = at("depth", 3, (2, 4))
    result = with_layers(result, intervals={"accuracy": (0.95, 1.0)})
    outcome = BY_NAME["syntax-middle"].on(model_scores(result))
    assert outcome.why == (
        "best layer 3 of 6 (0.50), 1.000 [0.950, 1.000], 2, 4 may be the best too; middle: 2, 3, 4"
    )
    (numbers,) = outcome.numbers
    assert numbers["p_best"] == {0: 0.001, 1: 0.001, 2: 0.5, 4: 0.5, 5: 0.001, 6: 0.001}
    assert (numbers["relative_depth"], numbers["peak_layers"]) == (0.5, [2, 3, 4])


def test_a_layer_that_beats_the_best_one_on_test_may_be_the_peak():
    def better_on_test(layer):
        if layer.layer != 6:
            return layer.fits
        return (layer.fits[0].model_copy(update={"test": {"accuracy": 1.5}}),)

    result = with_layers(at("depth", 3), fits=better_on_test)
    assert confidence_set(result) == {3}
    assert peaks(result) == {3, 6}
    assert verdict("syntax-middle", result) == "undecided"


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (at("pos", 3), "depth was not run"),
        (make_result("depth", UP[:3], n_layers=6), "depth was not run at layer 3, 4, 5, 6"),
        (make_result("depth", UP, [None] * 7), "depth has too few test sentences"),
        (
            make_result("depth", UP, False),
            "depth has no training variance, which tests of layers need",
        ),
        (
            make_result("depth", (0.1, 0.2)),
            "a model of 1 layers has none that counts as middle",
        ),
    ],
)
def test_a_claim_that_lacks_results_is_not_tested(result, why):
    outcome = BY_NAME["syntax-middle"].on(model_scores(result))
    assert outcome.verdict == "not tested"
    assert why in outcome.why


@pytest.mark.parametrize(
    ("pos", "depth", "srl", "expected"),
    [
        ((1, ()), (3, (2,)), (5, (4,)), "supported"),
        ((1, (2,)), (3, (2,)), (5, ()), "undecided"),
        ((3, ()), (3, ()), (5, ()), "undecided"),
        ((3, (4,)), (1, (2,)), (5, ()), "contradicted"),
        ((4, ()), (4, (3, 5)), (2, (3,)), "contradicted"),
    ],
)
def test_pipeline_by_best_layers(pos, depth, srl, expected):
    results = (at("pos", *pos), at("depth", *depth), at("srl", *srl))
    assert verdict("pipeline-order", *results) == expected
    assert verdict("pipeline-order", *results[:2]) == "not tested"


def test_the_pipeline_claim_gives_its_ranges():
    results = (at("pos", 1), at("depth", 3, (2,)), at("srl", 5))
    outcome = BY_NAME["pipeline-order"].on(model_scores(*results))
    assert outcome.why == "layers that may be the best: pos 1, depth 2–3, srl 5"


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        (((1.0, 1.2), (1.3, 1.5), (2.0, 2.2)), "supported"),
        (((1.0, 1.4), (1.3, 1.5), (2.0, 2.2)), "undecided"),
        (((1.0, 1.2), (2.3, 2.5), (2.0, 2.2)), "contradicted"),
        (((1.0, 1.2), None, (2.0, 2.2)), "by peaks"),
    ],
)
def test_pipeline_by_expected_layers(ranges, expected):
    results = {}
    # By best layers the claim would be supported.
    for (name, best), bounds in zip({"pos": 1, "depth": 3, "srl": 5}.items(), ranges, strict=True):
        result = at(name, best)
        results[name] = located(result, bounds)
    outcome = BY_NAME["pipeline-order"].on(ModelScores(results, lambda task: None))
    if expected == "by peaks":
        assert outcome.verdict == "supported"
        assert outcome.why.startswith("layers that may be the best")
    else:
        assert outcome.verdict == expected
        assert outcome.why.startswith("expected layer: pos 1–")


def located(result, expected_layer, kl=None):
    """The result with a localisation of these intervals; a gain that is not there has neither."""
    known = expected_layer or kl
    none = Estimate(value=None, interval=None, missing="no gain")
    first = Estimate(value=known and sum(known) / 2, interval=expected_layer)
    mix = MixResult(k=0, weights=(1.0,), l2=0.1, dev={}, test={}, intervals={})
    mixes = Mixes(
        mixes=(mix,),
        total_gain=none,
        expected_layer=first,
        centre_of_gravity=none,
        kl=Estimate(value=kl and sum(kl) / 2, interval=kl),
        sample_weights=(),
    )
    return result.with_evidence(evidence_record(result, "localisation", mixes))


def three(scores):
    return [make_result(task, scores) for task in ("pos", "depth", "srl")]


def test_middle_transfers_best():
    name = "middle-transfers-best"
    assert verdict(name, *three(UP), noise=0.01) == "supported"
    assert verdict(name, *three(UP[::-1][3:] + UP[:3]), noise=0.01) == "contradicted"
    assert verdict(name, *three(UP), noise=5) == "undecided"
    assert verdict(name, *three(UP)[:2]) == "not tested"
    outcome = BY_NAME[name].on(model_scores(*three(UP), noise=0.001))
    by_layer = [numbers["mean_rank"] for numbers in outcome.numbers[1:]]
    assert by_layer == [7, 5, 3, 1, 2, 4, 6]
    assert outcome.numbers[1 + 3]["interval"] == [1, 1]
    partial = make_result("chunking", UP[:3], n_layers=6)
    outcome = BY_NAME[name].on(model_scores(*three(UP), partial, noise=0.001))
    assert outcome.verdict == "supported"
    assert "left out: chunking was not run at layer 3, 4, 5, 6" in outcome.why
    nothing = ModelScores({r.task.name: r for r in three(UP)}, lambda task: None)
    assert "predictions of pos are not beside" in BY_NAME[name].on(nothing).why


@pytest.mark.slow
@pytest.mark.parametrize("truth", [(0,) * 7, (-6, -3, -3, 0, -3, 0, -6), (0, 0, -5, 0, -5, -5, -5)])
def test_equal_peaks_inside_and_outside_the_middle_are_rarely_told_apart(truth):
    """True scores in units of their standard error; five tasks, noise of its own in each layer."""
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(400):
        results, values = {}, {}
        for task in "abcde":
            scores = np.array(truth) + rng.standard_normal(7)
            results[task] = make_result(task, scores)
            values[task] = scores[:, None] + rng.standard_normal((7, 500))
        found = BY_NAME["middle-transfers-best"].on(ModelScores(results, values.get))
        wrong += found.verdict != "undecided"
    assert wrong / 400 <= 0.05


def test_the_last_layer_drops():
    name = "last-layers-drop"
    falls, rises = at("pos", 3), at("srl", 6)
    open_, open_too = at("srl", 6, (5,)), at("depth", 4, (5, 6))
    assert last_drop(falls) == (pytest.approx(0.031), 0.001)
    assert last_drop(rises) == (0, None)
    assert verdict(name, falls, at("depth", 4)) == "supported"
    assert verdict(name, falls, rises, open_too) == "contradicted"
    assert verdict(name, falls, open_) == "undecided"
    assert verdict(name, falls, open_too) == "undecided"
    assert verdict(name) == "not tested"
    partial = make_result("depth", UP[:3], n_layers=6)
    outcome = BY_NAME[name].on(model_scores(falls, partial))
    assert outcome.verdict == "supported"
    assert outcome.why == (
        "last layer below the best: pos; left out: depth was not run at layer 3, 4, 5, 6"
    )


@pytest.mark.parametrize(
    ("srl", "pos", "depth", "expected"),
    [
        ((0.1, 0.2), (0.3, 0.4), (0.5, 0.6), "supported"),
        ((0.1, 0.35), (0.3, 0.4), (0.5, 0.6), "undecided"),
        ((0.45, 0.48), (0.3, 0.4), (0.5, 0.6), "contradicted"),
        ((0.1, 0.2), None, (0.5, 0.6), "not tested"),
    ],
)
def test_semantics_is_spread(srl, pos, depth, expected):
    given = {"srl": srl, "pos": pos, "depth": depth}
    results = {name: located(at(name, 3), None, bounds) for name, bounds in given.items()}
    outcome = BY_NAME["semantics-spread"].on(ModelScores(results, lambda task: None))
    assert outcome.verdict == expected
    if expected == "not tested":
        assert outcome.why == "no layer mix is located for pos"


def test_every_claim_names_its_source_and_fits_in_json():
    results = [at(task, 3) for task in ("pos", "chunking", "depth", "agreement", "srl")]
    found = model_scores(*results, noise=0.001)
    for claim in CLAIMS:
        assert claim.source.startswith("Primer 5.2; ")
        outcome = claim.on(found)
        untested = outcome.verdict == "not tested"
        assert untested == (claim.name == "semantics-spread"), outcome.why
        json.dumps(outcome, allow_nan=False)
    assert "not thereby used" in CAVEAT


def test_resampled_scores_need_predictions():
    with pytest.raises(MissingError, match="predictions of pos"):
        ModelScores({"pos": at("pos", 3)}, lambda task: None).replicates("pos")
