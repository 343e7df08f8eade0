"""Evidence behind scores as tables and curves, from results written by hand."""

import pytest
from drawn import column, data_of, view_of
from results_by_hand import evidence_record, make_full_result, make_result

from probes.boards.breakdown_tables import evidence_tables
from probes.boards.layer_tables import score_table
from probes.records.probe_spec import PROBES
from probes.records.row import Row


def with_found(result, measurement, rows):
    return result.with_evidence(evidence_record(result, measurement, rows))


def bare(*names, **more):
    """A result without evidence."""
    return make_result(*names, p_best=False, **more)


CONTROLS = [
    Row("selectivity", 0.25, 0, 0.23, 0.27),
    Row("selectivity", 0.65, 1),
    Row("accuracy", 0.9, 1),
    Row("accuracy", 0.25, 1, axes={"draw": 1}),
    Row("types_seen", 0.876),
]


def code_rows(bits, blocks=None, starts=(0,), uniform=8000.0):
    """The rows of codes by layer, None for that of the labels alone.

    Args:
        bits: by layer, with an interval or without.
        blocks: bits per label, by layer.
    """
    rows = []
    for layer, (value, *interval) in bits.items():
        axes = {} if layer is not None else {"baseline": "labels alone"}
        low, high = [uniform / x for x in reversed(interval)] or (None, None)
        rows.append(Row("codelength", value, layer, split="train", axes=axes))
        rows.append(Row("compression", uniform / value, layer, low, high, split="train", axes=axes))
        for start, each in zip(starts, (blocks or {}).get(layer, [value]), strict=True):
            place = {**axes, "examples": start}
            rows.append(Row("bits_per_label", each, layer, split="train", axes=place))
    return rows


CODES = code_rows(
    {0: (4000.0, 3800.0, 4200.0), 1: (2000 / 0.9, 1900 / 0.9, 2100 / 0.9), None: (6000.0,)}
)


def test_a_table_has_the_tasks_that_have_its_measurement():
    result = with_found(bare(scores=(0.5, 0.9)), "selectivity", CONTROLS)
    found = evidence_tables([result, bare("depth", (0.1, 0.2), metric="nspr")])
    assert list(found) == ["selectivity"]
    assert found["selectivity"][0].heads == ("layer", "pos (accuracy)")


def test_tables_are_in_the_order_of_the_measurements():
    assert list(evidence_tables([make_full_result()])) == [
        "training_variance",
        "selectivity",
        "conditional_probing",
        "description_length",
        "localisation",
    ]


LEARNT = code_rows(
    {0: (115.0,), 1: (60.0,), 2: (84.0,), None: (145.0,)},
    {0: (2.0, 1.0, 0.9), 1: (2.0, 0.5, 0.1), 2: (2.0, 0.8, 0.4), None: (2.0, 1.5, 1.2)},
    (0, 20, 50),
)
"""Blocks of 20, 30 and 50 examples of four classes."""


def test_learning_curves_of_layers_and_the_labels_alone():
    result = with_found(bare(scores=(0.5, 0.9, 0.7)), "description_length", LEARNT)
    once = with_found(bare(), "description_length", CODES)
    chart, missing = view_of("description_length", "learning", {"m": result, "once": once})
    assert [(row["line"], row["x"], row["value"]) for row in data_of(chart)] == [
        *(("layer 0", 20, 1.0), ("layer 0", 50, 0.9)),
        *(("layer 1", 20, 0.5), ("layer 1", 50, 0.1)),
        *(("layer 2", 20, 0.8), ("layer 2", 50, 0.4)),
        *(("labels alone", 20, 1.5), ("labels alone", 50, 1.2)),
    ]
    assert missing == {"once": "there is no record of it"}


def test_curves_have_the_same_numbers_and_say_why_there_are_none():
    full = make_full_result(scores=(0.5, 0.7))
    results = {
        "full": full,
        "scores": bare(scores=(0.5, 0.7)),
        "mlp": bare(scores=(0.5, 0.7), probe=PROBES["mlp"]),
        "part": bare(scores=(0.5, 0.7), n_layers=9),
    }
    chart, missing = view_of("selectivity", "selectivity", results)
    assert column(chart, "value") == pytest.approx([20, 40])
    assert missing == dict.fromkeys(("scores", "mlp", "part"), "there is no record of it")
    chart, without = view_of("description_length", "compression", results)
    assert column(chart, "value") == pytest.approx([1.5, 2.1])
    assert (column(chart, "low")[0], column(chart, "high")[0]) == pytest.approx(
        (300 / 220, 300 / 180)
    )
    assert (column(chart, "name"), column(chart, "level")) == (
        ["labels alone"],
        [pytest.approx(300 / 280)],
    )
    why = {**missing, "mlp": "only convex probes have an online code"}
    assert without == view_of("description_length", "learning", results)[1] == why
    chart, missing = view_of("localisation", "mix", results)
    assert column(chart, "value") == pytest.approx([50, 70])
    assert missing == {
        "scores": "there is no record of it",
        "mlp": "only convex probes are fitted on mixes",
        "part": "not all layers were probed",
    }


def test_layers_are_marked_as_alike_only_where_training_variance_was_measured():
    scores = (0.5, 0.7, 0.69, 0.68)
    marked = make_result(scores=scores, p_best=[0.001, None, 0.049, 0.05])
    tied = [row.cells[1].tied for row in score_table([marked]).rows[:4]]
    assert tied == [False, False, False, True]
    plain = [row.cells[1] for row in score_table([bare(scores=scores)]).rows[:4]]
    assert [cell.tied for cell in plain] == [False] * 4
    assert [cell.best for cell in plain] == [False, True, False, False]
