"""Each rule in each of its outcomes, on rows made for it, and the claims of the table."""

import json
from functools import partial
from pathlib import Path

import pytest
from corpus_records import corpus_record, geometry, store_record
from heads_by_hand import attention, choice, numbers
from results_by_hand import changed, evidence_record, make_result
from scipy.stats import norm

from probes.boards.claims.claim_reports import NOTE, make_reports, verdicts_tables
from probes.boards.claims.rules import (
    MissingError,
    ModelRows,
    Outcome,
    Reads,
    any_of,
    beside_twin,
    corrected,
    greater,
    most_of,
    p_above,
    part_of,
    peak_in,
    somewhere,
)
from probes.boards.claims.score_claims import all_claims
from probes.cli.results import records_below
from probes.measurements.measurement import get_measurement
from probes.records.row import Row
from probes.statistics.quantities import quantities

BY_NAME = {claim.name: claim for claim in all_claims()}
PUBLISHED = Path(__file__).parents[2] / "results/published/all-MiniLM-L6-v2-07db4e1f/sample"
N = 6
"""Layers: 0 to 2 are lower, 3 and 4 in the middle, 5 and 6 higher."""


def on(name, *records):
    return BY_NAME[name].rule(model=ModelRows(records))


def row(metric, value, half=0.05, layer=None, n=100, p=None, **axes):
    ends = (None, None) if half is None else (value - half, value + half)
    return Row(metric, value, layer, *ends, n=n, p=p, axes=axes)


def with_evidence(task, measurement, *rows, n=N):
    result = make_result(task, [0.1] * (n + 1))
    return result.with_evidence(evidence_record(result, measurement, rows))


def best_at(task, *layers, n=N):
    """A result whose best layer may be one of these."""
    return make_result(task, [0.5] * (n + 1), [0.5 if x in layers else 0.001 for x in range(n + 1)])


def test_parts_of_models():
    expected = {
        # Of 18 layers half-way between 12 and 24: from 13/24 to 37/48.
        "middle": {12: (6, 9), 24: (14, 19), 6: (3, 4), 18: (10, 13), 36: (21, 28)},
        "late middle": {12: (8, 9), 6: (4, 4)},
        "lower": {12: (0, 4), 6: (0, 2)},
        "higher": {12: (10, 12), 24: (20, 24)},
        "last two": {5: (4, 5)},
        "below the last two": {5: (1, 3)},
    }
    for name, parts in expected.items():
        for n, (first, last) in parts.items():
            assert part_of(name, n) == set(range(first, last + 1))
    with pytest.raises(
        MissingError, match="a model of 1 layers has no layers that count as middle"
    ):
        part_of("middle", 1)


def test_the_p_value_of_two_intervals_is_that_of_normal_ones():
    """Of .3 ± .03 and .36 ± .02: .06 in units of .05 / 1.96."""
    found = p_above((0.34, 0.38), (0.27, 0.33))
    assert found == pytest.approx(2 * norm.sf(1.959964 * 0.06 / 0.05))
    assert p_above((0.27, 0.33), (0.34, 0.38)) == 1
    # It is .05 where they touch, and 0 or 1 without any width.
    assert p_above((0.2, 0.5), (0.1, 0.2)) == pytest.approx(0.05, abs=1e-6)
    assert (p_above((0.2, 0.2), (0.1, 0.1)), p_above((0.1, 0.1), (0.1, 0.1))) == (0, 1)


def test_of_several_statements_one_or_most():
    assert any_of([0.04, 0.3, 0.01]) == pytest.approx(0.03)
    assert any_of([0.5, 0.6]) == 1
    # Two of three: the second, of which two may be wrong.
    assert most_of([0.04, 0.3, 0.01]) == pytest.approx(0.08)
    # Three of four, and one of one.
    assert most_of([0.01, 0.02, 0.03, 1]) == pytest.approx(0.06)
    assert most_of([0.03]) == 0.03


COSINES = Reads("geometry", "anisotropy", layers="above 0")


