"""Views of rows: tables, curves and heat maps of hand-written numbers."""

import pytest
from corpus_records import corpus_record
from drawn import column, data_of
from results_by_hand import changed, make_result

from probes.frames.long_frame import RecordsByModel, labelled_frame, long_frame
from probes.frames.measurement_tables import findings_of
from probes.measurements.chart_views import Cells, Lines
from probes.measurements.measurement import get_measurement
from probes.measurements.pivots import Pivot, Section
from probes.measurements.row_filters import BestOnDev, PlacesOf, rows_where
from probes.measurements.table_cells import interval_note
from probes.records.row import Row, Rows
from probes.tables.charts import PAPER

ROWS = [
    Row("uuas", 0.5, 0, 0.45, 0.55, axes={"rank": 2}),
    Row("uuas", 0.75, 1, 0.7, 0.8, axes={"rank": 2}),
    Row("uuas", 0.625, 0, axes={"rank": 4}),
    Row("uuas", None, 1, why="too few sentences", axes={"rank": 4}),
    Row("uuas", 0.1, 0, split="dev", axes={"rank": 2}),
    Row("norm", 12.5, 0),
    Row("chain", 0.25, None),
]


def record(rows=ROWS, **more):
    update = {"measurement": "mine", "rows": Rows.of(rows), **more}
    return corpus_record("geometry", {}, 2).model_copy(update=update)


@pytest.fixture
def frame():
    return long_frame([record()])


def table_of(pivot, rows=ROWS, title="t"):
    """The one table that a pivot makes of a record with these rows."""
    (table,) = pivot.tables(long_frame([record(rows)]), title)
    return table


def test_a_frame_has_what_headers_say_the_fields_of_rows_and_axes(frame):
    assert list(frame) == [
        *("model", "revision", "dtype", "corpus", "limit", "task", "probe", "measurement", "key"),
        *("unit", "marks"),
        *("metric", "value", "layer", "low", "high", "split", "n", "p", "why", "rank"),
    ]
    assert frame["rank"].tolist()[:2] == [2, 2]
    assert frame["rank"].isna().sum() == 2
    header = frame.loc[1, ["model", "corpus", "measurement", "value", "high"]]
    assert header.tolist() == ["m", "c", "mine", 0.75, 0.8]
    assert frame["layer"].dtype == "Int64"


def test_axes_of_several_records_stand_in_their_own_rows():
    heads = record([Row("entropy", 0.5, 1, axes={"head": 3})])
    found = labelled_frame({"a": record(), "b": heads, "c": record(ROWS[5:6])})
    assert found["model"].tolist() == ["a"] * 7 + ["b", "c"]
    of_heads = found[found["head"].notna()]
    assert of_heads[["model", "metric", "head"]].values.tolist() == [["b", "entropy", 3]]
    assert found[found["rank"].notna()]["model"].unique().tolist() == ["a"]


def test_by_default_a_table_has_a_column_for_whatever_differs(frame):
    (table,) = Pivot().tables(frame, "m · c", notes={"": ["A note."]})
    assert table.title == "m · c"
    assert table.heads == ("layer", "UUAS, %\nrank 2", "UUAS, %\nrank 4", "norm", "chain")
    assert table.texts == [
        ("0", "50.0 ± 5.0", "62.5", "12.500", "–"),
        ("1", "75.0 ± 5.0", "–", "–", "–"),
        ("model", "–", "–", "–", ".250"),
    ]
    assert table.notes == ("A note.", "UUAS of rank 4: too few sentences.")


def test_a_pivot_chooses_metrics_in_its_order_places_and_columns():
    table = table_of(Pivot(metrics=("norm", "uuas"), where={"layer": 0}))
    assert table.heads == ("layer", "norm", "UUAS, %\nrank 2", "UUAS, %\nrank 4")
    by_rank = table_of(Pivot(metrics=("uuas",), columns=("rank",)))
    assert (by_rank.title, by_rank.heads) == ("t · UUAS, % by rank", ("layer", "2", "4"))
    across = table_of(Pivot("turned", ("uuas",), rows="rank", columns=("layer",)))
    assert across.texts == [("2", "50.0 ± 5.0", "75.0 ± 5.0"), ("4", "62.5", "–")]
    assert table_of(Pivot(metrics=("uuas",), where={"split": "dev"})).texts == [("0", "10.0")]


