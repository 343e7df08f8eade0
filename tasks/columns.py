"""Tasks made from label columns of the user's own data."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from probes.common.errors import UserError
from probes.data.sentence import Sentence
from probes.data.sources import Column
from probes.tasks.task import Example, Excluded, Task, tasks

VERSION = 1
NO_LABEL = Excluded("no label")


def task_of(column: Column) -> Task:
    """The task of predicting a label column.

    Tags of chunks, in whichever scheme, are scored as chunks, other classes by accuracy, numbers by
    Spearman's rank correlation over all examples.

    Raises:
        UserError: the name is taken by a task of the suite.
    """
    name = column.name
    if name in tasks:
        raise UserError(
            f"--task-from {name}: the suite has a task of this name; rename the column."
        )
    metric, also, reading = "accuracy", ("macro_f1",), f"a class per {column.shape}"
    if column.kind == "regression":
        metric, also, reading = "corpus_spearman", ("mae",), f"a number per {column.shape}"
    elif column.scheme:
        metric, also, reading = "span_f1", ("accuracy",), str(column.scheme)
    rule = _word if column.shape == "word" else _sentence
    return Task(
        name=name,
        version=VERSION,
        needs=(column.layer,),
        shape=column.shape,
        kind=column.kind,
        metric=metric,
        also=also,
        rule=partial(rule, column.layer),
        summary=f"The column {name!r} of your data: {reading}.",
        reading=reading,
    )


def _word(layer: str, sentence: Sentence) -> Iterator[Example | Excluded]:
    for i, label in enumerate(sentence.layer(layer)):
        if label is None:
            yield NO_LABEL
        else:
            yield Example(label, (i, i + 1), type=sentence.words[i])


def _sentence(layer: str, sentence: Sentence) -> Iterator[Example | Excluded]:
    (label,) = sentence.layer(layer)
    if label is None:
        yield NO_LABEL
    else:
        yield Example(label, (0, len(sentence)), type=" ".join(sentence.words))
