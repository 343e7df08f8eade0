"""A loss, failure or stop on Ray costs its own units, and the same command goes on."""

import os
import signal

import pandas as pd
import psutil
import pytest
from killing import logged, wait_for, written
from on_ray import flags, marked, require_nothing_left, scores, started
from plugged_in import measurement_file

from probes.cli.main import main

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("plug_ins", "ray_here")]

FAULTS = {
    "dies": "if place.exists(): os.kill(os.getpid(), signal.SIGKILL)",
    "once": "if place.exists(): place.unlink(); os.kill(os.getpid(), signal.SIGKILL)",
    "raises": "if place.exists(): place.open('a').write('tried,'); raise KeyError('Number')",
}
"""What measurements do while a file of their name is there, after they have read vectors."""


@pytest.mark.slow
def test_a_unit_whose_worker_dies_is_computed_again_and_one_that_fails_is_not(
    tiny_bert, small_sample, tmp_path, write
):
    files = []
    for name, fault in FAULTS.items():
        place = tmp_path / "faults" / name
        body = f"import os, signal; from pathlib import Path; place = Path({str(place)!r})"
        last = "        yield Row("
        text = measurement_file(name, "corpus").replace(
            last, f"        {body}\n        {fault}\n{last}"
        )
        assert fault in text
        files.append(str(write(text, f"{name}.py")))
    asked = ["--include", ",".join(files), "--tasks", "pos", "--twins", "0"]
    asked += ["--measurements", f"probes,{','.join(FAULTS)}"]
    assert main(flags([tiny_bert], small_sample, tmp_path / "undisturbed", *asked)) == 0

    (tmp_path / "faults").mkdir()
    for name in FAULTS:
        (tmp_path / "faults" / name).touch()
    line = flags([tiny_bert], small_sample, tmp_path / "ray", *asked, "--engine", "ray")
    # The address of another cluster is not for a run that starts its own.
    with started(line, tmp_path, RAY_ADDRESS="127.0.0.1:1") as run:
        _, said = run.communicate(timeout=100)
        require_nothing_left(tmp_path, run)
    assert run.returncode == 1, said
    lost = "its worker was lost, and so were 2 others"
    assert f"missing tiny-bert · dies: {lost}\n" in said
    (failed,) = [x for x in said.splitlines() if x.startswith("missing tiny-bert · raises: ")]
    assert "KeyError: 'Number'" in failed
    assert (tmp_path / "faults" / "raises").read_text() == "tried,"
    pd.testing.assert_frame_equal(scores(tmp_path / "ray"), scores(tmp_path / "undisturbed"))
    made = {x.name.split("-")[0] for x in (tmp_path / "ray").rglob("*-????????.json")}
    assert made == {"pos", "once"}

    for place in (tmp_path / "faults").iterdir():
        place.unlink()
    # On Ray or without it.
    assert main(flags([tiny_bert], small_sample, tmp_path / "ray", *asked)) == 0
    assert written(tmp_path / "ray" / "results") == written(tmp_path / "undisturbed" / "results")


def asleep_on_ray(model, corpus, folder, write):
    """A run that makes scores and then sleeps, and the file that is there while it does."""
    place = folder / "asleep"
    text = measurement_file("norms", "corpus").replace(
        "    for layer in context.layers:",
        f"    import pathlib, time; pathlib.Path({str(place)!r}).touch(); time.sleep(600)\n"
        "    for layer in context.layers:",
    )
    assert str(place) in text
    path = write(text, "norms.py")
    asked = ["--include", str(path), "--measurements", "probes,norms", "--tasks", "pos"]
    asked += ["--evidence", "none", "--twins", "0", "--engine", "ray"]
    return started(flags([model], corpus, folder, *asked), folder), place


# The terminal sends signals to all processes, and so does `timeout`; Docker and `kill` to one.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "send"),
    [
        (signal.SIGINT, os.killpg),
        (signal.SIGTERM, os.kill),
        pytest.param(signal.SIGTERM, os.killpg, marks=pytest.mark.exhaustive),
    ],
)
def test_a_stop_ends_all_that_was_started_which_listens_on_loopback_alone(
    number, send, tiny_bert, small_sample, tmp_path, write
):
    begun, place = asleep_on_ray(tiny_bert, small_sample, tmp_path, write)
    with begun as run:
        wait_for(place.exists)  # which is after the scores
        listening = {
            each.laddr.ip.removeprefix("::ffff:")  # of IPv4 addresses within IPv6
            for process in marked(tmp_path, run.pid)
            for each in process.net_connections("inet")
            if each.status == psutil.CONN_LISTEN
        }
        assert listening == {"127.0.0.1"}
        send(run.pid, number)
        out, err = run.communicate(timeout=120)
        require_nothing_left(tmp_path, run)
    assert run.returncode == 128 + number
    assert "Traceback" not in err
    assert err.endswith(
        "stopped; finished results are kept; run the same command again to continue\n"
    )
    assert "linear probe · test" in out
    found = (tmp_path / "results").rglob("*-scores-*.json")
    assert [path.name.partition("-")[0] for path in found] == ["pos"]
    assert [event["status"] for event in logged(tmp_path, "end")] == ["stopped"]
