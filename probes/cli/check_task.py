"""Checks a task on a corpus without a model: examples, leakage, and annotation that it reads."""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from probes.common.errors import counted
from probes.data.sentence import LAYERS, Corpus, Sentence
from probes.examples.examples import Examples, collect_examples, label_set
from probes.examples.scoring import Scorer, baselines, has_types, references, require_metrics
from probes.measurements.plugin_keys import plugin_failure
from probes.records.values import Scores
from probes.statistics.partition import FEWEST
from probes.tasks.task import Example, Task
from probes.tasks.validation import TaskError, require_repeatable

IMBALANCED = 0.9
"""Warn that accuracy says little above this share of the most frequent label."""

GIVEN_AWAY = 0.995
"""Warn above this share of test examples with the most frequent label of their type."""

LEAKED = 0.01
"""Warn above this share of test examples that occur in train."""


@dataclass(frozen=True)
class TaskReport:
    """The report of `check` about a task on a corpus.

    Attributes:
        read_layers: annotation layers that the rule reads.
        seconds: time of the rule per sentence.
        baselines, references: test scores of predictions without vectors; see
            `probes.examples.scoring`.
        errors: mistakes that must be corrected.
        warnings: remarks for readers of the scores.
    """

    task: Task
    corpus: Corpus
    examples: Examples
    read_layers: frozenset[str]
    seconds: float
    leakage: Leakage
    baselines: dict[str, Scores]
    references: dict[str, Scores]
    errors: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def majority(self) -> float | None:
        """Share of training examples with the most frequent label; None for regression."""
        counts = [train for train, *_ in self.examples.label_counts.values()]
        n_train = len(self.examples.splits["train"].examples)
        return max(counts) / n_train if self.examples.classes else None


def check_task(task: Task, corpus: Corpus) -> TaskReport:
    """Apply the task to every sentence, several times, and examine its examples."""
    require_metrics(task)
    served = task.on(corpus.layers)
    informed = served.informed(corpus.splits["train"])
    clock = time.perf_counter()
    require_repeatable(informed, corpus)
    # The check applies the rule twice to each sentence.
    n_applications = 2 * sum(1 for _ in corpus)
    seconds = (time.perf_counter() - clock) / max(1, n_applications)
    read_layers = layers_read(task, corpus)
    examples = collect_examples(served, corpus, "masked")
    report = TaskReport(
        task=task,
        corpus=corpus,
        examples=examples,
        read_layers=read_layers,
        seconds=seconds,
        leakage=find_leakage(examples, corpus),
        **_baselines(examples),
        errors=(),
        warnings=(),
    )
    return replace(report, errors=tuple(_errors(report)), warnings=tuple(_warnings(report)))


def _baselines(examples: Examples) -> dict[str, Any]:
    """The baselines and references, by field of `TaskReport`."""
    try:
        arguments = examples, examples.targets("train"), Scorer(examples, "test")
        return {"baselines": baselines(*arguments), "references": references(*arguments)}
    except Exception as error:
        reason = plugin_failure(error, "", examples.task, "")
        if not reason:
            raise
        raise TaskError(f"Task {examples.task.name!r}: {reason}") from error


def layers_read(task: Task, corpus: Corpus) -> frozenset[str]:
    """The annotation layers that the task's rule reads in any sentence."""
    read_layers: set[str] = set()

    class Watched(Sentence):
        def __getattribute__(self, name: str) -> Any:
            # Ignore dataclasses.replace(), which reads every field to copy it.
            if name in LAYERS and sys._getframe(1).f_globals.get("__name__") != "dataclasses":
                read_layers.add(name)
            return super().__getattribute__(name)

    stand_ins = {a: b for a, b in task.stand_ins.items() if a not in corpus.layers}
    # `Task.examples` itself reads the layers in `needs`.
    watching = replace(task, needs=()).informed(corpus.splits["train"])
    for sentence in task.texts(corpus):
        content = {field.name: getattr(sentence, field.name) for field in fields(sentence)}
        content |= {layer: content[stand_in] for layer, stand_in in stand_ins.items()}
        if all(content.get(layer) for layer in task.needs):
            watching.examples(Watched(**content))
    return frozenset(read_layers)


def _errors(report: TaskReport) -> Iterator[str]:
    task = report.task
    if undeclared := sorted(report.read_layers - set(task.needs)):
        layers = ", ".join(undeclared)
        yield (
            f"the rule reads {layers}, which needs= does not list; without it the rule would fail "
            f"or give other examples; write needs={[*task.needs, *undeclared]}"
        )


