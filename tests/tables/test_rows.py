"""Tables as rows for programs, and the CSV file of a measurement of a corpus."""

import csv
import io
import json
from dataclasses import replace

import pandas as pd
import pytest
from board_by_hand import put
from corpus_records import corpus_record, geometry
from results_by_hand import changed

from probes.__main__ import main
from probes.boards.leaderboard_csv import other_measurements
from probes.frames.frame import frame_of
from probes.frames.measurement_tables import measurement_tables
from probes.measurements.measurement import get_measurement
from probes.measurements.plugins import load_file
from probes.pages.layers_md import write_numbers
from probes.records.row import Row, Rows
from probes.tables.printing import TIE, Printer, csv_text, data_rows, json_text
from probes.tables.table import Cell, Table, TableRow
from probes.tasks.builtin import tasks

pytestmark = pytest.mark.usefixtures("plug_ins")

P = Cell("<.001", value=1e-4), Cell("–")

TABLE = Table(
    "t",
    ("task", "model", "pos\naccuracy", "p", "p"),
    (
        TableRow.of("pos", "a", Cell("90.0", "5.0", value=0.9, interval=(0.85, 0.95)), *P),
        TableRow.of("", "b", Cell("–", value=float("nan"), tied=True, borderline=True), *P),
        TableRow.of("all", "1,234", Cell("50.0", value=0.5, note="layer 0"), *P),
    ),
    left=2,
    repeated=2,
)


def test_rows_have_numbers_ends_marks_and_notes():
    first, second, third = data_rows(TABLE)
    assert first == {
        "table": "t",
        "task": "pos",
        "model": "a",
        "pos (accuracy)": 0.9,
        "pos (accuracy) low": 0.85,
        "pos (accuracy) high": 0.95,
        "pos (accuracy) marks": None,
        "pos (accuracy) note": None,
        "p": 1e-4,
        "p 2": None,
    }
    assert (second["task"], second["model"], second["pos (accuracy)"]) == ("pos", "b", None)
    assert second["pos (accuracy) marks"] == "tied borderline"
    assert (third["task"], third["model"], third["pos (accuracy) note"]) == ("all", 1234, "layer 0")


def test_csv_has_the_columns_of_all_rows_and_json_is_a_list():
    rows = [{"a": 1, "b": None}, {"a": 0.1 + 0.2, "c": [{"x": "é"}]}]
    assert csv_text(rows) == '"a","b","c"\n1,,\n0.3,,"[{""x"": ""é""}]"\n'
    assert json.loads(json_text(rows)) == rows
    assert json.loads(json_text([])) == []


def parsed(text, form):
    return json.loads(text) if form == "json" else list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("form", ["md", "csv", "json", "latex"])
def test_a_document_is_printed_once_at_the_end_whatever_stops_it(form, capsys):
    printer = Printer()

    def stopped():
        with printer.printing(form):
            printer.show([TABLE])
            printer.say("beside it")
            assert capsys.readouterr() == ("", "beside it\n")
            printer.show([TABLE, replace(TABLE, title="u")])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    out = capsys.readouterr().out
    if form in ("csv", "json"):
        assert [row["task"] for row in parsed(out, form)] == ["pos", "pos", "all"] * 2
    else:
        assert out.count({"md": "### ", "latex": r"\begin{table}"}[form]) == 2
    assert printer.immediate
    with printer.printing(form):
        pass
    assert capsys.readouterr().out == ""


def test_what_there_is_no_table_of_is_said_on_standard_error(tmp_path, capsys):
    put(tmp_path, "m", "pos", 40)
    for form, nothing in (("json", []), ("csv", "")):
        assert main(["show", str(tmp_path), "--by", "label", "--format", form]) == 0
        said = capsys.readouterr()
        assert (json.loads(said.out) if form == "json" else said.out) == nothing
        assert "pos, linear probe: no breakdown by label." in said.err


@pytest.fixture
def results(tmp_path):
    """A model and its random twin on one corpus, in folders side by side."""
    for task, wrong in (("pos", 40), ("srl", 100)):
        version = tasks.get(task).version
        put(tmp_path, "m", task, wrong, task__version=version)
        put(tmp_path, "random:m", task, 300, random_seed=0, task__version=version)
    return tmp_path


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize(
    "command", [["show"], ["show", "--by", "training_variance"], ["leaderboard"], ["claims"]]
)
def test_standard_output_is_data_alone(results, command, form, capsys):
    assert main([command[0], str(results), *command[1:], "--format", form]) == 0
    assert len(parsed(capsys.readouterr().out, form)) > 1


