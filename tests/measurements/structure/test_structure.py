"""The measurement through the command line: files, tables, charts, and what is refused."""

import csv
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from changed_corpus import changed
from killing import small_corpus

import probes.cli.main
from probes.__main__ import main as command
from probes.data.sources import OTHER_TREES
from probes.measurements.structure import measure as module
from probes.measurements.structure.structure import Options, Structure

TREEBANKS = Path(__file__).parents[2] / "treebanks"
SCORES = ("uuas", "dspr", "root_accuracy", "nspr")


def bounds(estimate):
    return list(estimate.interval or (None, None))


def test_structure_csv_has_every_number(run):
    with run.path.with_name("structure.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = {
        tuple(row[x] for x in ("metric", "layer", "split", "rank", "words")): [
            float(row[x]) if row[x] else None for x in ("value", "low", "high")
        ]
        for row in rows
    }
    assert len(found) == len(rows)
    payload, expected = run.payload, {}

    def put(metric, estimate, layer="", split="test", rank="", words=""):
        place = metric, str(layer), split, str(rank), words
        expected[place] = [estimate.value, *bounds(estimate)]

    def number(value):
        return SimpleNamespace(value=value, interval=None)

    for cell in payload.cells:
        for split in ("dev", "test"):
            for metric in SCORES:
                put(metric, cell.scores[split][metric], cell.layer, split, cell.rank or 0)
        for kind, loss in cell.dev_losses.items():
            put(f"{kind}_loss", number(loss), cell.layer, "dev", cell.rank)
    for split in ("dev", "test"):
        put("chain_uuas", payload.chain[split], split=split)
        put("chain_control_uuas", payload.control_chain[split], split=split)
        for control in payload.controls:
            put("control_uuas", control.uuas[split], control.layer, split, 16)
            put("selectivity", control.selectivity[split], control.layer, split, 16)
            sd = number(control.spread[split].sd)
            put("control_uuas_draw_sd", sd, control.layer, split, 16)
    for recall in payload.recall:
        name = "chain_recall" if recall.layer is None else "recall"
        layer = "" if recall.layer is None else recall.layer
        for words, estimate in recall.edges.items():
            put(name, estimate, layer, "test", words=words)
    for metric in SCORES:
        put(f"{metric}_training_sd", number(payload.spread[metric].sd), rank=16)
        for layer, p in payload.p_best[metric].items():
            put(f"{metric}_p_best", number(p), layer, rank=16)
    assert found.keys() == expected.keys()
    for place, values in expected.items():
        known = [x is not None for x in values]
        assert [x is not None for x in found[place]] == known, place
        for one, other in zip(np.array(found[place])[known], np.array(values)[known], strict=True):
            assert one == pytest.approx(other, rel=1e-4, abs=1e-6), place
    # 3 layers × 4 cells × 2 splits × 4 scores, losses, baselines, controls, recall, tests
    assert len(rows) == 96 + 18 + 4 + 12 + 6 + 16 + 16


def test_tables_have_the_numbers_of_the_payload(run):
    scores, ranks, distances = Structure().tables(run.record)
    payload = run.payload
    assert scores.title == "tiny-bert · small · structure · rank 16 · test"
    corpus = run.record.corpus.model_copy(update={"notes": {OTHER_TREES: 40}})
    silver = run.record.model_copy(update={"corpus": corpus})
    titles = [table.title for table in Structure().tables(silver)]
    assert all(" · small · structure · trees not UD · " in title for title in titles)
    names = [row.cells[0].text for row in scores.rows]
    assert names == [
        *"012",
        *(f"identity, layer {layer}" for layer in range(3)),
        "chain of neighbours",
    ]
    for row, control in zip(scores.rows, payload.controls, strict=False):
        found = payload.cell(control.layer, 16).scores["test"]
        expected = [*(found[x] for x in SCORES), control.uuas["test"], control.selectivity["test"]]
        assert [cell.value for cell in row.cells[1:]] == [x.value for x in expected]
        for place, metric in enumerate(SCORES):
            assert row.cells[place + 1].best == (payload.best[metric] == control.layer)
    chain = payload.chain["test"].value
    assert scores.rows[-1].cells[1].value == chain
    for row, layer in zip(ranks.rows, payload.layers, strict=True):
        expected = [payload.cell(layer, rank).scores["test"]["uuas"].value for rank in (1, 3, 16)]
        assert [cell.value for cell in row.cells[1:]] == expected
    best = payload.best["uuas"]
    assert [row.cells[0].text for row in distances.rows] == [f"layer {best}", "chain of neighbours"]
    for row, place in zip(distances.rows, (best, 3), strict=True):
        expected = [x.value for x in payload.recall[place].edges.values()]
        assert [cell.value for cell in row.cells[1:]] == expected
    notes = " ".join(scores.notes)
    counts = payload.counts["test"]
    (long,) = counts.left_out.values()
    assert (
        f"test: {counts.sentences} sentences, {counts.words} words; {long} left out, longer than "
        "the model's window." in notes
    )
    assert "over test sentences" in notes


