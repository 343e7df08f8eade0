"""Runs on two classes of texts that are ranked: `--metric`, `--fpr`, and transfer at a threshold."""

import csv
import random
import re

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score, roc_curve
from tiny_runs import run

from probes.__main__ import main
from probes.boards.floors import with_floor
from probes.boards.rankings import make_rankings, named_candidates
from probes.cli.fitted_probes import find_probe
from probes.common.errors import UserError
from probes.families.transfer.corpus_transfer import transfer_tables
from probes.probing.recomputed_records import require_recomputed
from probes.probing.resampled_scores import with_sums
from probes.records.record_files import read_arrays
from probes.run.settings import validate

LINE = "the old dog sees a cat near house she gave him some books and he read them"


def write(path, seeds):
    """Texts in which glad ones mostly tell of birds; a seed for each split of 240, 60 and 80."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "mood", "kind", "split"])
        for (split, n), seed in zip(
            {"train": 240, "dev": 60, "test": 80}.items(), seeds, strict=True
        ):
            rng = random.Random(seed)
            for i in range(n):
                words, glad = rng.choices(LINE.split(), k=rng.randint(2, 9)), rng.random() < 0.4
                words.insert(rng.randrange(len(words)), "birds" if glad != (i % 5 == 0) else "sun")
                rows.writerow([" ".join(words), ("bad", "glad")[glad], "xyz"[i % 3], split])
    return str(path)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """Two corpora with the same test texts, and other texts to train on."""
    folder = tmp_path_factory.mktemp("ranked")
    return [write(folder / "a.csv", (1, 2, 3)), write(folder / "b.csv", (4, 5, 3))]


def run_on(model, folder, corpus, **settings):
    columns = {"corpus": corpus, "text": "text", "label": "mood", "metric": "auroc"}
    return run(model, folder, limit=None, **{"probes": "linear", **columns, **settings})


def threshold_of(margins, gold, rate):
    """The smallest threshold that scikit-learn's curve allows, and what is above it."""
    false, _, thresholds = roc_curve(gold, margins, drop_intermediate=False)
    return thresholds[false <= rate].min(), (false[false <= rate]).max()


def test_everything_goes_by_the_ranking(tiny_bert, corpora, tmp_path, capsys):
    results = run_on(tiny_bert, tmp_path, corpora[0], evidence="standard", twins=1)
    result, _ = results.results
    assert (result.task.metric, result.task.fpr) == ("auroc", 0.01)
    arrays = read_arrays(result.path)
    gold, gold_dev = arrays["gold"], arrays["gold_dev"]
    assert arrays["predicted"][:, 0].tolist() == arrays["margins_test"].tolist()
    for index, layer in enumerate(result.layers):
        on_dev, on_test = arrays["margins_dev"][index], arrays["margins_test"][index]
        assert result.score(layer, "dev") == pytest.approx(roc_auc_score(gold_dev, on_dev))
        assert result.score(layer) == pytest.approx(roc_auc_score(gold, on_test))
        assert result.at("accuracy", layer).value == ((on_test > 0) == gold).mean()
        frame = results.predictions(result.task.name, layer)
        assert result.score(layer) == pytest.approx(roc_auc_score(frame["gold"], frame["margin"]))
        assert result.at("accuracy", layer).value == (frame["gold"] == frame["predicted"]).mean()
        threshold = result.at("threshold", layer, "dev")
        above, rate = threshold_of(on_dev, gold_dev, 0.01)
        assert (on_dev[gold_dev == 0] > threshold.value).mean() == rate
        assert on_dev[on_dev > threshold.value].min() == np.float32(above)
        for label, metric in enumerate(("false_positive_rate", "hit_rate")):
            row, hits = result.at(metric, layer), on_test[gold == label] > threshold.value
            exact = binomtest(int(hits.sum()), len(hits)).proportion_ci(method="exact")
            assert (row.value, row.n) == (hits.mean(), len(hits))
            assert row.interval == pytest.approx(tuple(exact))
    layer = result.layers[-1]
    card = find_probe(result.path, result.task.name, layer, "linear", None, None).card
    margin = result.at("threshold", layer, "dev").value
    assert float(card["fpr"]) == 0.01
    moved = float(card["norm"]) * (float(card["fpr_threshold"]) - float(card["threshold"]))
    assert moved == pytest.approx(margin)
    scores = [result.score(layer, "dev") for layer in result.layers]
    assert result.best_layer == result.layers[int(np.argmax(scores))]
    # Tests and what is recomputed go by the stored margins.
    require_recomputed(result, result.path)
    deviation = result.row("training_variance", "training_sd")
    of_samples = result.evidence["training_variance"].rows.along("sample")
    assert {row.metric for row in of_samples} == {"auroc"}
    assert 0 < deviation.value < 0.2
    floored = with_floor(result)
    assert floored.floor_test.knows_training
    assert floored.floor_test.fixed == ()
    assert result.baselines["majority"]["auroc"] == 0.5
    few = (gold_dev == 0).sum()
    assert result.at("recall_at_1_fpr", 1).why == "fewer than 300 negatives in test"
    said = capsys.readouterr().out
    assert f"lets 0 of {few} negatives of dev pass" in " ".join(said.split())
    assert "mood@mean: 'glad' is the positive class." in " ".join(said.split())
    assert "FPR at the threshold for 1 %, best" in said
    # The order of texts is not shared in place of their predictions.
    assert with_sums({result.path: result}) == {}
    said = " ".join(capsys.readouterr().err.split())
    assert "give away the order of all examples; copy its folder to share it." in said


