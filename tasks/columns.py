"""Tasks made from label columns of the user's own data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from probes.common.errors import UserError
from probes.data.sentence import Sentence
from probes.data.sources import LabelColumn
from probes.tasks.positions import Position
from probes.tasks.task import Example, Excluded, Task, tasks

VERSION = 1
NO_LABEL = Excluded("no label")


def text_task(label: str, position: str) -> str:
    """Name of the task that predicts a label of texts from vectors at a position."""
    return f"{label}@{position}"


def task_of(
    column: LabelColumn,
    position: Position | None = None,
    ranked_by: Sequence[str] = (),
    fpr: float | None = None,
) -> Task:
    """Make the task that predicts a label column.

    Chunk tags of any scheme are scored as chunks, other classes by accuracy, uneven classes of
    texts by balanced accuracy, and numbers by Spearman's rank correlation over all examples.

    Args:
        position: see `Task.position`.
        ranked_by: ranking metrics of two classes, that of the headline first; by default none.
        fpr: see `Task.fpr`.

    Raises:
        UserError: a built-in task has this name.
    """
    name = text_task(column.name, position.name) if position else column.name
    if name in tasks:
        raise UserError(
            f"--task-from {name}: the suite has a task of this name; rename the column."
        )
    also: tuple[str, ...]
    per = column.shape if column.types is None else "example"
    metric, also, reading = "accuracy", ("macro_f1",), f"a class per {per}"
    if column.kind == "regression":
        metric, also, reading = "corpus_spearman", ("mae",), f"a number per {per}"
    elif column.scheme:
        metric, also, reading = "span_f1", ("accuracy",), str(column.scheme)
    elif column.uneven:
        metric, also = "balanced_accuracy", ("accuracy", "macro_f1")
        reading += ", uneven"
    elif column.kind == "multi-label":
        metric, also, reading = "micro_f1", (), f"a set of classes per {per}"
    if ranked_by:
        metric, also = ranked_by[0], (*ranked_by[1:], "balanced_accuracy", "accuracy")
    rules: dict[str, Callable[..., Iterator[Example | Excluded]]] = {
        "word": partial(_per_word, column.types),
        "sentence": partial(_per_text, True),
        # No type: hardly any text occurs twice, so a control task would be mere noise.
        "text": partial(_per_text, False),
    }
    return Task(
        name=name,
        version=VERSION + (column.shape == "text"),  # since there are floors of texts
        needs=(column.layer,),
        shape=column.shape,
        kind=column.kind,
        metric=metric,
        also=also,
        rule=partial(rules[column.shape], column.layer),
        summary=f"The column {column.name!r} of your data: {reading}.",
        reading=reading,
        position=position,
        fpr=fpr,
    )


def _per_word(types: str | None, layer: str, sentence: Sentence) -> Iterator[Example | Excluded]:
    word_types = sentence.words if types is None else sentence.layer(types) if types else ()
    for i, label in enumerate(sentence.layer(layer)):
        if label is None:
            yield NO_LABEL
        else:
            yield Example(label, (i, i + 1), type=word_types[i] if word_types else "")


def _per_text(typed: bool, layer: str, sentence: Sentence) -> Iterator[Example | Excluded]:
    (label,) = sentence.layer(layer)
    if label is None:
        yield NO_LABEL
    else:
        kind = " ".join(sentence.words) if typed else ""
        yield Example(label, (0, len(sentence)), type=kind)
