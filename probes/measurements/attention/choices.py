"""The heads that are best on dev, scored on test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probes.measurements.attention.averages import Heads
from probes.measurements.attention.payload import Choice
from probes.measurements.attention.scored import Scored
from probes.measurements.attention.scoring import Contributions, difference, estimate, p_values
from probes.statistics.partition import Partition


@dataclass(frozen=True)
class Picked:
    """A head that is best on dev by some feature.

    Attributes:
        cell: layer, head and direction, as in `Scored`.
        dev: what it was picked by.
        test, baseline: what test sentences contribute to its score, and to its baseline's.
    """

    measure: str
    feature: str
    directions: tuple[str, ...]
    cell: int
    dev: float
    test: Contributions
    baseline: Contributions
    baseline_kind: str
    chance: float
    n_dev: int

    @classmethod
    def of(cls, scored: Scored) -> Picked:
        """The best head, without the others."""
        cell = scored.best
        return cls(
            scored.measure,
            scored.feature,
            scored.directions,
            cell,
            float(scored.on_dev[cell]),
            scored.test.of(cell),
            scored.baseline("test", cell),
            scored.baseline_kind,
            float(scored.chance[cell]),
            scored.dev.n,
        )


def choices_of(picked: Sequence[Picked], heads: Heads, partition: Partition) -> list[Choice]:
    """The scores of all heads that were picked for a measure, tested together."""
    p_of = p_values([(each.test, each.baseline) for each in picked], partition)
    choices = []
    for each, p in zip(picked, p_of, strict=True):
        head, direction = divmod(each.cell, len(each.directions))
        layer, number = heads.named(head)
        choices.append(
            Choice(
                measure=each.measure,
                feature=each.feature,
                direction=each.directions[direction],
                layer=layer,
                head=number,
                dev=each.dev,
                test=estimate(each.test, partition),
                baseline=estimate(each.baseline, partition),
                baseline_kind=each.baseline_kind,
                chance=each.chance,
                difference=difference(each.test, each.baseline, partition),
                p=p,
                n_dev=each.n_dev,
                n_test=each.test.n,
            )
        )
    return choices


def arrays_of(picked: Sequence[Picked]) -> dict[str, NDArray[np.generic]]:
    """What test sentences contribute, in the order of the choices; see `Attention`."""
    if not picked:
        return {}
    return {
        "test_sums": np.stack([x.test.sums[:, 0] for x in picked]).astype(np.float32),
        "test_counts": np.stack([x.test.counts for x in picked]).astype(np.float32),
        "test_baseline_sums": np.stack([x.baseline.sums[:, 0] for x in picked]).astype(np.float32),
    }