@pytest.mark.parametrize(
    ("values", "needed", "expected"),
    [
        ([0.2, 0.2, 0.2, 0.3, 0.4, 0.3], max, "supported"),
        ([0.08, 0.2, 0.2, 0.3, 0.4, 0.3], max, "undecided"),  # one of six does not contradict
        ([0.08, 0.08, 0.08, 0.3, 0.4, 0.3], max, "undecided"),
        ([0.08, 0.08, 0.08, 0.08, 0.4, 0.3], max, "contradicted"),
        ([0.2, 0.2, 0.2, 0.3, 0.4, 0.105], max, "undecided"),
        ([0.08, 0.08, 0.2, 0.3, 0.4, 0.3], most_of, "supported"),
        ([0.08, 0.08, 0.08, 0.3, 0.4, 0.3], most_of, "undecided"),
        ([0.08, 0.08, 0.08, 0.08, 0.4, 0.3], most_of, "contradicted"),
    ],
)
def test_greater_than_a_limit_at_all_layers_or_at_most(values, needed, expected):
    model = ModelRows([geometry([0.0, *values], half=0.01)])
    assert greater((COSINES, 0.1), model=model, needed=needed).verdict == expected


def test_the_reason_gives_the_least_and_the_greatest_numbers_and_the_best_layers():
    found = on("narrower-higher", geometry([0.1, 0.2, 0.3, 0.0, 0.9, 0.4, 0.5]))
    assert found.why == (
        "anisotropy at layers 5–6: .400 to .500 [.390, .510]; "
        "anisotropy at layers 0–2: .100 to .300 [.090, .310]"
    )
    assert [x["layer"] for x in found.numbers] == [5, 6, 0, 1, 2]
    peaks = on("syntax-middle", best_at("depth", 2, 3))
    assert peaks.why == "depth is best at layers 2–3 of 6; middle: layers 3–4"


def test_p_values_of_several_tasks_are_corrected():
    rows = [
        row("ablation_drop", -0.1, 0.001, 1, p=0.04, at=N, predicts=x, disabled="head", head=1)
        for x in ("pos", "srl")
    ]
    assert on("some-heads-hurt", corpus_record("ablation", rows[:1], N)).verdict == "supported"
    found = on("some-heads-hurt", corpus_record("ablation", rows, N))
    assert (found.verdict, found.p) == ("undecided", pytest.approx(0.08))


def rising(*values):
    return geometry(values, self_similarity=values)


def expected_layers(**by_task):
    return [
        with_evidence(task, "localisation", row("expected_layer", x, 0.1))
        for task, x in by_task.items()
    ]


def negations(*right):
    """Of 18 sentences of each paradigm, so many are answered right."""
    names = [f"NEG-136-SIMP, {x}" for x in ("affirmative", "negative")]
    rows = [
        row("sensitivity", k / 18, None, n=18, threshold=0.0, paradigm=x, phenomenon="NEG-136-SIMP")
        for k, x in zip(right, names, strict=True)
    ]
    return corpus_record("completion", rows, N)


def less_used(*found):
    """Of each layer, how much less is used than decodable, with its p-value."""
    rows = [row("decodable_less_used", x, layer=i, p=p) for i, (x, p) in enumerate(found)]
    return with_evidence("agreement", "cloze", *rows)


def drops(*found):
    """By head, what the last layer loses without it; the layer below it always gains."""
    axes = {"predicts": "pos", "disabled": "head"}
    last = [
        row("ablation_drop", x, 0.001, 1, p=p, at=N, head=i, **axes)
        for i, (x, p) in enumerate(found)
    ]
    below = [x._replace(value=-1.0, p=1e-9, axes={**x.axes, "at": N - 1}) for x in last]
    return corpus_record("ablation", last + below, N)


def trees_best_at(*layers):
    """UUAS is best at these layers, and NSpr at layer 3."""
    rows = [
        row(f"{name}_p_best", 0.5 if x in best else 0.001, None, x, rank=64)
        for name, best in (("uuas", layers), ("nspr", (3,)))
        for x in range(N + 1)
    ]
    return corpus_record("structure", rows, N, facts={"rank": 64})


def recovered_trees():
    uuas = [
        row("uuas", x, 0.01, i, rank=64) for i, x in enumerate((0.1, 0.1, 0.1, 0.7, 0.6, 0.1, 0.1))
    ]
    others = [row("chain_uuas", 0.43, 0.01), row("uuas", 0.1, 0.01, 3, rank=1)]
    return corpus_record("structure", uuas + others, N, facts={"rank": 64})


