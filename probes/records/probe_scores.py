"""The payload of scores: what probes of one task and family score at every layer."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field, model_validator

from probes.records.base import Frozen
from probes.records.header import ExampleCounts
from probes.records.values import Interval, LabelScore, Scores


class FitScores(Frozen):
    """One probe, fitted on the whole training split from one seed."""

    seed: int
    l2: float
    """L2 strength."""
    stopped: float
    """Share of the steps after which the dev loss was lowest."""
    dev_loss: float
    dev: Scores
    test: Scores
    groups: Scores
    """Test score within each breakdown, by `group_metric`."""


class LayerScores(Frozen):
    """The probes of one layer."""

    layer: int
    fits: tuple[FitScores, ...] = Field(min_length=1)
    """One for each seed; the first one's scores are reported."""
    intervals: dict[str, Interval] = Field(default_factory=dict)
    """95 % intervals of the first fit's test scores over test documents or sentences."""
    group_intervals: dict[str, Interval] = Field(default_factory=dict)
    """95 % intervals of the first fit's scores within each breakdown, the sentences that have an
    example there resampled; None for very few of them."""
    labels: dict[str, LabelScore] = Field(default_factory=dict)
    """The first fit's test scores by label, or by type of chunk; empty for regression."""


class ProbeScores(Frozen):
    """Scores of all layers, with what they are to be compared with."""

    examples: ExampleCounts
    probe_parameters: int
    """Parameters of one probe."""
    group_metric: str
    layers: tuple[LayerScores, ...] = Field(min_length=1)
    baselines: dict[str, Scores]
    """Test scores of rules that use no vectors."""
    references: dict[str, Scores]
    """Test scores of rules that use the annotation."""

    @model_validator(mode="after")
    def _in_order(self) -> ProbeScores:
        numbers = [layer.layer for layer in self.layers]
        if numbers != sorted(set(numbers)):
            raise ValueError(f"layers {numbers}")
        return self


def best_of(layers: Sequence[LayerScores], metric: str) -> LayerScores:
    """The layer whose first fit has the best `metric` on dev; of equal ones the lowest."""
    return max(layers, key=lambda x: (_or_worst(x.fits[0].dev[metric]), -x.layer))


def _or_worst(value: float | None) -> float:
    return float("-inf") if value is None else value
