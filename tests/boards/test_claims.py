"""Each claim in each of its outcomes, on results made for it."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from replicates_by_hand import of_means
from results_by_hand import evidence_record, make_result, with_intervals
from scipy.sparse import csr_array
from scipy.stats import rankdata

from probes.boards.claims.bands import (
    around_layer_4,
    higher,
    late_middle,
    lower,
    middle,
    within,
)
from probes.boards.claims.claim import CAVEAT, FURTHER, NOTE, MissingError
from probes.boards.claims.literature import CLAIMS
from probes.boards.claims.model_rows import ModelRows
from probes.records.row import Row
from probes.statistics.bootstrap import resample
from probes.statistics.metrics import metrics
from probes.statistics.replicates import Replicates

METHOD = Path(__file__).parents[2] / "docs" / "method.md"
BY_NAME = {claim.name: claim for claim in CLAIMS}
UP = (0.1, 0.3, 0.5, 0.7, 0.6, 0.4, 0.2)
"""Six layers, best in the middle at 3."""


def made(task, scores, p=None, **more):
    """A result with intervals."""
    result = make_result(task, scores, p, **more)
    return with_intervals(result, (0.0, 1.0))


def at(task, best, also=(), n=6):
    """A result whose best layer is `best` and cannot be separated from the layers in `also`."""
    scores = [1 - abs(layer - best) / 100 - (layer > best) / 1000 for layer in range(n + 1)]
    p = [1.0 if x == best else 0.5 if x in also else 0.001 for x in range(n + 1)]
    return made(task, scores, p)


def model_rows(*results, noise=0.001, mixes=None):
    """The rows of results with resamples of their scores, and of those of mixes by task."""
    values = {
        r.task.name: of_means([r.score(x) for x in r.layers], noise, seed=i)
        for i, r in enumerate(results)
    }
    drawn = {"scores": values, "localisation": mixes or {}}
    return ModelRows(results, lambda task, measurement: drawn[measurement].get(task))


def outcome(name, *results, **more):
    return BY_NAME[name].on(model_rows(*results, **more))


def verdict(name, *results, **more):
    return outcome(name, *results, **more).verdict


def test_bands_are_those_of_the_primer():
    assert within(12, middle) == {6, 7, 8, 9}
    assert within(24, middle) == {14, 15, 16, 17, 18, 19}
    assert within(6, middle) == {3, 4}
    assert within(36, middle) == set(range(21, 29))
    # Half-way between 12 and 24 layers: from 13/24 to 37/48.
    assert within(18, middle) == {10, 11, 12, 13}
    assert within(12, higher) == {10, 11, 12}
    assert within(24, higher) == {20, 21, 22, 23, 24}
    assert within(12, lower) == {0, 1, 2, 3, 4}
    assert within(6, lower) == {0, 1, 2}
    assert within(12, late_middle) == {8, 9}
    assert within(24, late_middle) == {15, 16, 17, 18, 19}
    assert within(6, late_middle) == {4}
    assert [around_layer_4(n) for n in (1, 6, 12, 24)] == [(0, 1), (1, 3), (3, 5), (6, 10)]


@pytest.mark.parametrize(
    ("claim", "task", "supported", "contradicted", "undecided"),
    [
        ("word-order-low", "position", (1, (0, 2)), (3, (4,)), (2, (3,))),
        ("syntax-middle", "depth", (3, (4,)), (5, (2, 6)), (4, (5,))),
        ("agreement-late-middle", "agreement", (4, ()), (3, (2,)), (4, (3,))),
        ("syntactic-probing-middle", "tree-depth", (4, (3,)), (2, ()), (3, (2,))),
        ("chunks-middle", "chunking", (4, (3,)), (1, (0,)), (3, (2,))),
        ("pos-middle", "pos", (3, ()), (6, ()), (3, (1,))),
    ],
)
def test_peaks(claim, task, supported, contradicted, undecided):
    assert verdict(claim, at(task, *supported)) == "supported"
    assert verdict(claim, at(task, *contradicted)) == "contradicted"
    assert verdict(claim, at(task, *undecided)) == "undecided"
    assert verdict(claim, at("other", 3)) == "not tested"


def test_the_reason_gives_the_numbers():
    result = with_intervals(at("depth", 3, (2, 4)), (0.95, 1.0))
    found = outcome("syntax-middle", result)
    assert found.why == (
        "depth is best at 2, 3, 4 of 6; on dev at 3, 1.000 [0.950, 1.000]; middle: 3, 4"
    )
    (numbers,) = found.numbers
    assert numbers["p_best"] == {0: 0.001, 1: 0.001, 2: 0.5, 3: 1.0, 4: 0.5, 5: 0.001, 6: 0.001}
    assert (numbers["best_layer"], numbers["peak_layers"]) == (3, [2, 3, 4])


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (at("pos", 3), "depth was not run"),
        (made("depth", UP[:3], n_layers=6), "depth was not run at layer 3, 4, 5, 6"),
        (make_result("depth", UP), "depth has no intervals: fewer than 20 test sentences"),
        (
            made("depth", UP, False),
            "depth has no training variance, which tests of layers need",
        ),
        (made("depth", (0.1, 0.2)), "a model of 1 layers has none that counts as middle"),
    ],
)
def test_a_claim_that_lacks_results_is_not_tested(result, why):
    found = outcome("syntax-middle", result)
    assert found.verdict == "not tested"
    assert why in found.why


@pytest.mark.parametrize(
    ("chunking", "depth", "expected"),
    [
        ((1, (2,)), (4, (3,)), "supported"),
        ((1, (3,)), (4, (3,)), "undecided"),
        ((3, (2,)), (3, (2,)), "undecided"),
        ((3, ()), (3, ()), "contradicted"),
        ((4, (5,)), (3, (2, 4)), "contradicted"),
    ],
)
def test_chunking_before_parsing(chunking, depth, expected):
    results = (at("chunking", *chunking), at("depth", *depth))
    assert verdict("chunks-before-parsing", *results) == expected
    assert verdict("chunks-before-parsing", results[0]) == "not tested"


@pytest.mark.parametrize(
    ("length", "tree_depth", "srl", "expected"),
    [
        ((0, (2,)), (3, (4,)), (6, (5,)), "supported"),
        ((0, (3,)), (3, ()), (6, ()), "undecided"),
        ((0, ()), (3, ()), (4, (3,)), "contradicted"),
        ((4, ()), (3, (2,)), (6, ()), "contradicted"),
    ],
)
def test_surface_syntax_and_semantics(length, tree_depth, srl, expected):
    results = (at("length", *length), at("tree-depth", *tree_depth), at("srl", *srl))
    assert verdict("surface-syntax-semantics", *results) == expected
    assert verdict("surface-syntax-semantics", *results[:2]) == "not tested"


def test_word_order_falls():
    name = "word-order-falls"
    rises = made("position", UP)
    # From layer 1 to layer 3, in UP from .3 to .7.
    bump = made("position", (0.1, 0.7, 0.8, 0.3, 0.9, 0.9, 0.9))
    assert verdict(name, bump) == "supported"
    assert verdict(name, rises) == "contradicted"
    assert verdict(name, bump, noise=1) == "undecided"
    assert verdict(name, made("position", UP, False)) == "not tested"
    nothing = ModelRows([rises])
    assert "predictions of position are not beside" in BY_NAME[name].on(nothing).why
    found = outcome(name, rises)
    assert found.why.startswith("position per layer: 0–1 +0.200 [+0.19")
    assert [x["layers"] for x in found.numbers] == ["0–1", "1–3", "3–6"]
    assert [x["change"] for x in found.numbers] == pytest.approx([0.2, 0.2, -0.5 / 3])
    # In none of 2,000 resamples as large.
    assert found.p == pytest.approx(1 / 2001)
    assert outcome(name, made("position", UP[:4])).why == (
        "a model of 3 layers has none before or after such a step"
    )


STEADY, FLAT = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3), (0.9,) * 7


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ((0.9, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4), "supported"),  # from there on
        ((0.9, 0.9, 0.7, 0.5, 0.5, 0.5, 0.5), "supported"),  # only there
        (STEADY, "undecided"),
        ((0.9, 0.6, 0.55, 0.5, 0.5, 0.5, 0.5), "contradicted"),  # before
        ((0.9, 0.9, 0.89, 0.88, 0.6, 0.5, 0.1), "contradicted"),  # afterwards
        (FLAT, "undecided"),
        ((0.9, 0.9, 0.9, 0.9, 0.6, 0.6, 0.6), "contradicted"),
    ],
)
def test_word_order_falls_around_layer_4_and_nowhere_else(scores, expected):
    assert verdict("word-order-falls", made("position", scores), noise=0.005) == expected
    sure = verdict("word-order-falls", made("position", scores), noise=1e-5)
    assert sure == expected or scores in (STEADY, FLAT)


def test_linear_combinations_of_scores_are_those_of_their_resamples():
    values = of_means(UP, 0.01, 0.02)
    weights = np.array([[0, -0.5, 0, 0.5, 0, 0, 0], [1, 0, 0, 0, 0, 0, -1]])
    found = values.combined(weights)
    assert found.scores == pytest.approx([(UP[3] - UP[1]) / 2, UP[0] - UP[6]])
    assert found.resampled == pytest.approx(weights @ values.resampled)
    assert found.row(1).influence[0] == pytest.approx(values.influence[0] - values.influence[6])
    assert found.training == pytest.approx(0.02**2 * np.array([0.5, 2]))


def test_knowledge_of_hierarchy_rises():
    name = "hierarchy-rises"
    up, down, flat = UP, (0.9, 0.8, 0.7, 0.6, 0.5, 0.5, 0.5), (0.5,) * 7

    def results(verb, noun):
        return made("main-verb", verb), made("subject-noun", noun)

    assert verdict(name, *results(up, up)) == "supported"
    assert verdict(name, *results(up, down)) == "contradicted"
    assert verdict(name, *results(up, flat)) == "undecided"
    assert verdict(name, *results(up, up)[:1]) == "not tested"


def mixed(task, scores=(), expected_layer=None, kl=None):
    """A result with a localisation; without a gain over layer 0 there is no expected layer."""
    result = at(task, 3)
    low, high = expected_layer or (None, None)
    mixes = [
        *(Row("mix_score", score, k) for k, score in enumerate(scores or (0.1,))),
        Row("total_gain", None, why="no gain"),
        Row("expected_layer", 1.0, None, low, high)
        if expected_layer
        else Row("expected_layer", None, why="no gain"),
        Row("centre_of_gravity", None, why="no gain"),
        Row("kl", 1.0, None, *(kl or (None, None))),
    ]
    return result.with_evidence(evidence_record(result, "localisation", mixes))


@pytest.mark.parametrize(
    ("pos", "deprel", "srl", "expected"),
    [
        ((1.0, 1.2), (1.3, 1.5), (2.0, 2.2), "supported"),
        ((1.0, 1.4), (1.3, 1.5), (2.0, 2.2), "undecided"),
        ((1.0, 1.2), (2.3, 2.5), (2.0, 2.2), "contradicted"),
        ((2.3, 2.5), (1.3, 2.4), (2.0, 2.2), "contradicted"),
        ((1.0, 1.2), None, (2.0, 2.2), "not tested"),
    ],
)
def test_pipeline(pos, deprel, srl, expected):
    given = {"pos": pos, "deprel": deprel, "srl": srl}
    results = [mixed(name, expected_layer=each) for name, each in given.items()]
    found = outcome("pipeline-order", *results)
    assert found.verdict == expected
    if expected == "supported":
        assert (
            found.why == "expected layer: pos [1.00, 1.20], deprel [1.30, 1.50], srl [2.00, 2.20]"
        )
    if expected == "not tested":
        assert found.why == "deprel has no expected layer: no gain"


def test_the_pipeline_is_not_tested_on_peaks():
    found = outcome("pipeline-order", at("pos", 1), at("deprel", 3), at("srl", 5))
    assert found.verdict == "not tested"
    assert found.why == "pos has no localisation: there is no record of it"


NARROW, WIDE = (0.1, 0.3, 0.6, 0.7, 0.7, 0.7, 0.7), (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
"""Cumulative scores whose gains lie at layers 1 to 3, and at all."""


@pytest.mark.parametrize(
    ("kl", "gains", "expected"),
    [
        ((0.1, 0.2), WIDE, "supported"),
        ((0.1, 0.35), WIDE, "undecided"),
        ((0.1, 0.2), NARROW, "undecided"),
        ((0.65, 0.7), WIDE, "contradicted"),
        ((0.1, 0.2), (0.1, *(0.7,) * 6), "contradicted"),
        (None, WIDE, "not tested"),
    ],
)
def test_semantics_is_spread(kl, gains, expected):
    given = {"srl": kl, "pos": (0.3, 0.4), "deprel": (0.5, 0.6)}
    results = [mixed(name, expected_layer=(1, 2), kl=each) for name, each in given.items()]
    curves = {"srl": gains, "pos": NARROW, "deprel": NARROW}
    found = outcome(
        "semantics-spread",
        *results,
        mixes={task: of_means(curve, 0.001) for task, curve in curves.items()},
    )
    assert found.verdict == expected
    if expected == "supported":
        # Of the layers 1 to 6: √(35 / 12). Of 1, 2 and 3 with weights 1/3, 1/2 and 1/6: √17 / 6.
        means = {each["task"]: np.mean(each["gain_deviation"]) for each in found.numbers}
        assert means == pytest.approx({"pos": 0.687, "deprel": 0.687, "srl": 1.708}, abs=0.01)
    if expected == "not tested":
        assert found.why == "no interval can be given for srl"


@pytest.mark.parametrize("task", ["proto-roles", "coreference"])
def test_each_semantic_task_has_its_own_claim(task):
    given = {task: (0.1, 0.2), "pos": (0.3, 0.4), "deprel": (0.5, 0.6), "srl": (0.9, 1)}
    results = [mixed(name, expected_layer=(1, 2), kl=each) for name, each in given.items()]
    curves = {task: WIDE, "pos": NARROW, "deprel": NARROW, "srl": NARROW}
    mixes = {name: of_means(curve, 0.001) for name, curve in curves.items()}
    assert outcome(f"{task}-spread", *results, mixes=mixes).verdict == "supported"
    assert outcome("semantics-spread", *results, mixes=mixes).verdict == "contradicted"


def test_semantics_is_not_tested_without_predictions_on_mixes():
    results = [
        mixed(name, expected_layer=(1, 2), kl=(0.1, 0.2)) for name in ("pos", "deprel", "srl")
    ]
    found = outcome("semantics-spread", *results)
    assert found.why == "the predictions on mixes of pos are not beside them"


def test_final_layers_lower_cumulative_scores():
    name = "final-layers-lower"
    # Above the middle are layers 5 and 6.
    curves = {
        "fall": (0, 0, 0, 0, 0.5, 0.9, 0.6),
        "rise": (0, 0.5, 0.4, 0.3, 0.2, 0.3, 0.4),
        "flat": (0, 0, 0, 0, 0.5, 0.5, 0.9),
    }

    def found(*kinds, noise=0.001):
        by_task = {f"{kind} {i}": curves[kind] for i, kind in enumerate(kinds)}
        results = [mixed(task, scores) for task, scores in by_task.items()]
        drawn = {task: of_means(scores, 0.001, noise) for task, scores in by_task.items()}
        return outcome(name, *results, mixes=drawn)

    assert found("fall", "fall", "rise").verdict == "supported"
    assert found("fall", "fall", "rise", noise=1).verdict == "undecided"
    assert found("rise", "rise", "fall", "flat").verdict == "contradicted"
    assert found("fall", "fall", "flat", "flat").verdict == "undecided"
    assert found("fall", "fall").verdict == "not tested"
    one = found("fall", "flat", "rise")
    assert one.why == (
        "cumulative scores of 3 tasks at layers 5–6: one layer lowers fall 0; all raise rise 2"
    )
    gains = [each["gain"] for each in one.numbers]
    assert gains == pytest.approx([0.4, -0.3, 0, 0.4, 0.1, 0.1])


def three(scores):
    return [made(task, scores) for task in ("pos", "depth", "srl")]


def test_middle_transfers_best():
    name = "middle-transfers-best"
    assert verdict(name, *three(UP), noise=0.01) == "supported"
    assert verdict(name, *three([0.8 - score for score in UP]), noise=0.01) == "contradicted"
    assert verdict(name, *three(UP), noise=5) == "undecided"
    assert verdict(name, *three(UP)[:2]) == "not tested"
    found = outcome(name, *three(UP))
    assert [numbers["mean_rank"] for numbers in found.numbers[1:]] == [7, 5, 3, 1, 2, 4, 6]
    assert found.numbers[1 + 3]["interval"] == [1, 1]
    partial = made("chunking", UP[:3], n_layers=6)
    found = outcome(name, *three(UP), partial)
    assert found.verdict == "supported"
    assert "left out: chunking was not run at layer 3, 4, 5, 6" in found.why
    nothing = ModelRows(three(UP))
    assert "predictions of pos are not beside" in BY_NAME[name].on(nothing).why


def leading(*layers):
    """Six layers, of which these lead: by less and less, and by far above the others."""
    return [0.8 - 0.0005 * layers.index(x) if x in layers else 0.1 * x / 6 for x in range(7)]


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ((3, 4), "supported"),
        ((3,), "supported"),
        ((3, 5), "undecided"),
        ((2, 4), "undecided"),
        ((2, 5), "contradicted"),
        ((0, 1, 6), "contradicted"),
    ],
)
def test_layers_whose_mean_rank_may_be_the_best(layers, expected):
    found = outcome("middle-transfers-best", *three(leading(*layers)), noise=0.001)
    assert found.verdict == expected
    named = ", ".join(map(str, sorted(layers)))
    assert found.why == (
        f"mean rank over pos, depth, srl is best at {named}; middle: 3, 4; "
        f"lowest: layer {layers[0]} with 1.0"
    )
    assert {x["layer"] for x in found.numbers[1:] if x["p_best"] >= 0.05} == set(layers)


def test_the_p_value_of_two_mean_ranks_by_definition(monkeypatch):
    """The difference of two layers that alone change places is tested by itself."""
    monkeypatch.setattr("probes.boards.claims.layers.blocks", lambda n: [resample(n)])
    results = three(leading(3, 5))
    found = model_rows(*results, noise=0.001)
    ranks = [rankdata(-found.tested(r.task.name).resampled, axis=0)[[3, 5]] for r in results]
    above, below = np.mean(ranks, axis=0)
    # 1 and 2 in the sample; 2 − 1 has to be exceeded, in either direction.
    p = (np.sum(np.abs(below - above - 1) >= 1 - 1e-9) + 1) / 2001
    numbers = BY_NAME["middle-transfers-best"].on(found).numbers[1:]
    assert numbers[5]["p_best"] == pytest.approx(p)
    assert 0.05 < p < 1
    assert [numbers[layer]["p_best"] for layer in (0, 1, 2, 4, 6)] == [pytest.approx(1 / 2001)] * 5


TRUTHS = [(0,) * 7, (-6, -3, 0, 0, -3, -3, -6), (0, 0, -5, 0, -5, -5, -5)]
"""Scores in standard errors, of which the highest are in the middle and outside."""


class Normal(Replicates):
    """Scores with normal errors, in resamples as in the sample."""

    def __init__(self, scores, rng):
        nothing = [csr_array(np.zeros((100, 2)))]
        super().__init__(scores, metrics.get("accuracy"), nothing, range(7), "")
        object.__setattr__(self, "rng", rng)

    def within(self, block, draws):
        return self.scores[:, None] + self.rng.standard_normal((7, 500))


def share_of_sides_taken(truth, n_sets):
    """How often five tasks decide, with errors of its own in each layer."""
    rng, decided = np.random.default_rng(0), 0
    for _ in range(n_sets):
        results, values = [], {}
        for task in "abcde":
            scores = np.array(truth) + rng.standard_normal(7)
            results.append(made(task, scores))
            values[task] = Normal(scores, rng)
        model = ModelRows(results, lambda task, _, values=values: values.get(task))
        decided += BY_NAME["middle-transfers-best"].on(model).verdict != "undecided"
    return decided / n_sets


@pytest.mark.parametrize("truth", TRUTHS)
def test_equal_peaks_inside_and_outside_the_middle_are_rarely_told_apart(truth):
    assert share_of_sides_taken(truth, 200) <= 0.05


def test_every_claim_names_its_source_and_fits_in_json():
    tasks = (
        "agreement chunking coreference deprel depth length main-verb pos position proto-roles srl "
        "subject-noun tree-depth"
    )
    results = [mixed(task, UP, (1, 2), (0.1, 0.2)) for task in tasks.split()]
    mixes = {result.task.name: of_means(UP, 0.001) for result in results}
    found = model_rows(*results, mixes=mixes)
    assert len(BY_NAME) == len(CLAIMS)
    # Of pairs of models, of structure and of geometry.
    others = {"fine-tuning-changes-final", "trees-middle", "chunk-clusters-fade"}
    of_layers = [claim for claim in CLAIMS if claim.section in ("5.2", "7.1")]
    assert len(of_layers) == 20
    for claim in of_layers:
        assert claim.source.startswith(("Primer 5.2; ", "Primer 7.1; "))
        result = claim.on(found)
        assert (result.verdict == "not tested") == (claim.name in others), result.why
        assert claim.differs
        assert claim.differs in claim.note
        json.dumps(result, allow_nan=False)
    assert "does not mean that the model uses it" in CAVEAT


def test_the_method_section_lists_every_claim():
    text = METHOD.read_text(encoding="utf-8")
    for claim in CLAIMS:
        where = claim.source.removeprefix("Primer ")
        source = f"| `{claim.name}` | {claim.statement} ({where}) | "
        (row,) = [line for line in text.splitlines(keepends=True) if line.startswith(source)]
        assert row.endswith(f" {claim.differs} |\n")


def test_it_lists_the_claims_that_nothing_here_can_test():
    _, table = METHOD.read_text(encoding="utf-8").split("| what it needs |\n")
    rows = re.findall(
        r"^\| `([a-z-]+)` \| .+ \((?:3|5\.[12]).*; .+ \d{4}a?\) \| .+ \|$", table, re.M
    )
    assert len(rows) == FURTHER
    assert not set(rows) & set(BY_NAME)
    assert f"{FURTHER} further claims" in NOTE


def test_resampled_scores_need_predictions():
    with pytest.raises(MissingError, match="predictions of pos"):
        ModelRows([at("pos", 3)]).tested("pos")
