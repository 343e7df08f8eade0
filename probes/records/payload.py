"""The parts of a result: scores, description lengths, localisation."""

from __future__ import annotations

from pydantic import Field, FiniteFloat, NonNegativeFloat

from probes.records.base import Frozen

Scores = dict[str, FiniteFloat | None]
"""Values by metric; accuracies and F1 range from 0 to 1. None if a metric is undefined."""


class Selectivity(Frozen):
    """Test scores of one probe on the task and on its control task, by `ControlRecord.metric`."""

    task: float | None
    control: float | None
    """Score of the same probe, fitted to the control task."""

    @property
    def value(self) -> float | None:
        """Task minus control (Hewitt & Liang 2019); None if either is undefined."""
        return None if self.task is None or self.control is None else self.task - self.control


class ControlRecord(Frozen):
    """The control task."""

    metric: str
    types: int
    """Number of types of the training examples; each has one random label."""
    seen: float
    """Share of test examples with a type that is in train; only their labels can be memorised."""


class Cell(Frozen):
    """One probe: a layer, a seed."""

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
    selectivity: Selectivity | None = None
    """None in a quick run, and for a task whose examples have no types."""


class LabelScore(Frozen):
    """Test scores of one label, or one type of chunk."""

    n: int
    """How often it occurs."""
    precision: float | None
    """None if it is never predicted."""
    recall: float | None
    """None if it never occurs."""
    f1: float


Interval = tuple[float, float] | None
"""Lower and upper bound; None where the metric is undefined."""


class LayerResult(Frozen):
    """All cells of one layer."""

    layer: int
    cells: tuple[Cell, ...] = Field(min_length=1)
    intervals: dict[str, Interval] = Field(default_factory=dict)
    """95 % intervals of seed 0's test scores, test sentences resampled."""
    selectivity: Interval = None
    """95 % interval of seed 0's selectivity."""
    p_best: float | None = None
    """Corrected p-value of the difference from the best layer on dev; None for that layer, and if
    nothing could be tested."""
    codelength: NonNegativeFloat | None = None
    """Bits of the online code of the training labels; None for regression and in a quick run."""
    codelength_interval: Interval = None
    """95 % interval over sentences."""
    block_bits: tuple[float, ...] = ()
    """The part of each block in the codelength."""
    labels: dict[str, LabelScore] = Field(default_factory=dict)
    """Seed 0's test scores by label, or by type of chunk; empty for regression."""


class CodeRecord(Frozen):
    """What the code lengths of the layers are compared with."""

    ends: tuple[int, ...]
    """Number of training examples sent by the end of each block."""
    n_classes: int
    uniform_bits: float
    """Length of the code in which all labels are equally likely."""
    prior_bits: float
    """Length of the same online code without vectors."""


class Estimate(Frozen):
    """A number with its 95 % interval."""

    value: float | None
    interval: Interval
    missing: str | None = None
    """Why there is no value or no interval; None if there are both."""


class MixResult(Frozen):
    """The probe on the mix of layers 0 to k."""

    k: int
    weights: tuple[float, ...]
    """Weights of layers 0 to k; they sum to 1."""
    l2: float
    """L2 strength."""
    dev: Scores
    test: Scores
    intervals: dict[str, Interval]
    """95 % intervals of the test scores, test sentences resampled."""


class Localisation(Frozen):
    """Where in the model a task's labels become decodable, after Tenney et al. 2019a."""

    mixes: tuple[MixResult, ...] = Field(min_length=1)
    """One for every layer k."""
    total_gain: Estimate
    """Headline test score of the mix of all layers minus that of layer 0; sentences resampled."""
    expected_layer: Estimate
    """Mean layer of the gains; without a value unless the total gain's interval is above 0."""
    centre_of_gravity: Estimate
    """Mean layer of the weights of the mix of all layers; training sentences resampled."""
    kl: Estimate
    """Divergence of these weights from uniform ones, in bits; training sentences resampled."""
    seed_weights: tuple[tuple[float, ...], ...]
    """The weights of the mix of all layers under every seed, seed 0 first."""
