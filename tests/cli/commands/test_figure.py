"""`python -m probes figure`: charts of measurements of a corpus, and trees."""

import pytest
from board_by_hand import put
from corpus_records import corpus_record, geometry, store_record
from drawn import column, data_of

import probes
from probes.__main__ import main
from probes.cli.chart_files import figure_names
from probes.measurements.plugins import load_file
from probes.records.row import Row, Rows
from probes.tables.colours import COLOURS

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


def test_curves_by_layer_may_be_by_depth(tmp_path, draws):
    for model in ("m", "n"):
        store_record(tmp_path, geometry([0.1, 0.2, 0.3], model=model, digest=model))
    status, chart, _ = draws("isotropy", tmp_path, "--x", "depth")
    assert (status, column(chart, "x", model="n")) == (0, [0, 0.5, 1])
    status, chart, said = draws("cka", tmp_path, "--x", "depth")
    assert (status, chart) == (2, None)
    assert "--x depth: cka has no curves by layer; omit it." in said


def test_a_model_that_is_drawn_alone_keeps_its_colour(tmp_path, draws):
    for model in ("m", "n"):
        store_record(tmp_path, geometry([0.1, 0.2, 0.3], model=model, digest=model))
    for more in ((), ("--model", "n")):
        _, chart, _ = draws("isotropy", tmp_path, *more)
        scale = chart["layer"][1]["encoding"]["color"]["scale"]
        assert dict(zip(scale["domain"], scale["range"], strict=True))["n"] == COLOURS[1]


def test_a_plot_and_a_figure_of_one_task_have_the_colours_of_all_models(tmp_path, draws):
    put(tmp_path, "m", "pos", 10)
    for task in ("pos", "deprel"):
        put(tmp_path, "n", task, 20)
    _, figure, _ = draws("curves", tmp_path, "--task", "deprel")
    plot = probes.load_results(tmp_path).plot("curves", task="deprel").to_dict()
    for chart in (figure, plot):
        scale = chart["layer"][1]["encoding"]["color"]["scale"]
        assert dict(zip(scale["domain"], scale["range"], strict=True))["n"] == COLOURS[1]


def test_records_that_cannot_stand_together_are_refused_in_one_line(tmp_path, draws):
    store_record(tmp_path, geometry(FLAT))
    other = geometry(FLAT, model="n", digest="n")
    corpus = other.corpus.model_copy(update={"name": "d", "fingerprint": "d" * 64})
    store_record(tmp_path, other.model_copy(update={"corpus": corpus}))
    status, chart, said = draws("cka", tmp_path)
    assert (status, chart) == (2, None)
    assert "cannot be compared in one figure (geometry: c 1; geometry: d 1)" in said
    assert draws("cka", tmp_path / "n")[0] == 0


def test_each_figure_has_a_name_of_its_own():
    assert len(set(figure_names())) == len(figure_names())


def test_all_figures_are_listed(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit) as ended:
        main(["figure", "--list"])
    assert not ended.value.code
    lines = capsys.readouterr().out.splitlines()
    names = {line.split(maxsplit=1)[0] for line in lines[3:] if line and line[0] != " "}
    assert names == {*figure_names(), "tree"}
    (line,) = (x for x in lines if x.startswith("conditional_points "))
    assert line.split(maxsplit=1)[1].split("  ")[0] == "Points that a layer adds to layer 0"


def test_what_is_missing_is_said(tmp_path, draws):
    put(tmp_path, "m", "pos", 10)
    for name, folder, said in (
        ("cka", tmp_path, "no records of geometry; measure it with --measurements geometry"),
        ("ckaa", tmp_path, "error: No figure is called 'ckaa'. Did you mean 'cka'? Figures of a "
         "plug-in need its file with --include."),
        ("cka", tmp_path / "none", "there is no such folder"),
    ):  # fmt: skip
        status, _, error = draws(name, folder)
        assert status == 2
        assert said in error


