"""A task's examples over a corpus, as arrays: labels, rows of the store, counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Ints
from probes.common.errors import UserError
from probes.data.sentence import SPLITS, Corpus
from probes.extraction.reading.vectors import StoredVectors
from probes.extraction.reading.views import (
    Text,
    View,
    ViewName,
    is_cut_away,
    merged_texts,
    plain_text,
    plain_view,
    text_of,
    view_name,
    view_over,
)
from probes.statistics.metrics import ranks_margins
from probes.statistics.partition import Partition, partition
from probes.tasks.task import Example, Excluded, Label, Task, tasks
from probes.tasks.validation import require_consistent, require_repeatable

_RUN_TWICE = 100
"""Sentences of each split on which a plug-in's rule is run twice."""

SEEN, UNSEEN = "type seen in train", "type unseen in train"


class NotServedError(UserError):
    """A corpus has the annotation that a task or measurement needs, but not the examples.

    Attributes:
        by_limit: whether the corpus would have them without `--limit`.
    """

    by_limit = False


@dataclass(frozen=True)
class Split:
    """The examples of one split, in corpus order.

    Attributes:
        examples: the task's examples, without those that the view cuts away.
        texts: the text in which each example is read.
        sentence: number of each example's sentence in the split. Shape (n,).
        excluded: number of excluded candidates, by reason.
        partition: clusters of the split, for resampling.
    """

    examples: tuple[Example, ...]
    texts: tuple[Text, ...]
    sentence: Ints
    excluded: Mapping[str, int]
    partition: Partition

    @cached_property
    def spans(self) -> Ints:
        """First and end word of each example's span in its sentence. Shape (n, 2)."""
        return np.array([example.span for example in self.examples], dtype=np.int64)

    @cached_property
    def second_spans(self) -> Ints:
        """First and end word of each example's second span, for pairs. Shape (n, 2)."""
        return np.array([example.span2 for example in self.examples], dtype=np.int64)

    @cached_property
    def shown_words(self) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """The words of each example's span and second span; empty if the word is hidden."""
        pairs = []
        for example, text in zip(self.examples, self.texts, strict=True):
            spans = (example.span, example.span2) if example.hide is None else (None, None)
            first, second = (text.words[slice(*span)] if span else () for span in spans)
            pairs.append((first, second))
        return pairs

    @cached_property
    def text_numbers(self) -> tuple[list[Text], Ints]:
        """The distinct texts, and the index of each example's text among them (n,)."""
        # Texts are compared by identity: it is faster, and examples of a sentence share one text.
        text_by_id = {id(text): text for text in self.texts}
        number = {key: i for i, key in enumerate(text_by_id)}
        numbers = np.array([number[id(text)] for text in self.texts], dtype=np.int64)
        return list(text_by_id.values()), numbers

    def group(self, name: str) -> NDArray[np.bool_]:
        """True for examples of the breakdown called `name`. Shape (n,)."""
        return np.array([name in example.groups for example in self.examples], dtype=bool)


