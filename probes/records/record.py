"""A record: results of one measurement for one model and corpus; its key, its titles in tables."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat, model_validator

from probes.common.files import folder_name
from probes.records.header import (
    CorpusRecord,
    EncodingRecord,
    ExampleCounts,
    ModelRecord,
    PlugIn,
    TaskRecord,
)
from probes.records.probe_spec import ProbeSpec
from probes.records.row import AxisValue, Rows
from probes.records.values import Frozen, Name
from probes.tasks.task import SITE_VERSIONS

SCHEMA_VERSION = 9


class Record(Frozen):
    """The rows of one measurement, under a header of model, corpus, task and settings."""

    schema_version: int
    suite_version: str
    measurement: str
    """Name of the measurement; see `probes.measurements.measurement`."""
    measurement_version: int
    settings: dict[str, Any] = Field(default_factory=dict)
    """Options of the measurement."""
    key: str
    """Digest of everything that determines the rows, apart from their extent."""
    inputs: str
    """Digest of what was measured: records with the same belong together."""
    extent: dict[int, int] = Field(min_length=1)
    """Number of measurements by layer: 1, or the number of fits or draws."""
    behind: dict[int, float | None] = Field(default_factory=dict)
    """Headline test scores by layer that evidence stands behind; empty for other records."""
    model: ModelRecord
    base: ModelRecord | None = None
    """The model that this one is compared with; None unless the record is of a pair."""
    corpus: CorpusRecord
    task: TaskRecord | None = None
    """None for a measurement of the corpus as a whole."""
    probe: ProbeSpec | None = None
    """None for a measurement without probes."""
    examples: ExampleCounts | None = None
    """Examples that the task found in the corpus; None unless the record is of scores."""
    view: Name
    pooling: Name
    dtype: Name
    """Precision of the forward pass."""
    fit_dtype: Literal["float32"] = "float32"
    """Precision of products in training."""
    project: int | None = None
    """Dimensions of the random projection of the span vectors; None for no projection."""
    plug_ins: tuple[PlugIn, ...] = ()
    """The task, metrics, probe family or measurement that are plug-ins."""
    encoding: EncodingRecord
    seconds: dict[str, Annotated[FiniteFloat, Field(ge=0)]]
    """Wall time by stage."""
    provenance: dict[str, str]
    arrays: tuple[str, ...] = ()
    """Names of the arrays in the .npz file beside the record."""
    facts: dict[str, AxisValue] = Field(default_factory=dict)
    """Further facts on the rows, such as counts and the units that were resampled."""
    notes: tuple[str, ...] = ()
    """Sentences that tables of the rows are followed by."""
    rows: Rows = Rows()

    @model_validator(mode="after")
    def _consistent(self) -> Record:
        bad_layers = [layer for layer in self.extent if not 0 <= layer <= self.model.n_layers]
        if bad_layers or min(self.extent.values()) < 1:
            raise ValueError(f"extent {self.extent} of a model of {self.model.n_layers} layers")
        # Whoever computes with these must meet neither "inf" nor a negative number.
        for name in ("words_per_second", "bytes_on_disk"):
            if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", self.provenance.get(name, "0")):
                raise ValueError(f"{name} is {self.provenance[name]!r}")
        if (self.task is None) != (self.probe is None):
            raise ValueError("a task without a probe, or a probe without a task")
        return self

    @property
    def silver(self) -> bool:
        """Whether the labels were made by a machine."""
        return self.task is not None and bool(set(self.task.needs) & set(self.corpus.silver))


FitsPerLayer = dict[int, int]
"""Number of measurements to make, by layer."""


def includes(extent: FitsPerLayer, wanted_extent: FitsPerLayer) -> bool:
    """Whether every layer has been measured as often as it should be."""
    return all(extent.get(layer, 0) >= n for layer, n in wanted_extent.items())


def merged_fits(extent: FitsPerLayer, other: FitsPerLayer) -> FitsPerLayer:
    """The larger number of fits for each layer of either extent, by ascending layer."""
    return {
        layer: max(extent.get(layer, 0), other.get(layer, 0)) for layer in sorted({*extent, *other})
    }


def completeness(extent: FitsPerLayer) -> tuple[int, int]:
    """Sort key of duplicates: the number of layers, then of fits or draws."""
    return len(extent), sum(extent.values())


TREES = "trees not UD"
"""The mark of what depends on trees of another scheme."""


def model_title(record: Record) -> str:
    """A model's name, and the type that it ran in if not in float32: ``gpt2 (bfloat16)``."""
    name, dtype = record.model.name, record.dtype
    return name if dtype == "float32" else f"{name} ({dtype})"