def test_a_note_that_is_the_same_at_several_sites_stands_once(tiny_bert, corpora, tmp_path, capsys):
    settings = {"evidence": "none", "sites": "block,mid,mlp", "layers": "0,1,2"}
    settings |= {"positions": "all,last:2"}
    results = {x.task.name: x for x in run_on(tiny_bert, tmp_path, corpora[0], **settings).results}
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("is the positive class.") == 2
    assert said.count("the threshold lets") == 4
    for position, result in (("all", results["mood@all"]), ("last:2", results["mood@last:2"])):
        name = f"mood@{position}"
        assert f"{name} at block, mid and mlp: 'glad' is the positive class." in said
        # It has one layer more to choose from.
        assert f"{result.notes[1]} {name} at mid and mlp: the threshold lets" in said
        assert "whichever of 3 layers is best" in result.notes[1]
    assert said.count("whichever of 2 layers is best") == 2


def test_without_negatives_in_dev_there_is_no_threshold(tiny_bert, corpora, tmp_path, capsys):
    corpus = tmp_path / "c.csv"
    with open(corpora[0], encoding="utf-8") as file:
        corpus.write_text("".join(x for x in file if "bad" not in x or "dev" not in x), "utf-8")
    (result,) = run_on(
        tiny_bert, tmp_path, str(corpus), evidence="none", layers="1", transfer=False
    ).results
    assert result.examples.labels["bad"][1] == 0
    assert result.at("threshold", 1, "dev").value is None
    n = result.examples.labels["glad"][1]
    assert result.notes[1:] == (
        f"mood@mean: all {n} examples of dev are 'glad', so nothing is ranked; add some that are "
        "'bad'.",
        "mood@mean: no threshold, since there are no negatives in dev.",
    )
    said = capsys.readouterr().out
    assert result.best_number is None
    assert "AUROC" in said
    assert ", best layer" not in said


def test_a_test_split_of_one_class_is_explained_in_one_line(tiny_bert, corpora, tmp_path, capsys):
    corpus = tmp_path / "c.csv"
    with open(corpora[0], encoding="utf-8") as file:
        corpus.write_text("".join(x for x in file if "glad" not in x or "test" not in x), "utf-8")
    (result,) = run_on(tiny_bert, tmp_path, str(corpus), evidence="none", layers="1").results
    n = result.examples.labels["bad"][2]
    assert result.score(1) is None
    line = f"mood@mean: all {n} examples of test are 'bad', so nothing is ranked; add some that are"
    assert result.notes[1] == f"{line} 'glad'."
    said = " ".join(capsys.readouterr().out.split())
    assert said.count(line) == 1