@dataclass(frozen=True)
class Examples:
    """The examples of a task over a corpus, under one view.

    Attributes:
        classes: labels of the training split, sorted; empty for regression.
        label_sets: for multi-label, the label sets of all splits, sorted; targets are indices of
            sets.
    """

    task: Task
    view: ViewName
    splits: Mapping[str, Split]
    classes: tuple[str, ...]
    label_sets: tuple[tuple[str, ...], ...] = ()

    def targets(self, split: str) -> NDArray[Any]:
        """Class indices (-1 if train lacks the label) or numbers (float64). Shape (n,).

        For multi-label, indices into `label_sets`.
        """
        return self._targets[split]

    @cached_property
    def _targets(self) -> dict[str, NDArray[Any]]:
        return {split: self._targets_of(part) for split, part in self.splits.items()}

    def _targets_of(self, part: Split) -> NDArray[Any]:
        labels = [example.label for example in part.examples]
        if self.task.kind == "multi-label":
            code = {labels: code for code, labels in enumerate(self.label_sets)}
            return np.array([code[label_set(label)] for label in labels], dtype=np.int64)
        if self.task.kind == "regression":
            return np.array(labels, dtype=np.float64)
        return self.encode(labels)

    def unseen(self, split: str) -> tuple[str, ...]:
        """Label of each example of `split` whose label train lacks, in order."""
        if not self.classes:
            return ()
        labels = (label for e in self.splits[split].examples for label in _labels_of(self.task, e))
        return tuple(label for label in labels if label not in self._code)

    @cached_property
    def unseen_anywhere(self) -> tuple[str, ...]:
        """Labels of dev or test that train lacks, sorted."""
        return tuple(sorted({*self.unseen("dev"), *self.unseen("test")}))

    @cached_property
    def members(self) -> NDArray[np.bool_] | None:
        """Labels in each set, first `classes`, then `unseen_anywhere`. Shape (sets, labels).

        None if the task is not multi-label.
        """
        if self.task.kind != "multi-label":
            return None
        return membership(self.label_sets, (*self.classes, *self.unseen_anywhere))

    def predictions(self, labels: Sequence[Any]) -> NDArray[Any]:
        """Encode labels as predictions; a label that train lacks equals no gold label.

        Shape (n,), or for multi-label (n, bytes), see `probes.statistics.gold.Gold`.
        """
        if self.task.kind == "multi-label":
            return np.packbits(membership(labels, self.classes), axis=-1)
        if self.task.kind == "regression":
            # NaN, for an example without a value, makes the score undefined.
            return np.array([np.nan if x == "" else x for x in labels], dtype=np.float64)
        codes = self.encode(list(labels))
        return np.where(codes < 0, -2, codes)

    def encode(self, labels: list[Any]) -> Ints:
        """Class indices of `labels`; -1 if train lacks the label. Shape (n,)."""
        return np.array([self._code.get(str(label), -1) for label in labels], dtype=np.int64)

    @cached_property
    def _code(self) -> dict[str, int]:
        return {label: code for code, label in enumerate(self.classes)}

    @cached_property
    def words_shown(self) -> bool:
        """Whether the probe is shown words in every test example."""
        return all(first for first, _ in self.splits["test"].shown_words)

    @cached_property
    def types_shown(self) -> bool:
        """Whether types of test examples consist of words that the probe is shown, ignoring case.

        Other types need the annotation: a lemma, the form of another word, or one word of a
        sentence, such as the main verb.
        """
        test = self.splits["test"]
        if self.task.shape == "sentence":
            return not any(example.type for example in test.examples)
        return all(
            {*example.type.casefold().split()} <= {*" ".join((*first, *second)).casefold().split()}
            for example, (first, second) in zip(test.examples, test.shown_words, strict=True)
        )

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """Names of the breakdowns of test examples, sorted."""
        return tuple(sorted({g for e in self.splits["test"].examples for g in e.groups}))

    @cached_property
    def label_counts(self) -> dict[str, tuple[int, ...]]:
        """Number of examples of each label in train, dev and test, most frequent first."""
        counts = [
            Counter(label for e in self.splits[s].examples for label in _labels_of(self.task, e))
            for s in SPLITS
        ]
        order = sorted(counts[0] + counts[1] + counts[2], key=lambda x: (-counts[0][x], x))
        return {label: tuple(count[label] for count in counts) for label in order}

    def view_of(self, corpus: Corpus) -> View:
        """The view of these examples' texts; for the plain view, of the whole corpus."""
        if self.view == "plain":
            return plain_view(corpus)
        return view_over((t for s in SPLITS for t in self.splits[s].texts), self.view)

    @property
    def n_spans(self) -> int:
        """Number of spans per example that vectors are read from."""
        # Views that hide a word keep a single word.
        hidden = self.view in ("masked", "cut")
        return 2 if self.task.shape in ("pair", "span pair") and not hidden else 1

    def rows(self, split: str, view: View, vectors: StoredVectors) -> list[Ints]:
        """First and end row of each example's span, then of its second span. Each (n, 2).

        An example of a bag has one span, of all tokens in its text's bag.
        """
        texts, number = self.splits[split].text_numbers
        index = np.array([view.index[text] for text in texts], dtype=np.int64)[number]
        first = vectors.starts[index]
        if self.task.position and self.task.position.is_bag:
            return [np.stack([first, first + vectors.lengths[index]], axis=1)]
        return self.rows_from(split, first)

    def rows_from(self, split: str, start: Ints, numbers: Ints | slice = slice(None)) -> list[Ints]:
        """First and end row of the spans of some examples, as `rows`.

        Args:
            start: first row of each example's text. Shape (n,).
            numbers: numbers of the examples; by default all.
        """
        if self.view in ("masked", "cut"):
            return [np.stack([start, start + 1], axis=1)]
        part = self.splits[split]
        texts, number = part.text_numbers
        kept_from = np.array([text.kept_span[0] for text in texts], dtype=np.int64)
        offset = (start - kept_from[number][numbers])[:, None]
        spans = [part.spans, part.second_spans] if self.n_spans == 2 else [part.spans]
        return [span[numbers] + offset for span in spans]


