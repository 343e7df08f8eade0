"""Scores of a task's predictions: metrics, breakdowns, baselines, references, counts."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import UserError
from common.registry import did_you_mean
from probes.breakdowns import by_label
from probes.examples import Examples
from probes.metrics import Gold, lower_is_better, metrics, nspr_sentences
from probes.records import ExampleCounts, LabelScore, Scores
from tasks.task import PUNCTUATION, Task

Array = NDArray[Any]


class Scorer:
    """Scores predictions of one task on one split."""

    def __init__(self, examples: Examples, split: str) -> None:
        part = examples.splits[split]
        task = examples.task
        self.gold = Gold(
            labels=examples.targets(split),
            sentence=part.sentence,
            classes=examples.classes,
            punctuation=part.group(PUNCTUATION),
            unseen=examples.unseen(split),
        )
        self.names = (task.metric, *task.also)
        headline_by_example = task.metric in ("accuracy", "balanced_accuracy", "mae")
        by_kind = "accuracy" if task.kind == "classification" else "mae"
        self.group_metric = task.metric if headline_by_example else by_kind
        self._groups = {name: part.group(name) for name in examples.groups}

    def scores(self, predicted: Array) -> list[Scores]:
        """Every metric of every row of `predicted` (cells, n)."""
        columns = {name: metrics.get(name)(self.gold, predicted) for name in self.names}
        return [
            {name: number(column[row]) for name, column in columns.items()}
            for row in range(len(predicted))
        ]

    def group_scores(self, predicted: Array) -> list[Scores]:
        """The group metric within every breakdown, of every row of `predicted` (cells, n)."""
        rows: list[Scores] = [{} for _ in predicted]
        for name, keep in self._groups.items():
            if not keep.any():
                continue
            values = metrics.get(self.group_metric)(self.gold.part(keep), predicted[:, keep])
            for row, value in zip(rows, values, strict=True):
                row[name] = number(value)
        return rows

    def label_scores(self, predicted: Array) -> dict[str, LabelScore]:
        """Scores by label of predictions (n,), by type where labels are BIO tags of chunks."""
        return by_label(self.gold, predicted, chunks=self.names[0] == "span_f1")


def control_metric(task: Task) -> str:
    """By what a task is compared with its control task.

    Random tags are no segmentation, and no class of theirs is worth more than another, so that is
    accuracy for all classification.
    """
    return "accuracy" if task.kind == "classification" else task.metric


def baselines(examples: Examples, train_labels: Array, test: Scorer) -> dict[str, Scores]:
    """Scores of what can be said without any vector.

    "majority": the most frequent training label, or the training mean; "type majority": the same
    among the training examples of an example's type, backing off to the former for a type that
    train lacks. Ties go to the label that comes first.
    """
    of = _most_frequent if examples.classes else np.mean
    by_type: dict[str, list[Any]] = defaultdict(list)
    for example, label in zip(examples.splits["train"].examples, train_labels, strict=True):
        by_type[example.type].append(label)
    overall = of(train_labels)
    said = {name: of(np.asarray(labels)) for name, labels in by_type.items()}
    types = [example.type for example in examples.splits["test"].examples]
    rules = np.array([[overall] * len(types), [said.get(name, overall) for name in types]])
    return dict(zip(("majority", "type majority"), test.scores(rules), strict=True))


def _most_frequent(labels: Array) -> int:
    return int(np.bincount(labels).argmax())


def references(examples: Examples, test: Scorer) -> dict[str, Scores]:
    """Scores of the rule that a task names as its upper reference, if it names one."""
    if not examples.task.reference:
        return {}
    said = examples.encode([e.reference for e in examples.splits["test"].examples])
    # A rule that says nothing (-1) must not match a gold label that train lacks (-1 too).
    return {examples.task.reference: test.scores(np.where(said < 0, -2, said)[None])[0]}


def count_examples(examples: Examples, test: Scorer) -> ExampleCounts:
    """What the task made of the corpus, for the record."""
    unseen = test.gold.unseen
    return ExampleCounts(
        n={split: len(part.examples) for split, part in examples.splits.items()},
        labels=examples.label_counts if examples.classes else {},
        excluded={split: dict(part.excluded) for split, part in examples.splits.items()},
        unseen_test_labels={label: unseen.count(label) for label in sorted(set(unseen))},
        groups={g: int(examples.splits["test"].group(g).sum()) for g in examples.groups},
        covered_sentences=nspr_sentences(test.gold) if examples.task.metric == "nspr" else None,
    )


def number(value: float) -> float | None:
    """None for a score that is undefined."""
    return None if np.isnan(value) else float(value)


def require_metrics(task: Task) -> None:
    """Check that every metric a task names exists and scores what the task predicts.

    Raises:
        UserError: one does not, or a best layer cannot be chosen by the headline metric.
    """
    for name in (task.metric, *task.also):
        if name not in metrics:
            hint = did_you_mean(name, metrics)
            raise UserError(f"Task {task.name!r}: unknown metric {name!r}. {hint}")
        if (kind := metrics.get(name).kind) not in (None, task.kind):
            raise UserError(f"Task {task.name!r}: {name!r} scores {kind}, not {task.kind}.")
    if lower_is_better(task.metric):
        raise UserError(
            f"Task {task.name!r}: {task.metric!r} cannot be its headline metric, since lower is "
            "better; name it under also=, and another one first."
        )
