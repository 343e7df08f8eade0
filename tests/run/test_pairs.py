"""Measurements that compare the models of a run with the first one."""

import csv
import json
import shutil

import numpy as np
import pytest
from killing import small_corpus

from probes.cli.main import main
from probes.measurements.frame import load
from probes.measurements.plugin_keys import is_current
from probes.measurements.plugins import load_file

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("plug_ins")]

PAIR = """
import numpy as np
from probes import Pivot, Row, measurement

def units(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

@measurement("words")
def words(context):
    "Number of words."
    assert not hasattr(context, "base")
    yield Row("words", len(context.rows("test")))

view = Pivot("beside the base", columns=("base_layer",))

@measurement("cosine", of="pair", after="words", views=(view,))
def cosine(context):
    "Mean cosine of the same word in two models."
    for i in context.layers:
        for j in context.base.layers:
            both = units(context.words("test", i)), units(context.base.words("test", j))
            yield Row("cosine", (both[0] * both[1]).sum(1).mean(), i, axes={"base_layer": j})
"""


@pytest.fixture
def command(tiny_bert, tmp_path, write):
    """Runs a command line; its exit status."""
    path, corpus = write(PAIR, "pair.py"), small_corpus(tmp_path / "small")

    def command(*more, beside=()):
        places = ["--output", str(tmp_path / "results"), "--cache-dir", str(tmp_path / "cache")]
        line = ["--model", str(tiny_bert), *beside, "--corpus", str(corpus), "--include", str(path)]
        return main([*line, "--device", "cpu", "--threads", "1", *places, *more])

    load_file(path)
    return command


def records_of(folder):
    return {
        (record.model.name, record.measurement): record
        for record in load(folder / "results").records().values()
    }


def test_each_model_is_compared_with_the_first_one(command, tmp_path, capsys):
    assert command("--measurements", "words", "--project", "4") == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "random:tiny-bert · small · cosine from tiny-bert · beside the base" in printed
    found = records_of(tmp_path)
    assert sorted(found) == [
        ("random:tiny-bert", "cosine"),
        ("random:tiny-bert", "words"),
        ("tiny-bert", "words"),
    ]
    # They have nothing to do with the projection of probes.
    assert all(map(is_current, found.values()))
    record = found["random:tiny-bert", "cosine"]
    assert (record.model.random_seed, record.base.random_seed) == (0, None)
    assert (len(record.rows), set(record.rows.axes["base_layer"])) == (9, {0, 1, 2})
    assert not np.allclose(record.rows.value, 1, atol=0.05)
    (path,) = (tmp_path / "results").rglob("cosine.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["layer"], row["base_layer"]) for row in rows[:4]] == [
        ("0", "0"),
        ("0", "1"),
        ("0", "2"),
        ("1", "0"),
    ]
    assert [float(row["value"]) for row in rows] == pytest.approx(record.rows.value, rel=1e-5)


def test_a_model_beside_its_equal_and_the_key_names_the_base(command, tiny_bert, tmp_path):
    copy = shutil.copytree(tiny_bert, tmp_path / "copy")
    # Another name, and the same weights: every word's vectors are equal at every layer.
    assert command("--measurements", "cosine", beside=[str(copy)]) == 0
    found = records_of(tmp_path)
    same = [x.value for x in found["copy", "cosine"].rows if x.layer == x.axes["base_layer"]]
    assert same == pytest.approx([1, 1, 1], abs=1e-5)
    twin = found["random:tiny-bert", "cosine"]
    assert (twin.base.name, twin.model.name) == ("tiny-bert", "random:tiny-bert")
    assert twin.inputs != found["copy", "cosine"].inputs


def test_layers_are_added_on_both_sides_and_nothing_is_measured_twice(command, tmp_path):
    assert command("--measurements", "cosine", "--layers", "1") == 0
    (path,) = (tmp_path / "results").rglob("cosine-*.json")
    assert json.loads(path.read_bytes())["rows"]["axes"] == {"base_layer": [1]}
    assert command("--measurements", "cosine", "--layers", "2") == 0
    found = json.loads(path.read_bytes())
    assert list(found["extent"]) == ["1", "2"]
    assert found["rows"]["axes"] == {"base_layer": [1, 2, 1, 2]}
    before = path.stat().st_mtime_ns
    assert command("--measurements", "cosine", "--layers", "1,2") == 0
    assert path.stat().st_mtime_ns == before


def test_workers_find_the_same_pairs(command, tmp_path):
    assert command("--measurements", "words") == 0
    (path,) = (tmp_path / "results").rglob("cosine-*.json")
    alone = json.loads(path.read_bytes())["rows"]
    path.unlink()
    assert command("--measurements", "words", "--workers", "2") == 0
    assert json.loads(path.read_bytes())["rows"] == alone


def test_one_model_cannot_be_compared(command, capsys):
    assert command("--measurements", "cosine", "--twins", "0") == 2
    assert capsys.readouterr().err == (
        "error: --measurements cosine: it compares models; name two after --model, or leave the "
        "random twin to be measured.\n"
    )


def test_what_goes_along_is_made_only_where_there_is_a_base(command, tmp_path):
    assert command("--measurements", "words", "--twins", "0") == 0
    assert [name for _, name in records_of(tmp_path)] == ["words"]
