"""Scores of a task's predictions: metrics, breakdowns, baselines, references, counts."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Ints
from probes.common.errors import UserError
from probes.common.registry import did_you_mean
from probes.examples.examples import Examples, Split
from probes.examples.text_floors import text_floors
from probes.extraction.reading.alignment import Pieces
from probes.extraction.reading.views import Text
from probes.records.header import ExampleCounts
from probes.records.values import LabelScore, Scores
from probes.statistics.gold import Gold, Predictions
from probes.statistics.metrics import class_parts, lower_is_better, metrics
from probes.statistics.rank_correlation import nspr_sentences
from probes.tasks.task import PUNCTUATION, Kind, Task

Array = NDArray[Any]
Keys = dict[str, Callable[[Split], list[str]]]
"""Functions that give a lookup key for each example of a split, by the name of the rule."""

_BY_EXAMPLE: dict[Kind, str] = {
    "classification": "accuracy",
    "multi-label": "exact_match",
    "regression": "mae",
}
"""Metrics of breakdowns: means over examples, which suit groups of any size."""


class Scorer:
    """Scores predictions of one task on one split.

    Attributes:
        groups: masks of the breakdowns that have examples in this split. Each (n,).
    """

    def __init__(self, examples: Examples, split: str) -> None:
        part = examples.splits[split]
        task, sets = examples.task, examples.members
        self.gold = Gold(
            labels=examples.targets(split),
            sentence=part.sentence,
            classes=examples.classes,
            punctuation=part.group(PUNCTUATION),
            unseen=examples.unseen(split) if sets is None else examples.unseen_anywhere,
            sets=sets,
            partition=part.partition,
        )
        self.names = (task.metric, *task.also)
        by_example = task.metric in ("accuracy", "balanced_accuracy", "mae", "micro_f1")
        self.group_metric = task.metric if by_example else _BY_EXAMPLE[task.kind]
        masks = {name: part.group(name) for name in examples.groups}
        self.groups = {name: mask for name, mask in masks.items() if mask.any()}

    def scores(self, predicted: Array) -> list[Scores]:
        """All metrics of each cell of `predicted`. Shape (cells, n) or (cells, n, bytes)."""
        columns = {name: metrics.get(name)(self.gold, predicted) for name in self.names}
        return [
            {name: known_number(column[row]) for name, column in columns.items()}
            for row in range(len(predicted))
        ]

    def group_scores(self, predicted: Array) -> list[Scores]:
        """The group metric in each breakdown, for each cell of `predicted`."""
        rows: list[Scores] = [{} for _ in predicted]
        for name, mask in self.groups.items():
            values = metrics.get(self.group_metric)(self.gold.part(mask), predicted[:, mask])
            for row, value in zip(rows, values, strict=True):
                row[name] = known_number(value)
        return rows

    def label_scores(self, predicted: Array) -> dict[str, LabelScore]:
        """Scores of one cell by label, or by chunk type if labels are BIO tags of chunks."""
        return by_label(self.gold, predicted, chunks=self.names[0] == "span_f1")


def control_metric(kind: Kind, metric: str) -> str:
    """The metric by which a task is compared with its control task.

    Accuracy for classification: random tags form no chunks, and all random classes matter alike.
    But if probes are trained for balanced accuracy, it stays: their class weights cost accuracy.
    Multi-label tasks and regressions keep their headline metric.
    """
    return "accuracy" if kind == "classification" and metric != "balanced_accuracy" else metric


def control_labels(examples: Examples, split: str, seeds: Sequence[int]) -> Array:
    """The control task's labels, in the form of `Examples.targets`. Shape (seeds, n).

    The label of a type depends only on the seed, the type, and the label distribution of train.
    """
    index_of_type = {
        name: index
        for index, name in enumerate(sorted({e.type for e in examples.splits[split].examples}))
    }
    of_example = np.array([index_of_type[e.type] for e in examples.splits[split].examples])
    # A random element of the sorted training labels: labels are as probable as they are frequent.
    train = np.sort(examples.targets("train"))
    n = len(train)
    labels = [[train[int(_uniform(seed, name) * n)] for name in index_of_type] for seed in seeds]
    return np.array(labels, dtype=train.dtype)[:, of_example]


def _uniform(seed: int, name: str) -> float:
    """A number in [0, 1), determined by seed and name."""
    digest = hashlib.sha256(f"{seed} {name}".encode("utf-8", "surrogatepass")).digest()
    # A float holds 48 bits exactly: with more, the quotient might be rounded to 1.
    return int.from_bytes(digest[:6]) / 2**48


NO_TYPES = "its examples have no types"
"""The reason why a task has no control task."""


def has_types(examples: Examples) -> bool:
    """Whether every example has a type, as control labels need."""
    return all(e.type for part in examples.splits.values() for e in part.examples)


def baselines(examples: Examples, train_labels: Array, test: Scorer) -> dict[str, Scores]:
    """Scores of `baseline_predictions`, which use no vectors."""
    return rule_scores(baseline_predictions(examples, train_labels), test)


def baseline_predictions(
    examples: Examples, train_labels: Array, indices: Ints | None = None
) -> dict[str, Predictions]:
    """Test predictions (n, …) from the words that a probe is shown, without vectors.

    - "majority": the most frequent training label, or the training mean.
    - "type majority": the majority among training examples of the same type; plain majority for
      types that train lacks. Used if types consist of words that the probe is shown.
    - "word majority": otherwise, the majority for the same words (those of the first span and the
      first word of the second), if the probe is shown any.
    - of whole texts, instead of the last two, the classifiers of `text_floors`.
    - the rule and the classifier of cues that a task gives as baselines.

    Ties go to the label that sorts first. For multi-label tasks, the majority is every label that
    more than half of the examples have, as predicted by a probe that knows only frequencies. (The
    most frequent set is often empty and has an F1 of 0.)

    Args:
        indices: indices of training examples; by default all, once each.
    """
    if indices is None:
        indices = np.arange(len(train_labels))
    keys: Keys = {"majority": lambda part: [""] * len(part.examples)}
    if examples.task.shape == "text":
        return _majorities(examples, train_labels, keys, indices) | text_floors(examples, indices)
    if examples.types_shown:
        keys["type majority"] = _types
    elif examples.words_shown:
        keys["word majority"] = _type_names
    predictions = _majorities(examples, train_labels, keys, indices)
    if examples.task.baseline:
        predictions[examples.task.baseline] = _rule(examples)
    if examples.task.cues_baseline:
        predictions[examples.task.cues_baseline] = _fitted_to_cues(examples, train_labels, indices)
    return predictions


def references(examples: Examples, train_labels: Array, test: Scorer) -> dict[str, Scores]:
    """Scores of rules that know more than a probe is shown.

    These are the rule and the classifier of cues that a task gives as upper references, and the
    type majority if it is not among the `baselines`.
    """
    predictions: dict[str, Predictions] = {}
    indices = np.arange(len(train_labels))
    if examples.task.reference:
        predictions[examples.task.reference] = _rule(examples)
    if examples.task.cues_reference:
        predictions[examples.task.cues_reference] = _fitted_to_cues(examples, train_labels, indices)
    if not examples.types_shown:
        predictions |= _majorities(examples, train_labels, {"type majority": _types}, indices)
    return rule_scores(predictions, test)


def rule_scores(rules: Mapping[str, Predictions], test: Scorer) -> dict[str, Scores]:
    """Scores of rules by name; all None for a rule that lacks a prediction for some example."""
    scores_by_rule = {}
    for name, predicted in rules.items():
        (scores,) = test.scores(predicted[None])
        # Rank correlations would rank NaN like a number.
        scores_by_rule[name] = dict.fromkeys(scores) if is_silent(predicted) else scores
    return scores_by_rule


def is_silent(predicted: Predictions) -> bool:
    """Whether a rule lacks a prediction for some example."""
    return predicted.dtype.kind == "f" and bool(np.isnan(predicted).any())


def _rule(examples: Examples) -> Predictions:
    """Predictions from `Example.reference`."""
    return examples.predictions([e.reference for e in examples.splits["test"].examples])


def _fitted_to_cues(examples: Examples, train_labels: Array, indices: Ints) -> Predictions:
    """Predictions of a logistic regression on the cues of the chosen training examples."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    cues = {
        split: [example.cues for example in examples.splits[split].examples]
        for split in ("train", "test")
    }
    counter = CountVectorizer(analyzer=tuple, binary=True)
    train, labels = counter.fit_transform(cues["train"])[indices], train_labels[indices]
    # A bootstrap sample may have one label only, which the regression refuses.
    if len(np.unique(labels)) == 1:
        return np.full(len(cues["test"]), labels[0])
    fitted = LogisticRegression(max_iter=1000).fit(train, labels)
    predicted: Predictions = fitted.predict(counter.transform(cues["test"]))
    return predicted


