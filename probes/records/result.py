"""The result of probing: one model, corpus, task and probe family."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from pydantic import Field, model_validator

from probes.records.base import Frozen
from probes.records.header import (
    CorpusRecord,
    EncodingRecord,
    ExampleCounts,
    ModelRecord,
    PlugIn,
    TaskRecord,
)
from probes.records.payload import (
    CodeRecord,
    ControlRecord,
    Interval,
    LayerResult,
    Localisation,
    Scores,
)
from probes.records.probe_spec import ProbeSpec

SCHEMA_VERSION = 5

ALPHA = 0.05
"""Level of the tests behind a confidence set."""


class Result(Frozen):
    """One model, corpus, task and probe family: every layer and seed."""

    schema_version: int
    suite_version: str
    key: str
    model: ModelRecord
    corpus: CorpusRecord
    task: TaskRecord
    view: str
    pooling: str
    dtype: str
    """Of the forward pass."""
    fit_dtype: str
    """Of the products in training."""
    probe: ProbeSpec
    plug_ins: tuple[PlugIn, ...] = ()
    """The task, metrics or probe family that are plug-ins."""
    project: int | None
    """Dimensions of the random projection of the span vectors; None for no projection."""
    probe_parameters: int
    """Parameters of one probe."""
    quick: bool
    """Whether controls, description length and localisation were left out."""
    control: ControlRecord | None
    examples: ExampleCounts
    group_metric: str
    layers: tuple[LayerResult, ...] = Field(min_length=1)
    baselines: dict[str, Scores]
    """Test scores of rules that use no vectors."""
    references: dict[str, Scores]
    """Test scores of rules that use the annotation."""
    localisation: Localisation | None = None
    """None if not all layers were fitted, or if it was not asked for."""
    code: CodeRecord | None = None
    """None for regression and in a quick run."""
    encoding: EncodingRecord
    seconds: dict[str, float]
    """Wall time by stage."""
    provenance: dict[str, str]

    @model_validator(mode="after")
    def _sound(self) -> Result:
        numbers = [layer.layer for layer in self.layers]
        if numbers != sorted(set(numbers)) or not 0 <= numbers[0] <= numbers[-1] <= (
            self.model.n_layers
        ):
            raise ValueError(f"layers {numbers} of a model of {self.model.n_layers}")
        for layer in self.layers:
            for cell in layer.cells:
                if not {self.task.metric} <= cell.dev.keys() & cell.test.keys():
                    raise ValueError(f"layer {layer.layer} has no {self.task.metric}")
        return self

    def score(self, layer: LayerResult, split: str = "test") -> float | None:
        """Headline score of a layer: that of seed 0, which is trained on the whole training set."""
        cell = layer.cells[0]
        return (cell.test if split == "test" else cell.dev)[self.task.metric]

    def compression(self, layer: LayerResult) -> float | None:
        """Length of the uniform code divided by that of a layer's online code."""
        if self.code is None or not layer.codelength:
            return None
        return self.code.uniform_bits / layer.codelength

    def compression_interval(self, layer: LayerResult) -> Interval:
        """95 % interval of the compression."""
        if self.code is None or layer.codelength_interval is None:
            return None
        low, high = layer.codelength_interval
        if low <= 0:
            return None
        return self.code.uniform_bits / high, self.code.uniform_bits / low

    @property
    def silver(self) -> bool:
        """Whether the labels were made by a machine."""
        return bool(set(self.task.needs) & set(self.corpus.silver))

    @property
    def best_layer(self) -> LayerResult:
        """The layer with the best headline score on dev; of equal ones the lowest."""
        return best_of(self.layers, self.task.metric)

    @property
    def best_number(self) -> int | None:
        """Number of the best layer; None if no score on dev is defined."""
        best = self.best_layer
        return None if self.score(best, "dev") is None else best.layer

    @property
    def confidence_set(self) -> tuple[int, ...]:
        """The best layer, and those that a test at .05 did not separate from it."""
        best = self.best_layer.layer
        return tuple(
            layer.layer
            for layer in self.layers
            if layer.layer == best or (layer.p_best is not None and layer.p_best >= ALPHA)
        )

    @property
    def gain_over_embeddings(self) -> float | None:
        """Test score of the best layer minus that of layer 0: what context adds."""
        scores = {layer.layer: self.score(layer) for layer in self.layers}
        best, first = scores[self.best_layer.layer], scores.get(0)
        return None if best is None or first is None else best - first

    def seed_spread(self, layer: LayerResult) -> float | None:
        """Standard deviation of a layer's headline score over seeds; None for one seed."""
        scores = [cell.test[self.task.metric] for cell in layer.cells]
        known = [score for score in scores if score is not None]
        return float(np.std(known, ddof=1)) if len(known) > 1 else None


def best_of(layers: Sequence[LayerResult], metric: str) -> LayerResult:
    """The layer whose seed 0 has the best `metric` on dev; of equal ones the lowest."""
    return max(layers, key=lambda x: (_or_worst(x.cells[0].dev[metric]), -x.layer))


def _or_worst(value: float | None) -> float:
    return float("-inf") if value is None else value


def covers(result: Result, layers: Iterable[int], n_seeds: int, quick: bool) -> bool:
    """Whether `result` has all of `layers` (if empty, all layers of the model) and `n_seeds` seeds.

    A quick result is enough only if `quick`.
    """
    present = {layer.layer for layer in result.layers}
    wanted = set(layers) or set(range(result.model.n_layers + 1))
    return (
        wanted <= present
        and all(len(layer.cells) >= n_seeds for layer in result.layers)
        and (quick or not result.quick)
    )
