"""`new-measurement`: its files run, and what cannot be written is refused."""

import csv

import pytest

from probes.__main__ import main
from probes.cli.commands.new_measurement import OF
from probes.cli.main import main as run_probes
from probes.measurements.measurement import get_measurement, measurements

pytestmark = pytest.mark.usefixtures("plug_ins", "short_schedule")


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
    line = said[-1].replace("MODEL", str(tiny_bert)).split()[2:]
    line += [
        "--tasks",
        "pos",
        "--probes",
        "linear",
        "--limit",
        "20",
        "--twins",
        "0",
        "--device",
        "cpu",
    ]
    line += ["--output", str(tmp_path / "r"), "--cache-dir", str(tmp_path / "c")]
    assert run_probes(line) == 0
    with (tmp_path / "r" / "measurements.csv").open(encoding="utf-8") as table:
        rows = list(csv.DictReader(table))
    assert [(row["measurement"], row["layer"]) for row in rows] == [
        ("fresh_one", layer) for layer in "012"
    ]
    if of == "probes":
        assert {float(row["value"]) for row in rows} == {1.0}
        assert run_probes([*line, "--fresh-one-seed", "2"]) == 0
        assert len(list((tmp_path / "r").rglob("pos-linear-fresh_one-*.json"))) == 2
    assert measurements.origin("fresh_one").name == str(file)
    assert get_measurement("fresh_one").version == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("scores", "this name is taken; choose another."),
        ("selectivity", "this name is taken; choose another."),
        ("standard", "--measurements or --evidence uses this word"),
        ("measurement", "Python or the template uses this name"),
        ("float", "Python or the template uses this name"),
        ("json", "json.py would hide the module 'json'"),
        ("probes", "--measurements or --evidence uses this word"),
        ("my-norms", "begin with a letter"),
        ("Norms", "use up to 40 of a-z, 0-9 and _"),
        ("x" * 41, "use up to 40 of a-z"),
        ("", "begin with a letter"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(name, message, tmp_path, capsys):
    assert main(["new-measurement", name, "--folder", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path, capsys):
    (tmp_path / "test_fresh.py").write_text("mine")
    assert main(["new-measurement", "fresh", "--folder", str(tmp_path)]) == 2
    assert "test_fresh.py exists already; choose another name." in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["test_fresh.py"]
    assert (tmp_path / "test_fresh.py").read_text() == "mine"


def test_a_kind_that_does_not_exist_is_refused(capsys):
    assert main(["new-measurement", "fresh", "--of", "models"]) == 2
    assert capsys.readouterr().err == "error: --of models: give corpus or probes.\n"