def _types(part: Split) -> list[str]:
    return [example.type for example in part.examples]


def _type_names(part: Split) -> list[str]:
    return [" ".join(first + second[:1]) for first, second in part.shown_words]


def _majorities(
    examples: Examples, train_labels: Array, keys: Keys, indices: Ints
) -> dict[str, Predictions]:
    """Predict the most frequent label of each example's key, for each kind of key."""
    predictions, train_labels = {}, train_labels[indices]
    for rule, keys_of in keys.items():
        train_keys = keys_of(examples.splits["train"])
        chosen_keys = [train_keys[index] for index in indices]
        code = {key: index for index, key in enumerate(dict.fromkeys(chosen_keys))}
        overall = _typical(examples, train_labels, np.zeros(len(chosen_keys), dtype=np.int64))
        by_key = _typical(examples, train_labels, np.array([code[key] for key in chosen_keys]))
        label_of_key = dict(zip(code, by_key, strict=True))
        test_keys = keys_of(examples.splits["test"])
        predictions[rule] = np.array([label_of_key.get(key, *overall) for key in test_keys])
    return predictions


def _typical(examples: Examples, labels: Array, group: Array) -> Array:
    """Best constant prediction for each group 0 to G − 1; ties go to the first class. (G, …)."""
    size = np.bincount(group)
    typical: Array
    if examples.members is not None:
        count = np.zeros((len(size), len(examples.classes)))
        np.add.at(count, group, examples.members[labels, : len(examples.classes)])
        typical = np.packbits(2 * count > size[:, None], axis=1)
    elif examples.classes:
        pairs, counts = np.unique(group * len(examples.classes) + labels, return_counts=True)
        group, labels = np.divmod(pairs, len(examples.classes))
        order = np.lexsort((labels, -counts, group))
        _, first = np.unique(group[order], return_index=True)
        typical = labels[order][first]
    else:
        typical = np.bincount(group, labels) / size
    return typical


