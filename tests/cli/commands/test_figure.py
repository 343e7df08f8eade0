"""`python -m probes figure`: charts of measurements of a corpus, and trees."""

import pytest
from board_by_hand import put
from corpus_records import corpus_record, geometry, store_record
from drawn import column, data_of

from probes.measurements.plugins import load_file
from probes.records.row import Row, Rows

FLAT = [0.3] * 3


def title_of(chart):
    title = chart.to_dict()["title"]
    return title if isinstance(title, str) else " ".join(title["text"])


def test_a_chart_of_all_models_below_the_folders(tmp_path, draws):
    for model in ("m", "random:m"):
        store_record(tmp_path, geometry([0.1, 0.2, 0.3], model=model, digest=model))
    status, chart, _ = draws("isotropy", tmp_path)
    assert status == 0
    for model in ("m", "random:m"):
        assert column(chart, "value", model=model) == [0.1, 0.2, 0.3]
    status, chart, _ = draws("cka", tmp_path / "m")
    assert (status, set(column(chart, "panel"))) == (0, {"m"})


def test_records_that_cannot_stand_together_are_refused_in_one_line(tmp_path, draws):
    store_record(tmp_path, geometry(FLAT))
    other = geometry(FLAT, model="n", digest="n")
    corpus = other.corpus.model_copy(update={"name": "d", "fingerprint": "d" * 64})
    store_record(tmp_path, other.model_copy(update={"corpus": corpus}))
    status, chart, said = draws("cka", tmp_path)
    assert (status, chart) == (2, None)
    assert "cannot be compared in one figure (geometry: c 1; geometry: d 1)" in said
    assert draws("cka", tmp_path / "n")[0] == 0


def test_what_is_missing_is_said(tmp_path, draws):
    put(tmp_path, "m", "pos", 10)
    assert (
        "no records of geometry; measure it with --measurements geometry"
        in draws("cka", tmp_path)[2]
    )
    status, _, said = draws("ckaa", tmp_path)
    assert (status, said) == (2, "error: No figure is called 'ckaa'. Did you mean 'cka'?")
    assert "there is no such folder" in draws("cka", tmp_path / "none")[2]


def test_models_without_numbers_are_named(tmp_path, draws):
    store_record(tmp_path, geometry(FLAT))
    empty = geometry(FLAT, model="n", digest="n")
    rows = [
        row._replace(value=None, low=None, high=None, why="few")
        if row.metric == "anisotropy"
        else row
        for row in empty.rows
    ]
    store_record(tmp_path, empty.model_copy(update={"rows": Rows.of(rows)}))
    status, chart, said = draws("isotropy", tmp_path)
    assert (status, set(column(chart, "model"))) == (0, {"m"})
    assert "not drawn: n (there are no numbers)" in said
    status, _, said = draws("isotropy", tmp_path / "n")
    assert status == 2
    assert "nothing to draw as isotropy (n: there are no numbers)" in said


PLUG_IN = """
import altair
from probes import Row, measurement

class Own:
    name = "own"
    title = "Own"
    note = ""

    def missing(self, found):
        return {}

    def draw(self, found, look):
        [1 / value for value in found.frame["value"]]
        return altair.Chart(found.frame[["model", "value"]], title=self.title).mark_point()

@measurement("mine", views=(Own(),))
def mine(context):
    "One number."
    return [Row("mine", 1.0)]
"""


@pytest.mark.usefixtures("plug_ins")
def test_charts_of_a_plug_in(write, tmp_path, draws):
    path = write(PLUG_IN)
    load_file(path)
    store_record(tmp_path / "r", corpus_record("mine", [Row("mine", 2.0)], 2))
    store_record(tmp_path / "s", corpus_record("mine", [Row("mine", 0.0)], 2))
    status, chart, _ = draws("own", tmp_path / "r", "--include", path)
    assert status == 0
    assert data_of(chart) == [{"model": "m", "value": 2.0}]
    status, _, said = draws("own", tmp_path / "s", "--include", path)
    assert status == 2
    assert "mine: the measurement 'mine' raised ZeroDivisionError" in said
    assert "mine.py, line 14" in said


@pytest.mark.usefixtures("plug_ins")
def test_a_figure_of_two_measurements_needs_to_be_told_whose(write, tmp_path, draws):
    path = write(PLUG_IN.replace('"own"', '"isotropy"'))
    store_record(tmp_path / "r", geometry(FLAT))
    load_file(path)
    store_record(tmp_path / "r", corpus_record("mine", [Row("mine", 2.0)], 2))
    two = ("isotropy", tmp_path / "r", "--include", path)
    status, chart, said = draws(*two)
    assert (status, chart) == (2, None)
    assert "isotropy is a figure of geometry and mine: choose one, such as --measurement" in said
    for name, title in (("geometry", "Anisotropy"), ("mine", "Own")):
        status, chart, _ = draws(*two, "--measurement", name)
        assert (status, title_of(chart)) == (0, title)
    store_record(tmp_path / "s", geometry(FLAT))
    status, chart, _ = draws("isotropy", tmp_path / "s", "--include", path)
    assert (status, title_of(chart)) == (0, "Anisotropy")
    status, _, said = draws("isotropy", tmp_path / "s", "--include", path, "--measurement", "mine")
    assert status == 2
    assert "no records of mine; measure it with --measurements mine" in said
