"""The measurement through the command line: records, files, tables and charts."""

import csv
import json

import pytest
from head_numbers import one
from heads_by_loops import assert_equal, of_heads
from killing import small_corpus
from pages import data_of
from tiny_models import save

from probes.__main__ import main as command
from probes.cli.main import main
from probes.data.find import find_corpus
from probes.extraction.loading import load_encoder
from probes.extraction.model_files import find_model
from probes.families.attention import measure as module


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tiny models that are called by their families, and a corpus."""
    folder = tmp_path_factory.mktemp("attention")
    for family in ("bert", "gpt2"):
        save(family, folder / family)
    small_corpus(folder / "small", 120)
    return folder


@pytest.fixture(scope="module")
def bert(folder):
    return one(folder / "bert", folder / "small", folder / "run")


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_numbers_are_those_of_the_maps_that_a_model_returns(folder, family, request):
    its = request.getfixturevalue("bert") if family == "bert" else None
    its = its or one(folder / family, folder / "small", folder / "run-gpt2")
    encoder = load_encoder(find_model(str(folder / family)), device="cpu")
    test = find_corpus(str(folder / "small")).load().splits["test"]
    expected, too_long = of_heads(encoder, test)
    assert its.record.facts["test_too_long"] == too_long > 0
    if family == "gpt2":
        # A decoder's entropy is a share of what each token sees; the other figure is of all tokens.
        del expected["entropy"]
        assert its.heads.of("separators") is None
    assert_equal(its.heads, expected)
    assert its.heads.of("entropy").n == 120 - too_long


def test_heads_csv_has_every_number(bert):
    with bert.path.with_name("heads.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "model", "corpus", "limit", "layer", "head", "feature", "direction", "metric", "split", "value",
        "low", "high", "baseline", "baseline_kind", "chance", "p", "chosen", "n", "key",
    ]  # fmt: skip
    axes = "metric", "feature", "direction", "split", "layer", "head"
    found = {tuple(row[x] for x in axes): row for row in rows}
    assert len(found) == len(rows)
    heads, n = bert.heads, 0
    numbers = [
        row
        for row in bert.record.rows
        if "head" in row.axes
        and row.metric != "class"
        and not {"baseline", "chosen"} & row.axes.keys()
    ]
    for of in numbers:
        place = tuple(
            str("" if x is None else x)
            for x in (of.metric, of.axes.get("feature"), of.axes.get("direction"), of.split)
        )
        row, n = found[*place, str(of.layer), str(of.axes["head"])], n + 1
        grid = heads.of(of.metric, of.axes.get("feature"), of.axes.get("direction"), of.split)
        baseline = grid.baseline[of.layer - 1, of.axes["head"] - 1]
        values = of.value, baseline, of.low, of.high
        for name, value in zip(("value", "baseline", "low", "high"), values, strict=True):
            given = float(row[name]) if row[name] else None
            assert (given is None) == (value is None), (place, name)
            assert value is None or given == pytest.approx(value, rel=1e-4, abs=1e-6)
        assert (row["n"], row["baseline_kind"]) == (str(of.n), grid.kind)
        assert of.split == "test" or of.interval is None
    classes = {(x[1], x[4], x[5]) for x in found if x[0] == "class"}
    assert classes == {
        (name, str(layer), str(head)) for (layer, head), name in heads.classes.items()
    }
    assert len(rows) == n + 4
    assert {place[3] for place, row in found.items() if row["chosen"]} == {"test"}
    chosen = {place[:3] + place[4:]: row for place, row in found.items() if row["chosen"]}
    assert len(chosen) == len(heads.choices) > 4
    for x in heads.choices:
        axes = x.test.axes
        at = str(x.test.layer), str(axes["head"])
        row = chosen[x.test.metric, x.feature, axes["direction"], *at]
        p = x.difference.p
        assert row["p"] == ("" if p is None else f"{p:.6g}")
        assert float(row["chance"]) == pytest.approx(x.chance.value, rel=1e-4)


def test_the_same_command_again_computes_nothing(bert, monkeypatch):
    monkeypatch.setattr(module, "measure", None)
    before = bert.path.read_bytes(), bert.path.stat().st_mtime_ns
    assert main(bert.line) == 0
    assert (bert.path.read_bytes(), bert.path.stat().st_mtime_ns) == before


def test_layers_that_are_added_have_the_numbers_that_they_have_alone(bert, folder, tmp_path):
    places = folder / "bert", folder / "small", tmp_path
    upper = one(*places, "--layers", "0,2")
    assert (upper.record.extent, upper.heads.layers) == ({2: 1}, [2])
    names = {head: name for (layer, head), name in bert.heads.classes.items() if layer == 2}
    assert {head: name for (_, head), name in upper.heads.classes.items()} == names
    assert (upper.heads.of("entropy").values == bert.heads.of("entropy").values[1:]).all()
    both = one(*places, "--layers", "1")
    assert both.path == upper.path
    assert both.record.extent == {1: 1, 2: 1}
    assert both.record.rows == bert.record.rows
    assert (both.record.facts, both.record.notes) == (bert.record.facts, bert.record.notes)


def test_the_page_has_the_heads(bert, folder, tmp_path):
    page = tmp_path / "page.html"
    assert command(["report", str(bert.path.parents[2]), "-o", str(page)]) == 0
    content = page.read_text(encoding="utf-8")
    assert "Entropy of attention" in content
    assert "Attention patterns" in content
    charts = json.dumps(data_of(content)["charts"])
    assert f"layer 2, head 1: {bert.heads.classes[2, 1]}" in charts
