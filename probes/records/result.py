"""The result of probing one model, corpus and task with one probe family: scores and evidence."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from probes.records.header import ExampleCounts, TaskRecord
from probes.records.probe_scores import LayerScores, ProbeScores, best_of
from probes.records.probe_spec import ProbeSpec
from probes.records.record import AnyRecord, Record
from probes.records.row import Row
from probes.records.values import Scores

SCORES = "scores"
"""Name of the measurement whose records results are."""


class Result(Record[ProbeScores]):
    """A record of scores, with the records of what was measured besides."""

    task: TaskRecord
    probe: ProbeSpec
    evidence: dict[str, Record[Any]] = Field(default_factory=dict, exclude=True)
    """By measurement; each payload in the measurement's own type. Not part of the file."""

    @model_validator(mode="after")
    def _scored(self) -> Result:
        if self.measurement != SCORES:
            raise ValueError(f"a record of {self.measurement}, not of {SCORES}")
        if {layer.layer for layer in self.layers} != self.extent.keys():
            raise ValueError(f"the layers are not those of the extent {self.extent}")
        for layer in self.layers:
            for fit in layer.fits:
                if not {self.task.metric} <= fit.dev.keys() & fit.test.keys():
                    raise ValueError(f"layer {layer.layer} has no {self.task.metric}")
        return self

    @property
    def layers(self) -> tuple[LayerScores, ...]:
        """The scores of each layer."""
        return self.payload.layers

    @property
    def examples(self) -> ExampleCounts:
        """The examples that the task found in the corpus."""
        return self.payload.examples

    @property
    def baselines(self) -> dict[str, Scores]:
        """Test scores of rules that use no vectors."""
        return self.payload.baselines

    @property
    def references(self) -> dict[str, Scores]:
        """Test scores of rules that use the annotation."""
        return self.payload.references

    def score(self, layer: LayerScores, split: str = "test") -> float | None:
        """Headline score of a layer: that of its first fit."""
        fit = layer.fits[0]
        return (fit.test if split == "test" else fit.dev)[self.task.metric]

    @property
    def best_layer(self) -> LayerScores:
        """The layer with the best headline score on dev; of equal ones the lowest."""
        return best_of(self.layers, self.task.metric)

    @property
    def best_number(self) -> int | None:
        """Number of the best layer; None if no score on dev is defined."""
        best = self.best_layer
        return None if self.score(best, "dev") is None else best.layer

    @property
    def floor(self) -> tuple[str, float] | None:
        """The highest score that needs no trained layer, and the name of what has it.

        Of the baselines, random twins among them if they were added (`with_baselines`), and layer
        0; of equal ones the first. None if none of them is defined.
        """
        metric = self.task.metric
        scores = {name: given.get(metric) for name, given in self.baselines.items()}
        scores["layer 0"] = self.headline.get(0)
        known = [(name, score) for name, score in scores.items() if score is not None]
        return max(known, key=lambda x: x[1], default=None)

    def is_floored(self, layer: LayerScores) -> bool:
        """Whether a layer's score is not above the floor.

        Of a score with a 95 % interval the lower end is compared; the floor is taken as it is.
        """
        score, floor = self.score(layer), self.floor
        if score is None or floor is None:
            return False
        low, _ = layer.intervals.get(self.task.metric) or (score, score)
        return low <= floor[1]

    @property
    def has_all_layers(self) -> bool:
        """Whether every layer of the model was probed."""
        return len(self.layers) == self.model.n_layers + 1

    @property
    def headline(self) -> dict[int, float | None]:
        """Headline test scores by layer; evidence behind other scores is not shown with these."""
        return {layer.layer: self.score(layer) for layer in self.layers}

    def row(self, measurement: str, metric: str, layer: int | None = None) -> Row | None:
        """A number of the evidence, without axes; None if it was not measured."""
        record = self.evidence.get(measurement)
        for row in record.rows if record else ():
            if (row.metric, row.layer, len(row.axes)) == (metric, layer, 0):
                return row
        return None

    def found(self, measurement: str) -> Any:
        """What a measurement found, as its payload; None if there is no record of it."""
        record = self.evidence.get(measurement)
        return None if record is None else record.payload

    def with_baselines(self, baselines: dict[str, Scores]) -> Result:
        """The result with more baselines."""
        payload = self.payload.model_copy(update={"baselines": {**self.baselines, **baselines}})
        return self.model_copy(update={"payload": payload})

    def with_evidence(self, *records: AnyRecord) -> Result:
        """The result with these records added to its evidence."""
        added = {record.measurement: record for record in records}
        return self.model_copy(update={"evidence": {**self.evidence, **added}})
