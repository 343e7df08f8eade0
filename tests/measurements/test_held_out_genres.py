"""Probes without a genre, against scikit-learn's on the same subset and on corpora made by hand."""

import csv
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from planted_context import task_context
from results_by_hand import evidence_record, make_result
from sklearn.linear_model import LogisticRegression, Ridge
from tiny_runs import run

from probes.__main__ import main
from probes.data.sentence import Corpus, Sentence
from probes.examples.examples import NotServedError, collect_examples
from probes.extraction.vectors import Sharded
from probes.measurements.held_out_genres import HeldOutGenres, kept_without
from probes.measurements.scores import ScoreMeasurement
from probes.records.row import Row, Rows
from probes.statistics.metrics import metrics
from probes.tasks.task import Example, Task
from probes.training.dataset import ProbingData


def context_of(splits, label, vector, kind="classification", metric="accuracy"):
    """A scored linear probe of a task.

    Args:
        splits: sentences as (genre, words), by split.
        label, vector: of a word.
    """

    def rule(sentence):
        for i, word in enumerate(sentence.words):
            yield Example(label(word), (i, i + 1), type=word)

    corpus = Corpus(
        "c",
        "1",
        "MIT",
        {
            split: tuple(
                Sentence(f"{split}{i}", "en", tuple(words), genre=genre)
                for i, (genre, words) in enumerate(sentences)
            )
            for split, sentences in splits.items()
        },
    )
    task = Task("toy", 1, (), "word", kind, metric, (), rule, "")
    examples = collect_examples(task, corpus, "masked")
    view = examples.view_of(corpus)
    texts = list(view.index)
    rows = np.array([vector(w) for text in texts for w in text.words], dtype=np.float32)
    vectors = SimpleNamespace(
        n_layers=1,
        manifest={"model": {"hidden_size": rows.shape[1]}},
        starts=np.cumsum([0, *(len(text.words) for text in texts)]),
        layer=lambda layer: Sharded([rows]),
        derived=lambda key, make: make(),
    )
    data = ProbingData(examples, view, vectors, torch.device("cpu"), project=None)
    data.features = lambda layers, hold=False: ProbingData.features(data, layers, hold=True)
    context = task_context(data, {0: 1})
    outcome = ScoreMeasurement().compute(context)
    scores = SimpleNamespace(at=Rows.of(outcome.rows).at)
    return task_context(data, {0: 1}, scores=scores, arrays=outcome.arrays)


# Words are "genre sign number"; the sign is the label in one genre, its opposite in the other.


def sentences(n, genres=("a", "b")):
    return [
        (g, [f"{g} {'+-'[(i + j) % 2]} {i}" for j in range(4)]) for i in range(n) for g in genres
    ]


def signs(word):
    genre, sign, _ = word.split()
    return {"a": 1, "b": -1, "c": 1}[genre], 1 if sign == "+" else -1


def reversed_in_b(word):
    genre, sign = signs(word)
    return "yes" if genre * sign > 0 else "no"


def vector(word):
    """The sign twice, and once as it is to be read in the genre."""
    genre, sign = signs(word)
    return sign, sign, genre * sign


def genres_of(outcome):
    """The rows of each genre, by metric; examples by split."""
    genres = {}
    for row in outcome.rows:
        name = row.split if row.metric == "examples" else row.metric
        genres.setdefault(row.axes["genre"], {})[name] = row
    return genres


def interval(row):
    return None if row.low is None else (row.low, row.high)


def outcome_of(splits):
    return HeldOutGenres().compute(context_of(splits, reversed_in_b, vector))


def test_a_rule_that_is_reversed_in_a_genre_is_lost_with_it_and_not_with_other_sentences():
    genres = genres_of(outcome_of({split: sentences(30) for split in ("train", "dev", "test")}))
    assert list(genres) == ["a", "b"]
    for each in genres.values():
        assert (each["train"].value, each["test"].value) == (120, 120)
        # Of two signs and one that tells the label, two are wrong in the other genre.
        assert (each["held_out_score"].value, each["held_out_drop"].value) == (0, 1)
        assert interval(each["held_out_drop"]) == (1, 1)
        assert (each["random_drop"].value, interval(each["random_drop"])) == (0, (0, 0))