def test_two_numbers_for_one_cell_are_a_fault_of_the_view(frame):
    with pytest.raises(ValueError, match="two numbers of uuas are in one cell"):
        Pivot(metrics=("uuas",), columns=("metric",)).tables(frame, "t")


def test_a_place_may_stand_before_each_number():
    rows = [
        Row("uuas", 0.27, 0, 0.25, 0.29, axes={"rank": 1, "dimension": 223}),
        Row("uuas", None, 1, axes={"rank": 1, "dimension": 7}),
    ]
    view = Pivot(metrics=("uuas",), columns=("rank",), before="dimension")
    assert table_of(view, rows).texts == [("0", "223: 27.0 ± 2.0"), ("1", "7: –")]


def test_a_reason_is_given_once_for_all_metrics_that_have_it():
    rows = [Row(x, None, layer, why="few words") for x in ("uuas", "mrr") for layer in (0, 1)]
    rows.append(Row("norm", None, 0, why="no words"))
    assert table_of(Pivot(), rows).notes == ("UUAS, mrr: few words.", "Norm: no words.")


def test_places_of_two_axes_have_names_of_their_own():
    axes = [{"eraser": "control", "less": less} for less in ("", "control")]
    view = Pivot("", ("uuas",), columns=("eraser", "less"), places={("less", "control"): "less it"})
    table = table_of(view, [Row("uuas", 0.5, 0, axes=x) for x in axes])
    assert table.heads == ("layer", "control", "control\nless it")


TRAINED = [
    *(
        Row(metric, value, layer, split=split, axes={"rank": rank})
        for metric, split, rank, values in (
            ("uuas", "dev", 2, (0.9, 0.8, 0.1)),
            ("uuas", "dev", 4, (0.3, 0.7, 0.7)),
            ("uuas", "test", 0, (0.1, 0.2, 0.3)),
            ("uuas", "test", 2, (0.25, 0.35, 0.45)),
            ("uuas", "test", 4, (0.55, 0.65, 0.75)),
            ("dspr", "dev", 4, (0.5, 0.5, 0.5)),
            ("dspr", "test", 4, (0.5, 0.5, 0.5)),
            ("uuas_p_best", "test", 4, (0.001, 0.049, 1.0)),
        )
        for layer, value in enumerate(values)
    ),
    Row("chain", 0.125),
]
"""Of rank 4, layer 1 is the best on dev and layer 2 on test."""

TESTED = {"rank": PlacesOf("uuas_p_best")}


def test_marks_are_of_metrics_with_tests_at_the_places_of_the_table():
    pivot = Pivot(
        "rank {rank} · test", ("uuas", "dspr"), columns=("metric",), where=TESTED, marked=True
    )
    table = table_of(pivot, TRAINED)
    assert table.title == "t · rank 4 · test"
    uuas, dspr = ([row.cells[place] for row in table.rows] for place in (1, 2))
    assert [cell.text + cell.marks for cell in uuas] == ["55.0", "65.0★†≈", "75.0☆"]
    assert not any(cell.marks for cell in dspr)
    assert table.notes == (
        "★ best layer on dev · ☆ not significantly worse than any other · "
        "† significantly worse than another · ≈ borderline: with other resamples, ☆ might change",
    )


