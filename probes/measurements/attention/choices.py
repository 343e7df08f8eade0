"""The heads that are best on dev, scored on test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probes.measurements.attention.averages import Heads
from probes.measurements.attention.scored import ScoredHeads
from probes.measurements.head_rows import ABOVE, CHANCE
from probes.records.row import Place, Row
from probes.records.values import Estimate
from probes.statistics.partition import Partition
from probes.statistics.ratios import RatioParts, difference, estimate, p_values


@dataclass(frozen=True)
class Picked:
    """A head that is best on dev by some feature.

    Attributes:
        cell: layer, head and direction, as in `ScoredHeads`.
        test, baseline: what test sentences contribute to its score, and to its baseline's.
    """

    measure: str
    feature: str
    directions: tuple[str, ...]
    cell: int
    test: RatioParts
    baseline: RatioParts
    baseline_kind: str
    chance: float

    @classmethod
    def of(cls, scored: ScoredHeads) -> Picked:
        """The best head, without the others."""
        cell = scored.best
        return cls(
            scored.measure,
            scored.feature,
            scored.directions,
            cell,
            scored.test.of(cell),
            scored.baseline("test", cell),
            scored.baseline_kind,
            float(scored.chance[cell]),
        )


def choices_of(picked: Sequence[Picked], heads: Heads, partition: Partition) -> Iterator[Row]:
    """The scores of all heads that were picked for a measure, tested together.

    See `probes.measurements.head_rows`.
    """
    p_of = p_values([(each.test, each.baseline) for each in picked], partition)
    for each, p in zip(picked, p_of, strict=True):
        cell, direction = divmod(each.cell, len(each.directions))
        layer, head = heads.named(cell)
        axes: dict[str, Place] = {"head": head, "direction": each.directions[direction]}
        if each.feature:
            axes["feature"] = each.feature
        axes["chosen"] = "best on dev"
        name, n, own = each.measure, each.test.n, {"baseline": each.baseline_kind}
        test, baseline = (estimate(x, partition) for x in (each.test, each.baseline))
        above = difference(each.test, each.baseline, partition)
        yield Row(name, test.value, layer, *_ends(test), n=n, axes=axes)
        yield Row(name, baseline.value, layer, *_ends(baseline), n=n, axes={**axes, **own})
        yield Row(name, each.chance, layer, n=n, axes={**axes, "baseline": CHANCE})
        of = {**axes, "measure": name}
        yield Row(ABOVE, above.value, layer, *_ends(above), n=n, p=p, axes=of)


def _ends(found: Estimate) -> tuple[float | None, float | None]:
    return found.interval or (None, None)


def arrays_of(picked: Sequence[Picked]) -> dict[str, NDArray[np.generic]]:
    """What test sentences contribute, in the order of the choices; see `Attention`."""
    if not picked:
        return {}
    return {
        "test_sums": np.stack([x.test.sums[:, 0] for x in picked]).astype(np.float32),
        "test_counts": np.stack([x.test.counts for x in picked]).astype(np.float32),
        "test_baseline_sums": np.stack([x.baseline.sums[:, 0] for x in picked]).astype(np.float32),
    }
