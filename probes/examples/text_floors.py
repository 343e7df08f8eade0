"""The floor of labelled texts: classifiers of n-grams, and of the length of the text.

None sees a vector. A probe that is not above them has found nothing that the letters of the text do
not tell: deception probes with an AUROC of .981 were published where a bag of words had .997.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from probes.common.arrays import Ints
from probes.data.chats import texts_of
from probes.examples.examples import Examples
from probes.extraction.reading.views import Text
from probes.statistics.gold import Gold, Predictions
from probes.statistics.metrics import metrics, ranks_margins, weighs_classes

N_FEATURES = 100_000
"""The most frequent n-grams are features: this bounds memory, whatever the size of the corpus."""

GRID = (0.1, 1.0, 10.0, 100.0)
"""Inverse L2 strengths (C), of which the best on dev is chosen; of equal ones the smallest."""

FLOORS = ("word n-grams", "character n-grams", "length")


class _FloorInputs(NamedTuple):
    """Texts and labels of a task, by value: tasks that differ in position alone share each fit."""

    texts: tuple[tuple[str, ...], ...]
    train: tuple[float, ...]
    dev: tuple[float, ...]
    unseen_in_dev: tuple[str, ...]
    classes: tuple[str, ...]
    metric: str


def text_floors(examples: Examples, indices: Ints) -> dict[str, Predictions]:
    """Test predictions (n,) of classifiers of texts that were fitted to some training texts.

    - "word n-grams": TF-IDF of words and punctuation marks and of pairs of these, in lower case.
    - "character n-grams": TF-IDF of 2 to 5 characters within words, in lower case.
    - "length": the logarithm of the number of characters.

    Each is a logistic regression, or a ridge regression for numbers. Class weights are balanced if
    those of probes are, for balanced accuracy. The strength is the best on dev by the headline
    metric, after a fit to the whole training split, which also gives the n-grams and their IDF.

    Args:
        indices: indices of training examples.
    """
    splits = ("train", "dev", "test")
    inputs = _FloorInputs(
        tuple(tuple(map(_text_as_written, examples.splits[x].texts)) for x in splits),
        tuple(examples.targets("train").tolist()),
        tuple(examples.targets("dev").tolist()),
        examples.unseen("dev"),
        examples.classes,
        examples.task.metric,
    )
    return {kind: _floor_predictions(inputs, kind, tuple(indices.tolist())) for kind in FLOORS}


def _text_as_written(text: Text) -> str:
    """A text as it was written, or what a chat's messages say."""
    return "\n".join(texts_of(text.words[0])) if text.chat else text.words[0]


@lru_cache(maxsize=64)
def _floor_predictions(inputs: _FloorInputs, kind: str, indices: tuple[int, ...]) -> Predictions:
    train, _, test = _floor_features(inputs, kind)
    model = _fitted(inputs, train, np.array(indices), _strength(inputs, kind))
    return _predicted(inputs, model, test)


def _predicted(inputs: _FloorInputs, model: Any, features: Any) -> Predictions:
    """Predictions, which are margins if the headline metric ranks them."""
    ranks = ranks_margins(inputs.metric) and hasattr(model, "decision_function")
    predicted: Predictions = (model.decision_function if ranks else model.predict)(features)
    return predicted


@lru_cache(maxsize=len(FLOORS))
def _floor_features(inputs: _FloorInputs, kind: str) -> list[Any]:
    """The features of train, dev and test. Each (n, features)."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import StandardScaler

    if kind == "length":
        lengths = [np.log1p([[len(text)] for text in part]) for part in inputs.texts]
        scaler = StandardScaler().fit(lengths[0])
        return [scaler.transform(part) for part in lengths]
    if kind == "word n-grams":
        # scikit-learn's default leaves out punctuation, and words of one letter.
        form = {"ngram_range": (1, 2), "token_pattern": r"(?u)\w+|[^\w\s]"}
    else:
        form = {"ngram_range": (2, 5), "analyzer": "char_wb"}
    vectorizer = TfidfVectorizer(sublinear_tf=True, max_features=N_FEATURES, **form)
    return [vectorizer.fit_transform(inputs.texts[0]), *map(vectorizer.transform, inputs.texts[1:])]


@lru_cache(maxsize=64)
def _strength(inputs: _FloorInputs, kind: str) -> float:
    """The best of the `GRID` on dev."""
    train, dev, _ = _floor_features(inputs, kind)
    n = len(inputs.dev)
    gold = Gold(
        labels=np.array(inputs.dev),
        sentence=np.arange(n),
        classes=inputs.classes,
        punctuation=np.zeros(n, dtype=bool),
        unseen=inputs.unseen_in_dev,
    )
    indices = np.arange(len(inputs.train))
    predicted = np.array(
        [_predicted(inputs, _fitted(inputs, train, indices, c), dev) for c in GRID]
    )
    scores = metrics.get(inputs.metric)(gold, predicted)
    return GRID[int(np.nan_to_num(scores, nan=-np.inf).argmax())]


def _fitted(inputs: _FloorInputs, features: Any, indices: Ints, strength: float) -> Any:
    """A regression of the labels of the chosen training texts on their features."""
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression, Ridge

    labels = np.array(inputs.train)[indices]
    if not inputs.classes:
        return Ridge(alpha=1 / strength).fit(features[indices], labels)
    if len(np.unique(labels)) == 1:
        return DummyClassifier().fit(features[indices], labels)
    weights = "balanced" if weighs_classes(inputs.metric) else None
    model = LogisticRegression(C=strength, max_iter=1000, class_weight=weights)
    return model.fit(features[indices], labels)
