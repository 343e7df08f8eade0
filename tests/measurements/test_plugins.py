"""Plug-ins are found in files and packages, and say what is wrong with them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from probes.cli.main import main
from probes.common.errors import UserError
from probes.measurements import plugins
from probes.measurements.plugins import discover, load_file
from probes.records.probe_spec import PROBES
from probes.run.settings import validate
from probes.statistics.metrics import metrics
from probes.tasks.builtin import STANDARD, tasks
from probes.training.families import families

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("plug_ins")

TASK = '''\
from probes import Example, task

@task("{name}", version=1, needs=["upos"], metric="accuracy")
def rule(sentence):
    """Its summary."""
    for i, tag in enumerate(sentence.upos):
        yield Example(tag, (i, i + 1), type=sentence.words[i])
'''

MINE = TASK.format(name="mine")

SPEC = "from probes import ProbeSpec\nProbeSpec(family='f', {})\n"


def test_an_included_task_is_known_with_its_source(write):
    path = write(MINE)
    config = validate({"include": (path,), "tasks": ("mine",)})
    assert config.include == (path,)
    origin = tasks.origin("mine")
    assert origin.name == str(path)
    sha256 = subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True)
    assert origin.sha256 == sha256.stdout.split()[0]
    assert tasks.origin("pos") is None


def test_one_file_may_be_given_as_text_from_python(write):
    assert validate({"include": str(write(MINE))}).include[0].name == "mine.py"
    assert "mine" in tasks


def test_lists_mark_plug_ins(write, capsys):
    path = write(MINE)
    assert main(["--list-tasks", "--format", "json", "--include", str(path)]) == 0
    *shipped, mine = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in shipped if row["default"]] == list(STANDARD)
    assert mine == {
        "name": "mine",
        "default": False,
        "group": "other",
        "version": 1,
        "metric": "accuracy",
        "summary": f"Its summary. [{path}]",
    }
    assert not any("[" in row["summary"] for row in shipped)


def test_include_may_be_repeated_and_take_several(write, capsys):
    a, b, c = (write(TASK.format(name=n), f"{n}.py") for n in ("aa", "bb", "cc"))
    listed = ["--list-tasks", "--format", "json", "--include", f"{a},{b}", "--include", str(c)]
    assert main(listed) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows[-3:]] == ["aa", "bb", "cc"]


def test_a_misspelt_name_of_an_included_task_is_answered(write, capsys):
    path = write(TASK.format(name="definiteness"))
    assert main(["--model", "m", "--include", str(path), "--tasks", "definitness"]) == 2
    assert "Did you mean 'definiteness'?" in capsys.readouterr().err


SYNTAX = "x = 1\ndef f(:\n    pass\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SYNTAX, "mine.py, line 2: SyntaxError: invalid syntax"),
        ("\n\nimport nowhere\n", "mine.py, line 3: ModuleNotFoundError: No module named 'nowhere'"),
        ("def f():\n    return 1 / 0\n\nf()\n", "mine.py, line 2: ZeroDivisionError"),
        ("import sys\nsys.exit(3)\n", "mine.py, line 2: SystemExit: 3"),
        ("x = 1\n", "registers no task, corpus, probe family, metric or measurement"),
        (MINE.replace("mine", "pos"), "line 3: The task 'pos' is defined twice, in the suite"),
        (MINE.replace("mine", "a,b"), "Task 'a,b': a name may have up to 60 letters"),
        (MINE.replace("upos", "uposs"), "unknown annotation layer 'uposs'. Did you"),
        (MINE.replace('["upos"]', '"upos"'), "needs='upos' is one string"),
        (MINE.replace("=1", "=1, shape='wrod'"), "unknown shape 'wrod'"),
        (MINE.replace("=1", "=1, knd='x'"), "TypeError: task() got an unex"),
        (
            SPEC.format("learning_rate='x', epochs=2"),
            "ProbeSpec: learning_rate='x': not a number. Fix the plug-in.",
        ),
        (SPEC.format("learning_rate=0.1"), "ProbeSpec: epochs is missing. Fix the plug-in."),
        (
            SPEC.format("steps=1, learning_rate=0.1, epochs=2"),
            "ProbeSpec: steps=1: there is no such field.",
        ),
        ("\0", "mine.py"),
        ("# -*- coding: nonsense -*-\n", "SyntaxError"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_line(write, text, message, capsys):
    before = list(tasks)
    assert main(["--list-tasks", "--include", str(write(text))]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("error: ")
    assert message in line
    assert "mine.py" in line
    assert list(tasks) == before


@pytest.mark.parametrize(
    ("name", "message"),
    [("none.py", "there is no such file"), ("", "is a folder"), ("a.txt", "must end in .py")],
)
def test_a_path_that_is_not_a_python_file_is_refused(tmp_path, name, message):
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(UserError, match=message):
        load_file(tmp_path / name)


def test_two_files_with_one_name_are_both_named(write):
    first, second = (write(MINE, f) for f in ("one.py", "two.py"))
    with pytest.raises(UserError) as error:
        discover([first, second])
    assert f"defined twice, in {first} and in {second}; rename one" in str(error.value)


def test_two_files_of_the_same_file_name_are_two_plug_ins(write):
    discover([write(TASK.format(name=n), f"{n}/mine.py") for n in ("aa", "bb")])
    assert "aa" in tasks
    assert "bb" in tasks


def test_a_file_changed_within_a_second_is_loaded_again(write):
    path = write(MINE)
    load_file(path)
    before = tasks.origin("mine").sha256
    write(MINE.replace("version=1", "version=2"))
    load_file(path)
    assert tasks.get("mine").version == 2
    assert tasks.origin("mine").sha256 != before
    write(TASK.format(name="other"))
    load_file(path)
    assert "mine" not in tasks
    assert not list(path.parent.rglob("*.pyc"))


def test_what_a_file_registers_before_it_fails_is_removed(write):
    with pytest.raises(UserError, match="line 9: ZeroDivisionError"):
        load_file(write(MINE + "\n1 / 0\n"))
    assert "mine" not in tasks


def test_a_registry_that_a_plug_in_imports_first_is_not_ascribed_to_it(write):
    text = (
        "import probes.statistics.metrics, probes.training.families, probes.data.registered\n"
        + MINE
    )
    code = f"""
