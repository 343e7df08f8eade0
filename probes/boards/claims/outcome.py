"""What the data say about a claim."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

Verdict = Literal["supported", "contradicted", "undecided", "not tested"]


class Outcome(NamedTuple):
    """A verdict, a line of reasons, and the numbers behind them.

    A claim is *supported* only if the test data separate it from its contrary, *contradicted* only
    if they separate the contrary from it, and else *undecided* at this sample size.
    """

    verdict: Verdict
    why: str
    numbers: list[dict[str, Any]]


class MissingError(Exception):
    """A claim needs something that is not in the results; the message says what."""


def verdict(*, for_it: bool, against: bool) -> Verdict:
    """The verdict of a test; both cannot be true."""
    return "supported" if for_it else "contradicted" if against else "undecided"
