"""The notebook of `examples/`: it runs from its first cell to its last, without a network."""

import ast
import base64
import re

import nbformat
import numpy as np
import pytest
from killing import ROOT
from nbclient import NotebookClient

from probes.cli.results import load_results

pytestmark = pytest.mark.integration

NOTEBOOK = ROOT / "examples" / "which_layer_knows_what.ipynb"

NO_NETWORK = """\
import socket, warnings
def refuse(*given):
    raise OSError("no network in this test")
socket.getaddrinfo = socket.create_connection = refuse
"""


@pytest.fixture(scope="module")
def stored():
    return nbformat.read(NOTEBOOK, as_version=4)


@pytest.fixture(scope="module")
def executed_notebook(stored, tiny_bert, tmp_path_factory):
    """The notebook with its outputs, of a tiny model and few sentences."""
    notebook = nbformat.from_dict(stored)
    folder = tmp_path_factory.mktemp("notebook")
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    made, n = re.subn(r'"all-MiniLM-L6-v2"', repr(str(tiny_bert)), first.source)
    made, m = re.subn(r'output="results"', 'output="results", limit=60, device="cpu"', made)
    first.source = f"{NO_NETWORK}{made}"
    reader = next(cell for cell in notebook.cells if "FILES = " in cell.source)
    reader.source, k = re.subn(r"FILES = .*", f"FILES = {str(tiny_bert)!r}", reader.source)
    assert n == m == k == 1
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook, folder


def outputs(notebook, of):
    """The outputs of the cell that begins so, by media type."""
    (cell,) = (x for x in notebook.cells if x.cell_type == "code" and of in x.source)
    return {kind: text for each in cell.outputs for kind, text in each.get("data", {}).items()}


def test_it_is_stored_as_it_ran(stored):
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert "stream" not in {output.output_type for cell in code for output in cell.outputs}


def test_its_stored_scores_are_those_of_the_published_records(stored):
    lines = outputs(stored, "results.table(")["text/plain"].splitlines()
    assert lines[0].split() == ["pos", "depth"]
    pos, depth = np.array([line.split()[1:] for line in lines[2:]], dtype=float).T
    scores = {"pos": pos, "depth": depth}
    for result in load_results(ROOT / "results/published/all-MiniLM-L6-v2-*/sample").results:
        if result.task.name in scores and result.probe.family == "linear":
            published = [result.score(layer) for layer in range(7)]
            np.testing.assert_allclose(scores.pop(result.task.name), published, atol=0.0006)
    assert not scores


def test_its_stored_probe_is_right_about_words_that_are_not_in_the_corpus(stored):
    said = outputs(stored, "probe = probes.read_probe")["text/plain"]
    assert ast.literal_eval(said) == {"zebras": "Plur", "lighthouse": "Sing", "pianists": "Plur"}
    assert float(outputs(stored, "own_probe = ")["text/plain"]) == 1.0
    sample = "".join(x.read_text(encoding="utf-8") for x in (ROOT / "data").rglob("*.conllu"))
    assert "\tdoctor\t" in sample
    assert [x for x in ("zebra", "lighthouse", "pianist") if f"\t{x}\t" in sample] == []


@pytest.mark.slow
def test_results_show_as_tables_and_charts_as_pictures(executed_notebook):
    notebook, folder = executed_notebook
    shown = outputs(notebook, "results = probes.run_probes")
    assert (
        "<caption><span>tiny-bert · sample, limit 60 · linear probe · test</span></caption>"
        in shown["text/html"]
    )
    assert shown["text/plain"].startswith("<Results: tiny-bert and random:tiny-bert on sample")
    picture = outputs(notebook, 'results.plot("curves")')["image/svg+xml"]
    picture = picture if picture.startswith("<svg") else base64.b64decode(picture).decode()
    assert "tiny-bert" in picture
    assert not re.search(r'(href|src)="http', picture)
    assert (folder / "page.html").stat().st_size > 10_000


@pytest.mark.slow
def test_a_task_of_a_cell_is_probed_and_compared(executed_notebook):
    notebook, _ = executed_notebook
    assert "plural" in outputs(notebook, "own = probes.run_probes")["text/html"]
    compared = outputs(notebook, "loaded = probes.load_results")["text/html"]
    for name in ("depth", "plural", "pos", "random:tiny-bert"):
        assert name in compared
    answers = ast.literal_eval(outputs(notebook, "probe = probes.read_probe")["text/plain"])
    assert {*answers.values()} <= {"Plur", "Sing"}
    assert 0 <= float(outputs(notebook, "own_probe = ")["text/plain"]) <= 1