def test_evidence_of_a_flag_names_the_flag(tmp_path, draws):
    put(tmp_path, "m", "pos", 10)
    said = draws("corpus_transfer", tmp_path)[2]
    assert said.endswith("no corpus_transfer of these results; measure it with --transfer.")
    said = draws("selectivity", tmp_path)[2]
    assert said.endswith("measure it with --evidence selectivity.")


def test_models_without_numbers_are_named(tmp_path, draws):
    store_record(tmp_path, geometry(FLAT))
    empty = geometry(FLAT, model="n", digest="n")
    rows = [row for row in empty.rows if row.metric != "anisotropy"]
    rows += [Row("anisotropy", None, layer, why="few") for layer in range(3)]
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

    def chart(self, found, look):
        [1 / value for value in found.frame["value"]]
        return altair.Chart(found.frame[["model", "value"]], title=self.title).mark_point()

@measurement("mine", shows=(Own(),))
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


def test_only_what_is_named_is_drawn(tmp_path, draws):
    for model, task, wrong in (("m", "pos", 10), ("m", "srl", 20), ("n", "pos", 30)):
        put(tmp_path, model, task, wrong)
    put(tmp_path, "random:m", "pos", 90, random_seed=0)
    put(tmp_path, "m", "pos", 10, corpus__name="d", corpus__fingerprint="d" * 64)
    named = ("--corpus", "c", "--task", "pos", "--model", "m")
    for kind in ("curves", "heatmap"):
        status, chart, _ = draws(kind, tmp_path, *named)
        assert (status, {*column(chart, "model")}) == (0, {"m"})
        values = {x for x in column(chart, "value") if x is not None}
        assert len(values) == 2, kind  # of two layers
    said = draws("steps", tmp_path, *named)[2]
    assert "nothing to draw as steps (m: its name has no training step)" in said
    both = ("--corpus", "c", "--task", "pos,srl", "--model", "m,n")
    _, chart, _ = draws("curves", tmp_path, *both)
    assert {*column(chart, "model")} == {"m", "n"}
    assert {x.partition("\n")[0] for x in column(chart, "panel")} == {"pos", "srl"}
    # A model's floor is still that of its twin, which is not drawn.
    _, alone, _ = draws("curves", tmp_path, *named)
    _, beside, _ = draws("curves", tmp_path, *named[:4], "--model", "m,random:m")
    levels = [{*column(x, "level", model="m")} - {None} for x in (alone, beside)]
    assert levels == [{77.5}, {77.5}]


def test_names_without_results_are_refused(tmp_path, draws):
    put(tmp_path, "m", "pos", 10)
    store_record(tmp_path, geometry(FLAT))
    for kind in ("curves", "heatmap", "steps", "expected-layers", "use", "cka", "selectivity"):
        for flag, said in (("task", "pos"), ("model", "m"), ("corpus", "c")):
            status, chart, error = draws(kind, tmp_path, f"--{flag}", "nonsense")
            assert (status, chart) == (2, None)
            assert error == f"error: --{flag} nonsense: no results. Known: {said}."
    status, _, said = draws("cka", tmp_path, "--task", "pos")
    assert (status, said) == (2, "error: --task: does not apply to cka; omit it.")


def test_the_axis_of_similarities_does_not_say_the_opposite(tmp_path, draws):
    """The more alike vectors of a word are, the less they depend on the context."""
    store_record(tmp_path, geometry([0.1, 0.2, 0.3]))
    _, chart, _ = draws("context", tmp_path)
    assert "ontextuality" not in str(chart.to_dict())
    assert title_of(chart) == "Measures of context, adjusted"


def test_the_floor_of_one_model_is_that_of_all_wherever_its_twin_lies(tmp_path, draws):
    put(tmp_path / "a", "m", "pos", 0, wrongs=(300, 100), p_best=False)
    put(tmp_path / "b", "random:m", "pos", 0, wrongs=(300, 200), random_seed=0, p_best=False)
    every = probes.load_results(tmp_path)
    for one in ((), ("--model", "m")):
        _, chart, said = draws("heatmap", tmp_path, *one)
        assert column(chart, "text", model="m") == ["50.0", "25.0", "75.0"], said
    assert every.plot("heatmap", model="m").svg.count(">50.0<") == 1