def test_genres_that_cannot_be_held_out_are_named_and_few_sentences_have_no_interval():
    train = sentences(30, ("a", "b", "c"))
    test = [*sentences(30, ("a",)), *sentences(19, ("b",))]
    outcome = outcome_of({"train": train, "dev": train, "test": test})
    genres = genres_of(outcome)
    # Without a, the others still tell what decides in it.
    assert genres["a"]["held_out_drop"][1:5] == (0, 0, 0, 0)
    assert genres["b"]["held_out_drop"][1:5] == (1, 0, None, None)
    assert interval(genres["b"]["random_drop"]) is None
    assert {name: row.value for name, row in genres["c"].items()} == {"train": 120, "test": 0}
    result = make_result("toy", p_best=False)
    record = evidence_record(result, "held_out_genres", [])
    update = {"rows": Rows.of(outcome.rows), "notes": tuple(outcome.notes)}
    tables = HeldOutGenres().tables([result.with_evidence(record.model_copy(update=update))])
    assert [table.texts for table in tables] == [
        [("a", "100.0"), ("b", "0.0")],
        [("a", "0.0 ± 0.0"), ("b", "100.0")],
        [("a", "0.0 ± 0.0"), ("b", "0.0")],
        [("a", "120", "120"), ("b", "120", "76"), ("c", "120", "0")],
    ]
    assert [tables[k].heads[1] for k in (0, 3)] == ["toy (accuracy)", "toy\ntrain"]
    assert tables[0].notes == (
        "toy: at layer 0, the best on dev.",
        "toy: not held out: c; a genre has to be in train and test, beside others in train.",
    )


@pytest.mark.parametrize(
    ("train", "test", "why"),
    [
        ((), (), "the corpus does not name the genres of its documents"),
        (("a",), ("a", "b"), r"no genre can be held out \(a in train, a, b in test\)"),
        (("a", "c"), ("b",), r"no genre can be held out \(a, c in train, b in test\)"),
    ],
)
def test_without_genres_that_can_be_held_out_there_is_a_reason(train, test, why):
    def part(genres):
        return sentences(5, genres) if genres else [("", w) for _, w in sentences(5)]

    with pytest.raises(NotServedError, match=why):
        outcome_of({"train": part(train), "dev": part(train), "test": part(test)})


def noisy(kind):
    """Three genres with vectors of their own mean, and labels that vectors decide in part."""
    rng = np.random.default_rng(0)
    mean = {genre: rng.normal(size=6) for genre in "abc"}
    truth = rng.normal(size=(6, 3))
    vectors, labels, splits = {}, {}, {}
    for split, n in (("train", 60), ("dev", 20), ("test", 40)):
        splits[split] = []
        for i in range(n):
            genre = "aabc"[i % 4]
            words = [f"{genre}{split}{i}.{j}" for j in range(5)]
            splits[split].append((genre, words))
            for word in words:
                vectors[word] = mean[genre] + rng.normal(size=6)
                scores = vectors[word] @ truth + rng.normal(size=3)
                labels[word] = float(scores[0]) if kind == "regression" else "xyz"[scores.argmax()]
    return splits, labels.get, vectors.get


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_both_probes_are_those_of_scikit_learn_on_the_same_sentences(kind):
    metric = "accuracy" if kind == "classification" else "corpus_spearman"
    context = context_of(*noisy(kind), kind=kind, metric=metric)
    genres = genres_of(HeldOutGenres().compute(context))
    features = {
        split: each.block(slice(None))[0].numpy()
        for split, each in context.data.features([0]).items()
    }
    in_training = context.data.batches("train", context.data.features([0])["train"])
    y, sentence = in_training.labels[0].numpy(), in_training.sentences.numpy()
    train, test = (context.examples.splits[split] for split in ("train", "test"))
    strength = context.result.at("strength", 0, "train").value
    gold = context.scorers["test"].gold
    score = metrics.get(metric)
    assert list(genres) == ["a", "b", "c"]
    for genre, each in genres.items():
        of_test = test.genre == genre
        own = gold.part(of_test)
        reported = score(own, context.predicted([0])[:, of_test])[0]
        _, control = kept_without(train.genre == genre, train.sentence)
        of_training = np.array(list("aabc"))[sentence % 4]
        kept = {
            "held_out_drop": of_training != genre,
            "random_drop": np.isin(sentence, train.sentence[control]),
        }
        for name, keep in kept.items():
            drop = each[name]
            n = keep.sum()
            model = (
                Ridge(alpha=strength * n)
                if kind == "regression"
                else LogisticRegression(C=1 / (strength * n), tol=1e-8, max_iter=2000)
            ).fit(features["train"][keep], y[keep])
            theirs = score(own, model.predict(features["test"][of_test])[None])[0]
            # At most one example of the genre's 50 or 100 is on another side.
            within = 0.021 if kind == "classification" else 1e-4
            assert reported - drop.value == pytest.approx(theirs, abs=within)
            low, high = interval(drop) or (drop.value, drop.value)
            assert low <= drop.value <= high
        held_out = each["held_out_score"].value
        assert each["held_out_drop"].value == pytest.approx(reported - held_out)
        assert (interval(each["held_out_drop"]) is None) == (genre != "a")


