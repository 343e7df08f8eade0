"""The run's log, what is said aloud, and stores and folders that are in use."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from board_by_hand import put

from probes.__main__ import main as python_m_probes
from probes.cli.main import main
from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.extraction.store import Store, StoreKey
from probes.measurements.joined_results import find_results

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
        progress.recorded(tmp_path / "runs"),
    ):
        pass


def test_the_log_of_a_quiet_run_has_every_event(tiny_bert, tmp_path, capsys):
    assert main(flags(tiny_bert, tmp_path, "-q")) == 0
    (said,) = capsys.readouterr().err.splitlines()  # a warning
    assert "words hold [UNK]" in said
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


def test_verbose_prints_more_on_standard_error_and_results_on_standard_output(
    tiny_bert, tmp_path, capsys
):
    assert main(flags(tiny_bert, tmp_path / "plain")) == 0
    plain = capsys.readouterr()
    assert main(flags(tiny_bert, tmp_path / "more", "-v")) == 0
    more = capsys.readouterr()
    assert "encode  " not in plain.err
    assert "encode  " in more.err
    assert "done    " not in plain.out
    assert "linear probe · test" in plain.out
    assert len(more.err.splitlines()) > len(plain.err.splitlines())


def test_no_bars_where_there_is_no_terminal(tiny_bert, tmp_path, capfd):
    assert main(flags(tiny_bert, tmp_path)) == 0
    said = "".join(capfd.readouterr())
    assert "linear probe · test" in said
    assert not {"\r", "\x1b"} & set(said)
    assert "it/s" not in said


def test_lines_of_what_is_done_name_the_model_if_there_are_several(tiny_bert, tmp_path, capsys):
    assert main(flags(tiny_bert, tmp_path / "one")) == 0
    assert "\ndone    pos · linear · best layer " in capsys.readouterr().err
    line = flags(tiny_bert, tmp_path / "two")
    place = line.index(str(tiny_bert))
    assert main([*line[: place + 1], f"random:{tiny_bert}", *line[place + 1 :]]) == 0
    said = capsys.readouterr().err
    for name in ("tiny-bert", "random:tiny-bert"):
        assert f"\ndone    {name} · pos · linear · best layer " in said


def test_a_log_that_cannot_be_written_does_not_stop_a_run(tmp_path, capsys):
    with progress.recorded(tmp_path):
        progress._log.close()
        progress._log = Path("/dev/full").open("w") if Path("/dev/full").exists() else None  # noqa: SIM115
        if progress._log is None:
            pytest.skip("no /dev/full here")
        progress.say("one")
        progress.say("two")
    said = capsys.readouterr().err
    assert said.count("the log ends here: it cannot be written") == 1
    assert "two" in said


def test_a_store_in_use_is_not_pruned(tiny_bert, tmp_path, capsys):
    assert main(flags(tiny_bert, tmp_path)) == 0
    (manifest,) = (tmp_path / "c" / "vectors").glob("*/manifest.json")
    prune = ["cache", "--cache-dir", str(tmp_path / "c"), "--prune", "all", "--older-than", "0"]
    store = Store(tmp_path / "c", StoreKey(**json.loads(manifest.read_bytes())["key"]))
    assert python_m_probes(prune) == 0
    assert "a run is using it" in capsys.readouterr().out
    assert sum(map(len, store.arrays("layer-02"))) == store.manifest["rows"]
    del store
    assert python_m_probes(prune) == 0
    assert not manifest.exists()


@pytest.mark.parametrize(
    "reader", [pytest.param("head -1", marks=pytest.mark.slow), "cat > /dev/full"]
)
def test_files_are_written_even_if_nobody_reads_the_output(tiny_bert, tmp_path, reader):
    line = [sys.executable, str(ROOT / "run_probes.py"), *flags(tiny_bert, tmp_path)]
    script = f'"$@" 2> {tmp_path}/said | {reader} > {tmp_path}/taken; exit ${{PIPESTATUS[0]}}'
    if "full" in reader:
        script = f'"$@" 2> {tmp_path}/said > /dev/full'
    done = subprocess.run(["bash", "-c", script, "run", *line], check=False)
    assert done.returncode == 0, (tmp_path / "said").read_text()
    assert (tmp_path / "r" / "leaderboard.csv").is_file()
    assert ("cannot print the tables" in (tmp_path / "said").read_text()) == ("full" in reader)
    (log,) = (tmp_path / "r" / "runs").glob("*.jsonl")
    assert json.loads(log.read_text().splitlines()[-1])["status"] == "done"


@pytest.mark.parametrize(
    ("command", "status"),
    [("| true", 0), ("> /dev/full", 2)],
)
def test_a_command_whose_output_nobody_reads_ends_without_a_traceback(command, status, tmp_path):
    put(tmp_path, "a", "pos", 4)
    script = f"{sys.executable} -m probes leaderboard {tmp_path} {command}"
    script += "; exit ${PIPESTATUS[0]}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
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
