"""The command line: what is refused, in which words, before torch is imported."""

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

import probes
from probes.__main__ import main as python_m_probes
from probes.cli.main import main
from probes.measurements.measurement import EVIDENCE

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--model is missing"),
        (["--model", "m", "--taks", "pos"], "unknown argument '--taks'. Did you mean '--tasks'?"),
        (["--model", "m", "--tasks", "poss"], "Unknown task 'poss'. Did you mean 'pos'?"),
        (["--model", "m", "--tasks", "noun_number"], "A task of your own needs --include FILE."),
        (["--model", "m", "--corpus", "ewtt"], "Unknown corpus 'ewtt'. Did you mean 'ewt'?"),
        (
            ["--model", "m", "--probes", "liner"],
            "--probes liner: no such probe family. Did you mean",
        ),
        (["--model", "m", "--seeds", "0"], "--seeds 0: give a number of at least 1."),
        (["--model", "m", "--seeds", "x"], "--seeds x: not a whole number."),
        (["--model", "m", "--layers", "-1"], "layers count from 0"),
        (
            ["--model", "m", "--layers", "one"],
            "--layers one: give all, every:N, or numbers such as 0,3,6",
        ),
        (["--model", "./nowhere"], "--model ./nowhere: there is no such folder."),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments, message, capsys):
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("error: ")
    assert message in line


def test_a_layer_beyond_the_model_is_refused_before_encoding(tiny_bert, tmp_path, capsys):
    arguments = ["--model", str(tiny_bert), "--layers", "0,9", "--cache-dir", str(tmp_path)]
    assert main([*arguments, "--output", str(tmp_path / "r")]) == 2
    assert "--layers 9: tiny-bert has layers 0 to 2." in capsys.readouterr().err
    assert not list(tmp_path.rglob("*.npy"))


@pytest.mark.parametrize("command", [main, python_m_probes])
def test_the_version_is_printed(command, capsys):
    with contextlib.suppress(SystemExit):
        command(["--version"])
    assert capsys.readouterr().out == f"probing-suite {probes.__version__}\n"


@pytest.mark.parametrize(
    "flag", ["--help", "--list-tasks", "--list-corpora", "--list-measurements"]
)
def test_questions_are_answered_without_torch(flag):
    code = (
        "import sys; from probes.cli.main import main\n"
        f"try: main([{flag!r}])\n"
        "except SystemExit: pass\n"
        "assert not {'torch', 'transformers', 'pandas', 'sklearn'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    expected = {"--help": "--tasks", "--list-tasks": "span_f1", "--list-corpora": "English-EWT"}
    expected["--list-measurements"] = "score minus score on"
    assert expected[flag] in done.stdout


def test_a_second_run_imports_nothing_slow_and_redraws_nothing(tiny_bert, tmp_path):
    command = (
        "import sys; from probes.cli.main import main; status = main(sys.argv[1:]); "
        "print(*{'torch', 'altair', 'vl_convert', 'scipy'} & set(sys.modules)); sys.exit(status)"
    )
    flags = ["--model", str(tiny_bert), "--tasks", "depth", "--probes", "linear", "--limit", "30"]
    flags += ["--output", str(tmp_path / "r"), "--cache-dir", str(tmp_path / "c"), "-q"]
    flags += ["--twins", "0"]  # two models are compared anew
    flags += ["--evidence", ",".join(EVIDENCE)]
    drawn = []
    for imported in ({"torch", "altair", "vl_convert", "scipy"}, set()):
        done = subprocess.run(
            [sys.executable, "-c", command, *flags], capture_output=True, text=True, check=True
        )
        assert set(done.stdout.split()) == imported
        pictures = sorted((tmp_path / "r").rglob("layers.png"))
        assert len(pictures) == 1
        # Scores and evidence; regressions have no description length.
        assert len(list((tmp_path / "r").rglob("depth-linear-*.json"))) == len(EVIDENCE)
        drawn.append([picture.stat().st_mtime_ns for picture in pictures])
    assert drawn[0] == drawn[1]
