"""The result of probing one model, corpus and task with one probe family: scores and evidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import Field, model_validator

from probes.common.errors import UserError
from probes.data.sentence import SPLITS
from probes.records.best_layer import best_layer_of
from probes.records.header import ExampleCounts, TaskRecord
from probes.records.probe_spec import ProbeSpec
from probes.records.record import Record
from probes.records.row import Row, Rows
from probes.records.values import Interval, Scores, ends

SCORES = "scores"
"""Name of the measurement whose records results are."""


UNMEASURED = "there is no record of it"
"""Usual reason for a model's absence from a chart."""


class FloorTest(NamedTuple):
    """The layers that are significantly above the floor."""

    above: frozenset[int]
    knows_training: bool
    """Whether the variance over trainings of the result and of its twins is part of it."""
    fixed: tuple[str, ...] = ()
    """Baselines that are plain numbers, since their predictions are not stored."""


class Result(Record):
    """A record of scores, with the records of evidence behind them."""

    task: TaskRecord
    probe: ProbeSpec
    examples: ExampleCounts
    evidence: dict[str, Record] = Field(default_factory=dict, exclude=True)
    """Records by measurement. Not part of the file."""
    path: Path | None = Field(default=None, exclude=True)
    """The file; None for a result that has none."""
    floor_test: FloorTest | None = Field(default=None, exclude=True)
    """Test of `probes.boards.floors`; None where it was not made."""

    @model_validator(mode="after")
    def _scored(self) -> Result:
        if self.measurement != SCORES:
            raise ValueError(f"a record of {self.measurement}, not of {SCORES}")
        if list(self.extent) != sorted(self.extent):
            raise ValueError(f"layers {list(self.extent)}")
        if missing := {*SPLITS} - self.examples.n.keys():
            raise ValueError(f"no number of {min(missing)} examples")
        for name, kind in (("probe_parameters", int), ("group_metric", str)):
            if not isinstance(self.facts.get(name), kind):
                raise ValueError(f"{name} is missing among its facts")
        metric = self.task.metric
        for layer in self.layers:
            for split in ("dev", "test"):
                if self.at(metric, layer, split) is None:
                    raise ValueError(f"layer {layer} has no {metric} on {split}")
        pairs = zip(self.rows.metric, self.rows.layer, strict=True)
        if extra_layers := {x for name, x in pairs if name == metric} - {None, *self.extent}:
            raise ValueError(f"layers {sorted(map(str, extra_layers))} are not in its extent")
        return self

    @property
    def layers(self) -> tuple[int, ...]:
        """The layers that were probed, ascending."""
        return tuple(self.extent)

    def numbered(self, layer: int) -> int:
        """The number of a layer that was probed; -1 is the model's last.

        Raises:
            UserError: the layer was not probed, or is given as text.
        """
        if isinstance(layer, str):
            raise UserError(f"layer={layer!r} is text; give a whole number, such as -1.")
        number = layer if layer >= 0 else layer + self.model.n_layers + 1
        if number not in self.extent:
            raise UserError(
                f"{self.task.name}: layer {layer} was not probed; give one of "
                f"{', '.join(map(str, self.layers))}."
            )
        return number

    def at(
        self, metric: str, layer: int | None = None, split: str = "test", **axes: str | int
    ) -> Row | None:
        """A row of the scores; see `Rows.at`. Further fits than the first have an axis `seed`."""
        return self.rows.at(metric, layer, split, **axes)

    def score(self, layer: int, split: str = "test") -> float | None:
        """Headline score of a layer, -1 for the last: that of its first fit.

        Raises:
            UserError: the layer was not probed.
        """
        row = self.at(self.task.metric, self.numbered(layer), split)
        return None if row is None else row.value

    def scores_of(self, layer: int) -> Scores:
        """Every metric of a layer's first fit on test."""
        rows = [self.at(metric, layer) for metric in dict.fromkeys(self.rows.metric)]
        return {row.metric: row.value for row in rows if row is not None}

    def interval(self, layer: int) -> Interval:
        """95 % interval of the headline score of a layer on test; None without one."""
        row = self.at(self.task.metric, self.numbered(layer))
        return row.interval if row else None

    @property
    def baselines(self) -> dict[str, Scores]:
        """Test scores of rules that use no vectors."""
        return self._rules("baseline")

    @property
    def references(self) -> dict[str, Scores]:
        """Test scores of rules that use the annotation."""
        return self._rules("reference")

    def _rules(self, axis: str) -> dict[str, Scores]:
        rule_scores: dict[str, Scores] = defaultdict(dict)
        for row in self.rows.along(axis):
            rule_scores[str(row.axes[axis])][row.metric] = row.value
        return dict(rule_scores)

    @property
    def best_layer(self) -> int:
        """The best layer on dev; the lowest if no score there is defined (see `best_number`)."""
        return best_layer_of({layer: self.score(layer, "dev") for layer in self.layers})

    @property
    def best_number(self) -> int | None:
        """The best layer; None if no score on dev is defined."""
        best = self.best_layer
        return None if self.score(best, "dev") is None else best

    @property
    def floor(self) -> tuple[str, float] | None:
        """The highest score that is reachable without a trained layer, and its rule's name.

        The rules are the baselines, layer 0, and random twins if `with_baselines` added them. The
        first of equal ones counts. None if no score is defined.
        """
        metric = self.task.metric
        scores = {name: rule_scores.get(metric) for name, rule_scores in self.baselines.items()}
        scores["layer 0"] = self.headline.get(0)
        defined_scores = [(name, score) for name, score in scores.items() if score is not None]
        return max(defined_scores, key=lambda x: x[1], default=None)

    def is_floored(self, layer: int) -> bool:
        """Whether a layer's score is not significantly above the floor.

        Without a `floor_test`, the lower end of the score's 95 % interval is compared with the
        floor as a plain number; without an interval, the score itself is.
        """
        if (score := self.score(layer)) is None:
            return False
        if self.floor_test is not None:
            return self.numbered(layer) not in self.floor_test.above
        low, _ = ends(self.interval(layer))
        return self.floor is not None and (score if low is None else low) <= self.floor[1]

    @property
    def headline(self) -> dict[int, float | None]:
        """Headline test scores by layer; evidence behind other scores is not shown with these."""
        return {layer: self.score(layer) for layer in self.layers}

    def evidence_rows(self, measurement: str) -> Rows | None:
        """The rows of the evidence that a measurement gave; None if there is no record of it."""
        record = self.evidence.get(measurement)
        return None if record is None else record.rows

    def row(self, measurement: str, metric: str, layer: int | None = None) -> Row | None:
        """A row of the evidence that has no axes; None if it was not measured."""
        rows = self.evidence_rows(measurement) or Rows()
        splits = "test", "train", "dev", "all"
        return next(filter(None, (rows.at(metric, layer, split) for split in splits)), None)

    def with_baselines(self, baselines: Mapping[str, Scores]) -> Result:
        """The result with more baselines."""
        rows = [
            Row(metric, value, axes={"baseline": name})
            for name, scores in baselines.items()
            for metric, value in scores.items()
        ]
        return self.model_copy(update={"rows": self.rows.extended(rows)} if rows else {})

    def with_evidence(self, *records: Record) -> Result:
        """The result with these records added to its evidence."""
        added = {record.measurement: record for record in records}
        return self.model_copy(update={"evidence": {**self.evidence, **added}})
