"""Runs that are killed or stopped, and several that share a cache and a folder of results."""

import signal
from pathlib import Path

import pytest
from killing import Driver, age, command, event_kinds, logged, written

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def drivers(tiny_bert):
    """Two processes that run command lines."""
    both = [Driver(tiny_bert) for _ in range(2)]
    yield both
    for driver in both:
        driver.close()


@pytest.fixture(scope="module")
def undisturbed(drivers, tiny_bert, small_sample, tmp_path_factory):
    """A run that nothing stops: what it wrote, its events, its folder."""
    folder = tmp_path_factory.mktemp("undisturbed")
    done = drivers[0].ask(command(tiny_bert, small_sample, folder), log=str(folder / "log"))
    assert done["status"] == 0, (folder / "log").read_text()
    (folder / "log").unlink()
    found = written(folder)
    assert sum(name.endswith(".npz") for name in found) == 2
    kinds = sorted(name.split("-")[-2] for name in found if "linear" in name and ".json" in name)
    assert kinds == ["scores", "scores", "selectivity", "selectivity"]
    # Two stores, of three and of five shards.
    assert sum(name.endswith("manifest.json") for name in found) == 2 + 3 + 5
    return found, done["events"], folder


def survives(drivers, model, corpus, folder, undisturbed, trials):
    """Kill a run in each of the ways `trials`, run the command again, compare with the other."""
    for first in range(0, len(trials), len(drivers)):
        jobs = list(zip(drivers, trials[first : first + len(drivers)], strict=False))
        places = {index: folder / f"{first + index}" for index in range(len(jobs))}
        for index, (driver, trial) in enumerate(jobs):
            places[index].mkdir()
            driver.start(command(model, corpus, places[index]), **trial)
        for driver, trial in jobs:
            assert driver.answer()["status"] == -signal.SIGKILL, trial
        for index, (driver, _) in enumerate(jobs):
            age(places[index])
            log = str(folder / f"{first + index}.log")
            driver.start(command(model, corpus, places[index]), log=log, watch=False)
        for index, (driver, trial) in enumerate(jobs):
            answer = driver.answer()
            said = (folder / f"{first + index}.log").read_text()
            assert answer["status"] == 0, (trial, said)
            assert written(places[index]) == undisturbed, trial


@pytest.mark.slow
def test_killed_at_each_kind_of_write_and_rename(
    drivers, tiny_bert, small_sample, undisturbed, tmp_path
):
    reference, events, folder = undisturbed
    kinds = event_kinds(events, folder)
    trials = [{"kill_at": number} for number in kinds]
    assert len(trials) > 30
    survives(drivers, tiny_bert, small_sample, tmp_path, reference, trials)


@pytest.mark.exhaustive
def test_killed_at_every_single_write_and_rename(
    drivers, tiny_bert, small_sample, undisturbed, tmp_path
):
    reference, events, _ = undisturbed
    trials = [{"kill_at": number} for number in range(1, len(events) + 1)]
    survives(drivers, tiny_bert, small_sample, tmp_path, reference, trials)


