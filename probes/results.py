"""The result of one fit unit: its schema, its file, and whether it is there already."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field, ValidationError

from common.errors import UserError
from common.files import published
from common.terminal import progress
from probes.config import Frozen, ProbeSpec
from probes.models import ModelRecord

SCHEMA_VERSION = 3
NUMERICS_VERSION = 4
"""Part of every key: raise it when the same inputs would give other scores."""

ALPHA = 0.05
"""Level of the tests behind a confidence set."""

Scores = dict[str, float | None]
"""Metric → value; accuracies and F1 from 0 to 1. None where a metric is undefined."""


class CorpusRecord(Frozen):
    """The text that it was probed on."""

    name: str
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


class TaskRecord(Frozen):
    """What was asked."""

    name: str
    version: int
    needs: tuple[str, ...]
    """Annotation layers that it reads; stand-ins in the place of those that the corpus lacks."""
    kind: str
    shape: str
    metric: str


class ExampleCounts(Frozen):
    """What the task made of the corpus."""

    n: dict[str, int]
    """Examples by split."""
    labels: dict[str, tuple[int, ...]]
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


class Cell(Frozen):
    """One probe: a layer, a seed."""

    seed: int
    strength: float
    """L2 strength, chosen on dev."""
    stopped: float
    """Share of the schedule at which dev loss was least."""
    dev_loss: float
    dev: Scores
    test: Scores
    groups: Scores
    """Test score within each breakdown, by `group_metric`."""


Interval = tuple[float, float] | None
"""Lower and upper bound; None where the metric is undefined."""


class LayerResult(Frozen):
    """All cells of one layer."""

    layer: int
    cells: tuple[Cell, ...]
    intervals: dict[str, Interval] = Field(default_factory=dict)
    """95 % intervals of seed 0's test scores, test sentences resampled."""
    p_best: float | None = None
    """Corrected p-value of its difference from the best layer on dev; None for that layer, and
    where nothing could be tested."""
    codelength: float | None = None
    """Bits of the training labels' online code; None for regression and in a quick run."""
    codelength_interval: Interval = None
    """95 % interval over sentences."""
    block_bits: tuple[float, ...] = ()
    """The part of each block in the codelength."""


class CodeRecord(Frozen):
    """What codelengths are measured against."""

    ends: tuple[int, ...]
    """Training examples that are sent after each block."""
    n_classes: int
    uniform_bits: float
    """Length of the code in which all labels are equally likely."""
    prior_bits: float
    """Length of the same online code without vectors."""


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
    probe_parameters: int
    """Parameters of one cell."""
    examples: ExampleCounts
    group_metric: str
    layers: tuple[LayerResult, ...]
    baselines: dict[str, Scores]
    """Test scores of rules that see no vector."""
    references: dict[str, Scores]
    """Test scores of rules that see the annotation."""
    code: CodeRecord | None = None
    """None for regression and in a quick run."""
    encoding: EncodingRecord
    seconds: dict[str, float]
    """Wall time of the stages of this unit."""
    provenance: dict[str, str]

    def score(self, layer: LayerResult, split: str = "test") -> float | None:
        """Headline score of a layer: seed 0's, which trained on the whole training set."""
        cell = layer.cells[0]
        return (cell.test if split == "test" else cell.dev)[self.task.metric]

    def compression(self, layer: LayerResult) -> float | None:
        """Length of the uniform code over that of a layer's online code."""
        if self.code is None or layer.codelength is None:
            return None
        return self.code.uniform_bits / layer.codelength

    def compression_interval(self, layer: LayerResult) -> Interval:
        """95 % interval of the compression."""
        if self.code is None or layer.codelength_interval is None:
            return None
        low, high = layer.codelength_interval
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
    def confidence_set(self) -> tuple[int, ...]:
        """Layers that were tested and not separated from the best one at .05, it included."""
        best = self.best_layer.layer
        return tuple(
            layer.layer
            for layer in self.layers
            if layer.layer == best or (layer.p_best is not None and layer.p_best >= ALPHA)
        )

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


class FitKey(Frozen):
    """Everything that decides the scores of a fit unit, besides which layers and seeds."""

    model: str
    corpus: str
    task: str
    task_version: int
    probe: ProbeSpec
    pooling: str
    dtype: str
    windows: str

    @property
    def digest(self) -> str:
        """SHA-256 of the key and the version of the numerics."""
        content = {**self.model_dump(mode="json"), "numerics": NUMERICS_VERSION}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_result(path: Path, result: Result, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write a result, and beside it its per-example arrays, each whole or not at all.

    The arrays go first: where the JSON is, they are.
    """
    with published(path.with_suffix(".npz")) as temporary:
        np.savez_compressed(temporary, allow_pickle=False, **arrays)
    with published(path) as temporary:
        temporary.write_text(result.model_dump_json(indent=1), encoding="utf-8")


def read_result(path: Path) -> Result:
    """Read a result.

    Raises:
        UserError: it cannot be read, or is of another schema.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        version = content["schema_version"]
        if version != SCHEMA_VERSION:
            raise UserError(
                f"{path}: result schema {version}, this version reads {SCHEMA_VERSION}; "
                "use the suite's version that wrote it, or another --output."
            )
        return Result.model_validate(content)
    except (OSError, ValueError, KeyError, TypeError, RecursionError, ValidationError) as error:
        first = str(error).split("\n")[0]
        raise UserError(f"{path}: not a readable result ({first}); delete it and run again.") from (
            error
        )


def read_results(folder: Path) -> list[Result]:
    """All results below `folder`, in the order of their paths.

    One that cannot be read is named and left out: it must not take others with it.
    """
    results = []
    for path in sorted(folder.rglob("*-*-????????.json")):
        try:
            results.append(read_result(path))
        except UserError as error:
            progress.say(f"left out {error}")
    return results


def covers(result: Result, layers: Iterable[int], n_seeds: int) -> bool:
    """Whether `result` holds all of `layers` (all of the model's if none) and seeds."""
    present = {layer.layer for layer in result.layers}
    wanted = set(layers) or set(range(result.model.n_layers + 1))
    return wanted <= present and all(len(layer.cells) >= n_seeds for layer in result.layers)
