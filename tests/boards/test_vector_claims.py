"""Claims about vectors and trees in each of their outcomes, on records made for them."""

import json
from pathlib import Path

import pytest
from corpus_records import corpus_record, geometry, store_record
from results_by_hand import make_result
from scipy.stats import norm

from probes.boards.claims import answers, disabled_heads
from probes.boards.claims.claim import all_of, any_of, p_above
from probes.boards.claims.claim_reports import make_reports
from probes.boards.claims.literature import CLAIMS
from probes.boards.claims.model_rows import ModelRows
from probes.records.row import Row, Rows

BY_NAME = {claim.name: claim for claim in CLAIMS}
VECTOR_CLAIMS = [
    claim
    for claim in CLAIMS
    if (claim.section in ("", "3", "4.1") or claim.name in ("trees-middle", "chunk-clusters-fade"))
    and claim.predicate.__module__ not in (answers.__name__, disabled_heads.__name__)
]
FLAT = [0.3] * 7
"""Six layers: 0 to 2 are lower, 3 and 4 in the middle, 5 and 6 higher."""


def on(name, **records):
    return BY_NAME[name].on(ModelRows(records.values()))


@pytest.mark.parametrize(
    ("anisotropy", "expected"),
    [
        ([0.0, 0.2, 0.2, 0.3, 0.4, 0.5, 0.12], "supported"),  # layer 0 does not count
        ([0.5, 0.2, 0.2, 0.3, 0.4, 0.5, 0.08], "contradicted"),
        ([0.5, 0.2, 0.2, 0.3, 0.4, 0.5, 0.105], "undecided"),
    ],
)
def test_a_narrow_cone(anisotropy, expected):
    assert on("narrow-cone", geometry=geometry(anisotropy)).verdict == expected


@pytest.mark.parametrize(
    ("values", "rising", "falling"),
    [
        ([0.1, 0.2, 0.3, 0.0, 0.9, 0.4, 0.5], "supported", "contradicted"),
        ([0.5, 0.4, 0.3, 0.0, 0.9, 0.2, 0.1], "contradicted", "supported"),
        ([0.1, 0.2, 0.3, 0.0, 0.9, 0.31, 0.4], "undecided", "contradicted"),
        ([0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3], "undecided", "undecided"),
    ],
)
def test_lower_and_higher_layers_are_compared_by_their_intervals(values, rising, falling):
    found = geometry(values, self_similarity=values, chunks=values)
    assert on("narrower-higher", geometry=found).verdict == rising
    assert on("context-specific-higher", geometry=found).verdict == falling
    assert on("chunk-clusters-fade", geometry=found).verdict == falling


def test_the_reason_gives_the_least_and_the_greatest_numbers():
    found = on("narrower-higher", geometry=geometry([0.1, 0.2, 0.3, 0.0, 0.9, 0.4, 0.5]))
    assert found.why == (
        "anisotropy at layers 0–2: 0.100 to 0.300 [0.090, 0.310]; "
        "at layers 5–6: 0.400 to 0.500 [0.390, 0.510]"
    )
    assert found.numbers[0] == {
        "metric": "anisotropy",
        "layer": 0,
        "value": 0.1,
        "interval": pytest.approx([0.09, 0.11]),
    }
    assert [x["layer"] for x in found.numbers] == [0, 1, 2, 5, 6]


@pytest.mark.parametrize(
    ("share", "expected"), [(0.03, "supported"), (0.05, "undecided"), (0.07, "contradicted")]
)
def test_what_a_static_vector_explains(share, expected):
    found = on("static-explains-little", geometry=geometry(FLAT, explainable=share))
    assert found.verdict == expected


@pytest.mark.parametrize(
    ("senses", "expected"), [(0.02, "supported"), (0.0, "undecided"), (-0.02, "contradicted")]
)
def test_clusters_of_senses(senses, expected):
    assert on("senses-cluster", geometry=geometry(FLAT, senses=senses)).verdict == expected


def structure(uuas=0.7, peaks=((3,), (3, 4)), layers=range(7), rank=64):
    """A record of structure, best on dev at layer 3."""

    def rows():
        for layer in layers:
            of = {"layer": layer, "axes": {"rank": rank}}
            yield Row("uuas", 0.9 if layer == 3 else 0.1, split="dev", **of)
            yield Row("uuas", 0.99, layer, split="dev", axes={"rank": 2 * rank})
            found = uuas if layer == 3 else 0.99
            yield Row("uuas", found, low=found - 0.01, high=found + 0.01, **of)
            for metric, may_be_best in zip(("uuas", "nspr"), peaks, strict=True):
                p = 1.0 if layer in may_be_best else 0.001
                yield Row(f"{metric}_p_best", p if may_be_best else None, **of)
        yield Row("chain_uuas", 0.9, split="dev")
        yield Row("chain_uuas", 0.43, low=0.42, high=0.44)

    extent = dict.fromkeys(layers, 1)
    return corpus_record("structure", rows(), 6, extent=extent, facts={"rank": rank})


