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


def test_an_unknown_task_may_lack_its_file(capsys):
    assert main(["--model", "m", "--tasks", "noun_number"]) == 2
    assert capsys.readouterr().err.endswith(" A task of your own needs --include FILE.\n")


@pytest.mark.parametrize("command", [main, python_m_probes])
def test_the_version_is_printed(command, capsys):
    with contextlib.suppress(SystemExit):
        command(["--version"])
    assert capsys.readouterr().out == f"probing-suite {probes.__version__}\n"


@pytest.mark.parametrize(
    ("module", "flag"),
    [
        ("probes.__main__", "--help"),
        *(
            ("probes.cli.main", flag)
            for flag in ("--help", "--list-tasks", "--list-corpora", "--list-measurements")
        ),
    ],
)
def test_questions_are_answered_without_torch(module, flag):
    code = (
        f"import sys; from {module} import main\n"
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
    assert ("leaderboard" if module == "probes.__main__" else expected[flag]) in done.stdout


def test_a_second_run_imports_no_torch_and_redraws_nothing(tiny_bert, tmp_path):
    command = (
        "import sys; from probes.cli.main import main; status = main(sys.argv[1:]); "
        "print(*{'torch', 'altair', 'vl_convert', 'scipy'} & set(sys.modules)); sys.exit(status)"
    )
    flags = ["--model", str(tiny_bert), "--tasks", "depth", "--probes", "linear", "--limit", "30"]
    flags += ["--output", str(tmp_path / "r"), "--cache-dir", str(tmp_path / "c"), "-q"]
    flags += ["--twins", "0"]  # two models are compared anew
    flags += ["--evidence", ",".join(EVIDENCE)]
    drawn = []
    for imported in ({"torch", "vl_convert", "scipy"}, {"scipy"}):
        done = subprocess.run(
            [sys.executable, "-c", command, *flags], capture_output=True, text=True, check=True
        )
        assert set(done.stdout.split()) == imported
        pictures = sorted((tmp_path / "r").rglob("layers.png"))
        assert len(pictures) == 1
        # Scores and evidence; linear regressions have no description length and no sparse probes.
        assert len(list((tmp_path / "r").rglob("depth-linear-*.json"))) == len(EVIDENCE) - 1
        drawn.append([picture.stat().st_mtime_ns for picture in pictures])
    assert drawn[0] == drawn[1]
