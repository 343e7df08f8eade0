"""The records that a result is made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, FiniteFloat, NonNegativeFloat

from probes.config import Frozen, Name
from tasks.task import Kind

Scores = dict[str, FiniteFloat | None]
"""Metric → value; accuracies and F1 from 0 to 1. None where a metric is undefined."""


class CorpusRecord(Frozen):
    """The text that it was probed on."""

    name: Name
    version: str
    licence: str
    citation: str
    """BibTeX; empty for the user's own text."""
    silver: tuple[str, ...]
    """Annotation layers that a machine made."""
    digest: str
    """SHA-256 over the source files, the reader's version and the limit."""
    fingerprint: str
    """SHA-256 over every word and annotation."""
    sentences: dict[str, int]
    words: dict[str, int]
    notes: dict[str, int]
    limit: int | None
    limited: bool
    """Whether the limit left sentences out."""


class PlugIn(Frozen):
    """Something that decided the scores and does not ship: known by its source code."""

    kind: str
    """"task", "metric" or "probe family"."""
    name: str
    source: str
    """The file as the user named it, or the module."""
    distribution: str
    """Name and version of the package; empty for a file."""
    sha256: str
    """Of the file, or of the package's Python files."""


class TaskRecord(Frozen):
    """What was asked."""

    name: Name
    version: int
    needs: tuple[str, ...]
    """Annotation layers that it reads; stand-ins in the place of those that the corpus lacks."""
    kind: Kind
    shape: str
    metric: str


class ExampleCounts(Frozen):
    """What the task made of the corpus."""

    n: dict[str, int]
    """Examples by split."""
    labels: dict[str, Annotated[tuple[int, ...], Field(min_length=3, max_length=3)]]
    """Examples of each label in train, dev and test; empty for regression."""
    excluded: dict[str, dict[str, int]]
    """Candidates left out, by split and reason."""
    unseen_test_labels: dict[str, int]
    """Test examples whose label train lacks; each counts as an error."""
    groups: dict[str, int]
    """Test examples in each breakdown."""
    covered_sentences: int | None
    """Test sentences that the headline metric covers, where it does not cover all."""


class EncodingRecord(Frozen):
    """How the vectors came about."""

    storage: str
    unknown_words: int
    """Words that yielded no subword and stand as the unknown token."""
    texts_in_several_windows: int
    batch_tokens: int


class Selectivity(Frozen):
    """Test scores of one probe by `ControlRecord.metric`."""

    task: float | None
    control: float | None
    """Of the same probe, fitted to the control task."""

    @property
    def value(self) -> float | None:
        """Task less control (Hewitt & Liang 2019); None where either is undefined."""
        return None if self.task is None or self.control is None else self.task - self.control


class ControlRecord(Frozen):
    """The control task."""

    metric: str
    types: int
    """Types of the training examples; each has one random label."""
    seen: float
    """Share of test examples whose type train has: no other control label can be known."""


class Cell(Frozen):
    """One probe: a layer, a seed."""

    seed: int
    strength: float
    """L2 strength, chosen on dev."""
    step: float | None = None
    """Adam's at the start, chosen on dev; None for linear regression, which takes no steps."""
    stopped: float
    """Share of the schedule at which dev loss was least."""
    dev_loss: float
    dev: Scores
    test: Scores
    groups: Scores
    """Test score within each breakdown, by `group_metric`."""
    selectivity: Selectivity | None = None
    """None in quick runs, and for a task that gives its examples no types."""


class LabelScore(Frozen):
    """How well one label, or one type of chunk, is told from the others on test."""

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
    """Corrected p-value of its difference from the best layer on dev; None for that layer, and
    where nothing could be tested."""
    codelength: NonNegativeFloat | None = None
    """Bits of the training labels' online code; None for regression and in a quick run."""
    codelength_interval: Interval = None
    """95 % interval over sentences."""
    block_bits: tuple[float, ...] = ()
    """The part of each block in the codelength."""
    labels: dict[str, LabelScore] = Field(default_factory=dict)
    """Seed 0's test scores by label, or by type of chunk; empty for regression."""


class CodeRecord(Frozen):
    """What codelengths are measured against."""

    ends: tuple[int, ...]
    """Training examples that are sent after each block."""
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
    """Why there is no value, or for lack of what there is no interval; None if there are both."""


class MixResult(Frozen):
    """The probe on the mix of layers 0 to k."""

    k: int
    weights: tuple[float, ...]
    """Of layers 0 to k; they sum to 1."""
    strength: float
    dev: Scores
    test: Scores
    intervals: dict[str, Interval]
    """95 % intervals of the test scores, test sentences resampled."""


class Localisation(Frozen):
    """Where in the model a task's labels come to be decodable, by Tenney et al. 2019a."""

    mixes: tuple[MixResult, ...] = Field(min_length=1)
    """One for every layer k."""
    total_gain: Estimate
    """Headline test score of the mix of all layers less that of layer 0; sentences resampled."""
    expected_layer: Estimate
    """Mean layer of the gains; without a value unless the total gain's interval is above 0."""
    centre_of_gravity: Estimate
    """Mean layer of the weights of the mix of all layers; training sentences resampled."""
    kl: Estimate
    """Divergence of these weights from uniform ones, in bits; training sentences resampled."""
    seed_weights: tuple[tuple[float, ...], ...]
    """The weights of the mix of all layers under every seed, seed 0 first."""
