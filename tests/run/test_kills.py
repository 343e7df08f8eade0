"""Runs that are killed or stopped, and several that share a cache and a folder of results."""

import signal
from itertools import product
from pathlib import Path

import pytest
from killing import Driver, age, command, event_kinds, logged, written

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def driver(tiny_bert):
    """A process that runs command lines."""
    begun = Driver(tiny_bert)
    yield begun
    begun.close()


@pytest.fixture(scope="module")
def drivers(driver, tiny_bert):
    """That and another one, for many runs."""
    other = Driver(tiny_bert)
    yield [driver, other]
    other.close()


@pytest.fixture(scope="module")
def undisturbed(driver, tiny_bert, small_sample, tmp_path_factory):
    """A run that nothing stops: what it wrote, its events, its folder."""
    folder = tmp_path_factory.mktemp("undisturbed")
    done = driver.ask(command(tiny_bert, small_sample, folder), log=str(folder / "log"))
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


def test_killed_again_and_again(driver, tiny_bert, small_sample, undisturbed, tmp_path):
    reference, events, _ = undisturbed
    line, step, killed = command(tiny_bert, small_sample, tmp_path), len(events) // 8, 0
    for number in range(step, len(events), step):
        killed += driver.ask(line, kill_at=number)["status"] == -signal.SIGKILL
        age(tmp_path)
    assert killed >= 2
    assert driver.ask(line, watch=False)["status"] == 0
    assert written(tmp_path) == reference


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopped_between_two_pieces_of_evidence(
    number, driver, tiny_bert, small_sample, undisturbed, tmp_path
):
    reference, events, _ = undisturbed
    written_at = [i for i, (what, path) in enumerate(events, start=1) if "-selectivity-" in path]
    log = tmp_path.parent / f"{tmp_path.name}.log"
    line = [word for word in command(tiny_bert, small_sample, tmp_path) if word != "-q"]
    # The record of the first task's evidence is there when that of the second is begun.
    first = events[written_at[0] - 1][1].split("-linear-")[0]
    (*_, at) = (i for i in written_at if not events[i - 1][1].startswith(first))
    answer = driver.ask(line, kill_at=at, signal=number, log=str(log))
    found = (tmp_path / "results").rglob("*-linear-scores-*.json")
    assert sorted(path.name.partition("-")[0] for path in found) == ["agreement", "pos"]
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
    assert driver.ask(line, watch=False)["status"] == 0
    assert {p: p.stat().st_mtime_ns for p in kept} == kept
    assert written(tmp_path) == reference


PROCESSES = 4
SHARDS = 3 + 5
"""Of the two views."""


def together(driver, lines, folder):
    log = folder.parent / f"{folder.name}.log"
    tasks = [{"run": line, "log": str(log), "watch": False} for line in lines]
    statuses = [answer["status"] for answer in driver.ask_together(tasks)]
    assert not any(statuses), log.read_text()


@pytest.mark.slow
def test_processes_with_the_same_model_encode_and_fit_everything_once(
    driver, tiny_bert, small_sample, undisturbed, tmp_path
):
    shared = tmp_path / "shared"
    together(driver, [command(tiny_bert, small_sample, shared)] * PROCESSES, tmp_path)
    assert written(shared) == undisturbed[0]
    assert len(logged(shared, "end")) == PROCESSES
    encoded = [(line["key"], line["shard"]) for line in logged(shared, "encode")]
    assert len(encoded) == len(set(encoded)) == SHARDS
    done = [Path(line["result"]).name.rpartition("-")[0] for line in logged(shared, "done")]
    units = product(("agreement", "pos"), ("scores", "selectivity"))
    assert sorted(done) == [f"{task}-linear-{name}" for task, name in units]


@pytest.mark.slow
def test_processes_with_different_models_neither_mix_nor_repeat_work(
    driver, tiny_bert, small_sample, tmp_path
):
    alone, shared = tmp_path / "alone", tmp_path / "shared"
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
    driver, tiny_bert, small_sample, undisturbed, tmp_path
):
    shared = tmp_path / "shared"
    line = command(tiny_bert, small_sample, shared)
    tasks = [{"run": line, "kill_at": 60}, {"run": line, "watch": False}]
    statuses = [answer["status"] for answer in driver.ask_together(tasks)]
    assert statuses[1] == 0
    age(shared)
    # What it left is swept by the next run.
    assert driver.ask(line, watch=False)["status"] == 0
    assert written(shared) == undisturbed[0]
