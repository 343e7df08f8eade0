"""The statements of the literature about layers that are tested.

Each is one that "A Primer in BERTology" (Rogers et al. 2020, arXiv 2002.12327v1) makes or
reports in section 5.2, with the study behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from probes.boards.claims import predicates
from probes.boards.claims.model_scores import MissingError, ModelScores, late_middle, lower, middle
from probes.boards.claims.predicates import Outcome

CAVEAT = "What can be decoded is not thereby used by the model."


@dataclass(frozen=True)
class Claim:
    """A statement about layers.

    Attributes:
        source: section of the Primer, and the studies it goes back to.
        predicate: tests it; raises `MissingError` if results are missing.
    """

    name: str
    statement: str
    source: str
    predicate: Callable[[ModelScores], Outcome] = field(repr=False)

    def on(self, model: ModelScores) -> Outcome:
        """The outcome on one model's scores."""
        try:
            return self.predicate(model)
        except MissingError as missing:
            return Outcome("not tested", f"{missing}", [])


CLAIMS = (
    Claim(
        "syntax-middle",
        "Syntactic information is most prominent in the middle layers (depth)",
        "Primer 5.2; Hewitt & Manning 2019, Jawahar et al. 2019",
        predicates.peaks_in("depth", middle),
    ),
    Claim(
        "agreement-late-middle",
        "Agreement is best around layers 8–9 of 12",
        "Primer 5.2; Goldberg 2019",
        predicates.peaks_in("agreement", late_middle),
    ),
    Claim(
        "pipeline-order",
        "POS comes before parsing, parsing before semantic roles",
        "Primer 5.2; Tenney et al. 2019a",
        predicates.pipeline,
    ),
    Claim(
        "middle-transfers-best",
        "The middle layers are the most transferable across tasks",
        "Primer 5.2; Liu et al. 2019a",
        predicates.middle_transfers,
    ),
    Claim(
        "last-layers-drop",
        "The last layer scores below the best one, in every task",
        "Primer 5.2; Liu et al. 2019a",
        predicates.last_layer_drops,
    ),
    Claim(
        "semantics-spread",
        "Semantics is spread over more layers than syntax",
        "Primer 5.2; Tenney et al. 2019a",
        predicates.semantics_spread,
    ),
    Claim(
        "chunks-low",
        "Chunks are best in the lower layers",
        "Primer 5.2; Jawahar et al. 2019",
        predicates.peaks_in("chunking", lower),
    ),
    Claim(
        "chunks-middle",
        "Chunks are best in the middle layers",
        "Primer 5.2; Liu et al. 2019a",
        predicates.peaks_in("chunking", middle),
    ),
    Claim(
        "pos-middle",
        "POS tags are best in the middle layers",
        "Primer 5.2; Liu et al. 2019a",
        predicates.peaks_in("pos", middle),
    ),
)

NOTE = (
    f"{CAVEAT} Undecided: the test sentences cannot tell. Each verdict is tested at .05 by itself, "
    "without correction for many claims and models."
)
