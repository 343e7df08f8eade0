"""Runs on Ray: this machine, and a cluster of two nodes with files of their own."""

import sys
import threading
from pathlib import Path

import pandas as pd
import pytest
from killing import ROOT, logged
from on_ray import flags, require_nothing_left, running_cluster, scores, started
from plugged_in import TASK
from tiny_models import save

import probes
from probes.cli.main import main
from probes.common.errors import UserError

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("plug_ins", "ray_here")]


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """Two nodes of one core, each with a cache of its own."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with running_cluster(tmp_path / "node-1", tmp_path / "node-2") as made:
        yield made


@pytest.mark.slow
def test_two_nodes_find_what_one_process_finds_though_one_is_lost(
    tiny_bert, small_sample, cluster, tmp_path, write, capsys
):
    """Records come from nodes that share nothing; whatever a lost node had is made again."""
    asked = ["--include", str(write(TASK)), "--tasks", "mine,agreement,pos"]
    save("roberta", tmp_path / "roberta")
    models = [tiny_bert, tmp_path / "roberta"]
    assert main(flags(models, small_sample, tmp_path / "one", *asked)) == 0
    done = threading.Event()

    def lose_a_node():
        while not list((tmp_path / "two" / "results").rglob("*scores*.json")):
            if done.wait(0.05):
                return
        cluster.remove_node(cluster.added[1], allow_graceful=False)

    thread = threading.Thread(target=lose_a_node)
    thread.start()
    address = ["--engine", "ray", "--address", cluster.address]
    capsys.readouterr()
    try:
        assert main(flags(models, small_sample, tmp_path / "two", *asked, *address)) == 0
    finally:
        done.set()
        thread.join()
    said = capsys.readouterr().err
    assert "cluster 2 nodes, 2 workers · 2 nodes with files of its own" in said
    pd.testing.assert_frame_equal(scores(tmp_path / "one"), scores(tmp_path / "two"))
    assert len(cluster.list_all_nodes()) == 1
    # Nothing was encoded into the cache that the run itself names.
    assert not list((tmp_path / "two" / "cache" / "vectors").glob("*/manifest.json"))
    one, two = (
        {x.name for x in (tmp_path / name / "results").rglob("*-????????.*")}
        for name in ("one", "two")
    )
    assert one == two


def test_on_this_machine_files_are_shared_and_nothing_is_left_running(
    tiny_bert, small_sample, tmp_path
):
    line = flags([tiny_bert], small_sample, tmp_path, "--engine", "ray", "--tasks", "pos", "-q")
    with started(line, tmp_path) as run:
        _, err = run.communicate(timeout=60)
        assert run.returncode == 0, err
        require_nothing_left(tmp_path, run)
    assert list((tmp_path / "cache" / "vectors").glob("*/manifest.json"))
    assert len(scores(tmp_path)) > 0


@pytest.mark.slow
def test_nodes_that_share_files_make_everything_once(
    tiny_bert, small_sample, tmp_path, monkeypatch, write
):
    """Relative paths begin at the driver's folder, not where the nodes were started."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    write(TASK)
    (tmp_path / "tiny").symlink_to(tiny_bert)
    (tmp_path / "small").symlink_to(small_sample)
    more = "--include mine.py --tasks mine,pos,agreement --engine ray"
    with running_cluster(None, None) as cluster:
        monkeypatch.chdir(tmp_path)
        line = flags(["./tiny"], "small", Path(), *more.split(), "--address", cluster.address)
        assert main(line) == 0
    shards = [(event["key"], event["shard"]) for event in logged(Path(), "encode")]
    assert len(shards) == len(set(shards)) == 6  # three, of two views, of a model and its twin
    assert len(list(Path("cache/vectors").glob("*/*/manifest.json"))) == 6
    done = logged(Path(), "done")
    # Each worker has loaded each of the two models at most once.
    loaded = [(event["worker"], event["name"]) for event in logged(Path(), "model")]
    assert len(loaded) == len(set(loaded))
    # Scores of both models, and selectivity of one.
    assert len(done) == len(list(Path("results").rglob("*-????????.json"))) == 9

    # The cluster is gone, and is not missed where nothing is computed.
    assert main(line) == 0
    assert main([*line, "--tasks", "depth", "--dry-run"]) == 0
    assert len(logged(Path(), "done")) == 9


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["--address", "auto"], "--address auto names a Ray cluster; add --engine ray."),
        (["--gpus-per-model", "2"], "--gpus-per-model 2 needs Ray; add --engine ray."),
        (["--engine", "ray", "--gpus-per-model", "999"], "--gpus-per-model 999: "),
        (["--engine", "ray", "--address", "127.0.0.1:1"], "--address 127.0.0.1:1: no cluster answers there"),
    ],
)  # fmt: skip
def test_what_cannot_be_reached_is_said(tiny_bert, small_sample, tmp_path, capsys, asked, says):
    assert main(flags([tiny_bert], small_sample, tmp_path, *asked)) == 2
    assert says in capsys.readouterr().err


def test_without_ray_the_error_names_what_to_install(
    tiny_bert, small_sample, tmp_path, capsys, monkeypatch
):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(flags([tiny_bert], small_sample, tmp_path, "--engine", "ray")) == 2
    assert "pip install 'probing-suite[cluster]'" in capsys.readouterr().err


@pytest.mark.parametrize("settings", [{"engine": "ray"}, {"workers": 2}])
def test_a_model_in_memory_is_refused(settings):
    ((name, value),) = settings.items()
    with pytest.raises(UserError, match=f"{name}={value!r}: workers cannot read a model in memory"):
        probes.run_probes((object(), object()), **settings)
