"""Runs on Ray: this machine, and a cluster of two nodes with files of their own."""

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pandas as pd
import psutil
import pytest
from killing import ROOT, small_corpus
from plugged_in import TASK
from tiny_models import save

import probes
from probes.cli.main import main
from probes.common.errors import UserError

pytest.importorskip("ray", reason="Ray is not installed")

MARK = "PROBES_TEST_MARK"
"""In the environment of processes whose descendants are looked for."""

pytestmark = pytest.mark.usefixtures("plug_ins")


@pytest.fixture
def corpus(tmp_path):
    return small_corpus(tmp_path / "small")


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """Two nodes of one core, each with a cache of its own."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    import ray
    from ray.cluster_utils import Cluster

    own = [{"PROBES_CACHE_DIR": str(tmp_path / f"node-{n}")} for n in (1, 2)]
    first = {"num_cpus": 1, "include_dashboard": False, "env_vars": own[0]}
    made = Cluster(initialize_head=True, head_node_args=first)
    made.second = made.add_node(num_cpus=1, env_vars=own[1])
    yield made
    ray.shutdown()
    made.shutdown()


def flags(models, corpus, folder, *more):
    places = ["--output", str(folder / "results"), "--cache-dir", str(folder / "cache")]
    line = "--probes linear --device cpu --threads 1 --evidence selectivity"
    models = list(map(str, models))
    return ["--model", *models, "--corpus", str(corpus), *line.split(), *places, *more]


def scores(folder):
    """The leaderboard, times aside."""
    return pd.read_csv(folder / "results" / "leaderboard.csv").drop(columns="seconds")


def test_two_nodes_find_what_one_process_finds_though_one_is_lost(
    tiny_bert, corpus, cluster, tmp_path, write, capsys
):
    """Records come from nodes that share nothing; whatever a lost node had is made again."""
    asked = ["--include", str(write(TASK)), "--tasks", "mine,agreement,pos"]
    save("roberta", tmp_path / "roberta")
    models = [tiny_bert, tmp_path / "roberta"]
    assert main(flags(models, corpus, tmp_path / "one", *asked)) == 0
    done = threading.Event()

    def lose_a_node():
        while not list((tmp_path / "two" / "results").rglob("*scores*.json")):
            if done.wait(0.05):
                return
        cluster.remove_node(cluster.second, allow_graceful=False)

    thread = threading.Thread(target=lose_a_node)
    thread.start()
    address = ["--engine", "ray", "--address", cluster.address]
    capsys.readouterr()
    try:
        assert main(flags(models, corpus, tmp_path / "two", *asked, *address)) == 0
    finally:
        done.set()
        thread.join()
    said = capsys.readouterr().err
    assert "cluster 2 nodes, 2 workers · 2 nodes with files of its own" in said
    pd.testing.assert_frame_equal(scores(tmp_path / "one"), scores(tmp_path / "two"))
    assert len(cluster.list_all_nodes()) == 1
    # Nothing was encoded into the cache that the run itself names.
    assert not list((tmp_path / "two" / "cache" / "vectors").glob("*/manifest.json"))
    for name in ("npz", "json"):
        one, two = (
            {x.name for x in (tmp_path / each / "results").rglob(f"*-????????.{name}")}
            for each in ("one", "two")
        )
        assert one == two


def test_on_this_machine_files_are_shared_and_nothing_is_left_running(tiny_bert, corpus, tmp_path):
    line = flags([tiny_bert], corpus, tmp_path, "--engine", "ray", "--tasks", "pos", "-q")
    script = f"import sys; from probes.cli.main import main; sys.exit(main({line!r}))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), MARK: str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "cache" / "vectors").glob("*/manifest.json"))
    assert len(scores(tmp_path)) > 0
    deadline = time.monotonic() + 10
    while left := marked(str(tmp_path)):
        assert time.monotonic() < deadline, left
        time.sleep(0.2)


def marked(value):
    """Processes that descend from a marked one."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(MARK) == value and process.status() != "zombie":
                found.append(process)
    return found


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["--address", "auto"], "--address auto: of a Ray cluster; add --engine ray."),
        (
            ["--engine", "ray", "--address", "127.0.0.1:1"],
            "--address 127.0.0.1:1: no cluster answers there",
        ),
    ],
)
def test_what_cannot_be_reached_is_said(tiny_bert, corpus, tmp_path, capsys, asked, says):
    assert main(flags([tiny_bert], corpus, tmp_path, *asked)) == 2
    assert says in capsys.readouterr().err


def test_without_ray_the_error_names_what_to_install(
    tiny_bert, corpus, tmp_path, capsys, monkeypatch
):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(flags([tiny_bert], corpus, tmp_path, "--engine", "ray")) == 2
    assert "pip install 'probing-suite[cluster]'" in capsys.readouterr().err


def test_a_model_in_memory_is_refused():
    with pytest.raises(UserError, match="engine='ray': workers cannot read a model in memory"):
        probes.run_probes((object(), object()), engine="ray")
