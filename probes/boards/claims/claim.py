"""What a claim of the literature is, and what the data say about one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from probes.statistics.significance import ALPHA, borderline, holm

if TYPE_CHECKING:
    from probes.boards.claims.model_rows import ModelRows

Verdict = Literal[
    "supported", "not specific to training", "contradicted", "undecided", "not tested"
]

CAVEAT = "That something can be decoded does not mean that the model uses it."

FURTHER = 7
"""Claims that nothing here can test; docs/method.md lists them."""

NOTE = (
    f"{CAVEAT} Undecided: the data do not decide. Verdicts are tested at .05, with p corrected for "
    "all claims on a model (Holm), not for many models. Not specific to training: the random twin, "
    f"which was never trained, passes too. {FURTHER} further claims cannot be tested on what is "
    "measured of one model; docs/method.md lists them."
)


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


Predicate = Callable[["ModelRows"], Outcome]
"""A test on the rows of one model; it raises `MissingError` if some are missing."""


@dataclass(frozen=True)
class Claim:
    """A statement about layers, vectors or attention heads.

    Attributes:
        statement: the sentence of the Primer, or else of the study, paraphrased.
        section: where in the Primer it stands; empty if it does not.
        study: what it goes back to.
        differs: how the test differs from the study.
    """

    name: str
    statement: str
    section: str
    study: str
    differs: str
    predicate: Predicate = field(repr=False)

    @property
    def source(self) -> str:
        """Section and study."""
        return f"Primer {self.section}; {self.study}" if self.section else self.study

    @property
    def note(self) -> str:
        """What stands below the statement."""
        return f"{self.source}. Differences: {self.differs}"

    def on(self, model: ModelRows) -> Outcome:
        """The outcome on one model."""
        try:
            return self.predicate(model)
        except MissingError as missing:
            return Outcome("not tested", f"{missing}", [])


Ends = tuple[float, float]
"""Of a 95 % interval."""

ZERO: Ends = (0.0, 0.0)
"""No difference, as an interval."""

_Z = 1.959964
"""Standard errors in half a 95 % interval."""


def verdict(*, for_it: bool, against: bool) -> Verdict:
    """The verdict of a test; both cannot be true."""
    return "supported" if for_it else "contradicted" if against else "undecided"


def decided(p_for: float, p_against: float, why: str, numbers: list[dict[str, Any]]) -> Outcome:
    """The outcome of a test of a claim and of its contrary."""
    found = verdict(for_it=p_for < ALPHA, against=p_against < ALPHA)
    return Outcome(found, why, numbers, min(p_for, p_against))


def ordered(pairs: Iterable[tuple[Ends, Ends]], why: str, numbers: list[dict[str, Any]]) -> Outcome:
    """The outcome of a claim that in every pair of intervals the second lies above the first.

    Supported if it does in all, contradicted if in one it lies below.
    """
    every = list(pairs)
    return decided(
        all_of(p_above(low, high) for low, high in every),
        any_of(p_above(high, low) for low, high in every),
        why,
        numbers,
    )


def p_above(low: Ends, high: Ends) -> float:
    """The p-value of one number above another, from their 95 % intervals; 1 if it lies below.

    As if intervals were normal. It is below .05 where they do not overlap, which errs towards
    undecided; a limit is an interval without width.
    """
    distance, width = sum(high) - sum(low), high[1] - high[0] + low[1] - low[0]
    if distance <= 0:
        return 1.0
    return math.erfc(_Z * distance / width / math.sqrt(2)) if width > 0 else 0.0


def p_if(direction: bool, p: float) -> float:
    """The p-value of a difference in a direction, from its two-sided one; 1 in the other."""
    return p if direction else 1.0


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
