"""Several processes that share a cache and a folder of results."""

from pathlib import Path

import pytest
from killing import Driver, age, command, logged, small_corpus, written

pytestmark = pytest.mark.integration

PROCESSES = 4
SHARDS = 3 + 5
"""Of the two views."""


@pytest.fixture(scope="module")
def driver(tiny_bert):
    """A process that runs command lines."""
    started = Driver(tiny_bert)
    yield started
    started.close()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return small_corpus(tmp_path_factory.mktemp("corpus") / "small")


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
    driver, tiny_bert, corpus, tmp_path
):
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    assert driver.ask(command(tiny_bert, corpus, alone), watch=False)["status"] == 0
    together(driver, [command(tiny_bert, corpus, shared)] * PROCESSES, tmp_path)
    assert written(shared) == written(alone)
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
    driver, tiny_bert, corpus, tmp_path
):
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    models = [str(tiny_bert), *(f"random{n}:{tiny_bert}" for n in ("", "-1", "-2"))]
    for model in models:
        assert driver.ask(command(model, corpus, alone), watch=False)["status"] == 0
    together(driver, [command(model, corpus, shared) for model in models], tmp_path)
    for folder in (alone, shared):  # once more, since its tables have the twins that are there
        assert driver.ask(command(tiny_bert, corpus, folder), watch=False)["status"] == 0
    assert written(shared) == written(alone)
    assert len(logged(shared, "encode")) == SHARDS * PROCESSES
    # Random models have scores and evidence as others have, if they are named.
    assert len(logged(shared, "done")) == 4 * PROCESSES


def test_killing_one_process_does_not_stop_the_others(driver, tiny_bert, corpus, tmp_path):
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    line = command(tiny_bert, corpus, shared)
    assert driver.ask(command(tiny_bert, corpus, alone), watch=False)["status"] == 0
    tasks = [{"run": line, "kill_at": 60}, {"run": line, "watch": False}]
    statuses = [answer["status"] for answer in driver.ask_together(tasks)]
    assert statuses[1] == 0
    age(shared)
    # What it left is swept by the next run.
    assert driver.ask(line, watch=False)["status"] == 0
    assert written(shared) == written(alone)