def _warnings(report: TaskReport) -> Iterator[str]:
    task, examples, leaks = report.task, report.examples, report.leakage
    if unread := [layer for layer in task.needs if layer not in report.read_layers]:
        yield (
            f"needs= lists {', '.join(unread)}, which the rule never reads; corpora without it "
            "are excluded for no reason"
        )
    if report.majority and report.majority >= IMBALANCED and task.metric == "accuracy":
        yield (
            f"{report.majority:.1%} of training examples have one label; balanced_accuracy or "
            "macro_f1 is more informative than accuracy"
        )
    for split in ("dev", "test"):
        if missing := sorted(set(examples.unseen(split))):
            names = ", ".join(map(repr, missing[:5])) + (", …" if len(missing) > 5 else "")
            n = len(examples.unseen(split))
            have = counted(n, f"{split} example has a label", f"{split} examples have a label")
            yield f"{have} that does not occur in train, so no probe can predict it: {names}"
    if leaks.in_train and leaks.in_train / leaks.n_test >= LEAKED:
        # A task with its own words may show the encoder the same words for different sentences.
        remedy = (
            "see the scores of its group of unseen types"
            if examples.view == "own"
            else "--drop-overlap removes such training sentences"
        )
        yield (
            f"{leaks.in_train} of {counted(leaks.n_test, 'test example')} "
            f"{'occurs' if leaks.in_train == 1 else 'occur'} word for word in train; "
            f"{remedy}"
        )
    if leaks.repeated:
        one, several = "example is a duplicate", "examples are duplicates"
        yield f"{counted(leaks.repeated, one, several)} within the same sentence"
    if leaks.contradictory:
        have = counted(leaks.contradictory, "example has", "examples have")
        yield (
            f"{have} the same words and spans as another but a different label; no probe can get "
            "both right"
        )
    if leaks.by_type is not None and leaks.by_type >= GIVEN_AWAY:
        yield (
            f"the type predicts the label: {leaks.by_type:.1%} of test examples whose type occurs "
            "in train have its most frequent training label; a probe needs no context for that"
        )
    if not has_types(examples):
        yield "some examples have no type=, so there is no control task and no selectivity"
    test = examples.splits["test"]
    clusters = test.partition.of_sentence[test.sentence]
    if len(set(clusters.tolist())) < FEWEST:
        yield (
            f"fewer than {FEWEST} test {test.partition.clusters} have examples, so there are no "
            "intervals"
        )


def number_range(examples: tuple[Example, ...]) -> tuple[float, float, float]:
    """Smallest, mean and largest label of a regression task."""
    labels = [float(e.label) for e in examples if not isinstance(e.label, tuple)]
    return min(labels), sum(labels) / len(labels), max(labels)


@dataclass(frozen=True)
class Leakage:
    """Counts of examples whose labels can be guessed.

    Attributes:
        n_test: number of test examples.
        in_train: test examples that also occur in train, with the same words as read by the
            encoder, the same spans and the same label.
        types: number of types in train.
        seen: share of test examples whose type occurs in train; None if examples have no types.
        by_type: share of these with the most frequent training label of their type; None if there
            are none, and for regression.
        repeated: examples that duplicate an earlier one of the same sentence.
        contradictory: examples that differ from an earlier one of the same sentence only in label.
    """

    n_test: int
    in_train: int
    types: int
    seen: float | None
    by_type: float | None
    repeated: int
    contradictory: int


def find_leakage(examples: Examples, corpus: Corpus) -> Leakage:
    """Count leakage between train and test, and duplicates within splits."""
    repeated = contradictory = 0
    inputs: dict[str, list[tuple[Any, Any]]] = {}
    for split, part in examples.splits.items():
        sentences = corpus.splits[split]
        inputs[split] = []
        labels_of_input: dict[Any, set[Any]] = defaultdict(set)
        for example, number in zip(part.examples, part.sentence.tolist(), strict=True):
            # A task may show the encoder words of its own.
            words = sentences[number].words if example.words is None else example.words
            example_input = (words, example.span, example.span2, example.hide)
            label, labels = _comparable_label(example), labels_of_input[number, example_input]
            repeated += label in labels
            contradictory += bool(labels) and label not in labels
            labels.add(label)
            inputs[split].append((example_input, label))
    train, test = examples.splits["train"].examples, examples.splits["test"].examples
    train_pairs = set(inputs["train"])
    by_type: dict[str, Counter[Any]] = defaultdict(Counter)
    for example in train:
        if example.type:
            by_type[example.type][_comparable_label(example)] += 1
    seen = [e for e in test if e.type in by_type]
    by_type_share = None
    if seen and examples.task.kind != "regression":
        usual_labels = {name: counts.most_common(1)[0][0] for name, counts in by_type.items()}
        by_type_share = sum(usual_labels[e.type] == _comparable_label(e) for e in seen) / len(seen)
    return Leakage(
        n_test=len(test),
        in_train=sum(pair in train_pairs for pair in inputs["test"]),
        types=len(by_type),
        seen=len(seen) / len(test) if by_type else None,
        by_type=by_type_share,
        repeated=repeated,
        contradictory=contradictory,
    )


def _comparable_label(example: Example) -> Any:
    """The label for comparison; the order of several labels does not matter."""
    return label_set(example.label) if isinstance(example.label, tuple) else example.label