def known_agreement():
    rows = [
        row("cloze_accuracy", x, **group, **rule)
        for group in ({}, {"group": "1+ attractors"})
        for x, rule in ((0.9, {}), (0.7, {"baseline": "majority"}))
    ]
    return with_evidence("agreement", "cloze", *rows)


def with_heads(*choices, special=(0.4, 0.4, 0.1)):
    shares = numbers("special", [special] * 2, (0.2, 0.2))
    return attention(choices, [shares], n_heads=3)


def by_block(measurement, metric, *values, n, **axes):
    rows = [row(metric, x, 0.01, i, **axes) for i, x in enumerate(values, 1)]
    return corpus_record(measurement, rows, n)


changed_maps = partial(by_block, "attention_change", "map_divergence", n=5, base="b")
distances = partial(by_block, "head_similarity", "head_distance_difference", n=6)
YES, NO, OPEN = "supported", "contradicted", "undecided"
VERDICTS = [
    ("narrower-higher", rising(0.1, 0.2, 0.3, 0.0, 0.9, 0.4, 0.5), YES),
    ("narrower-higher", rising(0.5, 0.4, 0.3, 0.0, 0.9, 0.2, 0.1), NO),
    ("narrower-higher", rising(0.1, 0.2, 0.3, 0.0, 0.9, 0.31, 0.4), OPEN),
    ("narrower-higher", rising(*[0.3] * 7), OPEN),
    ("context-specific-higher", rising(0.1, 0.2, 0.3, 0.0, 0.9, 0.4, 0.5), NO),
    ("context-specific-higher", rising(0.5, 0.4, 0.3, 0.0, 0.9, 0.2, 0.1), YES),
    ("pipeline-order", expected_layers(pos=1.1, deprel=1.4, srl=2.1), YES),
    ("pipeline-order", expected_layers(pos=1.1, deprel=1.2, srl=2.1), OPEN),
    ("pipeline-order", expected_layers(pos=1.1, deprel=2.4, srl=2.1), NO),  # one pair is enough
    # A share of few items is tested exactly: 4 of 18 have p = .03, 5 of 18 p = .096.
    ("negation-ignored", negations(18, 0), YES),
    ("negation-ignored", negations(18, 18), NO),
    ("negation-ignored", negations(18, 4), YES),
    ("negation-ignored", negations(18, 5), OPEN),
    ("decodable-not-used", less_used((-0.3, 0.001), (0.1, 0.2), (0.2, 0.01)), YES),
    ("decodable-not-used", less_used((-0.3, 0.001), (0.1, 0.2), (0.2, None)), OPEN),
    ("decodable-not-used", less_used((-0.3, 0.001), (-0.1, 0.01), (-0.2, 0.001)), NO),
    ("some-heads-hurt", drops((0.3, 0.001), (-0.1, 0.2), (-0.2, 0.01)), YES),
    ("some-heads-hurt", drops((0.3, 0.001), (-0.1, 0.2), (-0.2, None)), OPEN),
    ("some-heads-hurt", drops((0.3, 0.001), (0.1, 0.01), (0.2, 0.001)), NO),
    ("syntax-middle", best_at("depth", 3, 4), YES),
    ("syntax-middle", best_at("depth", 2, 3), OPEN),
    ("syntax-middle", best_at("depth", 2, 5), NO),
    ("trees-middle", trees_best_at(3, 4), YES),
    ("trees-middle", trees_best_at(2, 5), NO),
    ("chunks-before-parsing", [best_at("chunking", 1), best_at("depth", 3, 4)], YES),
    ("chunks-before-parsing", [best_at("chunking", 1, 3), best_at("depth", 3)], OPEN),
    ("chunks-before-parsing", [best_at("chunking", 3), best_at("depth", 3)], NO),
    ("heads-specialise", with_heads(choice("obj", test=0.7), choice("det", p=0.5)), YES),
    ("heads-specialise", with_heads(choice("obj", test=0.1), choice("det", test=0.2)), NO),
    ("heads-specialise", with_heads(choice("obj", test=0.1), choice("all", test=0.9)), NO),
    ("heads-specialise", with_heads(choice("obj", test=0.32, p=0.4)), OPEN),
    ("no-head-has-trees", with_heads(choice("all but punct"), choice("", measure="uas")), YES),
    ("no-head-has-trees", with_heads(choice("all but punct", test=0.95), choice("", measure="uas")), NO),
    ("special-tokens-attended", with_heads(special=(0.4, 0.4, 0.1)), YES),
    ("special-tokens-attended", with_heads(special=(0.4, 0.205, 0.1)), OPEN),
    ("special-tokens-attended", with_heads(special=(0.4, 0.1, 0.1)), NO),
    ("agreement-known", known_agreement(), YES),
    ("trees-recovered", recovered_trees(), YES),
    ("fine-tuning-changes-final", changed_maps(0.1, 0.1, 0.12, 0.3, 0.2), YES),
    ("fine-tuning-changes-final", changed_maps(0.1, 0.1, 0.25, 0.3, 0.2), OPEN),
    ("fine-tuning-changes-final", changed_maps(0.3, 0.3, 0.3, 0.1, 0.1), NO),
    ("heads-alike", distances(0.1, 0.1, 0.1, 0.1, 0.1, -0.1), YES),
    ("heads-alike", distances(0.1, 0.1, 0.1, -0.1, -0.1, -0.1), OPEN),
    ("heads-alike", distances(*[-0.1] * 6), NO),
]  # fmt: skip


