"""Leakage: test examples that occur in train, and types that predict the label."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from probes.data.sentence import Corpus
from probes.examples.examples import Examples
from probes.examples.label_sets import label_set
from probes.tasks.task import Example


@dataclass(frozen=True)
class Leakage:
    """Counts of what gives the labels of a task away.

    Attributes:
        n_test: test examples.
        in_train: test examples that also occur in train: the same words as the encoder reads
            them, the same spans, the same label.
        types: distinct types in train.
        seen: share of test examples whose type occurs in train; None if examples have no types.
        by_type: share of these with the most frequent training label of their type; None if there
            are none, and for regression.
        repeated: examples that duplicate an earlier one of the same sentence.
        contradictory: examples that differ from an earlier one of the same sentence only in their
            label.
    """

    n_test: int
    in_train: int
    types: int
    seen: float | None
    by_type: float | None
    repeated: int
    contradictory: int


def find_leakage(examples: Examples, corpus: Corpus) -> Leakage:
    """Look for leakage between train and test, and for duplicates within every split."""
    repeated = contradictory = 0
    inputs: dict[str, list[tuple[Any, Any]]] = {}
    for split, part in examples.splits.items():
        sentences = corpus.splits[split]
        inputs[split] = []
        given: dict[Any, set[Any]] = defaultdict(set)
        for example, number in zip(part.examples, part.sentence.tolist(), strict=True):
            words = sentences[number].words if example.words is None else example.words
            shown = (words, example.span, example.span2, example.hide)
            label, labels = _label(example), given[number, shown]
            repeated += label in labels
            contradictory += bool(labels) and label not in labels
            labels.add(label)
            inputs[split].append((shown, label))
    train, test = examples.splits["train"].examples, examples.splits["test"].examples
    known = set(inputs["train"])
    by_type: dict[str, Counter[Any]] = defaultdict(Counter)
    for example in train:
        if example.type:
            by_type[example.type][_label(example)] += 1
    seen = [e for e in test if e.type in by_type]
    by_type_share = None
    if seen and examples.task.kind != "regression":
        usual = {name: counts.most_common(1)[0][0] for name, counts in by_type.items()}
        by_type_share = sum(usual[e.type] == _label(e) for e in seen) / len(seen)
    return Leakage(
        n_test=len(test),
        in_train=sum(pair in known for pair in inputs["test"]),
        types=len(by_type),
        seen=len(seen) / len(test) if by_type else None,
        by_type=by_type_share,
        repeated=repeated,
        contradictory=contradictory,
    )


def _label(example: Example) -> Any:
    """The label as it is compared: the order of several labels does not matter."""
    return label_set(example.label) if isinstance(example.label, tuple) else example.label