def task_marks(record: Record) -> list[str]:
    """Remarks on a record's numbers: view, silver labels, other trees."""
    if not record.task:
        return []
    other_trees = record.corpus.other_trees and "heads" in record.task.needs
    marks = {record.view: record.view != "plain", "silver": record.silver, TREES: other_trees}
    return [mark for mark, holds in marks.items() if holds]


def short_digest(digest: str, length: int = 8) -> str:
    """Beginning of a SHA-256. Without the prefix, 12345e67 would be read as a number."""
    return f"sha256:{digest[:length]}"


def limit_of(record: Record) -> int | None:
    """Number of sentences used of each split; None for all."""
    return record.corpus.limit if record.corpus.limited else None


def limit_mark(record: Record) -> str:
    """The suffix of a corpus's name if only a part of it was used."""
    limit = limit_of(record)
    return "" if limit is None else f", limit {limit}"


def corpus_name(record: Record) -> str:
    """Name of a corpus, and its limit if it has one: ``ewt, limit 400``."""
    return record.corpus.name + limit_mark(record)


def subject_title(record: Record) -> str:
    """Model and corpus of a table: ``gpt2 (bfloat16) · ewt, limit 400``."""
    return f"{model_title(record)} · {corpus_name(record)}"


def corpus_title(record: Record) -> str:
    """Name and version of a corpus, and its limit if it has one: ``ewt r2.16, limit 400``."""
    corpus = record.corpus
    return f"{corpus.name} {corpus.version}".strip() + limit_mark(record)


RESAMPLING = 2
"""Part of every key of probes, to be raised when other resamples would be drawn: documents, if at
least 20 are named. Which sentences make up a document follows from the corpus, and so from its
digest. Where fewer are named, keys say so (`Inputs.few_documents`)."""


NUMERICS = {"linear": 10, "others": 11, "others, of numbers": 12}
"""See `numerics_version`."""


def numerics_version(kind: str, family: str) -> int:
    """Part of every key of probes, to be raised when the same inputs would give other scores.

    Args:
        kind: the kind of the task.
        family: the probe family.
    """
    if family == "linear":
        return NUMERICS["linear"]
    return NUMERICS["others, of numbers" if kind == "regression" else "others"]


class Inputs(Frozen):
    """Inputs of a measurement: model, text, vectors, and for probes the task and their settings."""

    model: str
    base: str = ""
    """The model that this one is compared with, with its type; empty for none."""
    corpus: str
    pooling: str
    dtype: str
    windows: str
    task: str = ""
    task_version: int = 0
    kind: str = ""
    """The kind of the task; see `numerics_version`."""
    probe: ProbeSpec | None = None
    project: int | None = None
    scores: tuple[str, ...] = ()
    """Keys of the scores of all tasks that are measured together; none for others."""
    chats: str = ""
    """See `EncodingRecord`."""
    few_documents: bool = False
    """See `probes.statistics.partition.has_few`; earlier versions then resampled sentences."""
    ranking: tuple[str, float] | None = None
    """Headline metric and false-positive rate of a task with a threshold (`TaskRecord.fpr`)."""
    plug_ins: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of the sources of plug-ins; see `probes.measurements.plugin_keys.digests`."""

    @property
    def digest(self) -> str:
        """SHA-256 of the inputs and the versions of the numerics and of the task's site."""
        content = self.model_dump(mode="json")
        kind = content.pop("kind")
        # Fields added later are left out where empty, so that the keys of older records stay.
        for name in ("base", "scores", "chats", "few_documents", "ranking"):
            if not content[name]:
                del content[name]
        if self.probe is not None:
            content["numerics"] = numerics_version(kind, self.probe.family)
            content["resampling"] = RESAMPLING
        if version := SITE_VERSIONS.get(self.task.rpartition("@")[2]):
            content["site_version"] = version
        # The type of the products in training, which keys have had since it could be chosen.
        content["fit_dtype"] = "float32" if self.probe else ""
        return _digest_of_content(content)


def record_key(
    inputs: str, measurement: str, version: int, settings: Mapping[str, Any], source: str = ""
) -> str:
    """The key of a record.

    Args:
        inputs: digest of the record's `Inputs`.
        version: version of the measurement.
        settings: options of the measurement.
        source: SHA-256 of the measurement's source, if it is a plug-in.
    """
    content = {"inputs": inputs, "measurement": measurement, "version": version}
    return _digest_of_content({**content, "settings": dict(settings), "source": source})


def record_name(task: str, family: str, measurement: str, key: str) -> str:
    """Name of a record's file; task and family are empty for a measurement of a corpus."""
    parts = [folder_name(task), family] if task else []
    return "-".join([*parts, measurement, f"{key[:8]}.json"])


def _digest_of_content(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
