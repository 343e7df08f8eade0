"""Floors of labelled texts, against scikit-learn's pipelines written out here."""

import random

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from probes.data.sentence import Corpus, Sentence
from probes.data.sources import LabelColumn
from probes.examples.examples import collect_examples
from probes.examples.scoring import Scorer, baseline_predictions, baselines
from probes.tasks.columns import task_of
from probes.tasks.positions import Position

WORDS = ("the", "a", "I", "old", "dog", "cat", "sees", "!", "?", "birds", "sun", "Sun", "runs")


def corpus_of(label):
    rng, parts = random.Random(3), {}
    for split, n in (("train", 60), ("dev", 20), ("test", 25)):
        parts[split] = []
        for i in range(n):
            text = " ".join(rng.choices(WORDS, k=rng.randint(2, 9)))
            given = {"column y": (label(text, rng),)}
            parts[split].append(Sentence(f"{split}{i}", "", (text,), columns=given, whole=True))
    return Corpus("texts", "", "", {split: tuple(part) for split, part in parts.items()})


def by_words(text, rng):
    return "ab"["un" in text if rng.random() < 0.8 else rng.random() < 0.5]


def uneven(text, rng):
    return "ab"["birds" in text and "dog" in text]


def amount(text, rng):
    return len(text) + 3 * text.count("un") + rng.random()


def lengths(texts):
    return np.log1p([[len(text)] for text in texts])


FORMS = {
    "word n-grams": lambda: TfidfVectorizer(
        ngram_range=(1, 2), token_pattern=r"(?u)\w+|[^\w\s]", sublinear_tf=True
    ),
    "character n-grams": lambda: TfidfVectorizer(
        ngram_range=(2, 5), analyzer="char_wb", sublinear_tf=True
    ),
    "length": lambda: make_pipeline(FunctionTransformer(lengths), StandardScaler()),
}

TABLE = [
    (by_words, {}, "accuracy", accuracy_score),
    (uneven, {"uneven": True}, "balanced_accuracy", balanced_accuracy_score),
    (by_words, {"uneven": False}, "auroc", roc_auc_score),
    (amount, {"kind": "regression"}, "corpus_spearman", lambda x, y: spearmanr(x, y).statistic),
]


@pytest.mark.parametrize(("label", "given", "name", "metric"), TABLE, ids=[x[2] for x in TABLE])
def test_scores_are_those_of_scikit_learn(label, given, name, metric):
    corpus = corpus_of(label)
    ranks = name == "auroc"
    column = LabelColumn("y", "text", **{"kind": "classification", **given})
    task = task_of(column, Position("mean"), (name,) * ranks, 0.01 if ranks else None)
    examples = collect_examples(task, corpus, "masked")
    found = baselines(examples, examples.targets("train"), Scorer(examples, "test"))
    assert list(found) == ["majority", *FORMS]
    texts, labels = {}, {}
    for split, part in corpus.splits.items():
        texts[split] = [sentence.words[0] for sentence in part]
        labels[split] = [sentence.columns["column y"][0] for sentence in part]

    def model(c):
        if task.kind == "regression":
            return Ridge(alpha=1 / c)
        weights = "balanced" if given else None
        return LogisticRegression(C=c, max_iter=1000, class_weight=weights)

    for kind, form in FORMS.items():
        pipelines = [
            make_pipeline(form(), model(c)).fit(texts["train"], labels["train"])
            for c in (0.1, 1, 10, 100)
        ]
        answers = [x.decision_function if ranks else x.predict for x in pipelines]
        on_dev = [metric(labels["dev"], answer(texts["dev"])) for answer in answers]
        said = answers[int(np.argmax(np.round(on_dev, 9)))](texts["test"])
        assert found[kind][name] == pytest.approx(metric(labels["test"], said), abs=1e-9)
    assert max(found[kind][name] for kind in FORMS) > 0.7


def test_resamples_of_train_are_fitted_with_the_strength_of_the_whole():
    examples = collect_examples(
        task_of(LabelColumn("y", "text", "classification"), Position("mean")),
        corpus_of(by_words),
        "masked",
    )
    train = examples.targets("train")
    half = baseline_predictions(examples, train, np.arange(30))
    assert any(
        (half[k] != whole).any() for k, whole in baseline_predictions(examples, train).items()
    )
    alone = baseline_predictions(examples, train, np.flatnonzero(train == 1))
    assert all((alone[kind] == 1).all() for kind in FORMS)
