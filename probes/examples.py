"""A task's examples over a corpus, as arrays: labels, rows of the store, counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import UserError
from data.sentence import SPLITS, Corpus
from probes.alignment import Ints
from probes.store import Vectors
from probes.views import Text, View, ViewName, cut_away, hiding_view, plain_view, text_of
from tasks.checked import TaskError
from tasks.task import Example, Excluded, Task

SEEN, UNSEEN = "type seen in train", "type unseen in train"


class NotServedError(UserError):
    """A corpus that has the annotation a task needs, and yet no example of it."""


@dataclass(frozen=True)
class Split:
    """The examples of one split, in corpus order.

    Attributes:
        examples: what the task yielded, less what the view cuts away.
        texts: the text in which each is read.
        sentence: number of each example's sentence in the split. Shape (n,).
        excluded: candidates left out, by reason.
    """

    examples: tuple[Example, ...]
    texts: tuple[Text, ...]
    sentence: Ints
    excluded: Mapping[str, int]

    def group(self, name: str) -> NDArray[np.bool_]:
        """Which examples fall in the breakdown called `name`. Shape (n,)."""
        return np.array([name in example.groups for example in self.examples], dtype=bool)


@dataclass(frozen=True)
class Examples:
    """A task over a corpus under one view.

    Attributes:
        classes: labels of the training split, sorted; empty for regression.
    """

    task: Task
    view: ViewName
    splits: Mapping[str, Split]
    classes: tuple[str, ...]

    def targets(self, split: str) -> NDArray[Any]:
        """Class indices, -1 for a label that train lacks; or numbers (float32). Shape (n,)."""
        labels = [example.label for example in self.splits[split].examples]
        if self.task.kind == "regression":
            return np.array(labels, dtype=np.float32)
        return self.encode(labels)

    def unseen(self, split: str) -> tuple[str, ...]:
        """Labels of `split` that train lacks, one per such example, in order."""
        if not self.classes:
            return ()
        labels = (str(example.label) for example in self.splits[split].examples)
        return tuple(label for label in labels if label not in self._code)

    def encode(self, labels: list[Any]) -> Ints:
        """Class indices of `labels`; -1 for one that train lacks. Shape (n,)."""
        return np.array([self._code.get(str(label), -1) for label in labels], dtype=np.int64)

    @cached_property
    def _code(self) -> dict[str, int]:
        return {label: code for code, label in enumerate(self.classes)}

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """Names of the breakdowns that test examples fall in, sorted."""
        return tuple(sorted({g for e in self.splits["test"].examples for g in e.groups}))

    @cached_property
    def label_counts(self) -> dict[str, tuple[int, ...]]:
        """Examples of each label in train, dev and test, most frequent first."""
        counts = [Counter(str(e.label) for e in self.splits[s].examples) for s in SPLITS]
        order = sorted(counts[0] + counts[1] + counts[2], key=lambda x: (-counts[0][x], x))
        return {label: tuple(count[label] for count in counts) for label in order}

    def view_of(self, corpus: Corpus) -> View:
        """The texts that these examples are read in; all of the corpus for the plain view."""
        if self.view == "plain":
            return plain_view(corpus)
        return hiding_view((t for s in SPLITS for t in self.splits[s].texts), self.view)

    def rows(self, split: str, view: View, vectors: Vectors) -> list[Ints]:
        """First and end row of each example's span, then of its second span. Each (n, 2)."""
        part = self.splits[split]
        start = vectors.starts[[view.index[text] for text in part.texts]]
        if self.view != "plain":
            # The one word that is kept is the one that the example is read from.
            return [np.stack([start, start + 1], axis=1)]
        spans = [np.array([e.span for e in part.examples], dtype=np.int64)]
        if self.task.shape in ("pair", "span pair"):
            spans.append(np.array([e.span2 for e in part.examples], dtype=np.int64))
        return [span + start[:, None] for span in spans]


def collect_examples(task: Task, corpus: Corpus, hiding: ViewName) -> Examples:
    """Apply `task` to every sentence of `corpus`.

    Args:
        hiding: the view for examples that hide a word, "masked" or "cut".

    Raises:
        NotServedError: a split has no examples, or train has a single label.
        TaskError: its rule failed, or its examples do not fit what the task says of itself.
    """
    if task.kind == "multi-label":
        raise UserError(f"Task {task.name!r} is multi-label, which is not served yet.")
    splits = {}
    view: ViewName = "plain"
    for name in SPLITS:
        found: list[Example] = []
        texts: list[Text] = []
        numbers: list[int] = []
        excluded: Counter[str] = Counter()
        for number, sentence in enumerate(corpus.splits[name]):
            for item in task.examples(sentence):
                if isinstance(item, Excluded):
                    excluded[item.reason] += 1
                elif hiding == "cut" and cut_away(item):
                    excluded["subject or text cut away with the verb"] += 1
                else:
                    found.append(item)
                    texts.append(text_of(sentence, item, hiding))
                    numbers.append(number)
                    view = hiding if item.hide is not None else view
        if not found:
            why = ", ".join(f"{reason} {n:,}" for reason, n in sorted(excluded.items()))
            raise NotServedError(
                f"Task {task.name!r} has no examples in the {name} split of {corpus.name!r}"
                + (f" (left out: {why})" if why else "")
                + "; leave it out with --tasks"
                + (", or raise --limit." if corpus.limited else ".")
            )
        _require_consistent(task, found)
        splits[name] = Split(tuple(found), tuple(texts), np.array(numbers), dict(excluded))
    splits["test"] = _marked_as_seen(splits["test"], splits["train"])
    classes: tuple[str, ...] = ()
    if task.kind == "classification":
        classes = tuple(sorted({str(example.label) for example in splits["train"].examples}))
        if len(classes) < 2:
            raise NotServedError(
                f"Task {task.name!r}: every training example of {corpus.name!r} has the label "
                f"{classes[0]!r}; there is nothing to tell apart."
            )
    return Examples(task, view, splits, classes)


def _marked_as_seen(test: Split, train: Split) -> Split:
    """The split with two more breakdowns: examples whose type train has, and the others."""
    types = {example.type for example in train.examples}
    marked = (
        replace(e, groups=(*e.groups, SEEN if e.type in types else UNSEEN)) if e.type else e
        for e in test.examples
    )
    return replace(test, examples=tuple(marked))


def _require_consistent(task: Task, examples: Sequence[Example]) -> None:
    """Refuse examples that do not fit what the task says of itself.

    Raises:
        TaskError: second spans missing or not wanted, or hidden words that are not the span.
    """
    pairs = task.shape in ("pair", "span pair")
    hides = examples[0].hide is not None
    for example in examples:
        what = ""
        if (example.span2 is not None) != pairs:
            what = f"{'no' if pairs else 'a'} span2 in a task of shape {task.shape!r}"
        elif (example.hide is not None) != hides:
            what = "a hidden word in some examples and none in others; make it two tasks"
        elif hides and (pairs or example.span != (example.hide, (example.hide or 0) + 1)):
            what = "a hidden word that is not its only span"
        if what:
            raise TaskError(f"Task {task.name!r} gave {example.label!r} {what}. Mend the task.")
