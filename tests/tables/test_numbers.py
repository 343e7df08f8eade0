"""The CSV file of a measurement of a corpus, in the folder of model and corpus."""

import pandas as pd
import pytest
from corpus_records import corpus_record, geometry
from results_by_hand import changed

from probes.boards.leaderboard_csv import other_measurements
from probes.measurements.frame import frame_of
from probes.measurements.measurement import get_measurement
from probes.measurements.plugins import load_file
from probes.pages.layers_md import write_numbers
from probes.records.row import Row, Rows

pytestmark = pytest.mark.usefixtures("plug_ins")

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
    found = geometry([0.1, 0.2])
    assert found.measurement == "geometry"
    limited = changed(found, "corpus", limit=7, limited=True)
    limited = limited.model_copy(update={"dtype": "bfloat16"})
    its = get_measurement("geometry")
    assert {table.title.split(" · geometry")[0] for table in its.tables([found])} == {"m · c"}
    assert {table.title.split(" · geometry")[0] for table in its.tables([limited])} == {
        "m (bfloat16) · c, limit 7"
    }


def test_without_rows_the_file_has_its_header(write, tmp_path):
    load_file(write(PLUG_IN))
    path = write_numbers(tmp_path, my_own().model_copy(update={"rows": Rows()}))
    assert pd.read_csv(path).columns.tolist() == [
        *("model", "corpus", "limit", "layer", "metric", "split", "value", "low", "high", "key")
    ]
