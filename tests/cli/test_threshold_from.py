"""`--threshold-from`: thresholds from a corpus of negatives, and their rates on test."""

import csv
import random

import numpy as np
import pytest
from scipy.stats import beta, binomtest
from sklearn.metrics import roc_curve
from tiny_runs import files_of, run

from probes.common.errors import UserError
from probes.records.record_files import read_arrays
from probes.run.settings import validate

LINE = "the old dog sees a cat near house she gave him some books and he read them"


def write(path, rows, columns=("text",)):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    return str(path)


def random_text(rng, word):
    words = rng.choices(LINE.split(), k=rng.randint(2, 9))
    words.insert(rng.randrange(len(words)), word)
    return " ".join(words)


@pytest.fixture(scope="module")
def rows():
    """Labelled texts: glad ones mostly tell of birds."""
    rng, found = random.Random(1), []
    for split, n in {"train": 240, "dev": 60, "test": 80}.items():
        for i in range(n):
            glad = rng.random() < 0.4
            text = random_text(rng, "birds" if glad != (i % 5 == 0) else "sun")
            found.append((text, ("bad", "glad")[glad], f"{split} {i // 2}", split))
    return found


@pytest.fixture(scope="module")
def corpus(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("labelled") / "moods.csv"
    return write(path, rows, ("text", "mood", "author", "split"))


def run_on(model, folder, corpus, negatives, **settings):
    columns = {"corpus": corpus, "text": "text", "label": "mood", "metric": "auroc"}
    settings = {**columns, "threshold_from": negatives, "probes": "linear", "fpr": 0.1, **settings}
    return {x.task.name: x for x in run(model, folder, limit=None, **settings).results}


def row_of(result, metric, layer):
    (row,) = (
        x
        for x in result.evidence["negatives_threshold"].rows.with_metric(metric)
        if x.layer == layer
    )
    return row


def said(capsys):
    return " ".join(capsys.readouterr().out.split())


def test_thresholds_are_those_of_scikit_learn_on_the_margins_of_the_negatives(
    tiny_bert, rows, corpus, tmp_path
):
    # The negatives of test, whose margins are stored.
    bad = [(text,) for text, mood, _, split in rows if split == "test" and mood == "bad"]
    negatives = write(tmp_path / "bad.csv", bad)
    results = run_on(
        tiny_bert,
        tmp_path,
        corpus,
        negatives,
        positions="mean,last:2,all:last:2",
        sites="block,mlp",
    )
    assert [*results] == [
        *("mood@mean", "mood@mean@mlp", "mood@last:2", "mood@last:2@mlp"),
        *("mood@all:last:2", "mood@all:last:2@mlp"),
    ]
    thresholds = set()
    for result in results.values():
        arrays = read_arrays(result.path)
        gold = arrays["gold"]
        for layer, margins in zip(result.layers, arrays["margins_test"], strict=True):
            false, _, of_curve = roc_curve(gold, margins, drop_intermediate=False)
            # scikit-learn calls positive what is at a threshold, we what is above it.
            expected = of_curve[np.flatnonzero(false <= 0.1)[-1] + 1]
            row = row_of(result, "threshold", layer)
            assert (row.value, row.n) == (pytest.approx(expected, abs=2e-3), len(bad))
            assert row.axes == {"negatives": "bad"}
            thresholds.add(row.value)
            for label, metric in enumerate(("false_positive_rate", "hit_rate")):
                hits = margins[gold == label] > np.float32(row.value)
                of_class = row_of(result, metric, layer)
                assert (of_class.value, of_class.n) == (hits.mean(), len(hits))
                exact = binomtest(int(hits.sum()), len(hits)).proportion_ci(method="exact")
                assert of_class.interval == pytest.approx(tuple(exact))
                assert of_class.axes == {"negatives": "bad"}
    assert len(thresholds) == sum(len(result.layers) for result in results.values())


def test_texts_of_a_group_count_as_fewer(tiny_bert, corpus, tmp_path, capsys):
    rng = random.Random(2)
    texts = [random_text(rng, "sun") for _ in range(30)]
    assert len({*texts}) == 30
    repeated = [(text, f"by {i}") for i, text in enumerate(texts) for _ in range(5)]
    negatives = write(tmp_path / "suns.csv", repeated, ("text", "author"))
    settings = {"layers": "1", "group": "author"}
    run_on(tiny_bert, tmp_path, corpus, negatives, **settings)
    # 3 of 30 groups are above it; their variance is that of 29 texts.
    low, high = 100 * beta.ppf(0.025, 2.9, 27.1), 100 * beta.ppf(0.975, 3.9, 26.1)
    start = "mood@mean, layer 1: the threshold lets 15 of 150 negatives of suns pass, whose least "
    end = "rate above 0 is 0.67 %; its true false-positive rate is between {:.1f} and {:.1f} %"
    assert start + end.format(low, high) in said(capsys)
    # Without such a column, each text is by itself.
    alone = write(tmp_path / "alone.csv", [(text,) for text, _ in repeated])
    run_on(tiny_bert, tmp_path, corpus, alone, **settings)
    exact = binomtest(15, 150).proportion_ci(method="exact")
    assert end.format(100 * exact.low, 100 * exact.high) in said(capsys)


def test_each_table_has_the_notes_of_its_task(tiny_bert, corpus, tmp_path, capsys):
    rng = random.Random(4)
    negatives = write(tmp_path / "suns.csv", [(random_text(rng, "sun"),) for _ in range(20)])
    # The name of the first begins those of others.
    settings = {"positions": "all,all:last:2", "sites": "block,mlp", "layers": "1,2"}
    results = run_on(tiny_bert, tmp_path, corpus, negatives, **settings)
    _, *tables = said(capsys).split("linear probe · negatives threshold · ")
    assert [x.split(" · ")[0] for x in tables] == [*results]
    for table, (name, result) in zip(tables, results.items(), strict=True):
        assert table.count("the threshold lets") == 1
        assert f"{name}, layer {result.best_layer}: the threshold lets 2 of 20 negatives" in table


def test_the_corpus_is_part_of_the_key_of_the_evidence_alone(tiny_bert, corpus, tmp_path, capsys):
    rng = random.Random(3)
    texts = [(random_text(rng, "sun"),) for _ in range(20)]
    few, settings = tmp_path / "few.csv", {"layers": "1"}
    before = run_on(tiny_bert, tmp_path, corpus, "", **settings)["mood@mean"]
    assert "negatives_threshold" not in before.evidence
    first = run_on(tiny_bert, tmp_path, corpus, write(few, texts), **settings)["mood@mean"]
    assert (first.key, first.provenance) == (before.key, before.provenance)
    files = files_of(tmp_path)
    assert sum("negatives_threshold" in str(name) for name in files) == 1
    run_on(tiny_bert, tmp_path, corpus, str(few), **settings)
    assert files_of(tmp_path) == files
    capsys.readouterr()
    second = run_on(tiny_bert, tmp_path, corpus, write(few, texts[:5]), **settings)["mood@mean"]
    assert (second.key, second.provenance) == (before.key, before.provenance)
    keys = {x.evidence["negatives_threshold"].key for x in (first, second)}
    assert len(keys) == 2
    # At 10 %, five negatives have to be below the threshold: it is the highest margin.
    says = "lets 0 of 5 negatives of few pass (one would be 20 %); its true "
    exact = binomtest(0, 5).proportion_ci(method="exact")
    assert exact.high == pytest.approx(0.522, abs=0.0005)
    assert says + "false-positive rate is between 0.0 and 52.2 %" in said(capsys)


def test_what_is_left_out_or_known_is_counted(tiny_bert, rows, corpus, tmp_path, capsys):
    in_train = [(text,) for text, *_, split in rows if split == "train" and "birds" in text][:7]
    others = [("a cat sees birds now",), ("the sun",), ("the old sun",)]
    negatives = write(tmp_path / "mixed.csv", [*in_train, *others])
    result = run_on(
        tiny_bert,
        tmp_path,
        corpus,
        negatives,
        positions="match:birds",
        probes="linear,token-max",
        layers="1",
    )['mood@match:"birds"']
    assert row_of(result, "threshold", 1).n == 8
    text = said(capsys)
    assert 'linear probe · negatives threshold · mood@match:"birds" · from mixed' in text
    assert 'mood@match:"birds": texts of mixed without this position: 2.' in text
    assert 'mood@match:"birds": texts of mixed that also occur in train: 7.' in text


@pytest.mark.parametrize("family", ["linear", "token-max", "attention", "multi-layer"])
def test_transfer_uses_the_threshold_of_the_negatives(
    tiny_bert, rows, corpus, tmp_path, capsys, family
):
    """Another corpus with the same test texts, on which its probe has these rates at home."""
    rng = random.Random(4)
    others = [
        x if x[3] == "test" else (random_text(rng, ("sun", "birds")[x[1] == "glad"]), *x[1:])
        for x in rows
    ]
    corpora = [corpus, write(tmp_path / "others.csv", others, ("text", "mood", "author", "split"))]
    negatives = write(tmp_path / "suns.csv", [(random_text(rng, "sun"),) for _ in range(40)])
    settings = {"transfer": True, "evidence": "none", "probes": family, "positions": "all"}
    results = run(
        *(tiny_bert, tmp_path),
        **{"limit": None, "corpus": corpora, "text": "text", "label": "mood", "metric": "auroc"},
        **{"threshold_from": negatives, "fpr": 0.1, **settings},
    )
    of, from_dev = {x.corpus.name: x for x in results.results}, 0
    for name, other in (("moods", "others"), ("others", "moods")):
        transferred = of[name].evidence["corpus_transfer"].rows
        for layer in of[name].layers:
            for metric in ("false_positive_rate", "hit_rate"):
                for train in of:
                    at_home = row_of(of[train], metric, layer)
                    axes = {"train": train, "negatives": "suns"}
                    row = transferred.at(metric, layer, **axes)
                    assert (row.value, row.interval) == (at_home.value, at_home.interval)
                assert transferred.at(metric, layer, train=other) is None
                from_dev += of[other].at(metric, layer).value == at_home.value
    assert from_dev < 8  # the thresholds from dev are others
    text = said(capsys)
    assert f"mood@all · {family} · transfer at a threshold from suns" in text
    assert "FPR at the threshold from suns" in text
    assert "the threshold from dev of the training corpus" not in text


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"positions": "match:birds"}, 'no text of suns has the position match:"birds"'),
        ({"threshold_from": "", "evidence": "negatives_threshold"}, "it needs --threshold-from"),
    ],
)
def test_why_there_is_no_threshold(tiny_bert, corpus, tmp_path, capsys, settings, says):
    negatives = write(tmp_path / "suns.csv", [("the sun",), ("the old sun",)])
    results = run_on(tiny_bert, tmp_path, corpus, negatives, **{"layers": "1", **settings})
    assert [x.evidence for x in results.values()] == [{}]
    err = " ".join(capsys.readouterr().err.split())
    assert "left out mood@" in err
    assert says in err


def test_what_is_refused(tiny_bert, corpus, tmp_path):
    named = write(tmp_path / "named.csv", [("the sun",)], ("content",))
    with pytest.raises(UserError, match=r"named.csv: no column for --text text; the columns are c"):
        run_on(tiny_bert, tmp_path, corpus, named)
    with pytest.raises(UserError, match=r"^--threshold-from .*none.csv: there is no such file"):
        run_on(tiny_bert, tmp_path, corpus, str(tmp_path / "none.csv"))
    with pytest.raises(UserError, match=r"^--text: does not apply to --threshold-from sample"):
        run_on(tiny_bert, tmp_path, corpus, "sample")
    with pytest.raises(UserError, match=r"^--threshold-from x.csv: needs --metric, and --text"):
        validate({"text": "text", "label": "mood", "threshold_from": "x.csv"})
