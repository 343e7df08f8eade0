"""The run's log, what is said aloud, and stores and folders that are in use."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from board_by_hand import put

from probes.cli.main import main
from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.frames.joined_results import find_results

ROOT = Path(__file__).parents[2]


pytestmark = pytest.mark.usefixtures("short_schedule")


def flags(model, folder, *more):
    line = "--tasks pos --probes linear --limit 20 --quick --device cpu"
    places = ["--output", str(folder / "r"), "--cache-dir", str(folder / "c")]
    return ["--model", str(model), *line.split(), *places, *more]


def events(folder):
    (log,) = (folder / "r" / "runs").glob("*.jsonl")
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def test_a_log_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "runs").write_text("a file")
    with (
        pytest.raises(UserError, match=r"runs/.*jsonl: cannot be written \("),
        progress.log_to(tmp_path / "runs"),
    ):
        pass


def test_the_log_of_a_quiet_run_has_every_event(tiny_bert, tmp_path, capsys):
    assert main(flags(tiny_bert, tmp_path, "-q")) == 0
    (said,) = capsys.readouterr().err.splitlines()  # a warning
    assert "words contain [UNK]" in said
    found = events(tmp_path)
    names = [event["event"] for event in found]
    assert (names[0], names[-1], found[-1]["status"]) == ("start", "end", "done")
    for name in ("model", "corpus", "task", "encode", "vectors", "done", "wrote", "next"):
        assert name in names
    assert [event["time"] for event in found] == sorted(event["time"] for event in found)
    assert {event["level"] for event in found} == {"info", "debug", "warning"}
    (done,) = (event for event in found if event["event"] == "done")
    assert (done["task"], done["probe"], done["measurement"]) == ("pos", "linear", "scores")
    assert find_results(tmp_path / "r").keys() == {Path(done["result"])}


def test_the_log_says_why_a_run_ended(tiny_bert, tmp_path):
    assert main(flags(tiny_bert, tmp_path, "--layers", "9")) == 2
    end = events(tmp_path)[-1]
    assert (end["level"], end["status"]) == ("error", "error")
    assert end["message"] == "--layers 9: tiny-bert has layers 0 to 2."


def test_no_bars_where_there_is_no_terminal(tiny_bert, tmp_path, capfd):
    assert main(flags(tiny_bert, tmp_path)) == 0
    said = "".join(capfd.readouterr())
    assert "linear probe · test" in said
    assert not {"\r", "\x1b"} & set(said)
    assert "it/s" not in said


def test_files_are_written_even_if_nobody_reads_the_output(
    tiny_bert, tmp_path, capsys, monkeypatch
):
    with open("/dev/full", "w", encoding="utf-8") as full, monkeypatch.context() as patch:
        patch.setattr("sys.stdout", full)
        assert main(flags(tiny_bert, tmp_path)) == 0
        with contextlib.suppress(OSError):
            full.close()
    assert "cannot print the tables" in capsys.readouterr().err
    assert (tmp_path / "r" / "leaderboard.csv").is_file()
    assert events(tmp_path)[-1]["status"] == "done"


@pytest.mark.parametrize(("command", "status"), [("| true", 0), ("> /dev/full", 2)])
def test_a_command_whose_output_nobody_reads_ends_without_a_traceback(command, status, tmp_path):
    put(tmp_path, "a", "pos", 4)
    script = f"{sys.executable} -m probes leaderboard {tmp_path} {command}"
    script += "; exit ${PIPESTATUS[0]}"
    shell = ["bash", "-c", script]
    done = subprocess.run(shell, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert done.stderr.count("\n") == (status == 2)
    assert "defect" not in done.stderr


def test_characters_that_the_encoding_lacks_are_escaped(tmp_path):
    put(tmp_path, "a", "pos", 4)
    done = subprocess.run(
        [sys.executable, "-m", "probes", "leaderboard", str(tmp_path)],
        cwd=ROOT, capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"\\xb1" in done.stdout
