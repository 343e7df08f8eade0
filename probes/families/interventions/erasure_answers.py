"""Answers of a model to texts whose labels are erased, one answer for each of two classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from probes.examples.examples import NotServedError
from probes.families.interventions.experiment import (
    LOG_ODDS,
    ChangedPass,
    comparisons,
    mean_effect_rows,
)
from probes.families.interventions.text_prompts import about_answers, text_prompts

if TYPE_CHECKING:
    from probes.measurements.context import ModelContext, TaskContext
    from probes.records.row import Row

ANSWER = "answer_drop"
"""Fall of the share of texts where log p(answer of its label) − log p(other) is above 0."""


def answer_rows(
    context: ModelContext, task: TaskContext, passes: Sequence[ChangedPass]
) -> tuple[list[Row], str]:
    """Rows of `LOG_ODDS` and `ANSWER`, whose intervals resample documents; and a sentence.

    They are of up to `--erasure-sentences` test texts whose label train has.

    Raises:
        NoHeadError: the model has no language-model head.
        NotServedError: the task has not two classes, or no text fits into the model's window.
        UserError: there are no two answers, or they begin with the same token.
    """
    part, flag = task.examples.splits["test"], "--erasure-answers"
    if task.task.kind != "classification" or len(task.examples.classes) != 2:
        raise NotServedError(f"{task.task.name}: answers are compared for two classes")
    prompts, examples = text_prompts(context, task, "test", context.options.sentences, flag)
    targets = task.examples.targets("test")[examples]
    labelled = np.flatnonzero(targets >= 0)
    log_odds = (prompts.log_odds(context, lambda _: passes) * (2 * targets - 1))[:, labelled]
    right, compared = (np.sign(log_odds) + 1) / 2, comparisons(passes)
    where = part.sentence[examples[labelled]], np.ones(len(labelled)), part.partition, "test"
    rows = [
        *mean_effect_rows(LOG_ODDS, compared, log_odds, *where),
        *mean_effect_rows(ANSWER, compared, right, *where),
    ]
    share = f"{right[0].mean():.0%} of {len(labelled):,} texts the answer of their label."
    return rows, f"{about_answers(context, task, prompts)} Untouched, the model gives {share}"