def test_the_control_lacks_as_many_examples_of_any_genre():
    sentence = np.repeat(np.arange(100) * 3, 2)
    left_out = np.repeat(np.arange(100) < 40, 2)
    held_out, control = kept_without(left_out, sentence)
    assert (held_out == ~left_out).all()
    assert control.sum() == held_out.sum() == 120
    # Whole sentences, of the genre in proportion: 16 of 40 are expected, with a deviation of 2.4.
    assert (control[::2] == control[1::2]).all()
    assert 8 < (~control & left_out).sum() / 2 < 24


@pytest.mark.parametrize(("words", "others"), [(30, 3), (3, 30)])
def test_a_genre_of_other_sentences_is_matched_by_examples(words, others):
    """Forty of a hundred sentences: 1,200 of 1,380 examples, or 120 of 1,920."""
    lengths = np.where(np.arange(100) < 40, words, others)
    sentence = np.repeat(np.arange(100), lengths)
    left_out = sentence < 40
    _, control = kept_without(left_out, sentence)
    lacking = np.unique(sentence[~control])
    assert not np.isin(sentence[control], lacking).any()
    n = lengths[lacking].sum()
    assert (~control).sum() == n
    # The last sentence drawn is what reaches the number.
    assert 40 * words <= n < 40 * words + max(words, others)
    # Of all genres: fewer sentences than the genre has if these are long, more if they are short.
    assert {True, False} == set(lacking < 40)
    assert (len(lacking) > 40) == (words > others)


WORDS = ["the", "old", "dog", "sees", "a", "cat", "near", "the", "house"]


def treebank(folder, genres):
    """Tagged sentences, a document of each genre in every split."""
    folder.mkdir()
    for k, split in enumerate(("train", "dev", "test")):
        rng, text = np.random.default_rng(k), ""
        for genre in genres:
            text += f"# newdoc id = {genre}\n# meta::genre = {genre}\n"
            for _ in range(24):
                for i, word in enumerate(rng.permutation(WORDS), 1):
                    tag = "NOUN" if word in ("dog", "cat", "house") else "X"
                    text += f"{i}\t{word}\t_\t{tag}" + "\t_" * 6 + "\n"
                text += "\n"
        (folder / f"en_toy-ud-{split}.conllu").write_text(text)
    return folder


@pytest.mark.usefixtures("short_schedule")
def test_a_run_has_tables_and_rows_of_it_and_says_where_it_is_not_made(tiny_bert, tmp_path, capsys):
    corpus = treebank(tmp_path / "toy", ("mail", "news"))
    settings = {"tasks": ("pos",), "evidence": "held_out_genres", "limit": None}
    results = run(tiny_bert, tmp_path, corpus=str(corpus), **settings)
    said = capsys.readouterr().err
    assert "left out pos · mlp · held_out_genres: only convex probes are fitted" in said
    (linear,) = (r for r in results if r.probe.family == "linear")
    record = linear.evidence["held_out_genres"]
    assert record.extent == {linear.best_layer: 1}
    numbers = list(record.rows)
    layer, axes = linear.best_layer, {"genre": "mail"}
    assert Row("examples", 216, layer, split="train", axes=axes) in numbers
    with (tmp_path / "results" / "measurements.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {(x["axes"], x["metric"]) for x in rows} == {
        (f"genre={genre}", metric)
        for genre in ("mail", "news")
        for metric in ("examples", "held_out_score", "held_out_drop", "random_drop")
    }
    assert len(rows) == len(numbers) == 10
    assert main(["show", str(tmp_path / "results"), "--by", "held_out_genres"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "tiny-bert · toy · linear probe · held out genres · drop from the reported" in shown

    run(tiny_bert, tmp_path, probes="linear", **{**settings, "limit": 60})
    assert (
        "left out pos · linear · held_out_genres of tiny-bert: the corpus does not name the "
        "genres of its documents" in capsys.readouterr().err
    )