def collect_examples(task: Task, corpus: Corpus, hiding: ViewName) -> Examples:
    """Apply `task` to every sentence of `corpus`, or to the window that ends with it.

    Args:
        hiding: the view for examples that hide a word, "masked" or "cut".

    Raises:
        NotServedError: a split has no examples, train has one label only, or dev has none of them.
        TaskError: the rule failed, or the examples contradict the task's declaration.
    """
    informed = task.informed(corpus.splits["train"])
    # The suite's own rules are tested; a plug-in's may depend on chance or on earlier sentences.
    if tasks.origin(task.name) is not None:
        some = [s for name in SPLITS for s in corpus.splits[name][:_RUN_TWICE]]
        require_repeatable(informed, some)
    ambiguous = _ambiguous_types(informed, corpus) if task.ambiguous else None
    splits = {}
    for name in SPLITS:
        splits[name] = _split_of(informed, corpus, name, hiding, ambiguous)
        if not splits[name].examples:
            counts = sorted(splits[name].excluded.items())
            reasons = ", ".join(f"{reason} {n:,}" for reason, n in counts)
            of = f" (left out: {reasons})" if reasons else ""
            problem = f" has no examples in the {name} split of {corpus.name!r}{of}"
            raise _not_served(task, corpus, problem)
    pairs = [
        (corpus.splits[name][number], example)
        for name, part in splits.items()
        for number, example in zip(part.sentence, part.examples, strict=True)
    ]
    require_consistent(task, pairs)
    view = view_name(splits["train"].examples[0], hiding)
    if view == "own":
        # Else a text would be encoded once for each stretch of it that examples keep.
        texts = iter(merged_texts([text for part in splits.values() for text in part.texts]))
        splits = {
            name: replace(part, texts=tuple(islice(texts, len(part.texts))))
            for name, part in splits.items()
        }
    splits["test"] = _marked_as_seen(splits["test"], splits["train"])
    return Examples(task, view, splits, *_classes_and_sets(task, corpus, splits))


def _split_of(
    task: Task, corpus: Corpus, name: str, hiding: ViewName, ambiguous: Collection[str] | None
) -> Split:
    """The examples of each sentence of a split, in corpus order; see `_reason_left_out`."""
    examples, texts, numbers = [], [], []
    excluded: Counter[str] = Counter()
    for number, sentence in enumerate(task.texts(corpus.splits[name])):
        sentence_text = plain_text(sentence)
        for item in task.examples(sentence):
            reason = _reason_left_out(item, hiding, ambiguous)
            if reason or isinstance(item, Excluded):
                excluded[reason] += 1
                continue
            text = text_of(sentence, item, hiding)
            examples.append(item)
            # One object for all examples of a sentence, as `Split.text_numbers` needs.
            texts.append(sentence_text if text == sentence_text else text)
            numbers.append(number)
    clusters = partition([sentence.document for sentence in corpus.splits[name]], name)
    return Split(tuple(examples), tuple(texts), np.array(numbers), dict(excluded), clusters)


