"""What gives test labels away: inputs that stand in train, types that decide."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from probes.data.sentence import Corpus
from probes.examples.examples import Examples
from probes.examples.label_sets import label_set
from probes.tasks.task import Example


@dataclass(frozen=True)
class Leaks:
    """What a task's examples give away.

    Attributes:
        n_test: test examples.
        in_train: of these, the ones that stand in train: same words as the encoder reads them, same
            places, same label.
        types: different types in train.
        seen: share of test examples whose type train has; None where examples have no types.
        by_type: share of those that get the most frequent training label of their type; None where
            there are none, and for numbers.
        repeated: examples given before for the same sentence, label included.
        contradictory: examples given before for the same sentence with another label.
    """

    n_test: int
    in_train: int
    types: int
    seen: float | None
    by_type: float | None
    repeated: int
    contradictory: int


def find_leaks(examples: Examples, corpus: Corpus) -> Leaks:
    """Look for leaks between train and test, and within every split."""
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
    decided = None
    if seen and examples.task.kind != "regression":
        said = {name: counts.most_common(1)[0][0] for name, counts in by_type.items()}
        decided = sum(said[e.type] == _label(e) for e in seen) / len(seen)
    return Leaks(
        n_test=len(test),
        in_train=sum(pair in known for pair in inputs["test"]),
        types=len(by_type),
        seen=len(seen) / len(test) if by_type else None,
        by_type=decided,
        repeated=repeated,
        contradictory=contradictory,
    )


def _label(example: Example) -> Any:
    """What is compared; of several labels the order says nothing."""
    return label_set(example.label) if isinstance(example.label, tuple) else example.label
