"""`python -m probes cache` on stores that real runs have written."""

import argparse
import os
import shutil
import time

import pytest
from tiny_runs import run

from probes.cli.commands import cache
from probes.common import kept_values
from probes.common.errors import UserError
from probes.common.locks import locked
from probes.data import stored_corpora
from probes.data.find import find_corpus
from probes.extraction.reading.store import Store, StoreKey, write_manifest


@pytest.fixture(scope="module")
def cache_of_run(tiny_bert, tmp_path_factory):
    """The cache of a run with one store: the plain view of a few sentences."""
    folder = tmp_path_factory.mktemp("run")
    run(tiny_bert, folder, tasks="pos", probes="linear", limit=20)
    return folder / "cache"


@pytest.fixture
def vectors(cache_of_run, tmp_path):
    """The stores of a copy of that cache."""
    return shutil.copytree(cache_of_run, tmp_path / "cache") / "vectors"


def call(vectors, *flags):
    parser = argparse.ArgumentParser()
    cache.add_arguments(parser)
    return cache.run(parser.parse_args(["--cache-dir", str(vectors.parent), *flags]))


def states(vectors):
    return [entry.state for entry in cache.find_stores(vectors)]


def test_a_whole_store_is_listed_by_what_it_holds(vectors, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    (entry,) = cache.find_stores(vectors)
    assert (entry.state, entry.manifest["corpus"]) == ("whole", "sample")
    assert entry.size == sum(path.stat().st_size for path in entry.path.rglob("*"))
    assert abs(entry.used - time.time()) < 600
    assert call(vectors) == 0
    printed = capsys.readouterr().out
    for part in (entry.model, "sample", "plain", "mean", "float32", "whole"):
        assert part in printed
    assert "1 store," in printed


def test_what_no_run_can_read_is_told_apart_and_pruned(vectors, capsys):
    (whole,) = (path for path in vectors.glob("*") if path.is_dir())
    half = vectors / ("d" * 32)
    shutil.copytree(whole, half)
    (first,) = half.glob("00000-*")
    shutil.rmtree(first)
    given_up = vectors / ("e" * 32)
    shutil.copytree(half, given_up)
    (given_up / "replaced.json").write_text('{"why": "loud"}')
    (vectors / ("c" * 32)).mkdir()
    older = vectors / ("b" * 32)
    older.mkdir()
    (older / "manifest.json").write_text('{"format": 4, "model": {"name": "old"}, "layers": 1}')
    (vectors / ("a" * 32 + ".partial")).mkdir()
    found = sorted(states(vectors))
    assert found == ["broken"] * 4 + ["unfinished", "whole"]
    capsys.readouterr()
    assert call(vectors) == 0
    assert "b" * 32 in capsys.readouterr().out
    assert call(vectors, "--prune", "broken", "--dry-run") == 0
    assert len(states(vectors)) == 6
    assert call(vectors, "--prune", "broken") == 0
    assert [entry.path for entry in cache.find_stores(vectors)] == [whole]


@pytest.mark.parametrize(
    ("field", "value"), [("shards", "x"), ("model", None), ("layers", "x"), ("key", "k")]
)
def test_a_manifest_that_makes_no_sense_is_a_broken_store(vectors, field, value):
    (entry,) = cache.find_stores(vectors)
    key = StoreKey(**entry.manifest["key"])
    write_manifest(entry.path / "manifest.json", {**entry.manifest, field: value})
    with pytest.raises(UserError, match=r"manifest.json: (not readable|holds) .*; delete"):
        Store(vectors.parent, key)
    assert states(vectors) == ["broken"]
    assert call(vectors, "--prune", "broken") == 0
    assert not states(vectors)


def test_pruning_by_age_and_model(vectors):
    (entry,) = cache.find_stores(vectors)
    call(vectors, "--prune", "all", "--older-than", "30")
    call(vectors, "--prune", "all", "--model", "another")
    assert states(vectors) == ["whole"]
    os.utime(entry.path, (0, time.time() - 31 * 86400))
    call(vectors, "--prune", "all", "--older-than", "30", "--model", entry.model)
    assert states(vectors) == []
    assert call(vectors) == 0


def test_a_run_that_is_writing_is_left_alone(vectors, capsys):
    (entry,) = cache.find_stores(vectors)
    with locked(entry.path.with_suffix(".lock")):
        call(vectors, "--prune", "all", "--older-than", "0")
    assert states(vectors) == ["whole"]
    assert "a run is using it" in capsys.readouterr().out


def test_fitted_parameters_are_a_line_and_pruned_like_vectors(vectors, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "500")
    parameters = vectors.parent / "parameters"
    (path,) = parameters.iterdir()
    (store,) = cache.find_stores(vectors)
    size = f"{path.stat().st_size / 1e6:,.1f} MB"
    (parameters / "notes.safetensors").write_text("of somebody else")
    assert call(vectors) == 0
    line = f"1 file of fitted parameters, {size} in {path.parent}"
    assert capsys.readouterr().out.splitlines()[-1] == line
    call(vectors, "--prune", "all", "--model", "another")
    call(vectors, "--prune", "all", "--older-than", "30")
    call(vectors, "--prune", "broken")
    assert path.exists()
    os.utime(path, (0, time.time() - 31 * 86400))
    capsys.readouterr()
    call(vectors, "--prune", "all", "--older-than", "30", "--model", store.model, "--dry-run")
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == f"would delete 1 file of fitted parameters, {size}"
    assert path.exists()
    call(vectors, "--prune", "all", "--older-than", "30", "--model", store.model)
    assert [each.name for each in parameters.iterdir()] == ["notes.safetensors"]
    assert states(vectors) == ["whole"]
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == f"deleted 1 file of fitted parameters, {size}"


def test_stored_corpora_are_a_line_and_those_of_other_versions_are_broken(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(stored_corpora, "SHORTEST", 0)
    find_corpus("sample", cache_dir=tmp_path).load()
    (path,) = (tmp_path / stored_corpora.FOLDER).iterdir()
    line = f"1 file of corpora as they were read, {path.stat().st_size / 1e6:,.1f} MB"
    assert call(tmp_path / "vectors") == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{line} in {path.parent}"
    call(tmp_path / "vectors", "--prune", "broken")
    assert path.exists()
    (path.parent / ("0" * 32 + path.suffix)).mkdir()
    damaged = path.with_name("1" * 32 + path.suffix)
    damaged.write_bytes(b"no table")
    call(tmp_path / "vectors", "--prune", "broken")
    assert not damaged.exists()
    monkeypatch.setattr(stored_corpora, "readers", lambda: "other code")
    call(tmp_path / "vectors", "--prune", "broken")
    assert capsys.readouterr().out.splitlines()[-1] == f"deleted {line}, 1 of them broken"
    assert not path.exists()


def test_tests_and_answers_are_a_line_and_go_with_the_others(tmp_path, capsys):
    path = tmp_path / kept_values.FILE
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROBES_CACHE_DIR", str(tmp_path))
        kept_values.keep("a key", [1, 2])
    line = f"1 file of tests and answers of commands, {path.stat().st_size / 1e6:,.1f} MB"
    assert call(tmp_path / "vectors") == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{line} in {tmp_path}"
    call(tmp_path / "vectors", "--prune", "broken")
    call(tmp_path / "vectors", "--prune", "all", "--model", "m")
    assert path.exists()
    call(tmp_path / "vectors", "--prune", "all", "--older-than", "0")
    assert capsys.readouterr().out.splitlines()[-1] == f"deleted {line}"
    assert not path.exists()
