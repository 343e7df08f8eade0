"""Structure as a user measures it, and its numbers from what sentences contribute."""

import csv
import json

import numpy as np
import pytest
from killing import ROOT as CHECKOUT
from killing import small_corpus
from planted_trees import planted

from probes import read_parameters
from probes.cli.main import main
from probes.data.find import find_corpus
from probes.measurements.results import typed
from probes.measurements.structure import fitting
from probes.measurements.structure.batches import exact_batches
from probes.measurements.structure.contributions import chain_hits, edges_in, gold_edges
from probes.measurements.structure.measure import measure
from probes.measurements.structure.structure import Options, Structure
from probes.measurements.structure.trees import trees_of
from probes.records.files import find_records, read_arrays
from probes.statistics.bootstrap import RESAMPLES, resample
from probes.statistics.rank_correlation import nspr


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch):
    monkeypatch.setattr(fitting, "FEWEST_STEPS", 40)


@pytest.fixture
def command(tiny_bert, tmp_path):
    """Runs a command line on a corpus; its exit status."""

    def command(corpus, *more):
        places = ["--output", str(tmp_path / "results"), "--cache-dir", str(tmp_path / "cache")]
        line = ["--model", str(tiny_bert), "--corpus", str(corpus), "--measurements", "structure"]
        return main([*line, "--device", "cpu", "--threads", "1", *places, *more])

    return command


def record_of(folder):
    """The one record of structure that is not of a twin, and its file."""
    found = {
        path: typed(record, path)
        for path, record in find_records(folder / "results").items()
        if record.model.random_seed is None
    }
    ((path, record),) = found.items()
    return path, record


# -- numbers from contributions --------------------------------------------------------------


@pytest.fixture(scope="module")
def measured():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "FEWEST_STEPS", 200)
        return measure(planted(n_train=60, n_dev=20, n_test=40), [1, 4, 8], 8)


def test_scores_and_intervals_follow_from_the_arrays(measured):
    found, arrays = measured.payload, measured.arrays
    assert found.reported == 8
    assert arrays["ranks"].tolist() == [1, 4, 8, 0]
    draws = resample(40).astype(float)
    assert draws.shape == (RESAMPLES, 40)
    edges = arrays["test_edges"].sum(-1)
    for i, layer in enumerate((0, 1)):
        for j, rank in enumerate((1, 4, 8, None)):
            scores = found.cell(layer, rank).scores["test"]
            hits = arrays["test_hits"][i, j].sum(-1)
            assert scores["uuas"].value == pytest.approx(hits.sum() / edges.sum())
            resampled = (draws @ hits) / (draws @ edges)
            assert scores["uuas"].interval == pytest.approx(np.quantile(resampled, [0.025, 0.975]))
            assert scores["root_accuracy"].value == pytest.approx(arrays["test_roots"][i, j].mean())
            for metric in ("dspr", "nspr"):
                values, lengths = arrays[f"test_{metric}"][i, j], arrays["test_lengths"]
                of_lengths = [values[lengths == n].mean() for n in np.unique(lengths)]
                assert scores[metric].value == pytest.approx(np.mean(of_lengths), rel=1e-5)
    assert nspr(np.zeros(92)).tolist() != [0]  # undefined, not 0, where there is nothing
    control = found.controls[1]
    of_control = arrays["test_control_hits"][1].sum() / arrays["test_control_edges"].sum()
    assert control.uuas["test"].value == pytest.approx(of_control)
    gold = found.cell(1, 8).scores["test"]["uuas"].value
    assert control.selectivity["test"].value == pytest.approx(gold - of_control)


def test_layers_are_chosen_on_dev_and_tested_on_test(measured):
    found = measured.payload
    # At layer 0 the vectors are the trees; at layer 1 there is noise.
    assert found.cell(0, None).scores["test"]["uuas"].value == 1
    assert found.cell(1, None).scores["test"]["uuas"].value < 0.9
    for metric, best in found.best.items():
        dev = {x: found.cell(x, 8).scores["dev"][metric].value for x in (0, 1)}
        assert dev[best] == max(dev.values())
        test = {x: found.cell(x, 8).scores["test"][metric].value for x in (0, 1)}
        higher = max(test, key=test.get)
        assert found.p_best[metric][higher] == 1
        assert 0 < found.p_best[metric][1 - higher] <= 1
        assert found.spread[metric].df == 2 * 2


def test_predicted_trees_are_those_that_are_scored(measured):
    context = planted(n_train=60, n_dev=20, n_test=40)
    starts = np.cumsum([0, *map(len, context.corpus.splits["test"])])
    hits = 0
    for sentence, start in zip(context.corpus.splits["test"], starts, strict=False):
        heads = measured.arrays["trees"][start : start + len(sentence)]
        assert (heads == -1).sum() == 1
        gold = {frozenset(e) for e in enumerate(sentence.heads) if e[1] >= 0}
        hits += len(gold & {frozenset((i, int(h))) for i, h in enumerate(heads) if h >= 0})
    best = measured.payload.best["uuas"]
    place = measured.arrays["layers"].tolist().index(best)
    assert hits == measured.arrays["test_hits"][place, 2].sum()


