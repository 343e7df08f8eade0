"""The measurement through the command line: records, files, tables and charts."""

import csv

import numpy as np
import pytest
from heads_by_loops import assert_equal, of_heads
from killing import small_corpus
from measuring_attention import one
from tiny_models import save

from probes.__main__ import main as command
from probes.cli.main import main
from probes.data.find import find_corpus
from probes.extraction.loading import load_encoder
from probes.extraction.model_files import find_model
from probes.measurements.attention import measure as module
from probes.measurements.attention.attention import Attention
from probes.measurements.attention.patterns import CLASSES
from probes.records.files import read_arrays


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
    assert its.payload.splits["test"].too_long == too_long > 0
    if family == "gpt2":
        # A decoder's entropy is a share of what each token sees; the other figure is of all tokens.
        # Sentences that fit have too few links.
        gone = "entropy", "role", "controls"
        expected = {name: x for name, x in expected.items() if not name.startswith(gone)}
        assert its.payload.of("separators") is None
    assert_equal(its.payload, expected)
    assert its.payload.of("entropy").n == 120 - too_long


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
    payload, n = bert.payload, 0
    for of in payload.numbers:
        feature = str(int(of.feature)) if of.measure == "offset" else of.feature
        for i, layer in enumerate(payload.layers):
            for j in range(payload.heads):
                place = of.measure, feature, of.direction, of.split, str(layer), str(j + 1)
                row, n = found[place], n + 1
                values = [of.values[i][j], of.baseline_of(i, j)]
                values += [of.low[i][j], of.high[i][j]] if of.low else [None, None]
                for name, value in zip(("value", "baseline", "low", "high"), values, strict=True):
                    given = float(row[name]) if row[name] else None
                    assert (given is None) == (value is None), (place, name)
                    assert value is None or given == pytest.approx(value, rel=1e-4, abs=1e-6)
                assert (row["n"], row["baseline_kind"]) == (str(of.n), of.baseline_kind)
                assert of.split == "test" or not of.low
    heads = payload.heads * len(payload.layers)
    classes = {(x[1], x[4], x[5]) for x in found if x[0] == "class"}
    assert classes == {
        (payload.patterns[i][j], str(layer), str(j + 1))
        for i, layer in enumerate(payload.layers)
        for j in range(payload.heads)
    }
    mixes = [row for row in rows if row["feature"] == "mix of heads"]
    assert [(row["layer"], row["split"]) for row in mixes] == [
        (layer, split) for layer in ("1", "2", "") for split in ("dev", "test")
    ]
    scores = [x.value for x in (*payload.mixes.layers, payload.mixes.every)]
    assert [float(row["value"]) for row in mixes[1::2]] == pytest.approx(scores, rel=1e-4)
    assert len(rows) == n + heads + len(mixes)
    assert {place[3] for place, row in found.items() if row["chosen"]} == {"test"}
    chosen = {place[:3] + place[4:]: row for place, row in found.items() if row["chosen"]}
    assert chosen.keys() == {
        (x.measure, x.feature, x.direction, str(x.layer), str(x.head)) for x in payload.choices
    }
    for x in payload.choices:
        row = chosen[x.measure, x.feature, x.direction, str(x.layer), str(x.head)]
        assert row["p"] == ("" if x.p is None else f"{x.p:.6g}")
        assert float(row["chance"]) == pytest.approx(x.chance, rel=1e-4)


def test_arrays_have_what_sentences_contribute(bert):
    arrays, payload = read_arrays(bert.path), bert.payload
    scores = arrays["test_sums"].sum(1) / arrays["test_counts"].sum(1)
    assert scores == pytest.approx([x.test.value for x in payload.choices], rel=1e-5)
    assert len(arrays["test_clusters"]) == payload.splits["test"].texts == 120


def text(value):
    return f"{100 * value:.1f}"