def count_examples(examples: Examples, test: Scorer) -> ExampleCounts:
    """Count the task's examples in the corpus, for the record."""
    unseen = examples.unseen("test")
    return ExampleCounts(
        n={split: len(part.examples) for split, part in examples.splits.items()},
        labels=examples.label_counts if examples.classes else {},
        excluded={split: dict(part.excluded) for split, part in examples.splits.items()},
        unseen_test_labels={label: unseen.count(label) for label in sorted(set(unseen))},
        groups={g: int(examples.splits["test"].group(g).sum()) for g in examples.groups},
        typed=has_types(examples),
        covered_sentences=nspr_sentences(test.gold) if examples.task.metric == "nspr" else None,
        resampled=examples.splits["test"].partition.clusters,
        clusters=len(np.unique(test.gold.clusters)),
        test_digest=test.gold.digest,
    )


def known_number(value: float) -> float | None:
    """The score, or None if it is undefined."""
    return None if np.isnan(value) else float(value)


def require_metrics(task: Task) -> None:
    """Raise UserError if a task's metric is unknown or of other kinds, or cannot choose a layer."""
    fitting = sorted(name for name in metrics if task.kind in metrics.get(name).kinds)
    for name in (task.metric, *task.also):
        if name not in metrics:
            hint = did_you_mean(name, fitting)
            raise UserError(f"Task {task.name!r}: unknown metric {name!r}. {hint}")
        if name not in fitting:
            raise UserError(
                f"Task {task.name!r}: the metric {name!r} does not score {task.kind} tasks; "
                f"use one of {', '.join(fitting)}."
            )
    if lower_is_better(task.metric):
        raise UserError(
            f"Task {task.name!r}: {task.metric!r} cannot be the headline metric, since lower "
            "values are better. List it in also=, and set metric= to another one."
        )


ONE_PIECE, SEVERAL_PIECES = "word of one piece", "word of several pieces"


def marked_by_pieces(
    examples: Examples, split_words: Callable[[Sequence[Text]], list[Pieces]]
) -> Examples:
    """Add two breakdowns of test examples: words of one subword, and of several.

    Only if examples are words that the encoder sees: spans have several words, and hidden words
    have no pieces.
    """
    if examples.task.shape != "word" or examples.view not in ("plain", "own"):
        return examples
    test = examples.splits["test"]
    texts = list(dict.fromkeys(test.texts))
    bounds = {text: p.bounds for text, p in zip(texts, split_words(texts), strict=True)}
    marked = []
    for example, text in zip(test.examples, test.texts, strict=True):
        start, end = example.span
        n_pieces = bounds[text][end] - bounds[text][start]
        name = ONE_PIECE if n_pieces == 1 else SEVERAL_PIECES
        marked.append(replace(example, groups=(*example.groups, name)))
    test = replace(test, examples=tuple(marked))
    return replace(examples, splits={**examples.splits, "test": test})


def by_label(gold: Gold, predicted: Predictions, *, chunks: bool) -> dict[str, LabelScore]:
    """Precision, recall and F1 of every label that occurs or is predicted, sorted by name.

    Args:
        predicted: class indices. Shape (n,).
        chunks: whether labels are BIO tags; then whole chunks are scored by type.
    """
    if not gold.classes:
        return {}
    if chunks:
        gold_chunks, predicted_chunks = gold.chunks, gold.chunks_in(predicted)
        spans = gold_chunks, predicted_chunks, gold_chunks & predicted_chunks
        n, n_predicted, n_right = (Counter(kind for _, _, kind in x) for x in spans)
        kinds = sorted(n | n_predicted)
        return {x: _label_score(n[x], n_predicted[x], n_right[x]) for x in kinds}
    names = (*gold.classes, *sorted(set(gold.unseen)))
    counts = class_parts(gold, predicted).sum(0).reshape(3, -1).astype(np.int64)
    counts_by_name = zip(names, *counts.tolist(), strict=True)
    return {
        name: _label_score(n, n_predicted, n_right)
        for name, n, n_predicted, n_right in sorted(counts_by_name)
        if n + n_predicted
    }


def _label_score(n: int, n_predicted: int, n_right: int) -> LabelScore:
    return LabelScore(
        n=n,
        precision=n_right / n_predicted if n_predicted else None,
        recall=n_right / n if n else None,
        f1=2 * n_right / (n + n_predicted),
    )