def test_killed_again_and_again(drivers, tiny_bert, small_sample, undisturbed, tmp_path):
    reference, events, _ = undisturbed
    n_events = len(events)
    killed = 0
    for number in range(n_events // 8, n_events, n_events // 8):
        status = drivers[0].ask(command(tiny_bert, small_sample, tmp_path), kill_at=number)[
            "status"
        ]
        killed += status == -signal.SIGKILL
        age(tmp_path)
    assert killed >= 2
    assert drivers[0].ask(command(tiny_bert, small_sample, tmp_path), watch=False)["status"] == 0
    assert written(tmp_path) == reference


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopped_between_two_pieces_of_evidence(
    number, drivers, tiny_bert, small_sample, undisturbed, tmp_path
):
    reference, events, _ = undisturbed
    written_at = [i for i, (what, path) in enumerate(events, start=1) if "-selectivity-" in path]
    log = tmp_path.parent / f"{tmp_path.name}.log"
    line = [word for word in command(tiny_bert, small_sample, tmp_path) if word != "-q"]
    # The record of the first task's evidence is there when that of the second is begun.
    first = events[written_at[0] - 1][1].split("-linear-")[0]
    (*_, at) = (i for i in written_at if not events[i - 1][1].startswith(first))
    answer = drivers[0].ask(line, kill_at=at, signal=number, log=str(log))
    found = sorted(
        p.name.rpartition("-")[0] for p in (tmp_path / "results").rglob("*-linear-*.json")
    )
    scores = ["agreement-linear-scores", "pos-linear-scores"]
    assert [name for name in found if name.endswith("scores")] == scores
    said = log.read_text()
    assert said.count("linear probe · test") >= 1
    if number != signal.SIGKILL:
        assert answer["status"] == 128 + number
        stopped = "stopped; finished results are kept; run the same command again to continue"
        assert stopped in said
        assert "\ntables of what is done: python -m probes show " in said
        (run_log,) = (tmp_path / "results" / "runs").iterdir()
        assert '"status": "stopped"' in run_log.read_text().splitlines()[-1]
        assert not (tmp_path / "results" / "leaderboard.csv").exists()
        # Before the evidence, and not again.
        assert said.count("linear probe · test") == 1
    else:
        assert answer["status"] == -signal.SIGKILL
        age(tmp_path)
    kept = {p: p.stat().st_mtime_ns for p in (tmp_path / "results").rglob("*-linear-scores-*")}
    assert drivers[0].ask(line, watch=False)["status"] == 0
    assert {p: p.stat().st_mtime_ns for p in kept} == kept
    assert written(tmp_path) == reference


PROCESSES = 4
SHARDS = 3 + 5
"""Of the two views."""


def together(driver, lines, folder):
    logs = [folder.parent / f"{folder.name}-{i}.log" for i in range(len(lines))]
    tasks = [
        {"run": line, "log": str(log), "watch": False}
        for line, log in zip(lines, logs, strict=True)
    ]
    for answer, log in zip(driver.ask_together(tasks), logs, strict=True):
        assert answer["status"] == 0, log.read_text()


@pytest.mark.slow
def test_processes_with_the_same_model_encode_and_fit_everything_once(
    drivers, tiny_bert, small_sample, undisturbed, tmp_path
):
    shared = tmp_path / "shared"
    together(drivers[0], [command(tiny_bert, small_sample, shared)] * PROCESSES, tmp_path)
    assert written(shared) == undisturbed[0]
    assert len(logged(shared, "end")) == PROCESSES
    encoded = [(line["key"], line["shard"]) for line in logged(shared, "encode")]
    assert len(encoded) == len(set(encoded)) == SHARDS
    done = [Path(line["result"]).name.rpartition("-")[0] for line in logged(shared, "done")]
    assert sorted(done) == [
        f"{task}-linear-{name}"
        for task in ("agreement", "pos")
        for name in ("scores", "selectivity")
    ]


@pytest.mark.slow
def test_processes_with_different_models_neither_mix_nor_repeat_work(
    drivers, tiny_bert, small_sample, tmp_path
):
    driver, alone, shared = drivers[0], tmp_path / "alone", tmp_path / "shared"
    models = [str(tiny_bert), *(f"random{n}:{tiny_bert}" for n in ("", "-1", "-2"))]
    for model in models:
        assert driver.ask(command(model, small_sample, alone), watch=False)["status"] == 0
    together(driver, [command(model, small_sample, shared) for model in models], tmp_path)
    for folder in (alone, shared):  # once more, since its tables have the twins that are there
        assert driver.ask(command(tiny_bert, small_sample, folder), watch=False)["status"] == 0
    assert written(shared) == written(alone)
    assert len(logged(shared, "encode")) == SHARDS * PROCESSES
    # Random models have scores and evidence as others have, if they are named.
    assert len(logged(shared, "done")) == 4 * PROCESSES


def test_killing_one_process_does_not_stop_the_others(
    drivers, tiny_bert, small_sample, undisturbed, tmp_path
):
    driver, shared = drivers[0], tmp_path / "shared"
    line = command(tiny_bert, small_sample, shared)
    tasks = [{"run": line, "kill_at": 60}, {"run": line, "watch": False}]
    statuses = [answer["status"] for answer in driver.ask_together(tasks)]
    assert statuses[1] == 0
    age(shared)
    # What it left is swept by the next run.
    assert driver.ask(line, watch=False)["status"] == 0
    assert written(shared) == undisturbed[0]
