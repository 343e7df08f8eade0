"""Control tasks: random labels that a probe can only memorise (Hewitt & Liang 2019).

Every type (in a word task: every word form) has one label, drawn from the labels of the task's
training examples. A probe can score well on these only by memorising types. Selectivity is the
score on the task minus the score on the control task.
"""

from __future__ import annotations

from collections.abc import Sequence

from probes.examples.control_task import control_labels
from probes.examples.examples import Examples
from probes.examples.scoring import control_metric, number
from probes.records.payload import ControlRecord, Interval, LayerResult, Selectivity
from probes.statistics.bootstrap import MIN_SENTENCES, bounds, interval, replicates, resample
from probes.statistics.gold import Gold, Predictions
from probes.statistics.metrics import Metric, metrics


def control_record(examples: Examples) -> ControlRecord:
    """Metric and types of the control task, with the share of test examples whose type is known."""
    train = {e.type for e in examples.splits["train"].examples}
    test = [e.type for e in examples.splits["test"].examples]
    return ControlRecord(
        metric=control_metric(examples.task),
        types=len(train),
        seen=sum(name in train for name in test) / len(test),
    )


class ControlScorer:
    """Computes selectivity on test, from the gold labels of the task and of its control tasks."""

    def __init__(self, examples: Examples, gold: Gold, seeds: Sequence[int]) -> None:
        self._metric: Metric = metrics.get(control_metric(examples.task))
        self._gold = gold
        self._control = [
            Gold(labels, gold.sentence, gold.classes, gold.punctuation, sets=gold.sets)
            for labels in control_labels(examples, "test", seeds)
        ]

    def with_selectivity(
        self, layers: Sequence[LayerResult], task: Predictions, control: Predictions
    ) -> tuple[LayerResult, ...]:
        """Add to the layers the selectivity of every cell, and the 95 % interval of seed 0.

        Args:
            task, control: predictions of L layers and S seeds. Each (L, S, n).
        """
        bounds_of = self._intervals(task[:, 0], control[:, 0])
        found = []
        for i, layer in enumerate(layers):
            cells = [
                cell.model_copy(update={"selectivity": self._of_cell(s, task[i], control[i])})
                for s, cell in enumerate(layer.cells)
            ]
            update = {"cells": tuple(cells), "selectivity": bounds_of[i]}
            found.append(layer.model_copy(update=update))
        return tuple(found)

    def _of_cell(self, seed: int, task: Predictions, control: Predictions) -> Selectivity:
        real = self._metric(self._gold, task[seed : seed + 1])[0]
        other = self._metric(self._control[seed], control[seed : seed + 1])[0]
        return Selectivity(task=number(real), control=number(other))

    def _intervals(self, task: Predictions, control: Predictions) -> list[Interval]:
        """For each layer; task and control task have the same resamples of test sentences."""
        if self._gold.n_sentences < MIN_SENTENCES:
            return [None] * len(task)
        draws = resample(self._gold.n_sentences)
        difference = replicates(self._metric, self._gold, task, draws) - replicates(
            self._metric, self._control[0], control, draws
        )
        return [bounds(pair) for pair in interval(difference)]
