"""Answers of a model to texts whose labels are erased, one answer for each of two classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from probes.examples.examples import NotServedError
from probes.families.interventions.experiment import (
    LOG_ODDS,
    ChangedPass,
    comparisons,
    mean_effect_rows,
)
from probes.families.interventions.text_prompts import Prompts, text_prompts, two_answers

if TYPE_CHECKING:
    from probes.common.arrays import Ints
    from probes.measurements.context import ModelContext, TaskContext
    from probes.records.row import Row

ANSWER = "answer_drop"
"""Fall of the share of texts where log p(answer of its label) − log p(other) is above 0."""


class LabelAnswers(NamedTuple):
    """Prompts of the test texts of a task with two classes.

    Attributes:
        examples: number of each prompt's example in the split. Shape (prompts,).
        side: 1 for texts of the positive class, −1 for others, 0 if train lacks the label. Shape
            (prompts,).
        about: names the classes and their answers.
    """

    task: TaskContext
    prompts: Prompts
    examples: Ints
    side: Ints
    about: str

    @classmethod
    def of(cls, context: ModelContext, task: TaskContext) -> LabelAnswers:
        """Prompts of up to `--erasure-sentences` texts.

        Raises:
            NotServedError: the task has not two classes, or no text fits into the model's window.
            UserError: there are no two answers, or they begin with the same token.
        """
        name, classes, flag = task.task.name, task.examples.classes, "--erasure-answers"
        if task.task.kind != "classification" or len(classes) != 2:
            raise NotServedError(f"{name}: answers are compared for two classes")
        positive, other = two_answers(context, task, flag)
        prompts, examples = text_prompts(context, task, "test", context.options.sentences, flag)
        about = (
            f"{name}: {classes[1]!r} is the positive class, with the answer {positive!r}; the "
            f"other is {other!r}. A prompt with its answer: {prompts.texts[0].words[0][-80:]!r}."
        )
        targets = task.examples.targets("test")[examples]
        return cls(task, prompts, examples, np.where(targets < 0, 0, 2 * targets - 1), about)

    def rows(self, context: ModelContext, passes: Sequence[ChangedPass]) -> tuple[list[Row], str]:
        """Rows of `LOG_ODDS` and `ANSWER`, whose intervals resample documents; and a sentence.

        Raises:
            NoHeadError: the model has no language-model head.
        """
        labelled = np.flatnonzero(self.side)
        log_odds = (self.prompts.log_odds(context, lambda _: passes) * self.side)[:, labelled]
        right = (np.sign(log_odds) + 1) / 2
        part, compared = self.task.examples.splits["test"], comparisons(passes)
        sentence, ones = part.sentence[self.examples[labelled]], np.ones(len(labelled))
        where = sentence, ones, part.partition, "test"
        rows = [
            *mean_effect_rows(LOG_ODDS, compared, log_odds, *where),
            *mean_effect_rows(ANSWER, compared, right, *where),
        ]
        note = f"{self.about} Untouched, the model gives {right[0].mean():.0%} of {len(ones):,} "
        return rows, f"{note}texts the answer of their label."