def test_layers_have_intervals_and_their_twin_in_every_format(results, capsys):
    said = {}
    (alone,) = (path for path in results.iterdir() if not path.name.startswith("random"))
    for form in ("table", "md", "csv", "json", "latex"):
        assert main(["show", str(alone), "--format", form]) == 0
        said[form] = capsys.readouterr().out
    first, second, *others = parsed(said["json"], "json")
    names = ["floor", "majority", "type majority", "random twin", "n"]
    assert [row["layer"] for row in others] == names
    below = first["pos (accuracy)"], first["pos (accuracy) marks"]
    assert (first["layer"], *below) == (0, 0.25, "floored")
    ends = [second[f"pos (accuracy) {end}"] for end in ("low", "high")]
    assert [second["pos (accuracy)"], *ends] == pytest.approx([0.9, 0.87, 0.93])
    assert second["pos (accuracy) marks"] == "best"
    assert others[0]["pos (accuracy) note"] == "random twin"
    assert others[3]["srl (accuracy)"] == 0.25
    (row,) = (x for x in parsed(said["csv"], "csv") if x["layer"] == "1")
    assert float(row["srl (accuracy) high"]) == pytest.approx(0.78)
    assert r"1 & \textbf{90.0} & $_{\pm3.0}$ & \textbf{75.0} & $_{\pm3.0}$ \\" in said["latex"]
    assert "| 1 | **90.0** ± 3.0★ | **75.0** ± 3.0★ |" in said["md"].replace(TIE, " ")
    assert "90.0±3.0★  75.0±3.0★" in said["table"]


PLUG_IN = """
from probes import measurement

@measurement("my_own", csv_name="heads")
def mine(context):
    "Two numbers."

"""

ROWS = [
    Row("uas", 0.5, 1, 0.4, 0.6, n=7, axes={"head": 2}),
    Row("uas", None, 2, n=9, why="too few words", axes={"head": 1}),
]


def my_own():
    return corpus_record("my_own", {}, 2).model_copy(update={"rows": Rows.of(ROWS)})


def test_the_file_has_a_line_for_each_row(write, tmp_path):
    load_file(write(PLUG_IN))
    path = write_numbers(tmp_path, my_own())
    assert path == tmp_path / "heads.csv"
    table = pd.read_csv(path).astype(object)
    key = "sha256:33333333"
    rows = [[None if pd.isna(x) else x for x in row] for row in table.values.tolist()]
    assert list(table) == [
        *("model", "corpus", "limit", "layer", "head", "metric", "split", "value", "low", "high"),
        *("n", "key"),
    ]
    assert rows == [
        ["m", "c", None, 1, 2, "uas", "test", 0.5, 0.4, 0.6, 7, key],
        ["m", "c", None, 2, 1, "uas", "test", *[None] * 3, 9, key],
    ]


@pytest.mark.parametrize(("limited", "limit"), [(True, "7"), (False, "")])
def test_the_limit_is_said_where_it_has_left_sentences_out(limited, limit, write, tmp_path):
    load_file(write(PLUG_IN))
    record = changed(my_own(), "corpus", limit=7, limited=limited)
    write_numbers(tmp_path, record)
    assert (tmp_path / "heads.csv").read_text().splitlines()[1].startswith(f'"m","c",{limit},1,2,')
    limits = other_measurements(frame_of({("record.json", 0, 0): record}))["limit"]
    assert limits.fillna(0).tolist() == [7 if limited else 0] * 2


def test_titles_of_measurements_say_the_limit_and_the_type():
    whole = geometry([0.1, 0.2])
    limited = changed(whole, "corpus", limit=7, limited=True)
    limited = limited.model_copy(update={"dtype": "bfloat16"})
    for record, start in ((whole, "m · c"), (limited, "m (bfloat16) · c, limit 7")):
        tables = measurement_tables(get_measurement("geometry"), [record])
        assert {table.title.split(" · geometry")[0] for table in tables} == {start}


def test_without_rows_the_file_has_its_header(write, tmp_path):
    load_file(write(PLUG_IN))
    path = write_numbers(tmp_path, my_own().model_copy(update={"rows": Rows()}))
    assert pd.read_csv(path).columns.tolist() == [
        *("model", "corpus", "limit", "layer", "metric", "split", "value", "low", "high", "key")
    ]
