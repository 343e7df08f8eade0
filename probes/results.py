"""The result of one fit unit: its schema, its file, and whether it is there already."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field, ValidationError, model_validator

from common.collection import seldom_collected
from common.errors import UserError
from common.files import folder_name, published
from common.terminal import progress
from probes.config import Frozen, ProbeSpec
from probes.models import ModelRecord
from probes.records import (
    CodeRecord,
    ControlRecord,
    CorpusRecord,
    EncodingRecord,
    ExampleCounts,
    Interval,
    LayerResult,
    Localisation,
    PlugIn,
    Scores,
    TaskRecord,
)

SCHEMA_VERSION = 4
ALPHA = 0.05
"""Level of the tests behind a confidence set."""
PUBLISHED = "published"
"""Folder of the results that ship with the suite, in the one that users write to."""


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


def numerics_version(kind: str, family: str) -> int:
    """Part of every key: to be raised where the same inputs would give other scores.

    Args:
        kind: of the task.
        family: of the probe.
    """
    if family == "linear":
        return 8
    return 10 if kind == "regression" else 9


class FitKey(Frozen):
    """Everything that decides the scores of a fit unit, besides which layers and seeds."""

    model: str
    corpus: str
    task: str
    task_version: int
    kind: str
    """Of the task; see `numerics_version`."""
    probe: ProbeSpec
    pooling: str
    dtype: str
    project: int | None
    windows: str
    plug_ins: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of the sources that do not ship; see `probes.identity.digests`."""

    @property
    def digest(self) -> str:
        """SHA-256 of the key and the version of the numerics."""
        content = self.model_dump(mode="json")
        content["numerics"] = numerics_version(content.pop("kind"), self.probe.family)
        if not self.plug_ins:
            # Keys are older than plug-ins.
            del content["plug_ins"]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def result_name(task: str, family: str, key: str) -> str:
    """Name of a result's file."""
    return f"{folder_name(task)}-{family}-{key[:8]}.json"


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
        # Straight from text to records: a third of the time of going through Python's objects.
        content = path.read_bytes()
        try:
            result = Result.model_validate_json(content)
            version = result.schema_version
        except ValidationError:
            version = json.loads(content)["schema_version"]
            if version == SCHEMA_VERSION:
                raise
        if version != SCHEMA_VERSION:
            raise UserError(
                f"{path}: result schema {version}, this version reads {SCHEMA_VERSION}; "
                "use the suite's version that wrote it, or another --output."
            )
        return result
    except FileNotFoundError as error:
        raise UserError(f"{path}: there is no such file.") from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError, ValidationError) as error:
        first = str(error).split("\n")[0]
        if isinstance(error, ValidationError):
            why = error.errors()[0]
            first = ": ".join((".".join(map(str, why["loc"])), why["msg"])).lstrip(": ")
        raise UserError(
            f"{path}: not a readable result ({first}); if it was one, delete it and run again."
        ) from error


def read_results(folder: Path) -> list[Result]:
    """All results below `folder`, in the order of their paths; see `find_results`."""
    return list(find_results(folder).values())


def find_results(folder: Path) -> dict[Path, Result]:
    """All results below `folder` by their paths, in order.

    What is published is found only where `folder` is that folder, or one in it. A result that
    cannot be read is named and left out: it must not take others with it.
    """
    results = {}
    with seldom_collected():
        for path in sorted(folder.rglob("*-*-????????.json")):
            if is_published(path.relative_to(folder)):
                continue
            try:
                results[path] = read_result(path)
            except UserError as error:
                progress.say(f"left out {error}")
    return results


def is_published(path: Path) -> bool:
    """Whether a result's file lies in a folder of published results."""
    # Model and corpus, the folders that it lies in, may be called anything.
    return PUBLISHED in path.parts[:-3]


def or_published(*folders: Path) -> str:
    """What an error adds where there are no results: the folder of published ones, if any."""
    there = [path for folder in folders if (path := folder / PUBLISHED).is_dir()]
    return f", or name {there[0]}" if there else ""


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
