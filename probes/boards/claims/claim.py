"""What a claim of the literature is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from probes.boards.claims.model_scores import ModelScores
from probes.boards.claims.outcome import MissingError, Outcome

Predicate = Callable[[ModelScores], Outcome]

CAVEAT = "What can be decoded is not thereby used by the model."


@dataclass(frozen=True)
class Claim:
    """A statement about layers, vectors or attention heads.

    Attributes:
        statement: the sentence of the Primer, or else of the study, paraphrased.
        section: where in the Primer it stands; empty if it does not.
        study: what it goes back to.
        differs: how the test differs from the study; empty if there is no test.
        predicate: tests it; raises `MissingError` if results are missing.
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
        return self.source + (f". Differences: {self.differs}" if self.differs else "")

    def on(self, model: ModelScores) -> Outcome:
        """The outcome on one model's scores."""
        try:
            return self.predicate(model)
        except MissingError as missing:
            return Outcome("not tested", f"{missing}", [])


def needs(what: str) -> Predicate:
    """The predicate of a claim that what is measured of one model cannot test."""

    def predicate(model: ModelScores) -> Outcome:
        raise MissingError(f"it needs {what}")

    return predicate


NOTE = (
    f"{CAVEAT} Undecided: the data cannot tell. Verdicts are tested at .05, with p corrected for "
    "all claims on a model (Holm), not for many models. Not specific to training: the random twin, "
    "which was never trained, passes too."
)
