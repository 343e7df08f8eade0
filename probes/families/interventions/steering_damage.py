"""Damage: how far steps raise the loss of neutral text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from probes.families.interventions.experiment import LOSS, ChangedPass, Comparison, mean_effect_rows
from probes.families.interventions.steering_inputs import Cell, stepped
from probes.statistics.partition import Partition, partition

if TYPE_CHECKING:
    from probes.common.arrays import Floats, Ints
    from probes.measurements.context import ModelContext
    from probes.records.row import AxisValue, Row

_N_WORDS = 5
"""Words of each sentence that are scored; the head costs more than blocks."""


class Damage(NamedTuple):
    """Scores of neutral text, untouched and after steps.

    Attributes:
        cells: of the steps.
        log_p: log-probability of each sentence's words, untouched first. Shape (1 + cells, n).
        pieces: number of pieces that are scored. Shape (n,).
        partition: documents of the sentences, which are resampled.
    """

    cells: Sequence[Cell]
    log_p: Floats
    pieces: Ints
    partition: Partition
    split: str

    @classmethod
    def of(cls, context: ModelContext, steps: Mapping[Cell, Floats], split: str) -> Damage:
        """Read neutral text with a step of each cell added to all of its pieces."""
        from probes.families.interventions.readouts import log_p_of_words, loss_words

        sentences = context.options.neutral.splits[split]
        texts, words = loss_words(sentences, context.model.causal)
        rng = np.random.default_rng(0)
        words = {text: np.sort(rng.permutation(x)[:_N_WORDS]) for text, x in words.items()}
        some = [i for i, text in enumerate(texts) if len(words[text])]
        passes = [ChangedPass(), *(stepped(cell, draws[0]) for cell, draws in steps.items())]
        log_p, pieces = log_p_of_words(context, passes, [texts[i] for i in some], words)
        documents = partition([sentences[i].document for i in some], split)
        return cls([*steps], np.stack(log_p), pieces, documents, split)

    @classmethod
    def mean(cls, parts: Sequence[Damage]) -> Damage:
        """Mean damage by several steps of each cell to the same text."""
        return parts[0]._replace(log_p=np.mean([x.log_p for x in parts], axis=0))

    def increase(self, cell: Cell) -> float:
        """Increase of loss, in nats per piece."""
        fall = self.log_p[0] - self.log_p[1 + self.cells.index(cell)]
        return float(fall.sum() / self.pieces.sum())

    def rows(self, axes: Callable[[Cell], Mapping[str, AxisValue]]) -> Iterator[Row]:
        """Rows of all cells, with intervals over documents or sentences."""
        compared = [
            Comparison((i,), (0,), cell[1], axes(cell), 0.0) for i, cell in enumerate(self.cells, 1)
        ]
        everything, where = np.arange(len(self.pieces)), (self.partition, self.split)
        return mean_effect_rows(LOSS, compared, [*self.log_p], everything, self.pieces, *where)
