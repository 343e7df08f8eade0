"""What the measurement of attention finds."""

from __future__ import annotations

from probes.measurements.attention.clusters import HeadClusters
from probes.records.base import Frozen
from probes.records.values import Estimate
from probes.statistics.partition import Cluster

Grid = tuple[tuple[float | None, ...], ...]
"""A number for each head; by layer, then by head."""


class HeadNumbers(Frozen):
    """One measure of one feature for every head."""

    measure: str
    """Of `MEASURES`."""
    feature: str
    """Such as a relation, a role or an offset; empty if the measure has none."""
    direction: str
    """One of `TREES`, of relations and trees; of `ROLE_DIRECTIONS`, of roles; else empty."""
    split: str
    n: int
    """Sentences, words or links that are averaged over."""
    values: Grid
    low: Grid
    high: Grid
    """Ends of 95 % intervals; empty on dev, and where there are too few clusters."""
    baseline: Grid
    """With one row for all layers, or one column for all heads, where these do not differ."""
    baseline_kind: str
    """What the baseline is: "uniform", "controls", "offset +1" and the like."""

    def baseline_of(self, layer: int, head: int) -> float | None:
        """The baseline of a head, by its places among layers and heads; None without one."""
        if not self.baseline:
            return None
        row = self.baseline[min(layer, len(self.baseline) - 1)]
        return row[min(head, len(row) - 1)]


class Choice(Frozen):
    """The head that is best on dev, scored on test."""

    measure: str
    feature: str
    direction: str
    layer: int
    head: int
    """Counted from 1, as layers are."""
    dev: float
    """What it was chosen by: its score on dev, of roles less that of controls."""
    test: Estimate
    baseline: Estimate
    baseline_kind: str
    chance: float
    """What is reached by picking another word at random, by a random tree, or, of roles, by uniform
    attention."""
    difference: Estimate
    """Of test and baseline, resampled together."""
    p: float | None
    """Of the difference, corrected for all choices of the measure that are tested; None where test
    and baseline differ in too few clusters."""
    n_dev: int
    n_test: int


class Mixes(Frozen):
    """UAS of the attention-only probe; see `probes.measurements.attention.mixing`."""

    sentences: int
    words: int
    """Of train, that it is fitted to."""
    left_out: int
    """Sentences of the sample that do not fit into the model's window."""
    layers: tuple[Estimate, ...]
    """Of a mix of the heads of each layer, on test."""
    every: Estimate
    """Of a mix of all heads of the model, on test."""
    dev_layers: tuple[float | None, ...]
    dev_every: float | None


class Clusters(Frozen):
    """Distances of the heads of all layers, on a sample of dev and test."""

    texts: int
    tokens: int
    left_out: int
    """Sentences of the sample that do not fit into the model's window."""
    found: HeadClusters


class MeanMaps(Frozen):
    """Maps averaged over all texts of one length."""

    tokens: int
    """The length, special tokens included."""
    texts: int
    """How many there are, in dev and test."""
    maps: tuple[tuple[tuple[tuple[float, ...], ...], ...], ...]
    """By layer and head; rows attend to columns. Empty without such texts."""


class Split(Frozen):
    """The texts of a split."""

    texts: int
    words: int
    too_long: int
    """Left out, since they do not fit into the model's window."""


class Findings(Frozen):
    """What `Attention` finds."""

    layers: tuple[int, ...]
    heads: int
    """Of each layer."""
    segments: str
    """Whether texts are sentences ("one") or pairs of neighbouring ones ("two")."""
    splits: dict[str, Split]
    resampled: Cluster
    """What intervals and tests resample."""
    numbers: tuple[HeadNumbers, ...]
    choices: tuple[Choice, ...]
    patterns: tuple[tuple[str, ...], ...]
    """The class of each head, by layer, then by head; see
    `probes.measurements.attention.patterns`."""
    mean_maps: MeanMaps
    mixes: Mixes | None
    """None without dependency trees, and for pairs of sentences."""
    clusters: Clusters | None
    """None for pairs of sentences."""
    rare: dict[str, int]
    """Relations that are not scored, with their words in test."""
    rare_roles: dict[str, int]
    """Roles that are not scored, with their links in test."""
    without_controls: int
    """Links of predicates and arguments, in dev and test, that have no control."""
    chains: dict[str, float]
    """Test scores of trees without any model, by name."""

    def of(
        self, measure: str, feature: str = "", direction: str = "", split: str = "test"
    ) -> HeadNumbers | None:
        """One measure of one feature; None if it was not measured."""
        wanted = (measure, feature, direction, split)
        for each in self.numbers:
            if (each.measure, each.feature, each.direction, each.split) == wanted:
                return each
        return None

    def choices_of(self, measure: str) -> list[Choice]:
        """The chosen heads of a measure."""
        return [choice for choice in self.choices if choice.measure == measure]