def test_few_documents_have_no_intervals():
    found = measure(planted(n_train=20, n_dev=5, n_test=8), [2], 2).payload
    uuas = found.cell(0, 2).scores["test"]["uuas"]
    assert uuas.value is not None
    assert uuas.interval is None
    assert set(found.p_best["uuas"].values()) == {None}
    assert not found.may_be_best("uuas")


# -- as a user measures it -------------------------------------------------------------------


def test_what_a_run_writes_and_prints(command, tmp_path, capsys):
    corpus = small_corpus(tmp_path / "small", 24)
    assert command(corpus, "--structure-ranks", "2,64,1") == 0
    said = capsys.readouterr()
    assert "chain of neighbours" in said.out
    path, record = record_of(tmp_path)
    assert record.payload.ranks == (1, 2, 16)  # no vector has more dimensions
    with path.with_name("structure.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    of_cell = {
        row["metric"]: float(row["value"])
        for row in rows
        if (row["layer"], row["rank"], row["split"]) == ("1", "2", "test")
    }
    scores = record.payload.cell(1, 2).scores["test"]
    assert of_cell == pytest.approx({name: x.value for name, x in scores.items()}, rel=1e-5)
    matrices = read_parameters(tmp_path / "cache", record.key)
    assert len(matrices) == 2 * 3 * 3
    assert matrices["distance.layer-02.rank-016"].shape == (16, 16)
    arrays = read_arrays(path)
    assert not any(x.dtype.kind in "US" for x in arrays.values())
    before = path.stat().st_mtime_ns
    assert command(corpus, "--structure-ranks", "1,2,64") == 0
    assert path.stat().st_mtime_ns == before

    figure = tmp_path / "tree.svg"
    line = ["figure", "tree", str(path.parent), "--corpus", str(corpus), "-o", str(figure)]
    from probes.__main__ import main as probes_main

    assert probes_main(line) == 0
    assert figure.stat().st_size > 1000
    assert probes_main(["figure", "ranks", str(path.parent), "-o", str(tmp_path / "r.png")]) == 0


def test_workers_find_the_same(command, tmp_path):
    corpus = small_corpus(tmp_path / "small", 8)
    more = ("--structure-ranks", "2", "--twins", "0", "--layers", "1")
    assert command(corpus, *more) == 0
    path, _ = record_of(tmp_path)
    alone = json.loads(path.read_bytes())["payload"]
    path.unlink()
    assert command(corpus, *more, "--workers", "2") == 0
    # A worker does not know that fits are to be short here.
    again = json.loads(path.read_bytes())["payload"]
    assert again["counts"] == alone["counts"]
    assert again["chain"] == alone["chain"]


@pytest.mark.parametrize("ranks", ["0", "a", "", "1.5", "-1"])
def test_ranks_that_cannot_be_are_one_line(ranks, command, tmp_path, capsys):
    assert command(small_corpus(tmp_path / "small", 4), f"--structure-ranks={ranks}") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: --structure-ranks")


def test_a_corpus_without_trees_is_refused(command, real_data, capsys):
    assert command("conll2000", "--offline", "--data-dir", str(real_data)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "it has no heads" in line


@pytest.mark.parametrize("name", ["UD_Hebrew-Probe", "UD_Spanish-Probe"])
def test_treebanks_of_other_languages(name, command, tmp_path):
    folder = CHECKOUT / "tests" / "treebanks" / name
    assert command(folder, "--structure-ranks", "2", "--twins", "0") == 0
    _, record = record_of(tmp_path)
    counts = record.payload.counts
    corpus = find_corpus(str(folder)).load()
    for split, sentences in corpus.splits.items():
        assert counts[split].sentences + sum(counts[split].left_out.values()) == len(sentences)


def test_the_chain_of_neighbours_on_ewt(real_data, tmp_path):
    corpus = find_corpus("ewt", data_dir=real_data, cache_dir=tmp_path, offline=True).load()
    sentences = corpus.splits["test"]
    trees = trees_of(sentences, np.zeros(len(sentences), dtype=bool))
    rows = np.arange(sum(map(len, sentences)))
    batches = exact_batches(trees, rows, "cpu")
    hits = chain_hits(trees, batches, control=False).sum()
    assert (hits, gold_edges(trees, batches, control=False).sum()) == (8589, 19952)
    # With punctuation: every word to the one before.
    all_edges = all_hits = 0
    for batch in batches:
        gold = batch.distances[0].numpy()
        m, n = gold.shape[:2]
        all_hits += edges_in(np.tile(np.arange(-1, n - 1), (1, m, 1)), gold).sum()
        all_edges += m * (n - 1)
    assert all_hits / all_edges == pytest.approx(0.4051, abs=5e-5)
    roots = [s.upos[s.heads.index(-1)] for s in sentences]
    assert roots.count("PUNCT") == 31
    assert trees.punctuation_roots == 1


def test_options_put_ranks_in_order():
    assert Options(ranks="8, 2,8").ranks == "2,8"
    assert Options().up_to(16) == [1, 2, 4, 8, 16]
    assert Structure().missing(frozenset({"upos"})) == "it has no heads"
