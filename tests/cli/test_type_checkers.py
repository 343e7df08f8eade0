"""In an editable environment, type checkers know the names and settings of `probes`."""

import re
import subprocess
import sys
import sysconfig

import pytest
from checkouts import copy_checkout

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SCRIPT = """\
from pathlib import Path

import numpy as np

import probes
from probes.tasks.builtin import get_task

x, y = np.zeros((30, 4)), [0, 1] * 15
results = probes.run_probes("M", corpus="sample", tasks=("pos", "depth"), layers=[0, 6], seeds=3)
probes.run_probes(object(), object(), name="mine", corpus=[("a text", "a label")], memory="2GB")
probes.run_probes(["A", "B"], output=Path("results"), include="mine.py", sites="mlp,block")
probes.surprisal("M", ["a text"], device="cpu").mean()
probes.probe(probes.Vectors({0: x, 6: x}, labels=y, groups=list(range(30))), seeds=2)
reveal_type(results)
reveal_type(probes.UserError("a line"))
reveal_type(get_task("pos"))
reveal_type(results["pos"].best)
reveal_type(results.predictions("pos", layer=-1))
reveal_type(results.plot(task="pos", path="curves.pdf"))
reveal_type([task for task in results])
probes.run_probes("M", layers=-1)
probes.Vectors(np.zeros((3, 30, 4)), labels=y, kind="regression")
results.plot(task="pos").properties(title="mine").save("curves.svg")
results.no_such_name
probes.run_probes("M", corpuss="sample")
probes.run_probes("M", seeds="three")
probes.Vectors({0: x}, y, grops=y)
probes.probe(probes.Vectors({0: x}, y), corpus="sample")
probes.Vectors({0: x}, y, kind="regresion")
"""

TYPES = (
    (14, r"Results"),
    (15, r"UserError"),
    (16, r"Task"),
    (17, r"DataFrame"),
    (18, r"DataFrame"),
    (19, r"[^\n]*Chart\b[^\n]*"),
    (20, r"list\[(builtins\.)?str\]"),
)
ERRORS = (
    (24, "no_such_name"),
    (25, "corpuss"),
    (26, "seeds"),
    (27, "grops"),
    (28, "corpus"),
    (29, "regresion"),
)


def output_of(*command, folder):
    done = subprocess.run(
        [str(x) for x in command], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Python of a fresh environment with an editable install of a copy of the checkout."""
    folder = tmp_path_factory.mktemp("editable")
    copy_checkout(folder / "copy")
    python = folder / "env" / "bin" / "python"
    output_of(sys.executable, "-m", "venv", "--without-pip", folder / "env", folder=folder)
    # Everything else comes from this environment, whose own .pth files are not read.
    (site,) = (folder / "env" / "lib").glob("python*/site-packages")
    (site / "others.pth").write_text("\n".join(other_packages()) + "\n")
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"]
    said = output_of(*install, "--no-build-isolation", "--editable", folder / "copy", folder=folder)
    assert [*site.glob("__editable__.*.pth")], said
    return python


def other_packages():
    """Folders of the packages that this environment imports, but for the checkout."""
    purelib = sysconfig.get_path("purelib")
    return [purelib, *(x for x in sys.path if x.endswith("site-packages") and x != purelib)]


@pytest.fixture(scope="module", params=["elsewhere", "checkout"])
def script(request, environment, tmp_path_factory):
    """A user's script in a folder of its own, or in the checkout."""
    copy = environment.parents[2] / "copy"
    folder = copy if request.param == "checkout" else tmp_path_factory.mktemp("project")
    path = folder / "script.py"
    path.write_text(SCRIPT)
    return path


def require_reports(said, name):
    """Assert the revealed types, and that errors stand in their lines alone, each with its name."""
    lines = {}
    for line in said.splitlines():
        if found := re.search(rf"{name}:(\d+):(?:\d+)?[ :-]*(error|note|information): (.*)", line):
            lines.setdefault((int(found[1]), found[2] == "error"), []).append(found[3])
    for number, kind in TYPES:
        assert any(re.search(rf"[\"'.]{kind}[\"']", x) for x in lines.get((number, False), ())), (
            said
        )
    assert sorted(number for number, is_error in lines if is_error) == [n for n, _ in ERRORS], said
    for number, word in ERRORS:
        assert any(word in x for x in lines[number, True]), said


def test_mypy_knows_names_and_settings(script, environment, tmp_path):
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--config-file=", "--python-executable", environment]
    command += ["--cache-dir", tmp_path, "--ignore-missing-imports", script.name]
    require_reports(output_of(*command, folder=script.parent), script.name)


@pytest.fixture(scope="module")
def pyright(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pyright")
    output_of(sys.executable, "-m", "venv", folder, folder=folder)
    said = output_of(folder / "bin" / "pip", "install", "--quiet", "pyright", folder=folder)
    command = folder / "bin" / "pyright"
    # Its first run downloads it.
    if not command.exists() or "pyright " not in output_of(command, "--version", folder=folder):
        pytest.skip(f"pyright could not be installed: {said.strip()[-200:]}")
    return command


def test_pyright_knows_names_and_settings(script, environment, pyright):
    said = output_of(pyright, "--pythonpath", environment, script.name, folder=script.parent)
    require_reports(said, script.name)