def test_charts_have_the_numbers_of_the_payload(run):
    payload = run.payload
    ranks, *layers = Structure().charts({"m": run.record})
    assert [ranks.name, *(chart.name for chart in layers)] == list(Structure.figures)
    assert [(p.line, p.x, p.value) for p in ranks.models["m"]] == [
        (f"layer {layer}", rank, payload.cell(layer, rank).scores["test"]["uuas"].value)
        for layer in range(3)
        for rank in (1, 3, 16)
    ]
    assert ranks.levels == {"chain of neighbours": payload.chain["test"].value}
    for chart, metric in zip(layers, SCORES, strict=True):
        expected = [payload.cell(layer, 16).scores["test"][metric] for layer in range(3)]
        points = chart.models["m"]
        assert [(p.x, p.value, p.interval) for p in points] == [
            (layer, each.value, each.interval) for layer, each in enumerate(expected)
        ]
    # Of several models, the layer that is best on dev.
    (two, *_) = Structure().charts({"m": run.record, "n": run.record})
    best = payload.best["uuas"]
    expected = [payload.cell(best, rank).scores["test"]["uuas"].value for rank in (1, 3, 16)]
    assert [p.value for p in two.models["n"]] == expected


def test_the_same_command_again_computes_nothing(run, monkeypatch):
    monkeypatch.setattr(module, "measure", None)
    before = run.path.read_bytes(), run.path.stat().st_mtime_ns
    assert probes.cli.main.main(run.line) == 0
    assert (run.path.read_bytes(), run.path.stat().st_mtime_ns) == before


def test_a_predicted_tree_is_drawn(run, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "probes.rendering.drawing.figures.draw",
        lambda path, kind, tree, style: drawn.append(tree),
    )
    number = int(run.arrays["test_sentences"][2])
    line = ["figure", "tree", str(run.path.parent), "--sentence", str(number + 1)]
    assert command([*line, "--corpus", str(run.corpus), "-o", str(tmp_path / "tree.pdf")]) == 0
    ends = np.cumsum([len(s) for s in run.sentences])
    heads = np.split(run.arrays["trees"], ends[:-1])[number]
    (tree,) = drawn
    assert tree.words == run.sentences[number].words
    assert tree.gold == run.sentences[number].heads
    assert list(tree.predicted) == heads.tolist()


@pytest.mark.parametrize("language", ["Spanish", "Japanese", "Hebrew"])
def test_treebanks_of_other_languages_with_few_sentences(
    language, measured, few_steps, tmp_path, capsys
):
    folder = TREEBANKS / f"UD_{language}-Probe"
    found = measured(tmp_path, folder, "--structure-ranks", "2", "--twins", "0", "--layers", "0,2")
    assert found.status == 0
    ((_, record),) = found.records.items()
    payload = record.payload
    assert payload.counts["test"].sentences == payload.clusters == 2
    assert payload.reported == 2
    estimates = [x for cell in payload.cells for x in cell.scores["test"].values()]
    assert all(x.interval is None for x in [*estimates, *payload.chain.values()])
    assert 0 <= payload.cell(2, 2).scores["test"]["uuas"].value <= 1
    assert set(payload.p_best["uuas"].values()) == {None}
    assert payload.may_be_best("uuas") == set()
    notes = " ".join(Structure().tables(record)[0].notes)
    assert "No intervals and no tests: fewer than 20 test" in notes


@pytest.mark.parametrize(
    ("given", "said"),
    [("0", "'0'"), ("1,x", "'1,x'"), ("", "''"), ("2,-4", "'2,-4'"), ("1.5", "'1.5'")],
)
def test_ranks_that_are_none_are_refused_in_one_line(given, said, measured, tmp_path, capsys):
    found = measured(tmp_path, "sample", f"--structure-ranks={given}")
    assert found.status == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "--structure-ranks" in err
    assert "give whole numbers from 1 on, separated by commas" in err


def test_ranks_above_the_hidden_size_are_the_hidden_size():
    options = Options(ranks="64, 2,1,2,128")
    assert options.ranks == "1,2,64,128"
    assert options.up_to(16) == [1, 2, 16]
    assert options.up_to(1000) == [1, 2, 64, 128]


def test_a_corpus_without_heads_is_refused_in_one_line(measured, tmp_path, capsys):
    corpus = changed(
        small_corpus(tmp_path / "small"), lambda row: "\t".join([*row[:6], "_", "_", *row[8:]])
    )
    assert measured(tmp_path, corpus).status == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "it has no heads" in err


def test_a_split_without_trees_is_said(measured, few_steps, tmp_path, capsys):
    corpus = changed(
        small_corpus(tmp_path / "small"),
        lambda row: "\t".join([*row[:6], "0", "root", *row[8:]]),
        ["dev"],
    )
    found = measured(tmp_path, corpus, "--twins", "0")
    assert (found.status, found.records) == (0, {})
    assert probes.cli.main.main([flag for flag in found.line if flag != "-q"]) == 0
    said = capsys.readouterr().err
    assert re.search(r"left out structure of \S+: no sentence of dev has a tree to be found", said)
