"""The base class of records, and scores, intervals and estimates."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, FiniteFloat

from probes.common.errors import printable


class Frozen(BaseModel):
    """A record: its fields cannot be changed, and unknown ones are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Name = Annotated[str, AfterValidator(printable)]
"""A name in a record; characters that cannot be printed are escaped."""


Scores = dict[str, FiniteFloat | None]
"""Values by metric; accuracies and F1 range from 0 to 1. None if a metric is undefined."""

Interval = tuple[float, float] | None
"""Lower and upper bound; None where the number is undefined."""


def ends(interval: Interval) -> tuple[float | None, float | None]:
    """Both ends of an interval, as fields of a row."""
    return interval or (None, None)


class LabelScore(Frozen):
    """Test scores of one label, or one type of chunk."""

    n: int
    """Number of occurrences."""
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
    """Reason for a missing value or interval; None if there are both."""


def span_of(
    values: Iterable[float | None], low: float | None, high: float | None
) -> tuple[float, float]:
    """The given ends of a colour scale, or those of the values; without any, 0 and 1."""
    numbers = [x for x in values if x is not None and math.isfinite(x)]
    return (
        min(numbers, default=0.0) if low is None else low,
        max(numbers, default=1.0) if high is None else high,
    )