def test_the_option_and_its_rate_make_other_records(tiny_bert, corpora, tmp_path):
    settings = {"evidence": "none", "layers": "1"}
    runs = [
        next(iter(run_on(tiny_bert, tmp_path, corpora[0], **settings, **x).results))
        for x in ({"metric": None}, {}, {"fpr": 0.05}, {"metric": "recall_at_fpr", "fpr": 0.1})
    ]
    assert len({x.key for x in runs}) == 4
    assert [x.task.metric for x in runs] == ["accuracy", "auroc", "auroc", "recall_at_10_fpr"]
    assert [x.task.fpr for x in runs] == [None, 0.01, 0.05, 0.1]
    plain = read_arrays(runs[0].path)
    assert plain["predicted"][0, 0].tolist() == (plain["margins_test"][0] > 0).tolist()
    assert runs[0].at("recall_at_5_fpr", 1).value is not None
    assert runs[0].at("threshold", 1, "dev") is None
    (again,) = run_on(tiny_bert, tmp_path, corpora[0], **settings).results
    assert again.provenance == runs[1].provenance


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"fpr": 0.03, "metric": "auroc"}, "--fpr 0.03: give one of 0.001, 0.005"),
        ({"fpr": 0.05}, "--fpr 0.05: needs --metric"),
        ({"metric": "f1"}, "--metric f1: "),
    ],
)
def test_settings_that_are_refused(settings, says):
    with pytest.raises(UserError, match=says):
        validate({"text": "text", "label": "mood", **settings})


def test_labels_that_cannot_be_ranked(tiny_bert, corpora, tmp_path, capsys):
    remedy = "give a column of two, or leave --metric out."
    for label, has in (("kind", "3 classes (x, y, z)"), ("score", "numbers")):
        path = tmp_path / f"{label}.csv"
        with open(corpora[0], encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, [*rows[0], "score"])
            table.writeheader()
            table.writerows({**row, "score": f"{i / 8}"} for i, row in enumerate(rows))
        capsys.readouterr()
        with pytest.raises(UserError) as caught:
            run_on(tiny_bert, tmp_path, str(path), label=f"mood,{label}")
        line = f"--metric auroc: ranks two classes, and {label} has {has}; {remedy}"
        assert str(caught.value) == line
        assert "failed" not in capsys.readouterr().err
        # A column that no task is asked of may be of any kind.
        (result,) = run_on(tiny_bert, tmp_path, str(path), label=f"mood,{label}",
                tasks="mood@mean", evidence="none", layers="1").results  # fmt: skip
        assert result.task.name == "mood@mean"
    with pytest.raises(UserError, match="--metric auroc: ranks two classes of your own labels"):
        run(tiny_bert, tmp_path, metric="auroc")


@pytest.mark.parametrize(
    "family", ["linear", "mlp", "token-mean", "token-max", "attention", "multi-layer"]
)
def test_probe_and_threshold_are_applied_to_other_corpora(
    tiny_bert, corpora, tmp_path, capsys, family
):
    settings = {"probes": family, "positions": "all"}
    results = run_on(tiny_bert, tmp_path, corpora, evidence="none", transfer=True, **settings)
    by_corpus = {result.corpus.name: result for result in results.results}
    for name, other in (("a", "b"), ("b", "a")):
        rows = by_corpus[name].evidence["corpus_transfer"].rows
        # Another mean moves all margins alike, unless it is that of an MLP.
        centred = {x.metric for x in rows.along("vectors")}
        scores = {"transfer_score", "transfer_difference"} if family == "mlp" else set()
        assert centred == {"false_positive_rate", "hit_rate", *scores}
        for layer in by_corpus[name].layers:
            for metric in ("false_positive_rate", "hit_rate"):
                # Both have the same test texts, on which the other's probe was scored at home.
                at_home = by_corpus[other].at(metric, layer)
                row = rows.at(metric, layer, train=other, vectors=None)
                assert (row.value, row.interval, row.n) == (
                    at_home.value,
                    at_home.interval,
                    at_home.n,
                )
                own = rows.at(metric, layer, train=name)
                assert own.value == by_corpus[name].at(metric, layer).value
            score = rows.at("transfer_score", layer, train=other, vectors=None).value
            assert score == by_corpus[other].score(layer)
    said = " ".join(capsys.readouterr().out.split())
    title = f"mood@all · {family} · transfer at a threshold from dev of the training corpus"
    assert title in said
    assert "FPR at the threshold from dev of the training corpus" in said
    note = "interval over this corpus's test split, whose documents or groups stay whole. Intervals"
    assert said.count(note) == 2
    for name in ("a", "b"):
        assert said.count(f"{name} · {family} probe · test") == 1


