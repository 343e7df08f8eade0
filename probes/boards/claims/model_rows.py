"""The rows of one model on one corpus: what claims are tested on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, TypeVar

import pandas as pd

from probes.boards.claims.claim import MissingError
from probes.measurements.choosing import chosen
from probes.measurements.frame import long_frame
from probes.measurements.measurement import LOCALISATION, get_measurement
from probes.records.record import Record
from probes.records.result import SCORES, Result
from probes.records.row import HEADER, Row
from probes.statistics.partition import FEWEST
from probes.statistics.replicates import Replicates

T = TypeVar("T")

_READ = ["value", "layer", "low", "high", "n", "p", "why"]


class ModelRows:
    """The long frame of what was measured of one model on one corpus, and resampled scores.

    Attributes:
        results: of one probe family, by task.
        corpus: records of measurements of the corpus, by measurement.
        frame: the long frame of a measurement.
    """

    def __init__(
        self,
        records: Iterable[Record],
        resampled: Callable[[str, str], Replicates | None] = lambda task, measurement: None,
    ) -> None:
        """Take the records of one model.

        Args:
            records: results with their evidence, and records of measurements of the corpus.
            resampled: gives a task's headline test scores in resamples, of layers for `scores` and
                of mixes of layers 0 to k for `localisation`; None if there are none.
        """
        every = list(records)
        self.results = {x.task.name: x for x in every if isinstance(x, Result)}
        self.corpus = {x.measurement: x for x in every if x.task is None}
        evidence = [x for result in self.results.values() for x in result.evidence.values()]
        self.frame: Callable[[str], pd.DataFrame] = cache(
            lambda name: long_frame(x for x in (*every, *evidence) if x.measurement == name)
        )
        self._resampled = cache(resampled)
        self.by_layer: Callable[..., dict[int, Row]] = cache(self._by_layer)

    def record(self, measurement: str) -> Record:
        """The record of a measurement of the corpus.

        Raises:
            MissingError: there is none.
        """
        found = self.corpus.get(measurement)
        return _there(found, f"there is no record of {measurement} (--measurements {measurement})")

    def record_of_all_layers(self, measurement: str, first: int = 0) -> Record:
        """The same, with all layers from the first on.

        Raises:
            MissingError: there is none, or not of all layers.
        """
        record = self.record(measurement)
        every = set(range(first, record.model.n_layers + 1))
        if absent := every - set(record.extent):
            raise MissingError(f"{measurement} was not measured at layer {listed(absent)}")
        return record

    def rows(
        self, measurement: str, metric: str, task: str | None = None, **where: Any
    ) -> list[Row]:
        """The rows of a metric, with value, interval, n, p and reason.

        Args:
            task: None for a measurement of the corpus.
            where: their split, if it is not "test", and all places that they have on axes, as in
                `probes.measurements.choosing.Where`.
        """
        frame = self.frame(measurement)
        axes = set(frame.columns) - {*HEADER, *Row._fields}
        found = chosen(frame, [metric], {**dict.fromkeys(axes), "task": task, **where})[_READ]
        plain = found.astype(object).where(found.notna(), None).itertuples(index=False, name=None)
        return [Row(metric, **dict(zip(_READ, values, strict=True))) for values in plain]

    def _by_layer(
        self, measurement: str, metric: str, task: str | None = None, **where: Any
    ) -> dict[int, Row]:
        """The same by layer; to be called as `by_layer`."""
        found = self.rows(measurement, metric, task, **where)
        return {row.layer: row for row in found if row.layer is not None}

    def scores(self, task: str) -> dict[int, Row]:
        """The headline test scores of `task` at every layer, with intervals.

        Raises:
            MissingError: it was not run at all layers, or has no intervals.
        """
        result = _there(self.results.get(task), f"{task} was not run")
        found = self.by_layer(SCORES, result.task.metric, task)
        layers = range(result.model.n_layers + 1)
        if absent := [layer for layer in layers if layer not in found]:
            raise MissingError(f"{task} was not run at layer {listed(absent)}")
        if any(found[layer].interval is None for layer in layers):
            raise MissingError(
                f"{task} has no intervals: fewer than {FEWEST} test {result.examples.resampled}, "
                "or no score"
            )
        return {layer: found[layer] for layer in layers}

    def p_best(self, task: str) -> dict[int, float | None]:
        """By layer, the p-value of its being the best of `task`.

        Raises:
            MissingError: layers were not tested.
        """
        self.scores(task)
        found = self.by_layer("training_variance", "p_best", task)
        p_values = {layer: row.value for layer, row in found.items()}
        if all(p is None for p in p_values.values()):
            raise MissingError(f"{task} has no training variance, which tests of layers need")
        return p_values

    def tested(self, task: str) -> Replicates:
        """The resampled scores of `task`, with what other trainings would change.

        Raises:
            MissingError: there are none, or layers cannot be tested.
        """
        self.p_best(task)
        found = self._resampled(task, SCORES)
        return _there(found, f"the predictions of {task} are not beside its result")

    def located(self, task: str, metric: str) -> Row:
        """A number of the mixes of `task`, in which mixes gain something over layer 0.

        Raises:
            MissingError: there is no localisation, or no gain.
        """
        expected = self._of_mixes(task, "expected_layer")
        if expected.interval is None:
            raise MissingError(f"{task} has no expected layer: {expected.why}")
        return self._of_mixes(task, metric)

    def _of_mixes(self, task: str, metric: str) -> Row:
        self.scores(task)
        if found := self.rows(LOCALISATION, metric, task):
            return found[0]
        why = get_measurement(LOCALISATION).missing_of(self.results[task])
        raise MissingError(f"{task} has no localisation: {why}")

    def tested_mixes(self, task: str) -> Replicates:
        """The resampled scores of probes on mixes, with what other trainings would change.

        Raises:
            MissingError: there are none, or no training variance.
        """
        found = self.mixes(task)
        _there(found.noise, f"{task} has no training variance, which tests of layers need")
        return found

    def mixes(self, task: str) -> Replicates:
        """The resampled scores of probes on mixes of layers 0 to k.

        Raises:
            MissingError: there are none.
        """
        self._of_mixes(task, "expected_layer")
        found = self._resampled(task, LOCALISATION)
        return _there(found, f"the predictions on mixes of {task} are not beside them")

    def of_all(self, read: Callable[[str], T], least: int) -> tuple[dict[str, T], str]:
        """What `read` returns for each task, and, as text, why some are left out.

        Raises:
            MissingError: fewer than `least` tasks have it.
        """
        found: dict[str, T] = {}
        reasons = []
        for task in self.results:
            try:
                found[task] = read(task)
            except MissingError as missing:
                reasons.append(str(missing))
        if len(found) < least:
            raise MissingError("; ".join([f"fewer than {least} complete tasks", *reasons]))
        return found, "".join(f"; left out: {reason}" for reason in reasons)


def listed(layers: Iterable[int]) -> str:
    """Layers in ascending order, as text."""
    return ", ".join(map(str, sorted(layers)))


def _there(found: T | None, why: str) -> T:
    if found is None:
        raise MissingError(why)
    return found
