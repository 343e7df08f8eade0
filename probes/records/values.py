"""The numbers that payloads are made of."""

from __future__ import annotations

from pydantic import FiniteFloat

from probes.records.base import Frozen

Scores = dict[str, FiniteFloat | None]
"""Values by metric; accuracies and F1 range from 0 to 1. None if a metric is undefined."""

Interval = tuple[float, float] | None
"""Lower and upper bound; None where the number is undefined."""


class LabelScore(Frozen):
    """Test scores of one label, or one type of chunk."""

    n: int
    """How often it occurs."""
    precision: float | None
    """None if it is never predicted."""
    recall: float | None
    """None if it never occurs."""
    f1: float


class Estimate(Frozen):
    """A number with its 95 % interval."""

    value: float | None
    interval: Interval
    missing: str | None = None
    """Why there is no value or no interval; None if there are both."""