@pytest.mark.parametrize(("claim", "given", "verdict"), VERDICTS)
def test_each_claim_in_each_of_its_outcomes(claim, given, verdict):
    records = given if isinstance(given, list) else [given]
    assert on(claim, *records).verdict == verdict


def test_what_is_missing_is_named():
    nothing = ModelRows([geometry([0.3] * 7)])
    missing = {}
    for claim in all_claims():
        if "geometry" not in {x.measurement for x in reads(claim)}:
            with pytest.raises(MissingError) as caught:
                claim.rule(model=nothing)
            missing[claim.name] = str(caught.value)
    assert missing["syntax-middle"] == "depth was not run"
    assert missing["trees-middle"] == "there is no record of structure (--measurements structure)"
    assert "--model BASE TUNED --measurements attention)" in missing["fine-tuning-changes-final"]
    cases = {
        "depth has no training_variance": ("syntax-middle", make_result("depth", [0.1] * 7, False)),
        "depth was not measured at layers 5–6": ("syntax-middle", make_result("depth", [0.1] * 5, n_layers=6)),
        "layers could not be tested": ("syntax-middle", make_result("depth", [0.1] * 7, [None] * 7)),
        "anisotropy of geometry has no interval": ("narrow-cone", corpus_record("geometry", [row("anisotropy", 0.1, None, x) for x in range(7)], N)),
        "attention was not measured at layer 1": ("heads-specialise", attention([choice("obj")]).model_copy(update={"extent": {2: 1}})),
    }  # fmt: skip
    for message, (name, record) in cases.items():
        with pytest.raises(MissingError, match=message):
            on(name, record)


def reads(claim):
    flat = [each for x in claim.rule.args for each in (x if isinstance(x, tuple) else (x,))]
    return [x for x in flat if isinstance(x, Reads)]


def test_every_claim_reads_what_is_measured():
    """Of measurements that are published every claim finds its rows; all others have the names."""
    assert len(BY_NAME) == len(all_claims())
    records = records_below([PUBLISHED])
    stored = {record.measurement for record in records.values() if record.task is None}
    assert stored == {"ablation", "attention", "geometry", "structure"}
    model = ModelRows(record for record in records.values() if record.task is None)
    for claim in all_claims():
        assert claim.source.startswith("Primer ")
        assert claim.differs
        assert claim.rule.func in (greater, peak_in, somewhere)
        assert reads(claim)
        for each in reads(claim):
            get_measurement(each.measurement)
            assert not each.metric or each.metric in quantities
            if each.measurement in stored:
                assert model.read(each)


def outcome(verdict="supported", p=0.01):
    return Outcome(verdict, "why", [], p)


