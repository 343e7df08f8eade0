"""`check` and `new-task` as commands: what is printed, written, refused."""

import subprocess
import sys
from pathlib import Path

import pytest

from probes.__main__ import main
from probes.cli.commands.new_task import SHAPES

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.usefixtures("plug_ins")

UNDECLARED = '''\
from probes import Example, task

@task("undeclared", version=1, needs=["upos"], metric="accuracy")
def undeclared(sentence):
    """[red]No markup[/red]."""
    for i, tag in enumerate(sentence.xpos):
        yield Example(tag + sentence.upos[i], (i, i + 1), type=sentence.words[i])
'''


def test_an_error_in_a_task_is_status_2(tmp_path, capsys):
    path = tmp_path / "undeclared.py"
    path.write_text(UNDECLARED)
    assert main(["check", str(path), "--limit", "50"]) == 2
    out = capsys.readouterr().out
    assert "error: the rule reads xpos, which needs= does not list" in out
    assert "[red]No markup[/red]." in out


FAILING_METRIC = """\
from probes import Example, Metric, class_parts, metrics, task

def half(sums):
    return sums / [][0]

metrics.add("half", Metric(class_parts, half))

@task("halved", version=1, needs=["upos"], metric="half")
def halved(sentence):
    for i, tag in enumerate(sentence.upos):
        yield Example(tag, (i, i + 1))
"""


def test_a_metric_that_fails_is_named_with_its_line(tmp_path, capsys):
    path = tmp_path / "halved.py"
    path.write_text(FAILING_METRIC)
    assert main(["check", str(path), "--limit", "50"]) == 2
    *_, line = capsys.readouterr().err.strip().splitlines()
    assert "Task 'halved': the metric 'half' raised IndexError" in line
    assert f"{path}, line 4." in line


def test_labels_that_occur_together_have_shares_of_the_examples(capsys):
    assert main(["check", "roles", "--limit", "300"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    n_train = int(next(line for line in lines if line[:1] == ["train"])[3].replace(",", ""))
    shares = {line[0]: line[1:] for line in lines if line and line[0] in ("ARG0", "ARG1")}
    for count, _, _, share in shares.values():
        assert share == f"{int(count.replace(',', '')) / n_train:.1%}"
    # More than one role per predicate: as shares of labels these could not be.
    assert sum(float(values[-1][:-1]) for values in shares.values()) > 100


def test_a_shipped_task_is_checked_by_its_name(capsys):
    assert main(["check", "depth", "--limit", "30"]) == 0
    out = capsys.readouterr().out
    assert "depth on sample" in out
    assert "regression · nspr · needs heads, upos" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dpeth"], "neither a file nor a task. Did you mean 'depth'?"),
        (["none.py"], "error: none.py: there is no such file"),
        (["README.md"], "error: README.md: not a Python file; its name must end in .py."),
        (["pos", "--limit", "x"], "--limit x: not a whole number."),
        (["pos", "--limit", "0"], "--limit 0: give a number of at least 1."),
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


@pytest.mark.parametrize("shape", SHAPES)
def test_every_example_passes_its_test_and_the_check(shape, tmp_path, capsys):
    flags = ["--shape", shape, "--folder", str(tmp_path)]
    assert main(["new-task", "fresh", *flags]) == 0
    assert "python -m probes check" in capsys.readouterr().out
    assert main(["check", str(tmp_path / "fresh.py"), "--limit", "300"]) == 0
    out = capsys.readouterr().out
    assert f"version 1 · {shape.replace('-', ' ')} · classification · accuracy" in out
    assert "error" not in out
    test: dict = {"__file__": str(tmp_path / "test_fresh.py")}
    exec(compile((tmp_path / "test_fresh.py").read_text(), "test_fresh.py", "exec"), test)
    test["test_the_examples_of_a_sentence"]()
    test["EXPECTED"].pop()
    with pytest.raises(AssertionError):
        test["test_the_examples_of_a_sentence"]()


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("missing/folder", "{}: there is no folder {.parent}; create it, or name another."),
        ("file", "--folder {} is a file; name a folder."),
    ],
)
def test_new_task_writes_to_a_folder_whose_parent_exists(folder, message, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    path = tmp_path / folder
    assert main(["new-task", "fresh", "--folder", str(path)]) == 2
    assert capsys.readouterr().err == f"error: {message.format(path, path)}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert main(["new-task", "fresh", "--folder", str(tmp_path / "new")]) == 0


def test_new_task_overwrites_nothing(tmp_path, capsys):
    (tmp_path / "test_fresh.py").write_text("mine")
    assert main(["new-task", "fresh", "--folder", str(tmp_path)]) == 2
    assert "test_fresh.py exists already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["test_fresh.py"]
    assert (tmp_path / "test_fresh.py").read_text() == "mine"


@pytest.mark.parametrize(
    "name",
    [
        "pos",
        "my-task",
        "../x",
        "",
        "_x",
        "class",
        "task",
        "Example",
        "float",
        "probes",
        "json",
        "numpy",
        "x" * 61,
    ],
)
def test_a_name_that_cannot_be_used_is_refused(name, tmp_path, capsys):
    assert main(["new-task", name, "--folder", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_missing_splits_are_cut_as_in_a_run(tmp_path, capsys):
    text = (ROOT / "data" / "sample" / "train.conllu").read_text("utf-8")
    (tmp_path / "all-train.conllu").write_text(text)
    asked = ["check", "pos", "--corpus", str(tmp_path)]
    assert main(asked) == 2
    assert "--split-by" in capsys.readouterr().err
    assert main([*asked, "--split-by", "sentence"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.split("\n")]
    start = next(n for n, line in enumerate(lines) if line[:2] == ["split", "sentences"])
    counts = {split: n for split, n, *_ in lines[start + 2 : start + 5]}
    assert counts == {"train": "1,600", "dev": "200", "test": "200"}