@pytest.mark.parametrize(
    ("uuas", "expected"), [(0.5, "supported"), (0.44, "undecided"), (0.4, "contradicted")]
)
def test_trees_are_recovered(uuas, expected):
    found = on("trees-recovered", structure=structure(uuas))
    assert found.verdict == expected
    assert found.why == (
        f"UUAS at layer 3 and rank 64: {uuas:.3f} [{uuas - 0.01:.3f}, {uuas + 0.01:.3f}]; "
        "neighbours: 0.430 [0.420, 0.440]"
    )
    probe, chain = found.numbers
    assert (probe["layer"], probe["uuas"], chain["uuas"]) == (3, uuas, 0.43)


@pytest.mark.parametrize(
    ("peaks", "expected"),
    [
        (((3,), (3, 4)), "supported"),
        (((3,), (2, 3)), "undecided"),
        (((3,), (2,)), "contradicted"),
        (((6,), (3,)), "contradicted"),
    ],
)
def test_trees_are_best_in_the_middle(peaks, expected):
    assert on("trees-middle", structure=structure(peaks=peaks)).verdict == expected


def test_what_is_missing_is_named():
    for claim in VECTOR_CLAIMS:
        found = on(claim.name)
        assert found.verdict == "not tested"
        assert found.why.startswith("there is no record of ")
    part = structure(layers=(0, 3))
    assert on("trees-middle", structure=part).why == (
        "structure was not measured at layer 1, 2, 4, 5, 6"
    )
    untested = structure(peaks=((), (3,)))
    assert on("trees-middle", structure=untested).why == "uuas: layers could not be tested"
    whole = structure()
    few = Rows.of(row._replace(low=None, high=None) for row in whole.rows)
    without = whole.model_copy(update={"rows": few})
    assert on("trees-recovered", structure=without).why == "uuas has no interval"
    rows = [
        row._replace(low=None, high=None) if (row.metric, row.layer) == ("anisotropy", 4) else row
        for row in geometry(FLAT).rows
    ]
    few = geometry(FLAT).model_copy(update={"rows": Rows.of(rows)})
    assert on("narrow-cone", geometry=few).why == "anisotropy of layer 4 has no interval"


def test_every_claim_has_a_source_and_fits_in_json():
    records = {"geometry": geometry(FLAT), "structure": structure()}
    assert len(VECTOR_CLAIMS) == 8
    for claim in VECTOR_CLAIMS:
        found = on(claim.name, **records)
        assert found.verdict != "not tested", found.why
        assert claim.differs
        json.dumps(found, allow_nan=False)
    study = BY_NAME["static-explains-little"]
    assert study.source == "Ethayarajh 2019, abstract"
    assert BY_NAME["narrow-cone"].source == "Primer 3; Ethayarajh 2019"


@pytest.fixture
def all_current(monkeypatch):
    monkeypatch.setattr("probes.boards.claims.claim_reports.is_current", lambda _: True)


@pytest.mark.usefixtures("all_current")
def test_records_stand_in_the_report_of_the_same_model_and_text(tmp_path):
    scores = {tmp_path / "s.json": make_result("pos", (0.1, 0.2), n_layers=6)}
    own, other = geometry([0.0, *FLAT[1:]]), geometry(FLAT, model="n", digest="n")
    others = {tmp_path / "g.json": own, tmp_path / "n.json": other}
    first, second = make_reports(scores, "linear", others)
    assert (first.model, first.scored, second.model, second.scored) == ("m", True, "n", False)
    assert first.outcomes["narrow-cone"].why.startswith("anisotropy at layers 1–6: 0.300")
    assert second.outcomes["pos-middle"].why == "pos was not run"
    assert second.outcomes["narrow-cone"].verdict == "supported"


@pytest.mark.usefixtures("all_current")
def test_of_several_records_that_with_default_options_counts():
    plain = geometry([0.3, *FLAT[1:]])
    odd = geometry([0.05] * 7).model_copy(update={"settings": {"seed": 5, "least": 5}})
    for order in ((plain, odd), (odd, plain)):
        (report,) = make_reports({}, "", {Path(f"{i}.json"): x for i, x in enumerate(order)})
        assert report.outcomes["narrow-cone"].verdict == "supported"


def test_outdated_records_are_left_out_with_a_message(tmp_path, capsys):
    assert make_reports({}, "linear", {tmp_path / "g.json": geometry(FLAT)}) == []
    assert "g.json: made by another version of its measurement" in capsys.readouterr().err


def twin_of(record, name="random:m", seed=0):
    model = record.model.model_copy(
        update={"name": name, "digest": f"t{seed}", "random_seed": seed}
    )
    return record.model_copy(update={"model": model})


def outcomes(*records):
    """By claim, of the first record's model, with all others beside it."""
    reports = make_reports({}, "", {Path(f"{i}.json"): x for i, x in enumerate(records)})
    return reports[0].outcomes


NARROWER = [0.2, 0.2, 0.2, 0.3, 0.4, 0.5, 0.6]