from probes.measurements.plugins import load_file
found = load_file({str(write(text))!r})
from probes.statistics.metrics import metrics
from probes.training.families import families
from probes.data.registered import corpora
assert [(noun, name) for noun, name, _ in found.entries] == [("task", "mine")], found.entries
for registry in (metrics, families, corpora):
    assert len(list(registry)) > 1
    assert not any(registry.origin(name) for name in registry)
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


FAMILY = """
from probes.records.probe_spec import PROBES
from probes.training.families import probe_family

@probe_family(PROBES["linear"].model_copy(update={update}))
def mine(spec):
    raise RuntimeError
"""


def test_a_probe_family_is_added_and_taken_back(write):
    path = write(FAMILY.format(update={"family": "mine"}))
    config = validate({"include": (path,), "probes": ("mine", "linear")})
    assert config.probes == ("mine", "linear")
    assert families.origin("mine").name == str(path)
    write(MINE)
    load_file(path)
    assert "mine" not in families
    assert "mine" not in PROBES
    with pytest.raises(UserError, match="--probes mine: no such probe family"):
        validate({"probes": ("mine",)})


@pytest.mark.parametrize(
    ("update", "message"),
    [
        ({"family": "a.b"}, "becomes part of file names"),
        ({"family": "linear"}, "The probe family 'linear' is defined twice"),
        ({"family": "x", "l2": ()}, "give one value of l2"),
        ({"family": "x", "l2": (1.0, 30.0)}, "give one value of l2"),
        ({"family": "x", "ridge_l2": (0.0,)}, "only values above 0"),
    ],
)
def test_a_family_that_cannot_be_fitted_is_refused(write, update, message):
    with pytest.raises(UserError, match=message):
        load_file(write(FAMILY.format(update=update)))
    assert list(PROBES) == ["linear", "mlp", "mean-difference", "sparse"]


def test_an_installed_task_is_found_and_knows_its_distribution(install):
    install("plug_a", MINE, {"mine": "plug_a", "again": "plug_a:rule"})
    discover()
    origin = tasks.origin("mine")
    assert (origin.name, origin.distribution) == ("plug_a", "dist-plug_a 2.1")
    discover()


def test_an_installed_metric_is_found_in_its_group(install):
    text = "from probes import Metric, class_parts, metrics\n"
    text += "metrics.add('m', Metric(class_parts, lambda sums: sums[..., 0]))\n"
    install("plug_b", text, {"m": "plug_b"})
    discover()
    assert metrics.origin("m").distribution == "dist-plug_b 2.1"


def test_a_broken_package_is_reported_and_an_error_only_if_it_is_asked_for(install, capsys):
    path = install("plug_c", "import nowhere\n", {"broken": "plug_c", "lost": "plug_missing"})
    assert main(["--list-tasks"]) == 0
    said = capsys.readouterr()
    assert "pos" in said.out
    assert f"ignored broken: {path}, line 1 (dist-plug_c 2.1): ModuleNotFoundError" in said.err
    assert "ignored lost: plug_missing of dist-plug_c 2.1" in said.err
    for flag in ("--tasks", "--measurements", "--evidence"):
        assert main(["--model", "m", flag, "broken"]) == 2
        error = capsys.readouterr().err.strip().splitlines()[-1]
        assert error.startswith("error: broken could not be loaded: ")
        assert "dist-plug_c 2.1" in error


def test_the_digest_of_a_package_covers_its_helpers(install, tmp_path):
    path = install("plug_d", "", {})
    path.unlink()
    package = tmp_path / "site" / "plug_d"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "helper.py").write_text("x = 1\n")
    before = plugins._digest(plugins._package("plug_d"))
    (package / "helper.py").write_text("x = 2\n")
    assert plugins._digest(plugins._package("plug_d")) != before
    assert "plug_d" not in sys.modules


def test_a_file_put_into_tasks_is_found_and_known_by_its_content(write, monkeypatch):
    path = write(TASK.format(name="dropped"), "tasks/dropped.py")
    write("1 / 0\n", "tasks/wrong.py")
    monkeypatch.setattr(plugins, "TASKS", path.parent)
    discover()
    assert tasks.origin("dropped").name == "tasks/dropped.py"
    assert "tasks/wrong.py, line 1: ZeroDivisionError" in plugins.broken["wrong"]
    del sys.modules["probes.tasks.dropped"]


def test_every_module_of_the_suites_own_tasks_ships():
    discover()
    assert [name for name in tasks if tasks.origin(name) is None] == list(tasks)
    assert not plugins.broken
