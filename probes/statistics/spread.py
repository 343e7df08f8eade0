"""Standard deviations within groups of scores, such as those of a layer over trainings."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import variance
from typing import NamedTuple


class Spread(NamedTuple):
    """A standard deviation, with its degrees of freedom."""

    sd: float
    df: int


def pooled(groups: Sequence[Sequence[float | None]]) -> Spread | None:
    """The standard deviation within groups: √(Σ squared deviations / Σ degrees of freedom)."""
    squares, df = 0.0, 0
    for group in groups:
        known = [value for value in group if value is not None]
        if len(known) > 1:
            # Exact: equal scores have no variance, which would break ties between layers.
            squares += variance(known) * (len(known) - 1)
            df += len(known) - 1
    return Spread((squares / df) ** 0.5, df) if df else None