@pytest.mark.usefixtures("all_current")
@pytest.mark.parametrize(
    ("of_twin", "cone", "narrower"),
    [
        (NARROWER, "not specific to training", "not specific to training"),
        (FLAT, "not specific to training", "supported"),
        ([0.05] * 7, "supported", "supported"),
        (NARROWER[::-1], "not specific to training", "supported"),
    ],
)
def test_what_the_random_twin_passes_too_is_not_specific_to_training(of_twin, cone, narrower):
    own, twin = geometry(NARROWER), twin_of(geometry(of_twin))
    for order in ((own, twin), (own, twin, twin_of(geometry([0.0] * 7), "random-1:m", 1))):
        found = outcomes(*order)
        assert (found["narrow-cone"].verdict, found["narrower-higher"].verdict) == (cone, narrower)
        passes = "supported" if narrower.startswith("not") else "undecided"
        why = found["narrower-higher"].why
        assert why.endswith(f"random twin: {passes}") or of_twin[0] > of_twin[-1] + 0.1
    # The twin's own report, and models of other names or texts, are as they were.
    alone = make_reports({}, "", {Path("t.json"): twin})
    assert "twin:" not in alone[0].outcomes["narrow-cone"].why
    other = twin_of(geometry(of_twin), "random:other")
    assert outcomes(own, other)["narrow-cone"].verdict == "supported"


@pytest.mark.usefixtures("all_current")
def test_models_of_one_configuration_share_a_random_twin():
    def of(configuration, record):
        model = record.model.model_copy(update={"configuration": configuration})
        return record.model_copy(update={"model": model})

    twin = of("c", twin_of(geometry(FLAT), "random:early"))
    early, late, other = (
        of(configuration, geometry(NARROWER, model=name, digest=name))
        for name, configuration in (("early", "c"), ("late", "c"), ("other", "d"))
    )
    records = {Path(f"{i}.json"): x for i, x in enumerate((early, late, other, twin))}
    found = {x.model: x.outcomes["narrow-cone"].verdict for x in make_reports({}, "", records)}
    assert found == {
        "early": "not specific to training",
        "late": "not specific to training",
        "other": "supported",
        "random:early": "supported",
    }


@pytest.mark.usefixtures("all_current")
def test_a_contradicted_claim_is_not_one_that_training_does_not_decide():
    own, twin = geometry(NARROWER[::-1]), twin_of(geometry(NARROWER[::-1]))
    found = outcomes(own, twin)["narrower-higher"]
    assert found.verdict == "contradicted"
    assert found.why.endswith("; random twin: contradicted")


@pytest.mark.usefixtures("all_current")
def test_the_twin_is_found_in_the_folder_beside(tmp_path):
    own = geometry(NARROWER)
    path, beside = store_record(tmp_path, own), store_record(tmp_path, twin_of(own))
    assert beside.parents[1] != path.parents[1]
    (report,) = make_reports({}, "", {path: own})
    assert report.outcomes["narrow-cone"].verdict == "not specific to training"
    beside.unlink()
    (report,) = make_reports({}, "", {path: own})
    assert report.outcomes["narrow-cone"].verdict == "supported"


@pytest.mark.usefixtures("all_current")
def test_p_values_are_corrected_for_all_claims_on_a_model():
    """Senses alone are 2.2 standard errors above 0, which is not enough among several claims."""
    own = geometry(NARROWER, senses=0.0112)
    assert on("senses-cluster", geometry=own).verdict == "supported"
    p = on("senses-cluster", geometry=own).p
    assert p == pytest.approx(2 * norm.sf(1.959964 * 1.12))
    found = outcomes(own)["senses-cluster"]
    assert found.verdict == "undecided"
    tested = [x for x in outcomes(own).values() if x.p is not None]
    less = sum(x.p < p for x in tested)
    assert found.why.endswith(
        f"; p = {p:.2g}, of {len(tested)} claims {(len(tested) - less) * p:.2g}"
    )


def test_the_p_value_of_two_intervals_is_that_of_normal_ones():
    """Of .3 ± .03 and .36 ± .02: .06 in units of .05 / 1.96."""
    found = p_above((0.27, 0.33), (0.34, 0.38))
    assert found == pytest.approx(2 * norm.sf(1.959964 * 0.06 / 0.05))
    assert p_above((0.34, 0.38), (0.27, 0.33)) == 1
    # It is .05 where they touch, and 0 or 1 without any width.
    assert p_above((0.1, 0.2), (0.2, 0.5)) == pytest.approx(0.05, abs=1e-6)
    assert (p_above((0.1, 0.1), (0.2, 0.2)), p_above((0.1, 0.1), (0.1, 0.1))) == (0, 1)


def test_of_several_statements_one_or_all():
    assert any_of([0.04, 0.3, 0.01]) == pytest.approx(0.03)
    assert any_of([0.5, 0.6]) == 1
    assert all_of([0.04, 0.3, 0.01]) == 0.3
