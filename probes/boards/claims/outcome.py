"""What the data say about a claim."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from probes.statistics.significance import ALPHA, borderline, holm

Verdict = Literal[
    "supported", "not specific to training", "contradicted", "undecided", "not tested"
]

Ends = tuple[float, float]
"""Of a 95 % interval."""


class Outcome(NamedTuple):
    """A verdict, a line of reasons, and the numbers behind them.

    A claim is *supported* only if the test data separate it from its contrary, *contradicted* only
    if they separate the contrary from it, and else *undecided* at this sample size. It is *not
    specific to training* if it is supported, and so it is of the model's random twin.

    Attributes:
        p: of the claim or of its contrary, whichever is less; None without a test.
    """

    verdict: Verdict
    why: str
    numbers: list[dict[str, Any]]
    p: float | None = None


class MissingError(Exception):
    """A claim needs something that is not in the results; the message says what."""


def verdict(*, for_it: bool, against: bool) -> Verdict:
    """The verdict of a test; both cannot be true."""
    return "supported" if for_it else "contradicted" if against else "undecided"


def decided(p_for: float, p_against: float, why: str, numbers: list[dict[str, Any]]) -> Outcome:
    """The outcome of a test of a claim and of its contrary."""
    found = verdict(for_it=p_for < ALPHA, against=p_against < ALPHA)
    return Outcome(found, why, numbers, min(p_for, p_against))


def p_above(low: Ends, high: Ends) -> float:
    """The p-value of one number above another, from their 95 % intervals; 1 if it lies below.

    As if intervals were normal. It is below .05 where they do not overlap, which errs towards
    undecided; a limit is an interval without width.
    """
    distance, width = sum(high) - sum(low), high[1] - high[0] + low[1] - low[0]
    if distance <= 0:
        return 1.0
    return math.erfc(_Z * distance / width / math.sqrt(2)) if width > 0 else 0.0


ZERO: Ends = (0.0, 0.0)
"""No difference, as an interval."""


def p_if(direction: bool, p: float) -> float:
    """The p-value of a difference in a direction, from its two-sided one; 1 in the other."""
    return p if direction else 1.0


_Z = 1.959964
"""Standard errors in half a 95 % interval."""


def any_of(p_values: Iterable[float]) -> float:
    """The p-value of at least one of several statements, by Bonferroni."""
    known = list(p_values)
    return min(1.0, len(known) * min(known, default=1.0))


def all_of(p_values: Iterable[float]) -> float:
    """The p-value of several statements together (an intersection–union test)."""
    return max(p_values, default=0.0)


def corrected(outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """The outcomes of several claims, undecided where p is too great for so many (Holm 1979)."""
    tested = [name for name, each in outcomes.items() if each.p is not None]
    adjusted = dict(zip(tested, holm([outcomes[name].p or 0.0 for name in tested]), strict=True))
    found = dict(outcomes)
    for name, p in adjusted.items():
        before = outcomes[name]
        if before.verdict != "undecided" and p >= ALPHA:
            why = f"{before.why}; p = {before.p:.2g}, of {len(tested)} claims {p:.2g}"
            found[name] = before._replace(verdict="undecided", why=why)
        if borderline(p):
            found[name] = found[name]._replace(why=f"{found[name].why}; p is borderline")
    return found


def beside_twin(outcome: Outcome, twin: Outcome) -> Outcome:
    """A model's outcome, given that of its random twin."""
    if "not tested" in (outcome.verdict, twin.verdict):
        return outcome
    both = outcome.verdict == twin.verdict == "supported"
    return outcome._replace(
        verdict="not specific to training" if both else outcome.verdict,
        why=f"{outcome.why}; random twin: {twin.verdict}",
    )


def listed(layers: Sequence[int] | set[int]) -> str:
    """Layers in ascending order, as text."""
    return ", ".join(map(str, sorted(layers)))


def split_by(p_best: Mapping[int, float | None], band: set[int]) -> tuple[float, float]:
    """The p-values of two hypotheses: that the best layer is in a band, and that it is not.

    Args:
        p_best: of each layer, of its not being the best; None for one without a score.
    """
    inside, outside = (
        all_of(p or 0.0 for layer, p in p_best.items() if (layer in band) == is_in)
        for is_in in (True, False)
    )
    return inside, outside
