"""`python -m probes figure`: charts of measurements of a corpus, and trees."""

import subprocess
import sys

import numpy as np
import pytest
from board_by_hand import put
from corpus_records import corpus_record, geometry, store_record
from drawn import column, data_of

from probes.__main__ import main
from probes.cli.commands.figure import edges_of
from probes.data.find import find_corpus
from probes.families.structure.options import StructureOptions
from probes.measurements.plugins import load_file
from probes.records.files import write_record
from probes.records.record import Record
from probes.records.row import Row, Rows

FLAT = [0.3] * 3


@pytest.fixture
def draws(monkeypatch, tmp_path, capsys):
    """Runs the command in a folder; returns its status, what was to be drawn, and its messages."""

    def draws(*arguments):
        given = []
        monkeypatch.setattr(
            "probes.tables.figures.save", lambda chart, path, look: given.append(chart)
        )
        status = main(["figure", *map(str, arguments), "-o", str(tmp_path / "x.pdf")])
        return status, (given or [None])[0], " ".join(capsys.readouterr().err.split())

    return draws


def title_of(chart):
    title = chart.to_dict()["title"]
    return title if isinstance(title, str) else " ".join(title["text"])


def test_edges_are_right_wrong_or_of_words_that_are_left_out():
    # The cat sat . — gold: The → cat → sat ← . ; found: The — sat, cat — sat; the point left out.
    edges = edges_of((1, 2, -1, 2), (2, 2, -1, -2))
    assert [*edges.itertuples(index=False, name=None)] == [
        (-1, 2, "gold", False),
        (0, 1, "gold", False),
        (1, 2, "gold", False),
        (2, 3, "gold, of punctuation", False),
        (-1, 2, "predicted", True),
        (0, 2, "wrong", True),
        (1, 2, "predicted", True),
    ]


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


@pytest.mark.parametrize(
    ("figure", "why"),
    [
        ("cka", "--measurement structure: the figure cka is one of geometry."),
        ("curves", "--measurement: does not apply to curves; omit it."),
    ],
)
def test_a_measurement_that_does_not_have_the_figure_is_refused(tmp_path, draws, figure, why):
    store_record(tmp_path, geometry(FLAT))
    status, chart, said = draws(figure, tmp_path, "--measurement", "structure")
    assert (status, chart) == (2, None)
    assert why in said


def test_names_are_listed_without_torch():
    code = (
        "import sys\nfrom probes.__main__ import main\n"
        "try: main(['figure', '--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'torch', 'altair', 'vl_convert', 'sklearn'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *shown, loaded = run.stdout.splitlines()
    assert loaded == "[]"
    assert {"curves,", "tree", "cka,"} <= set(" ".join(shown).split())


@pytest.fixture(scope="module")
def sample():
    return find_corpus("sample").load()


@pytest.fixture
def trees(tmp_path, sample):
    """Writes a record of structural probes on `sample`; sentence 1 is left out."""

    def trees(**more):
        heads = [list(sentence.heads) for sentence in sample.splits["test"]]
        heads[0] = [-2] * len(heads[0])
        record = corpus_record("geometry", [], 2, model=more.get("model", "m"))
        corpus = {"name": "sample", "fingerprint": sample.fingerprint, **more.pop("corpus", {})}
        record = record.model_copy(
            update={
                "measurement": "structure",
                "corpus": record.corpus.model_copy(update=corpus),
                "arrays": ("trees",),
                "settings": StructureOptions().model_dump(mode="json"),
            }
        )
        array = more.pop("array", np.concatenate(heads).astype(np.int32))
        path = tmp_path / "r" / more.get("model", "m") / "sample" / "structure-00000000.json"
        path.parent.mkdir(parents=True)
        write_record(path, Record.model_validate(record.model_dump()), {"trees": array})
        return tmp_path / "r"

    return trees


def test_a_sentence_is_counted_from_one_and_its_words_come_from_the_corpus(trees, sample, draws):
    status, tree, _ = draws("tree", trees(), "--sentence", 12)
    assert status == 0
    sentence = sample.splits["test"][11]
    assert tuple(column(tree, "word")) == sentence.words
    assert set(column(tree, "kind")) == {"gold", "predicted"}
    n = len(sentence) - 1
    assert title_of(tree) == f"m, sample 1, test sentence 12: {n} of {n} edges"


def test_by_default_it_is_the_first_of_eight_to_fifteen_words_that_has_a_tree(trees, sample, draws):
    status, tree, said = draws("tree", trees())
    lengths = [len(sentence) for sentence in sample.splits["test"]]
    place = next(i for i, n in enumerate(lengths) if i > 0 and 8 <= n <= 15)
    assert status == 0
    assert tuple(column(tree, "word")) == sample.splits["test"][place].words
    assert f"sentence {place + 1}; --sentence draws another one" in said


@pytest.mark.parametrize(
    ("more", "arguments", "why"),
    [
        ({}, ("--sentence", 1), "--sentence 1: it was left out"),
        ({}, ("--sentence", 401), "--sentence 401: the test split has sentences 1 to 400"),
        ({}, ("--sentence", 0), "--sentence 0: the test split has sentences 1 to 400"),
        ({}, ("--sentence", "x"), "--sentence x: not a whole number"),
        (
            {"corpus": {"fingerprint": "0" * 64}},
            (),
            "--corpus sample: not the corpus of structure-",
        ),
        ({"corpus": {"name": "nowhere"}}, (), "Unknown corpus 'nowhere'"),
        ({"array": np.zeros(3, np.int32)}, (), "trees of 3 words, but the test split has 5,738"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_one_line(trees, draws, more, arguments, why):
    status, tree, said = draws("tree", trees(**more), *arguments)
    assert (status, tree) == (2, None)
    assert why in said


def test_trees_of_one_model_at_a_time(trees, tmp_path, draws):
    folder = trees()
    trees(model="n")
    assert (
        "trees of m on sample, n on sample; name the folder of one model"
        in draws("tree", folder)[2]
    )
    assert draws("tree", folder / "n", "--sentence", 2)[0] == 0
    (tmp_path / "empty").mkdir()
    store_record(tmp_path / "empty", geometry(FLAT))
    assert (
        "no predicted trees; run with --measurements structure"
        in draws("tree", tmp_path / "empty")[2]
    )