def test_p_values_are_corrected_for_all_claims_on_a_model():
    given = {"a": outcome(p=0.03), "b": outcome(p=0.001), "c": outcome("not tested", None)}
    assert corrected(given) == {**given, "a": outcome(p=0.03)}
    found = corrected({**given, "d": outcome("undecided", 0.9)})
    assert found["a"].verdict == "undecided"
    assert found["a"].why == "why; p = .030, corrected for 3 claims .060"
    assert found["b"] == given["b"]


@pytest.mark.parametrize(
    ("own", "twin", "expected"),
    [
        ("supported", "supported", "not specific to training"),
        ("contradicted", "contradicted", "not specific to training"),
        ("supported", "contradicted", "supported"),
        ("undecided", "undecided", "undecided"),
        ("supported", "not tested", "supported"),
    ],
)
def test_a_verdict_that_the_twin_earns_is_not_specific_to_training(own, twin, expected):
    found = beside_twin(outcome(own), outcome(twin))
    assert found.verdict == expected
    assert found.why == ("why" if twin == "not tested" else f"why; random twin: {twin}")
    assert "gets the same verdict" in NOTE


def twin_of(record, name="random:m", seed=0):
    return changed(record, "model", name=name, digest=f"t{seed}", random_seed=seed)


def reports(*records):
    return make_reports({}, "", {Path(f"{i}.json"): x for i, x in enumerate(records)})


RISING = geometry([0.2, 0.2, 0.2, 0.3, 0.4, 0.5, 0.6])


def test_reports_join_the_records_of_a_model_and_its_twin(tmp_path):
    own, twin = RISING, twin_of(RISING)
    scores = {tmp_path / "s.json": best_at("depth", 3)}
    others = {tmp_path / "g.json": own, tmp_path / "t.json": twin}
    first, second = make_reports(scores, "linear", others)
    assert (first.probe, second.probe, second.marks[0][:11]) == ("linear", "", "random twin")
    assert first.outcomes["syntax-middle"].verdict == "supported"
    assert first.outcomes["narrower-higher"].verdict == "not specific to training"
    assert second.outcomes["narrower-higher"].verdict == "supported"
    lacking = len(all_claims()) - len(first.tested)
    assert first.not_tested.startswith(f"{lacking} of {len(all_claims())} claims were not tested: ")
    assert "; 3: there is no record of attention (--measurements attention)" in first.not_tested
    json.dumps(first.outcomes, allow_nan=False)
    # Of several twins the first seed counts, and one of another model not at all.
    other = twin_of(geometry([0.3] * 7), "random-1:m", 1)
    found = reports(own, other, twin)[0].outcomes["narrower-higher"]
    assert found.verdict == "not specific to training"
    assert "twin" not in reports(own, twin_of(own, "random:x"))[0].outcomes["narrower-higher"].why


def test_verdicts_on_several_models_stand_side_by_side():
    falling = changed(geometry([0.6, 0.5, 0.4, 0.3, 0.2, 0.2, 0.2]), "model", name="n", digest="n")
    found = reports(RISING, twin_of(RISING), falling)
    (table,) = verdicts_tables(found, "linear")
    assert table.title == "c 1 · linear probe · verdicts"
    assert table.heads == ("claim", "m", "n")
    texts = {row.cells[0].text: [x.text for x in row.cells[1:]] for row in table.rows}
    higher = texts["Random words have a higher cosine in higher layers than in lower ones"]
    assert higher == ["not specific to training", "contradicted"]
    assert len(texts) == len({*found[0].tested, *found[2].tested})
    assert verdicts_tables(found[:2], "linear") == []


def test_the_twin_is_found_in_the_folder_beside(tmp_path):
    path, beside = store_record(tmp_path, RISING), store_record(tmp_path, twin_of(RISING))
    for expected in ("not specific to training", "supported"):
        (report,) = make_reports({}, "", {path: RISING})
        assert report.outcomes["narrower-higher"].verdict == expected
        beside.unlink(missing_ok=True)


def test_of_several_records_that_with_default_options_counts():
    odd = geometry([0.05] * 7).model_copy(update={"settings": {"seed": 5, "least": 5}})
    for order in ((RISING, odd), (odd, RISING)):
        (report,) = reports(*order)
        assert report.outcomes["narrower-higher"].verdict == "supported"