def test_with_transfer_everything_is_printed_once(tiny_bert, corpora, tmp_path, capsys):
    negatives = tmp_path / "suns.csv"
    negatives.write_text("text\n" + "the sun\nthe old sun\n" * 10, "utf-8")
    settings = {"evidence": "selectivity", "layers": "1", "threshold_from": str(negatives)}
    settings |= {"transfer": True, "twins": 1}
    run_on(tiny_bert, tmp_path, corpora, **settings)
    said = " ".join(capsys.readouterr().out.split())
    for name in ("a", "b"):
        scores = f"tiny-bert · {name} · linear probe · test"
        assert said.count(f"{scores} · preliminary") == 1
        assert said.count(scores) == 2
        evidence = f"tiny-bert · {name} · linear probe · negatives threshold · mood@mean · from"
        assert said.count(evidence) == 1
        assert said.count(f"{name} · linear probe · corpus transfer · mood@mean · score by") == 1
    assert said.count("differences are from the first model") == 2


def test_runs_with_several_rates_are_told_apart(tiny_bert, corpora, tmp_path, capsys):
    settings = {"evidence": "none", "layers": "1", "threshold_from": corpora[1]}
    results = {}
    for rate in (0.05, 0.1):
        (results[rate],) = run_on(tiny_bert, tmp_path, corpora[0], fpr=rate, **settings).results
    folder = str(tmp_path / "results")

    def said(*command):
        capsys.readouterr()
        assert main([command[0], folder, *command[1:]]) == 0
        return capsys.readouterr().out

    lines = [line for line in said("show").splitlines() if "at the threshold" in line]
    assert [line.split(",")[0] for line in lines] == [
        *("FPR at the threshold for 5 %", "FPR at the threshold for 10 %"),
        *("recall at the threshold for 5 %", "recall at the threshold for 10 %"),
    ]
    # One form in all cells: both ends.
    rows = [results[x].at(y, 1) for y in ("false_positive_rate", "hit_rate") for x in results]
    for line, row in zip(lines, rows, strict=True):
        low, high = (f"{100 * end:.1f}" for end in row.interval)
        assert f"{100 * row.value:.1f} [{low}, {high}]" in line
        assert "±" not in line
    evidence = " ".join(said("show", "--by", "negatives_threshold").split())
    for rate, result in results.items():
        assert f"AUROC, threshold for {100 * rate:g} % FPR" in evidence
        (threshold,) = result.evidence["negatives_threshold"].rows.with_metric("threshold")
        assert f"{threshold.value:.3f}".replace("0.", ".").replace("-", "−") in evidence
    (ranking,) = make_rankings(named_candidates({x.path: x for x in results.values()}))
    assert [why for _, why in ranking.apart] == ["false-positive rate of thresholds 0.05, not 0.1"]
    assert main(["report", folder, "-o", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text("utf-8")
    for rate in results:
        assert f"mood@mean (AUROC, threshold for {100 * rate:g} % FPR)" in page
    start = page.index("Corpora: licence and citation")
    about = re.sub("<[^>]*>", " ", page[start : page.index("labels made by a machine", start)])
    assert " ".join(about.split()).endswith("texts train 240 · dev 60 · test 80")
    assert "sentences that also occur" not in page


def test_without_a_best_layer_transfer_names_none(tiny_bert, corpora, tmp_path):
    corpus = tmp_path / "c.csv"
    with open(corpora[0], encoding="utf-8") as file:
        corpus.write_text("".join(x for x in file if "bad" not in x or "dev" not in x), "utf-8")
    settings = {"evidence": "none", "layers": "1", "transfer": True}
    results = run_on(tiny_bert, tmp_path, [str(corpus), corpora[1]], **settings)
    scores, rates = transfer_tables(results.results)
    assert scores.heads == ("trained on", "c, no best layer", "b, layer 1")
    other = next(x for x in results.results if x.corpus.name == "b")
    transferred = other.evidence["corpus_transfer"].rows.at(
        "transfer_score", 1, train="c", vectors=None
    )
    assert [row[1] for row in scores.texts] == ["–", "–"]
    assert scores.texts[0][2] == f"{100 * transferred.value:.1f}"
    # The probe of c has no threshold.
    assert rates.texts[0] == ("c", "–", "–", "–", "–")
    assert "[" in rates.texts[1][3]
