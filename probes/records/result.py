"""The result of one fit unit: its schema."""

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

SCHEMA_VERSION = 4

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
    probe: ProbeSpec
    plug_ins: tuple[PlugIn, ...] = ()
    """What of task, metrics and probe family does not ship."""
    project: int | None
    """Dimensions of the random projection of each span's vector; None for none."""
    probe_parameters: int
    """Parameters of one cell."""
    quick: bool
    """Whether controls, description length and localisation were left out."""
    control: ControlRecord | None
    examples: ExampleCounts
    group_metric: str
    layers: tuple[LayerResult, ...] = Field(min_length=1)
    baselines: dict[str, Scores]
    """Test scores of rules that see no vector."""
    references: dict[str, Scores]
    """Test scores of rules that see the annotation."""
    localisation: Localisation | None = None
    """None where not all layers were fitted, or it was not asked for."""
    code: CodeRecord | None = None
    """None for regression and in a quick run."""
    encoding: EncodingRecord
    seconds: dict[str, float]
    """Wall time of the stages of this unit."""
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
        """Headline score of a layer: seed 0's, which trained on the whole training set."""
        cell = layer.cells[0]
        return (cell.test if split == "test" else cell.dev)[self.task.metric]

    def compression(self, layer: LayerResult) -> float | None:
        """Length of the uniform code over that of a layer's online code."""
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
        """Whether its labels were made by a machine."""
        return bool(set(self.task.needs) & set(self.corpus.silver))

    @property
    def best_layer(self) -> LayerResult:
        """The layer with the best headline score on dev; the lower one if two are equal."""
        return best_of(self.layers, self.task.metric)

    @property
    def best_number(self) -> int | None:
        """Of the best layer; None where no score on dev is defined, so that none is better."""
        best = self.best_layer
        return None if self.score(best, "dev") is None else best.layer

    @property
    def confidence_set(self) -> tuple[int, ...]:
        """Layers that were tested and not separated from the best one at .05, it included."""
        best = self.best_layer.layer
        return tuple(
            layer.layer
            for layer in self.layers
            if layer.layer == best or (layer.p_best is not None and layer.p_best >= ALPHA)
        )

    @property
    def gain_over_embeddings(self) -> float | None:
        """Test score of the best layer less that of layer 0: what context adds."""
        scores = {layer.layer: self.score(layer) for layer in self.layers}
        best, first = scores[self.best_layer.layer], scores.get(0)
        return None if best is None or first is None else best - first

    def seed_spread(self, layer: LayerResult) -> float | None:
        """Standard deviation of a layer's headline score over seeds; None for a single one."""
        scores = [cell.test[self.task.metric] for cell in layer.cells]
        known = [score for score in scores if score is not None]
        return float(np.std(known, ddof=1)) if len(known) > 1 else None


def best_of(layers: Sequence[LayerResult], metric: str) -> LayerResult:
    """The layer whose seed 0 is best by `metric` on dev; the lower one if two are equal."""
    return max(layers, key=lambda x: (_or_worst(x.cells[0].dev[metric]), -x.layer))


def _or_worst(value: float | None) -> float:
    return float("-inf") if value is None else value


def covers(result: Result, layers: Iterable[int], n_seeds: int, quick: bool) -> bool:
    """Whether `result` holds all of `layers` (all of the model's if none) and seeds.

    A quick result does not do where more is asked for.
    """
    present = {layer.layer for layer in result.layers}
    wanted = set(layers) or set(range(result.model.n_layers + 1))
    return (
        wanted <= present
        and all(len(layer.cells) >= n_seeds for layer in result.layers)
        and (quick or not result.quick)
    )