def test_tables_have_the_numbers_of_the_payload(bert):
    payload, tables = bert.payload, Attention().tables(bert.record)
    statistics, patterns, words, relations, roles, trees, mixes, distances = tables
    assert statistics.title == "bert · small · attention · mean over heads, %"
    columns = ["entropy", "first", "separators"]
    for row, layer in zip(statistics.texts, range(2), strict=False):
        means = [np.mean(payload.of(name).values[layer]) for name in columns]
        means += [np.mean(payload.of("feature", "punctuation").values[layer])]
        means += [np.mean(payload.of("offset", x).values[layer]) for x in ("-1", "+0", "+1")]
        assert row == (str(layer + 1), *map(text, means))
    assert statistics.texts[-1][:3] == (
        "uniform",
        "100.0",
        text(payload.of("first").baseline[0][0]),
    )
    long = payload.splits["test"].too_long
    notes = " ".join(statistics.notes)
    assert f"test: 120 sentences, {payload.splits['test'].words:,} words; {long} left out" in notes

    counts = [[row.count(name) for name in CLASSES] for row in payload.patterns]
    shown = [["–" if x == 0 else str(x) for x in row] for row in counts]
    assert [list(row[-5:]) for row in patterns.texts[:2]] == shown
    bounds = {row[0]: row[-5:] for row in patterns.texts[2:]}
    assert list(bounds) == ["all, .4", "all, .5", "all, .6", "all, .7"]
    assert bounds["all, .5"] == tuple(str(x or "–") for x in np.sum(counts, 0))
    for row, layer in zip(patterns.texts[:2], range(2), strict=True):
        for place, name in enumerate(("vertical", "diagonal"), start=1):
            of = payload.of("pattern", name)
            uniform = of.baseline_of(layer, 0)
            beyond = (np.mean(of.values[layer]) - uniform) / (1 - uniform)
            assert float(row[place]) == pytest.approx(100 * beyond, abs=0.051)

    nouns = [text(np.mean(payload.of("feature", "nouns").values[layer])) for layer in range(2)]
    assert [row[1] for row in words.texts[:2]] == nouns

    choices = [x for x in payload.choices_of("relation") if x.n_test >= 100]
    assert len(choices) > 1
    for choice, row in zip(choices, relations.texts, strict=True):
        assert row[:3] == (choice.feature, str(choice.n_test), f"{choice.layer}–{choice.head}")
        low, high = choice.test.interval
        assert row[4].rstrip(
            "★"
        ) == f"{text(choice.test.value)} ± {text((high - low) / 2)}".replace("± 0.", "± .")
        offset = choice.baseline_kind.removeprefix("offset ")
        assert row[5] == f"{text(choice.baseline.value)} ({offset})"
    notes = " ".join(relations.notes)
    rarer = len(payload.choices_of("relation")) - len(choices)
    assert f"{rarer} rarer relations are in heads.csv" in notes
    assert all(f"{name} {n}" in notes for name, n in payload.rare.items())
    assert [row[0] for row in roles.texts] == ["core"]
    assert ("have no such place" in " ".join(roles.notes)) == (payload.without_controls > 0)
    assert [row[0] for row in trees.texts] == ["UAS", "UUAS"]
    every = (*payload.mixes.layers, payload.mixes.every)
    assert [row[2].split(" ")[0] for row in mixes.texts] == [text(x.value) for x in every]
    assert len(distances.texts) == 4


def test_charts_have_the_numbers_of_the_payload(bert):
    payload, charts = bert.payload, Attention().charts({"m": bert.record, "n": bert.record})
    assert tuple(chart.name for chart in charts) == Attention.figures
    by_name = {chart.name: chart for chart in charts}
    grids = {
        "heads": payload.of("entropy"),
        "first_token": payload.of("first"),
        "separators": payload.of("separators"),
        "previous_token": payload.of("offset", "-1"),
        "next_token": payload.of("offset", "+1"),
    }
    for name, of in grids.items():
        panel = by_name[name].panels["n"]
        assert (panel.rows, panel.columns, panel.values) == (("1", "2"), ("1", "2"), of.values)
        assert by_name[name].fault == ""
    card = by_name["heads"].cards["m"][1][0]
    assert card.title == f"Layer 2, head 1: {payload.patterns[1][0]}"
    lines = dict(card.lines)
    of = payload.of("entropy")
    assert lines["entropy"] == f"{text(of.values[1][0])} (uniform: {text(of.baseline[0][0])})"
    best = [x for x in payload.choices if (x.layer, x.head) == (2, 1)]
    assert lines.get("best on dev for", "").count(", ") == max(len(best) - 1, 0)

    picture = by_name["patterns"].panels["m"].pictures[0][1]
    assert np.array(picture.values).shape == (16, 16)
    assert np.array(picture.values).sum(1) == pytest.approx(np.ones(16), abs=0.01)
    panel = by_name["relations"].panels["m"]
    choices = payload.choices_of("relation")
    assert panel.rows == tuple(x.feature for x in reversed(choices))
    assert panel.columns == ("offset", "1", "2")
    for choice, row in zip(reversed(choices), panel.values, strict=True):
        assert row[0] == choice.baseline.value
        assert row[choice.layer] == pytest.approx(choice.test.value, abs=1e-6)


def test_the_same_command_again_computes_nothing(bert, monkeypatch):
    monkeypatch.setattr(module, "measure", None)
    before = bert.path.read_bytes(), bert.path.stat().st_mtime_ns
    assert main(bert.line) == 0
    assert (bert.path.read_bytes(), bert.path.stat().st_mtime_ns) == before


def test_layers_that_are_added_have_the_numbers_that_they_have_alone(bert, folder, tmp_path):
    places = folder / "bert", folder / "small", tmp_path
    upper = one(*places, "--layers", "0,2")
    assert (upper.record.extent, upper.payload.layers) == ({2: 1}, (2,))
    assert upper.payload.patterns == bert.payload.patterns[1:]
    assert upper.payload.of("entropy").values == bert.payload.of("entropy").values[1:]
    both = one(*places, "--layers", "1")
    assert both.path == upper.path
    assert both.record.extent == {1: 1, 2: 1}
    assert both.payload == bert.payload


def test_the_page_has_the_heads(bert, folder, tmp_path):
    page = tmp_path / "page.html"
    assert command(["report", str(bert.path.parents[2]), "-o", str(page)]) == 0
    content = page.read_text(encoding="utf-8")
    assert "Entropy of attention" in content
    assert "Attention patterns" in content
    assert f"Layer 2, head 1: {bert.payload.patterns[1][0]}" in content
