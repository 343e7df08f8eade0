"""The command line: what is refused, in which words, before torch is imported."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import probes
from probes.__main__ import main as python_m_probes
from probes.cli.main import main

ROOT = Path(__file__).parents[2]


def test_an_unknown_task_may_lack_its_file(capsys):
    assert main(["--model", "m", "--tasks", "noun_number"]) == 2
    assert capsys.readouterr().err.endswith(" A task of your own needs --include FILE.\n")


@pytest.mark.parametrize("command", [main, python_m_probes])
def test_the_version_is_printed(command, capsys):
    with contextlib.suppress(SystemExit):
        command(["--version"])
    assert capsys.readouterr().out == f"probing-suite {probes.__version__}\n"


def test_help_begins_with_examples_and_leaves_out_rare_options(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    def printed(flag):
        with contextlib.suppress(SystemExit):
            main([flag])
        return capsys.readouterr().out

    short, whole = printed("--help"), printed("--help-all")
    assert short.startswith("usage: python run_probes.py --model M [--corpus C] [--tasks T,…] [opt")
    assert short.splitlines()[1] == ""
    parts = [short.index(x) for x in ("examples:", "models:", "processes:", "help and output:")]
    assert parts == sorted(parts)
    assert max(map(len, short.splitlines())) <= 80
    for flag in ("--engine", "--address", "--steering-doses", "--cloze-word-ends"):
        assert flag not in short
        assert f"\n  {flag} " in whole
    assert "-2.0,-1.0,-0.5,0.5,1.0,2.0)" in whole
    assert "(default: )" not in whole
    assert "(default: true)" in " ".join(whole.split())


QUESTIONS = {
    "--help": "leaderboard",
    "run --help": "--tasks",
    "run --list-tasks": "span_f1",
    "run --list-corpora": "English-EWT",
    "run --list-measurements": "score minus score on",
}
"""By the words after `python -m probes`, a part of what is printed."""

ASK = """
import contextlib, io, json, sys
import probes
assert not {"torch", "numpy", "pandas", "pydantic"} & {*sys.modules}
from probes.__main__ import main

def printed(line):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        main(line.split())
    return out.getvalue()

answers = {line: printed(line) for line in sys.argv[1:]}
assert not {"torch", "transformers", "pandas", "sklearn"} & {*sys.modules}
printed("check srl --limit 30 -q")
assert not {"torch", "transformers"} & {*sys.modules}
print(json.dumps(answers))
"""


def test_questions_and_checks_are_answered_without_torch():
    command = [sys.executable, "-c", ASK, *QUESTIONS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert [line for line, part in QUESTIONS.items() if part not in answers[line]] == []


def test_a_second_run_imports_no_torch_and_redraws_nothing(tiny_bert, tmp_path):
    command = (
        "import sys; from probes.cli.main import main; status = main(sys.argv[1:]); "
        "print(*{'torch', 'altair', 'vl_convert', 'scipy'} & set(sys.modules)); sys.exit(status)"
    )
    flags = ["--model", str(tiny_bert), "--tasks", "pos", "--probes", "linear", "--limit", "30"]
    flags += ["--output", str(tmp_path / "r"), "--cache-dir", str(tmp_path / "c"), "-q"]
    flags += ["--twins", "0"]  # two models are compared anew
    flags += ["--evidence", "training_variance,selectivity"]
    drawn = []
    # The test of the floor, which needs scipy, is kept.
    for imported in ({"torch", "vl_convert", "scipy"}, set()):
        done = subprocess.run(
            [sys.executable, "-c", command, *flags], capture_output=True, text=True, check=True
        )
        assert set(done.stdout.split()) == imported
        pictures = sorted((tmp_path / "r").rglob("layers.png"))
        assert len(pictures) == 1
        assert len(list((tmp_path / "r").rglob("pos-linear-*.json"))) == 3
        drawn.append([picture.stat().st_mtime_ns for picture in pictures])
    assert drawn[0] == drawn[1]
