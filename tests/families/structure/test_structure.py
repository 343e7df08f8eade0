"""The measurement through the command line: files, tables, charts, and what is refused."""

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from changed_corpus import changed
from drawn import column
from killing import small_corpus
from measuring import command_line, measure

from probes.__main__ import main as command
from probes.cli.main import main
from probes.families.structure import StructureOptions
from probes.frames.frame import load
from probes.frames.measurement_tables import measurement_tables
from probes.measurements.measurement import get_measurement
from probes.statistics.of_families.spanning_trees import LEFT_OUT

TREEBANKS = Path(__file__).parents[2] / "treebanks"
SCORES = ("uuas", "dspr", "root_accuracy", "nspr")


def test_rows_are_of_all_layers_ranks_and_splits(structure_run):
    found = {(x.metric, x.layer, x.split, *x.axes.items()) for x in structure_run.rows}
    expected = set()
    for layer, split in product(range(3), ("dev", "test")):
        for metric, rank in product(SCORES, (1, 3, 16, 0)):
            expected.add((metric, layer, split, ("rank", rank)))
        for metric in ("control_uuas", "selectivity", "control_uuas_draw_sd"):
            expected.add((metric, layer, split, ("rank", 16)))
    for layer, kind, rank in product(range(3), ("distance", "depth"), (1, 3, 16)):
        expected.add((f"{kind}_loss", layer, "dev", ("rank", rank)))
    for metric, split in product(("chain_uuas", "chain_control_uuas"), ("dev", "test")):
        expected.add((metric, None, split))
    for words in ("1", "2", "3–5", "6+"):
        expected.add(("chain_recall", None, "test", ("words", words)))
        expected |= {("recall", layer, "test", ("words", words)) for layer in range(3)}
    for metric in SCORES:
        expected.add((f"{metric}_training_sd", None, "test", ("rank", 16)))
        expected |= {(f"{metric}_p_best", x, "test", ("rank", 16)) for x in range(3)}
    assert found == expected
    # 3 layers × 4 ranks × 2 splits × 4 scores, losses, baselines, controls, recall, tests
    assert len(structure_run.rows) == len(found) == 96 + 18 + 4 + 12 + 6 + 16 + 16


def notes_of(record):
    return " ".join(measurement_tables(get_measurement("structure"), [record])[0].notes)


def test_notes_say_what_was_counted(structure_run):
    notes, facts = notes_of(structure_run.record), structure_run.facts
    counts = facts["test_sentences"], facts["test_words"], facts["test_left_out"]
    sizes = "test: {} sentences, {} words; {} left out, longer than the model's window."
    assert sizes.format(*counts) in notes
    assert "over test sentences" in notes
    sds = {x: structure_run.rows.at(f"{x}_training_sd", rank=16).value for x in SCORES}
    assert f"(standard deviation: UUAS {100 * sds['uuas']:.2f}, DSpr " in notes
    of_draws = [structure_run.rows.at("control_uuas_draw_sd", x, rank=16).value for x in range(3)]
    assert f"{100 * min(of_draws):.2f} to {100 * max(of_draws):.2f})." in notes
    n = structure_run.arrays["test_edges"].sum(0)
    assert f"{n[0]} of 1 word, {n[1]} of 2 words, {n[2]} of 3–5 words, {n[3]} of 6+ words." in notes


def test_a_predicted_tree_is_drawn(structure_run, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "probes.tables.figures.save", lambda chart, path, style: drawn.append(chart)
    )
    number = int(structure_run.arrays["test_sentences"][2])
    line = ["figure", "tree", structure_run.path.parent, "--sentence", number + 1]
    line += ["--corpus", structure_run.corpus, "-o", tmp_path / "tree.pdf"]
    assert command([*map(str, line)]) == 0
    ends = np.cumsum([len(s) for s in structure_run.sentences])
    heads = np.split(structure_run.arrays["trees"], ends[:-1])[number]
    (tree,) = drawn
    assert tuple(column(tree, "word")) == structure_run.sentences[number].words
    kept = {i for i, head in enumerate(heads) if head != LEFT_OUT}
    assert len(set(column(tree, "edge"))) == len(heads) + len(kept)


def test_a_treebank_with_few_sentences(tiny_bert, few_steps, tmp_path):
    settings = {"layers": "0,2", "options": {"structure": {"ranks": "2"}}}
    run = measure("structure", tiny_bert, TREEBANKS / "UD_Hebrew-Probe", tmp_path, **settings)
    record = run.record
    rows = record.rows
    # Both test sentences are of one document.
    assert (record.facts["test_sentences"], record.facts["clusters"]) == (2, 1)
    assert record.facts["rank"] == 2
    assert all(row.interval is None for row in rows)
    assert 0 <= rows.at("uuas", 2, rank=2).value <= 1
    assert {row.value for row in rows if row.metric == "uuas_p_best"} == {None}
    notes = notes_of(record)
    assert "No intervals and no tests: fewer than 20 test documents" in notes


@pytest.mark.parametrize("ranks", ["0", "1,x", ""])
def test_ranks_that_are_none_are_refused_in_one_line(ranks, tiny_bert, tmp_path, capsys):
    flags = "-q", f"--structure-ranks={ranks}"
    assert main(command_line("structure", tiny_bert, "sample", tmp_path, *flags)) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "--structure-ranks" in err
    assert "give whole numbers from 1 on, separated by commas" in err


def test_ranks_above_the_hidden_size_are_the_hidden_size():
    options = StructureOptions(ranks="64, 2,1,2,128")
    assert options.ranks == "1,2,64,128"
    assert options.up_to(16) == [1, 2, 16]
    assert options.up_to(1000) == [1, 2, 64, 128]


def test_a_corpus_without_heads_is_refused_in_one_line(tiny_bert, tmp_path, capsys):
    corpus = changed(
        small_corpus(tmp_path / "small"), lambda row: "\t".join([*row[:6], "_", "_", *row[8:]])
    )
    assert main(command_line("structure", tiny_bert, corpus, tmp_path, "-q")) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "it has no heads" in err


def test_a_split_without_trees_is_said(tiny_bert, few_steps, tmp_path, capsys):
    corpus = changed(
        small_corpus(tmp_path / "small"),
        lambda row: "\t".join([*row[:6], "0", "root", *row[8:]]),
        ["dev"],
    )
    assert main(command_line("structure", tiny_bert, corpus, tmp_path)) == 0
    assert not load(tmp_path / "results").records()
    said = capsys.readouterr().err
    assert re.search(r"left out structure of \S+: no sentence of dev has a tree to be found", said)
