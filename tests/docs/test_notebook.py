"""The notebook of `examples/`: it runs from its first cell to its last, without a network."""

import base64
import re

import nbformat
import pytest
from killing import ROOT
from nbclient import NotebookClient

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
    assert n == m == 1
    first.source = f"{NO_NETWORK}{made}"
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook, folder


def outputs(notebook, of):
    """The outputs of the cell that begins so, by media type."""
    (cell,) = (x for x in notebook.cells if x.cell_type == "code" and of in x.source)
    return {kind: text for each in cell.outputs for kind, text in each.get("data", {}).items()}


def test_it_is_stored_without_outputs(stored):
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert len(code) >= 7
    assert not any(cell.outputs or cell.execution_count for cell in code)


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
    assert "array(['" in outputs(notebook, "probe = probes.read_probe")["text/plain"]