def test_sections_are_faint_lines_below_in_the_columns_of_others():
    sections = (
        Section("identity", where={"rank": 0}),
        Section("chain", {"chain": "uuas"}),
        Section("absent", where={"rank": 7}),
    )
    pivot = Pivot("", ("uuas", "dspr"), columns=("metric",), where=TESTED, sections=sections)
    table = table_of(pivot, TRAINED)
    assert table.texts[2:] == [
        ("2", "75.0", ".500"),
        ("identity, layer 0", "10.0", "–"),
        ("identity, layer 1", "20.0", "–"),
        ("identity, layer 2", "30.0", "–"),
        ("chain", "12.5", "–"),
    ]
    assert [row.faint for row in table.rows] == [False] * 3 + [True] * 4
    assert [row.ends_section for row in table.rows] == [False, False, True, *[False] * 4]


def test_rows_are_chosen_by_other_rows_of_the_same_record():
    other = [
        Row("uuas", 0.5, 2, split="dev", axes={"rank": 2}),
        Row("uuas", 0.625, 2, axes={"rank": 2}),
        Row("uuas", None, 0, split="dev", axes={"rank": 2}),
        Row("uuas_p_best", None, 2, axes={"rank": 2}),
    ]
    frame = labelled_frame({"a": record(TRAINED), "b": record(other)})
    best = rows_where(frame, ["uuas"], {**TESTED, "layer": BestOnDev("uuas", TESTED)})
    # Of the first record, the first of equal layers.
    found = best[["model", "layer", "rank", "value"]].values.tolist()
    assert found == [["a", 1, 4, 0.65], ["b", 2, 2, 0.625]]
    nothing = record([Row("uuas", None, 0, split="dev", axes={"rank": 2})])
    assert BestOnDev("uuas").rows(long_frame([nothing])).empty


TREES = [*ROWS[:1], Row("dspr", 0.25, 0), Row("root_accuracy", None, 0)]

SHARES = [
    Row("norm", 1.0, axes={"pruned": 50, "by": "importance", "predicts": "pos"}),
    Row("norm", 2.0, axes={"pruned": 50, "by": "random", "predicts": "pos"}),
    Row("norm", 3.0, axes={"pruned": 100, "by": "random", "predicts": "srl"}),
]

RANKS = Lines(
    "ranks",
    "uuas",
    x="rank",
    line="layer",
    log=True,
    of_several={"layer": BestOnDev("uuas", TESTED)},
    levels={"neighbours": "chain"},
)


@pytest.mark.parametrize(
    ("view", "given", "drawn"),
    [
        (  # a line for each place; what has no number is left out
            Lines("ranks", "uuas", line="rank"),
            {"A": ROWS},
            [("", "A", "2", 0, 50.0), ("", "A", "2", 1, 75.0), ("", "A", "4", 0, 62.5)],
        ),
        (  # of several models, a panel for each line
            Lines("ranks", "uuas", line="rank"),
            {"A": ROWS, "B": ROWS[2:3]},
            [("2", "A", "2", 0, 50.0), ("2", "A", "2", 1, 75.0), ("4", "A", "4", 0, 62.5),
             ("4", "B", "4", 0, 62.5)],
        ),
        (
            Lines("over", "uuas", x="rank", log=True, where={"layer": 0}),
            {"A": ROWS},
            [("", "A", "", 2, 50.0), ("", "A", "", 4, 62.5)],
        ),
        (  # several metrics are called by their labels
            Lines("trees", ("uuas", "root_accuracy"), "Trees"),
            {"A": TREES},
            [("", "A", "UUAS", 0, 50.0)],
        ),
        (
            Lines("apart", "norm", "Pruned", x="pruned", line="by", apart="predicts"),
            {"A": SHARES},
            [("pos", "A", "importance", 50, 1.0), ("pos", "A", "random", 50, 2.0),
             ("srl", "A", "random", 100, 3.0)],
        ),
        (
            RANKS,
            {"A": TRAINED, "B": TRAINED},
            [("", model, "", rank, value) for model in "AB" for rank, value in ((2, 35.0), (4, 65.0))],
        ),
    ],
)  # fmt: skip
def test_lines_have_the_numbers_that_they_choose(view, given, drawn):
    records = {model: record(rows) for model, rows in given.items()}
    chart = view.chart(RecordsByModel(records), PAPER)
    rows = [row for row in data_of(chart) if row["value"] is not None]
    columns = ("panel", "model", "line", "x", "value")
    assert [tuple(row[x] for x in columns) for row in rows] == drawn


