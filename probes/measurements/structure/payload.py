"""What the measurement of structure finds."""

from __future__ import annotations

from pydantic import FiniteFloat

from probes.measurements.training_variance import Spread
from probes.records.base import Frozen
from probes.records.values import Estimate
from probes.statistics.partition import Cluster
from probes.statistics.significance import ALPHA

METRICS = {"uuas": "UUAS", "dspr": "DSpr", "root_accuracy": "root acc.", "nspr": "NSpr"}
"""The scores of structural probes, and what they are called."""

LIKE = {"uuas": "accuracy", "dspr": "nspr", "root_accuracy": "root_accuracy", "nspr": "nspr"}
"""The metric of tasks that is the same function of sums, and is printed in the same way."""

BINS = {"1": (1, 1), "2": (2, 2), "3–5": (3, 5), "6+": (6, 10**6)}
"""Words from one end of an edge to the other, first and last, by name."""


class Counts(Frozen):
    """The sentences of a split."""

    sentences: int
    """Those that are measured."""
    words: int
    edges: int
    """Between two words that are not punctuation."""
    left_out: dict[str, int]
    """Sentences by the reason for which they are left out."""
    without_edges: int
    """Sentences with fewer than two words that are not punctuation, which UUAS does not see."""
    punctuation_roots: int
    """Sentences whose root is punctuation, which counts as an error of the root."""


class Cell(Frozen):
    """One layer's probes of one rank."""

    layer: int
    rank: int | None
    """None for the vectors themselves: the identity matrix."""
    scores: dict[str, dict[str, Estimate]]
    """By split (dev, test) and metric."""
    dev_losses: dict[str, FiniteFloat]
    """Of the distance and the depth probe: least mean over sentences; empty for the identity."""
    stopped: dict[str, float]
    """The share of the steps after which it was reached."""


class Control(Frozen):
    """One layer's probes of the reported rank that were fitted to draws of control trees; by split.

    Intervals cover other draws, too.
    """

    layer: int
    draws: dict[str, tuple[FiniteFloat | None, ...]]
    """UUAS on the control trees of each draw."""
    spread: dict[str, Spread | None]
    """Their standard deviation. Layers have their own: they differ in it several times over."""
    uuas: dict[str, Estimate]
    """Its mean."""
    selectivity: dict[str, Estimate]
    """UUAS less that mean."""


class Refits(Frozen):
    """One layer's probes of the reported rank that were fitted to bootstrap samples."""

    layer: int
    scores: tuple[dict[str, FiniteFloat | None], ...]
    """On test, by metric; of samples 1, 2, …"""


class Recall(Frozen):
    """The share of gold edges that is found, by the distance of both words in the sentence."""

    layer: int | None
    """None for the chain of neighbours."""
    edges: dict[str, Estimate]
    """On test, by name of the bin."""


class Findings(Frozen):
    """What `Structure` finds."""

    ranks: tuple[int, ...]
    reported: int
    """The rank of controls, bootstrap samples, tests and predicted trees."""
    counts: dict[str, Counts]
    """By split."""
    resampled: Cluster
    """What intervals resample on test."""
    clusters: int
    """How many of them there are with sentences that are measured."""
    cells: tuple[Cell, ...]
    controls: tuple[Control, ...]
    refits: tuple[Refits, ...]
    chain: dict[str, Estimate]
    """UUAS of the chain of neighbouring words that are not punctuation, by split."""
    control_chain: dict[str, Estimate]
    """The same against control trees, the mean over draws."""
    best: dict[str, int]
    """The layer that is best on dev at the reported rank, by metric."""
    spread: dict[str, Spread | None]
    """Standard deviation of test scores over bootstrap samples, pooled over layers, by metric."""
    p_best: dict[str, dict[int, float | None]]
    """By metric and layer, the least corrected p-value of a difference from a layer that scores
    higher on test, 1 without any; None where nothing could be tested."""
    recall: tuple[Recall, ...]
    gold_edges: dict[str, int]
    """Gold edges on test, by name of the bin."""

    def cell(self, layer: int, rank: int | None) -> Cell:
        """The probes of a layer and rank, or the layer's vectors themselves."""
        return next(x for x in self.cells if (x.layer, x.rank) == (layer, rank))

    @property
    def layers(self) -> tuple[int, ...]:
        """The layers that were measured."""
        return tuple(control.layer for control in self.controls)

    def may_be_best(self, metric: str) -> set[int]:
        """The layers that no other is separated above; empty where nothing could be tested."""
        return {x for x, p in self.p_best[metric].items() if p is not None and p >= ALPHA}
