"""What can be said of a task before any model is loaded: counts, leaks, what its rule reads."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from probes.cli.leaks import Leaks, find_leaks
from probes.data.sentence import LAYERS, SPLITS, Corpus, Sentence
from probes.examples.examples import Examples, collect_examples
from probes.examples.scoring import Scorer, baselines, require_metrics
from probes.examples.validation import require_repeatable
from probes.measurements.plug_in_keys import blame
from probes.records.payload import Scores
from probes.statistics.bootstrap import MIN_SENTENCES
from probes.tasks.checked import TaskError
from probes.tasks.task import Example, Task

IMBALANCED = 0.9
"""Share of the most frequent label from which accuracy says little."""

GIVEN_AWAY = 0.995
"""Share of test examples that their type decides from which nothing is left to the context."""

LEAKED = 0.01
"""Share of test examples that stand in train from which it is worth a warning."""


@dataclass(frozen=True)
class Report:
    """A task on a corpus.

    Attributes:
        read: annotation layers that its rule looked at.
        seconds: of applying the rule, per sentence.
        baselines: test scores of what sees no vector.
        errors: what has to be mended.
        warnings: what a reader of its scores should know.
    """

    task: Task
    corpus: Corpus
    examples: Examples
    read: frozenset[str]
    seconds: float
    leaks: Leaks
    baselines: dict[str, Scores]
    errors: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def majority(self) -> float | None:
        """Share of train that has the most frequent label; None for regression."""
        counts = [train for train, *_ in self.examples.label_counts.values()]
        n_train = len(self.examples.splits["train"].examples)
        return max(counts) / n_train if self.examples.classes else None


def check_task(task: Task, corpus: Corpus) -> Report:
    """Apply the task to every sentence, several times, and look at what it gives.

    Raises:
        UserError: it names a metric that does not fit, its rule or a metric fails, or a split has
            no example.
    """
    require_metrics(task)
    served = task.on(corpus.layers)
    clock = time.perf_counter()
    require_repeatable(served, corpus)
    twice = 2 * sum(1 for _ in corpus)
    seconds = (time.perf_counter() - clock) / max(1, twice)
    read = layers_read(task, corpus)
    examples = collect_examples(served, corpus, "masked")
    report = Report(
        task=task,
        corpus=corpus,
        examples=examples,
        read=read,
        seconds=seconds,
        leaks=find_leaks(examples, corpus),
        baselines=_baselines(examples),
        errors=(),
        warnings=(),
    )
    return replace(report, errors=tuple(_errors(report)), warnings=tuple(_warnings(report)))


def _baselines(examples: Examples) -> dict[str, Scores]:
    """See `probes.examples.scoring.baselines`.

    Raises:
        TaskError: a metric of a plug-in failed.
    """
    try:
        return baselines(examples, examples.targets("train"), Scorer(examples, "test"))
    except Exception as error:
        why = blame(error, examples.task, "")
        if not why:
            raise
        raise TaskError(f"Task {examples.task.name!r}: {why}") from error


def layers_read(task: Task, corpus: Corpus) -> frozenset[str]:
    """The annotation layers that the task's rule looks at in any sentence."""
    read: set[str] = set()

    class Watched(Sentence):
        def __getattribute__(self, name: str) -> Any:
            # Making a changed copy of a sentence is no use of what it holds.
            if name in LAYERS and sys._getframe(1).f_globals.get("__name__") != "dataclasses":
                read.add(name)
            return super().__getattribute__(name)

    stand_ins = {a: b for a, b in task.stand_ins.items() if a not in corpus.layers}
    watching = replace(task, needs=())
    for sentence in corpus:
        content = {each.name: getattr(sentence, each.name) for each in fields(sentence)}
        content |= {layer: content[other] for layer, other in stand_ins.items()}
        if all(content.get(layer) for layer in task.needs):
            watching.examples(Watched(**content))
    return frozenset(read)


def _errors(report: Report) -> Iterator[str]:
    task = report.task
    if undeclared := sorted(report.read - set(task.needs)):
        layers = ", ".join(undeclared)
        yield (
            f"the rule reads {layers}, which needs= does not name; a corpus without it would give "
            f"other examples, or fail: needs={[*task.needs, *undeclared]}"
        )


def _warnings(report: Report) -> Iterator[str]:
    task, examples, leaks = report.task, report.examples, report.leaks
    if unread := [layer for layer in task.needs if layer not in report.read]:
        yield (
            f"needs= names {', '.join(unread)}, which the rule never reads; corpora without it "
            "are left out for nothing"
        )
    if report.majority and report.majority >= IMBALANCED and task.metric == "accuracy":
        yield (
            f"one label has {report.majority:.1%} of train; balanced_accuracy or macro_f1 says "
            "more than accuracy"
        )
    for split in ("dev", "test"):
        if missing := sorted(set(examples.unseen(split))):
            names = ", ".join(map(repr, missing[:5])) + ", …" * (len(missing) > 5)
            n = len(examples.unseen(split))
            yield f"{n} {split} examples have labels that train lacks: {names}; each is an error"
    if leaks.in_train and leaks.in_train / leaks.n_test >= LEAKED:
        # Of sentences that differ, a task may show the encoder the same words.
        advice = (
            "its group of unseen types says what is left without them"
            if examples.view == "own"
            else "--drop-overlap leaves such training sentences out"
        )
        yield (
            f"{leaks.in_train} of {leaks.n_test} test examples stand word for word in train; "
            f"{advice}"
        )
    if leaks.repeated:
        yield f"{leaks.repeated} examples are given more than once for one sentence"
    if leaks.contradictory:
        yield (
            f"{leaks.contradictory} examples have the words and spans of another one, and a "
            "different label; no probe can get both right"
        )
    if leaks.by_type is not None and leaks.by_type >= GIVEN_AWAY:
        yield (
            f"the type decides the label: {leaks.by_type:.1%} of test examples of a type that "
            "train has get its most frequent label there; a probe needs no context for that"
        )
    if not _has_types(examples):
        yield "some examples have no type=; there will be no control task and no selectivity"
    if len(set(examples.splits["test"].sentence.tolist())) < MIN_SENTENCES:
        yield f"fewer than {MIN_SENTENCES} test sentences have examples; there will be no intervals"


def _has_types(examples: Examples) -> bool:
    return all(e.type for split in SPLITS for e in examples.splits[split].examples)


def number_range(examples: tuple[Example, ...]) -> tuple[float, float, float]:
    """Least, mean and greatest label of a regression task."""
    labels = [float(e.label) for e in examples if not isinstance(e.label, tuple)]
    return min(labels), sum(labels) / len(labels), max(labels)