def _reason_left_out(
    item: Example | Excluded, hiding: ViewName, ambiguous: Collection[str] | None
) -> str:
    """The reason for leaving out an item of a rule, as counted in the record; empty to use it."""
    if isinstance(item, Excluded):
        return item.reason
    # The label of any other type is known without the sentence.
    if ambiguous is not None and item.type not in ambiguous:
        return "type without several labels in train"
    # A cut leaves only what precedes the hidden word: perhaps nothing, or nothing of its cue.
    if hiding == "cut" and is_cut_away(item):
        return "cue or all text cut away with the hidden word"
    return ""


def _classes_and_sets(
    task: Task, corpus: Corpus, splits: Mapping[str, Split]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Classes and label sets, as in `Examples`; NotServedError if labels leave nothing to learn."""
    if task.kind == "regression":
        return (), ()
    sets = {x: {_labels_of(task, e) for e in part.examples} for x, part in splits.items()}
    if len(sets["train"]) < 2:
        (only,) = sets["train"]
        problem = f": every training example of {corpus.name!r} has the label {', '.join(only)!r}, "
        raise _not_served(task, corpus, problem + "so there is nothing to tell apart")
    classes = tuple(sorted({label for labels in sets["train"] for label in labels}))
    if task.kind == "multi-label":
        return classes, tuple(sorted(set().union(*sets.values())))
    if sets["train"].isdisjoint(sets["dev"]):
        problem = f": no dev example of {corpus.name!r} has a label that occurs in train, "
        raise _not_served(task, corpus, problem + "so no layer can be chosen")
    if len(classes) != 2 and ranks_margins(task.metric):
        problem = f": {task.metric} ranks two classes, and train of {corpus.name!r} has "
        raise _not_served(task, corpus, f"{problem}{len(classes)}")
    return classes, ()


def _not_served(task: Task, corpus: Corpus, problem: str) -> NotServedError:
    remedy = "give other --positions or --label" if task.position else "leave it out with --tasks"
    remedy += ", or raise --limit." if corpus.limited else "."
    return NotServedError(f"Task {task.name!r}{problem}; {remedy}")


def _labels_of(task: Task, example: Example) -> tuple[str, ...]:
    """The labels of an example: any number for multi-label, else one."""
    several = task.kind == "multi-label"
    return label_set(example.label) if several else (str(example.label),)


def _ambiguous_types(task: Task, corpus: Corpus) -> set[str]:
    """Types that have several labels in train."""
    labels: dict[str, set[Label]] = defaultdict(set)
    for sentence in task.texts(corpus.splits["train"]):
        for item in task.examples(sentence):
            if isinstance(item, Example):
                labels[item.type].add(item.label)
    return {type_ for type_, labels_of_type in labels.items() if len(labels_of_type) > 1}


def _marked_as_seen(test: Split, train: Split) -> Split:
    """Add two breakdowns to the test split: examples whose type occurs in train, and the others."""
    types = {example.type for example in train.examples}
    marked = (
        replace(e, groups=(*e.groups, SEEN if e.type in types else UNSEEN)) if e.type else e
        for e in test.examples
    )
    return replace(test, examples=tuple(marked))


def label_set(label: Any) -> tuple[str, ...]:
    """The labels of a multi-label example, each once, sorted."""
    return tuple(sorted(set(label)))


def membership(sets: Sequence[Collection[str]], names: Sequence[str]) -> NDArray[np.bool_]:
    """True where a set holds a name; other labels are ignored. Shape (sets, names)."""
    column_of = {name: column for column, name in enumerate(names)}
    members = np.zeros((len(sets), len(names)), dtype=bool)
    for row, labels in enumerate(sets):
        members[row, [column_of[label] for label in labels if label in column_of]] = True
    return members
