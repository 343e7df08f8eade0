"""`check` and `new-task` as commands: what is printed, written, refused."""

import subprocess
import sys
from pathlib import Path

import pytest

from probes.__main__ import main
from probes.scaffold import STARTS

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.usefixtures("plug_ins")

UNDECLARED = '''\
from tasks.task import Example, task

@task("undeclared", version=1, needs=["upos"], metric="accuracy")
def undeclared(sentence):
    """[red]No markup[/red]."""
    for i, tag in enumerate(sentence.xpos):
        yield Example(tag + sentence.upos[i], (i, i + 1), type=sentence.words[i])
'''


def test_what_has_to_be_mended_is_status_2(tmp_path, capsys):
    path = tmp_path / "undeclared.py"
    path.write_text(UNDECLARED)
    assert main(["check", str(path), "--limit", "50"]) == 2
    out = capsys.readouterr().out
    assert "error: the rule reads xpos, which needs= does not name" in out
    assert "[red]No markup[/red]." in out


def test_a_shipped_task_is_checked_by_its_name(capsys):
    assert main(["check", "depth", "--limit", "30"]) == 0
    out = capsys.readouterr().out
    assert "depth on sample" in out
    assert "regression · nspr · needs heads, upos" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dpeth"], "neither a file nor a task. Did you mean 'depth'?"),
        (["none.py"], "there is no such file"),
        (["pos", "--limit", "0"], "--limit 0: give a number from 1"),
        (["pos", "--corpus", "sampel"], "Did you mean 'sample'?"),
        (["pos", "--include", "x.py"], "--include x.py: there is no such file"),
    ],
)
def test_what_cannot_be_checked_is_one_line(arguments, message, capsys):
    assert main(["check", *arguments]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line


def test_checking_needs_no_torch():
    code = "import sys; from probes.__main__ import main; main(['check', 'srl', '--limit', '30', '-q'])\n"
    code += "assert not {'torch', 'transformers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


@pytest.mark.parametrize(("shape", "kind"), list(STARTS))
def test_every_start_passes_its_test_and_the_check(shape, kind, tmp_path, capsys):
    flags = ["--shape", shape.replace(" ", "-"), "--kind", kind, "--folder", str(tmp_path)]
    assert main(["new-task", "fresh", *flags]) == 0
    assert "python -m probes check" in capsys.readouterr().out
    assert main(["check", str(tmp_path / "fresh.py"), "--limit", "300"]) == 0
    out = capsys.readouterr().out
    assert f"version 1 · {shape} · {kind} · " in out
    assert "error" not in out
    test: dict = {"__file__": str(tmp_path / "test_fresh.py")}
    exec(compile((tmp_path / "test_fresh.py").read_text(), "test_fresh.py", "exec"), test)
    test["test_the_examples_of_a_sentence"]()
    test["EXPECTED"].pop()
    with pytest.raises(AssertionError):
        test["test_the_examples_of_a_sentence"]()


def test_nothing_is_overwritten(tmp_path, capsys):
    (tmp_path / "test_fresh.py").write_text("mine")
    assert main(["new-task", "fresh", "--folder", str(tmp_path)]) == 2
    assert "test_fresh.py is there already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["test_fresh.py"]
    assert (tmp_path / "test_fresh.py").read_text() == "mine"


@pytest.mark.parametrize(
    "name", ["pos", "my-task", "../x", "", "_x", "class", "task", "float", "x" * 61]
)
def test_a_name_that_cannot_be_used_is_refused(name, tmp_path, capsys):
    assert main(["new-task", name, "--folder", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())
