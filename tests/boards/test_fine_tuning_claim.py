"""The claim about what fine-tuning changes, on pairs made for it."""

from pathlib import Path

import pytest
from corpus_records import corpus_record

from probes.boards.claims.claim_reports import make_reports
from probes.records.row import Row, Rows

pytestmark = pytest.mark.usefixtures("all_current")


@pytest.fixture
def all_current(monkeypatch):
    monkeypatch.setattr("probes.boards.claims.claim_reports.is_current", lambda record: True)


def pair(divergences, name="tuned", base="before", layers=None, **more):
    """A record with the mean divergence of each layer, ± .01, or of some of them."""
    rows = [
        Row("divergence", value, layer, value - 0.01, value + 0.01, axes={"base": base})
        for layer, value in enumerate(divergences, start=1)
        if layers is None or layer in layers
    ]
    record = corpus_record("attention_change", {}, len(divergences), model=name, **more)
    base = record.model.model_copy(update={"name": base, "digest": base})
    return record.model_copy(update={"base": base, "rows": Rows.of(rows)})


def outcome(*records):
    (report,) = make_reports({}, "", {Path(f"{i}.json"): x for i, x in enumerate(records)})
    return report.outcomes["fine-tuning-changes-final"]


@pytest.mark.parametrize(
    ("divergences", "expected"),
    [
        ([0.1, 0.1, 0.12, 0.3, 0.2], "supported"),
        ([0.1, 0.1, 0.12, 0.05, 0.2], "supported"),  # one of the last two is enough
        ([0.1, 0.1, 0.28, 0.15, 0.2], "contradicted"),
        ([0.28, 0.1, 0.1, 0.15, 0.2], "contradicted"),
        ([0.1, 0.1, 0.185, 0.15, 0.2], "undecided"),
    ],
)
def test_the_layers_below_are_compared_with_the_greater_of_the_last_two(divergences, expected):
    assert outcome(pair(divergences)).verdict == expected


def test_the_reason_names_the_base_and_both_layers():
    found = outcome(pair([0.1, 0.12, 0.11, 0.3, 0.2]))
    assert found.why == (
        "divergence from before at layer 4: 0.300 [0.290, 0.310]; "
        "greatest below the last two, at layer 2: 0.120 [0.110, 0.130]"
    )
    assert found.numbers[3] == {
        "layer": 4,
        "divergence": 0.3,
        "interval": pytest.approx((0.29, 0.31)),
    }


def test_a_random_twin_is_no_fine_tuning():
    both = pair([0.1, 0.3], "random:m"), pair([0.1, 0.3], base="random:m")
    assert make_reports({}, "", {Path(f"{i}.json"): x for i, x in enumerate(both)}) == []


def test_of_two_bases_the_second_is_left_out_with_a_message(capsys):
    first, second = pair([0.1] * 3 + [0.3, 0.2]), pair([0.3] * 3 + [0.1, 0.2], base="other")
    assert outcome(first, second).verdict == "supported"
    assert "1.json: claims use the comparison with before" in capsys.readouterr().err


def test_without_what_it_needs_it_is_not_tested():
    assert "has none below the last 2" in outcome(pair([0.1, 0.2])).why
    few = pair([0.1, 0.2, 0.3, 0.4], layers=(2, 3, 4))
    assert outcome(few).why == "layer 1 was not compared"
