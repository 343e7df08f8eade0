"""`check`, `new-task` and `new-measurement`: what is printed, written, refused."""

import csv
from pathlib import Path

import pytest

from probes.__main__ import main
from probes.cli.commands.new_measurement import OF
from probes.cli.commands.new_task import SHAPES
from probes.cli.main import main as run_probes
from probes.measurements.measurement import get_measurement, measurements

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.usefixtures("plug_ins", "short_schedule")


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


@pytest.mark.parametrize("of", OF)
def test_the_files_pass_their_test_and_run(of, tiny_bert, tmp_path, capsys):
    assert main(["new-measurement", "fresh_one", "--of", of, "--folder", str(tmp_path)]) == 0
    file, test = tmp_path / "fresh_one.py", tmp_path / "test_fresh_one.py"
    said = capsys.readouterr().out.splitlines()
    flag = {"corpus": "--measurements", "probes": "--evidence"}[of]
    assert said == [
        f"wrote {file} and {test}; next:",
        f"  python -m pytest {test}",
        f"  python run_probes.py --model MODEL --include {file} {flag} fresh_one",
    ]
    checks: dict = {"__file__": str(test)}
    exec(compile(test.read_text(), str(test), "exec"), checks)
    (name,) = (name for name in checks if name.startswith("test_"))
    checks[name]()
    (numbers,) = (name for name in ("VECTORS", "OTHER") if name in checks)
    changed = {"VECTORS": {0: [[1.0, 1.0]], 2: [[1.0, 1.0]]}, "OTHER": checks.get("REPORTED")}
    checks[numbers] = changed[numbers]
    with pytest.raises(AssertionError):
        checks[name]()
    # The command that is printed, with a small model.
    small = "--tasks pos --probes linear --limit 20 --twins 0 --device cpu"
    line = [*said[-1].replace("MODEL", str(tiny_bert)).split()[2:], *small.split()]
    line += ["--output", str(tmp_path / "r"), "--cache-dir", str(tmp_path / "c")]
    assert run_probes(line) == 0
    with (tmp_path / "r" / "measurements.csv").open(encoding="utf-8") as table:
        rows = list(csv.DictReader(table))
    assert [(row["measurement"], row["layer"]) for row in rows] == [("fresh_one", i) for i in "012"]
    if of == "probes":
        assert {float(row["value"]) for row in rows} == {1.0}
        assert run_probes([*line, "--fresh-one-seed", "2"]) == 0
        assert len(list((tmp_path / "r").rglob("pos-linear-fresh_one-*.json"))) == 2
    assert measurements.origin("fresh_one").name == str(file)
    assert get_measurement("fresh_one").version == 1


TAKEN, HIDES = ": this name is taken; choose another.", ": json.py would hide the module 'json'"
USED = ": --measurements or --evidence uses this word"
RESERVED = ": Python or the template uses this name; choose another."


@pytest.mark.parametrize(
    ("command", "name", "message"),
    [
        ("new-task", "pos", TAKEN),
        ("new-task", "json", HIDES),
        *(("new-task", name, RESERVED) for name in ("class", "Example")),
        *(("new-task", name, "letters, digits and _ (not -), and begin with a letter.") for name in ("my-task", "../x", "_x")),
        ("new-measurement", "scores", TAKEN),
        ("new-measurement", "standard", USED),
        ("new-measurement", "probes", USED),
        ("new-measurement", "measurement", RESERVED),
        ("new-measurement", "float", RESERVED),
        ("new-measurement", "json", HIDES),
        ("new-measurement", "my-norms", "begin with a letter"),
        ("new-measurement", "", "begin with a letter"),
        ("new-measurement", "Norms", "use up to 40 of a-z, 0-9 and _"),
        ("new-measurement", "x" * 41, "use up to 40 of a-z"),
    ],
)  # fmt: skip
def test_a_name_that_cannot_be_used_is_refused(command, name, message, tmp_path, capsys):
    assert main([command, name, "--folder", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path, capsys):
    (tmp_path / "test_fresh.py").write_text("mine")
    assert main(["new-measurement", "fresh", "--folder", str(tmp_path)]) == 2
    assert "test_fresh.py exists already; choose another name." in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["test_fresh.py"]
    assert (tmp_path / "test_fresh.py").read_text() == "mine"