def test_levels_are_shown_in_percent_as_the_curves_are():
    chart = RANKS.chart(RecordsByModel({"A": record(TRAINED)}), PAPER)
    assert set(column(chart, "line")) - {""} == {"layer 0", "layer 1", "layer 2"}
    assert (column(chart, "name"), column(chart, "level")) == (["neighbours"], [12.5])


def test_a_level_is_in_the_panels_of_its_place_alone():
    rows = [
        Row("norm", 1.0, axes={"pruned": 50, "of": "all", "predicts": "pos"}),
        Row("norm", 2.0, axes={"pruned": 50, "of": "all", "predicts": "srl"}),
        Row("norm", 3.0, axes={"of": "all", "by": "chance", "predicts": "srl"}),
    ]
    view = Lines("apart", "norm", x="pruned", apart="predicts", where={"of": "all"})
    for models in ("A", "AB"):
        drawn = data_of(view.chart(RecordsByModel(dict.fromkeys(models, record(rows))), PAPER))
        levels = [(x["panel"], x["name"], x["level"]) for x in drawn if x["level"] is not None]
        assert levels == [("srl", "chance", 3.0)]


def test_cells_have_a_panel_for_each_model_and_place():
    bases = [(0.5, "x"), (0.25, "y")]
    rows = [Row("cka", value, 1, axes={"base": x, "base_layer": 2}) for value, x in bases]
    view = Cells("pairs", "cka", across="base_layer", apart="base")
    cells = data_of(view.chart(RecordsByModel({"a": record(rows)}), PAPER))
    names = ("panel", "row", "column", "value", "text")
    assert [tuple(x[name] for name in names) for x in cells] == [
        ("a · x", "1", "2", 0.5, ".50"),
        ("a · y", "1", "2", 0.25, ".25"),
    ]


def test_models_without_numbers_are_missing_with_the_reason():
    records = {"A": record(TREES), "B": record(ROWS[5:]), "C": record(TREES[2:])}
    found = RecordsByModel(records, {}, {"D": "no labels"})
    why = {
        **dict.fromkeys("AC", "there are no numbers"),
        "B": "there is no record of it",
        "D": "no labels",
    }
    for view in (Lines("t", "root_accuracy"), Cells("t", "root_accuracy", across="rank")):
        assert view.missing(found) == why


def test_models_without_a_measurement_are_named_in_the_order_given():
    labels = [f"m{i}" for i in (3, 1, 4, 5, 9, 2, 6)]
    result = make_result("pos")
    found = findings_of(get_measurement("selectivity"), dict.fromkeys(labels, result))
    assert list(found.missing) == labels


def test_the_note_says_what_intervals_are_over_or_that_there_are_none():
    few, enough = make_result(clusters=19), make_result(clusters=20)
    none = "No intervals and no tests: fewer than 20 test sentences."
    assert interval_note([few]) == none
    said = "± half the width, or both ends, of a 95 % interval over test sentences; training variation is not included."
    assert interval_note([enough]) == said
    of_pos = none.replace("tests:", "tests of pos:")
    assert interval_note([few, enough]) == f"{said} {of_pos}"
    recall = {"metric": "recall_at_1_fpr", "labels": {"a": (9, 9, 299), "b": (9, 9, 300)}}
    negatives = interval_note([make_result("recalls", clusters=599, **recall), enough])
    assert negatives == f"{said} {none.replace('tests:', 'tests of recalls:')}".replace(
        "20 test sentences", "300 negatives in test"
    )
    documents = changed(enough, "examples", resampled="documents")
    assert "over test documents or sentences;" in interval_note([documents, enough])
