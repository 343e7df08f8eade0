"""A record: what one measurement found for one model and corpus."""

from __future__ import annotations

from typing import Any, Literal

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
from probes.records.probe_spec import ProbeSpec
from probes.records.row import Place, Rows

SCHEMA_VERSION = 9


class Record(Frozen):
    """What a measurement found: rows, under a header that says what they were measured with."""

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
    """How often each layer was measured, by layer: 1, or the number of fits or draws."""
    behind: dict[int, float | None] = Field(default_factory=dict)
    """Of evidence: the headline test scores that it stands behind, by layer."""
    model: ModelRecord
    base: ModelRecord | None = None
    """Of a pair: the model that this one is compared with."""
    corpus: CorpusRecord
    task: TaskRecord | None = None
    """None for a measurement of the corpus as a whole."""
    probe: ProbeSpec | None = None
    """None for a measurement without probes."""
    examples: ExampleCounts | None = None
    """Of scores: the examples that the task found in the corpus."""
    view: str
    pooling: str
    dtype: str
    """Of the forward pass."""
    fit_dtype: Literal["float32"] = "float32"
    """Of the products in training."""
    project: int | None = None
    """Dimensions of the random projection of the span vectors; None for no projection."""
    plug_ins: tuple[PlugIn, ...] = ()
    """The task, metrics, probe family or measurement that are plug-ins."""
    encoding: EncodingRecord
    seconds: dict[str, float]
    """Wall time by stage."""
    provenance: dict[str, str]
    arrays: tuple[str, ...] = ()
    """Names of the arrays in the .npz file beside the record."""
    facts: dict[str, Place] = Field(default_factory=dict)
    """What else there is to know of the rows: counts, what was resampled, the rank of a table."""
    notes: tuple[str, ...] = ()
    """Sentences that tables of the rows are followed by."""
    rows: Rows = Rows()

    @model_validator(mode="after")
    def _sound(self) -> Record:
        outside = [layer for layer in self.extent if not 0 <= layer <= self.model.n_layers]
        if outside or min(self.extent.values()) < 1:
            raise ValueError(f"extent {self.extent} of a model of {self.model.n_layers} layers")
        for name in ("words_per_second", "bytes_on_disk"):
            if not self.provenance.get(name, "0").isdecimal():
                raise ValueError(f"{name} is {self.provenance[name]!r}")
        if (self.task is None) != (self.probe is None):
            raise ValueError("a task without a probe, or a probe without a task")
        return self

    @property
    def silver(self) -> bool:
        """Whether the labels were made by a machine."""
        return self.task is not None and bool(set(self.task.needs) & set(self.corpus.silver))


Extent = dict[int, int]
"""How often each layer is to be measured, by layer."""


def covers(found: Extent, wanted: Extent) -> bool:
    """Whether every layer has been measured as often as it should be."""
    return all(found.get(layer, 0) >= n for layer, n in wanted.items())


def united(extent: Extent, other: Extent) -> Extent:
    """The least extent that covers both, by ascending layer."""
    return {
        layer: max(extent.get(layer, 0), other.get(layer, 0)) for layer in sorted({*extent, *other})
    }


def fullness(extent: Extent) -> tuple[int, int]:
    """Of duplicates the one with most layers counts, then the one with most fits or draws."""
    return len(extent), sum(extent.values())
