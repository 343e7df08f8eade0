"""Plug-ins are found in files and packages, and whatever they do is a report or one line."""

import io
import json
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from probes.cli.check_task import check_task
from probes.cli.commands.check import _print_report
from probes.cli.main import main
from probes.common.errors import UserError
from probes.data.sentence import Corpus, Sentence
from probes.measurements import plugins
from probes.measurements.plugins import discover, load_file
from probes.records.probe_spec import PROBES
from probes.run.settings import validate
from probes.statistics.metrics import metrics
from probes.tasks.builtin import tasks
from probes.tasks.task import Example, Excluded, Task
from probes.training.families import probe_families

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


def test_include_may_be_repeated_and_take_several(write, capsys):
    a, b, c = (write(TASK.format(name=n), f"{n}.py") for n in ("aa", "bb", "cc"))
    listed = ["--list-tasks", "--format", "json", "--include", f"{a},{b}", "--include", str(c)]
    assert main(listed) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows[-3:]] == ["aa", "bb", "cc"]


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
        (SPEC.format("learning_rate='x', epochs=2"), "ProbeSpec: learning_rate='x': not a number. Fix the plug-in."),
        (SPEC.format("learning_rate=0.1"), "ProbeSpec: epochs is missing. Fix the plug-in."),
        (SPEC.format("steps=1, learning_rate=0.1, epochs=2"), "ProbeSpec: steps=1: there is no such field."),
        ("\0", "mine.py"),
        ("# -*- coding: nonsense -*-\n", "SyntaxError"),
    ],
)  # fmt: skip
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
    assert probe_families.origin("mine").name == str(path)
    write(MINE)
    load_file(path)
    assert "mine" not in probe_families
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
    assert len(PROBES) == 8
    assert not {"x", "a.b"} & PROBES.keys()


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


FEW = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
WORDS = ("the", "old", "dog", "barks")
SPLITS = {
    split: tuple(Sentence(f"{split}{n}", "en", WORDS[:n], upos=("X",) * n) for n in (2, 3, 4))
    for split in ("train", "dev", "test")
}
CORPUS = Corpus("c", "1", "", SPLITS)

numbers = st.integers(-3, 6) | st.booleans() | st.floats()
several = st.tuples(st.integers(-1, 5), st.integers(-1, 5)) | st.lists(st.integers(), max_size=2)
odd = st.none() | numbers | several | st.text(max_size=3) | st.tuples(st.text(max_size=2))
spans = st.sampled_from([(0, 1), (1, 2)]) | odd
labels = st.sampled_from(["a", "b", ("a",)]) | st.floats(-2, 2) | odd
others = {"type": st.just("t") | odd, "hide": st.none() | odd, "groups": st.just(()) | odd}
examples = st.builds(Example, labels, spans, st.none() | spans, **others)


def outcome(rule, shape="word", kind="classification", metric="accuracy"):
    """The message of a user error, or nothing where a report is printed."""
    try:
        report = check_task(Task("t", 1, (), shape, kind, metric, (), rule, ""), CORPUS)
    except UserError as error:
        said = str(error)
    else:
        _print_report(report, Console(file=io.StringIO(), width=80))
        return ""
    assert "\n" not in said
    return said


@given(
    st.lists(st.one_of(examples, examples, odd, st.builds(Excluded, odd)), max_size=4),
    st.sampled_from(["word", "pair", "span", "span pair", "sentence"]),
    st.sampled_from([("classification", "accuracy"), ("regression", "corpus_spearman")]),
)
@FEW
def test_any_item_that_a_rule_yields(items, shape, kind):
    outcome(lambda sentence: items, shape, *kind)


@given(
    st.sampled_from([ValueError, KeyError, RecursionError, OSError, StopIteration, MemoryError]),
    st.text(),
)
@FEW
def test_any_error_that_a_rule_raises(kind, message):
    def rule(sentence):
        raise kind(message)

    said = outcome(rule)
    assert f"the rule raised {kind.__name__}" in said
    assert said.isprintable()
