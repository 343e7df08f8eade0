"""What was measured of one model on one corpus, by layer: what claims are tested on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from probes.boards.claims.bands import Band
from probes.boards.claims.outcome import MissingError
from probes.boards.separability import confidence_set
from probes.measurements.measurement import LOCALISATION, get_measurement
from probes.records.record import AnyRecord
from probes.records.result import Result
from probes.records.row import Row, Rows
from probes.statistics.partition import FEWEST
from probes.statistics.replicates import Replicates

T = TypeVar("T")


@dataclass(frozen=True)
class ModelScores:
    """Results of one model, corpus and probe family, and records of other measurements.

    Attributes:
        results: by task.
        resampled: gives a task's headline test scores in resamples; None if there are none.
        resampled_mixes: the same for probes on mixes of layers 0 to k.
        records: of measurements of the corpus, by measurement.
    """

    results: Mapping[str, Result]
    resampled: Callable[[str], Replicates | None]
    resampled_mixes: Callable[[str], Replicates | None]
    records: Mapping[str, AnyRecord] = field(default_factory=dict)

    def record(self, measurement: str) -> AnyRecord:
        """The record of a measurement of the corpus.

        Raises:
            MissingError: there is none.
        """
        found = self.records.get(measurement)
        return _there(found, f"there is no record of {measurement} (--measurements {measurement})")

    def numbers(self, measurement: str, metric: str, **axes: object) -> dict[int, Row]:
        """What a measurement of the corpus found on test, by layer; all have intervals.

        Args:
            axes: what else they are numbers of.

        Raises:
            MissingError: there is no record, or a layer has no such number.
        """
        record = self.record(measurement)
        found = {
            number.layer: number
            for number in record.rows
            if (number.metric, number.split != "dev") == (metric, True)
            and number.layer is not None
            and all(number.axes.get(name) == value for name, value in axes.items())
        }
        what = " ".join([metric, *map(str, axes.values())])
        for layer in range(record.model.n_layers + 1):
            if layer not in found:
                raise MissingError(f"{measurement} has no {what} of layer {layer}")
            if found[layer].value is None or found[layer].low is None:
                raise MissingError(f"{what} of layer {layer} has no interval")
        return found

    def result(self, task: str) -> Result:
        """The result of `task`, with a score for every layer and enough of a test split.

        Raises:
            MissingError: there is no such result.
        """
        if task not in self.results:
            raise MissingError(f"{task} was not run")
        result = self.results[task]
        absent = sorted(set(range(result.model.n_layers + 1)) - set(result.layers))
        if absent:
            raise MissingError(f"{task} was not run at layer {', '.join(map(str, absent))}")
        if any(result.interval(x) is None for x in result.layers):
            raise MissingError(
                f"{task} has no intervals: fewer than {FEWEST} test {result.examples.resampled}, "
                "or no score"
            )
        return result

    def peaks(self, task: str) -> set[int]:
        """The layers that may be the best: the confidence set of `task`.

        Raises:
            MissingError: there is none.
        """
        found = confidence_set(self.result(task))
        if found is None:
            raise MissingError(f"{task} has no training variance, which tests of layers need")
        return found

    def tested(self, task: str) -> Replicates:
        """The resampled scores of `task`, with what other trainings would change.

        Raises:
            MissingError: there are none, or layers cannot be tested.
        """
        self.peaks(task)
        return _there(self.resampled(task), f"the predictions of {task} are not beside its result")

    def mixes(self, task: str) -> Rows:
        """What localisation found for `task`.

        Raises:
            MissingError: there is no record of it.
        """
        result = self.result(task)
        why = get_measurement(LOCALISATION).missing_of(result)
        return _there(result.found(LOCALISATION), f"{task} has no localisation: {why}")

    def located(self, task: str) -> Rows:
        """The same for a task in which mixes gain something over layer 0.

        Raises:
            MissingError: there is no record of it, or no gain.
        """
        mixes = self.mixes(task)
        found = mixes.at("expected_layer")
        if found is None or found.interval is None:
            raise MissingError(f"{task} has no expected layer: {found.why if found else 'none'}")
        return mixes

    def tested_mixes(self, task: str) -> Replicates:
        """The resampled scores of probes on mixes, with what other trainings would change.

        Raises:
            MissingError: there are none, or no training variance.
        """
        found = self.mix_replicates(task)
        _there(found.noise, f"{task} has no training variance, which tests of layers need")
        return found

    def mix_replicates(self, task: str) -> Replicates:
        """The resampled scores of probes on mixes of layers 0 to k.

        Raises:
            MissingError: there are none.
        """
        self.mixes(task)
        return _there(
            self.resampled_mixes(task), f"the predictions on mixes of {task} are not beside them"
        )

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


def within(record: AnyRecord, band: Band) -> set[int]:
    """The layers of a record's model that lie in `band`.

    Raises:
        MissingError: the model has none.
    """
    n = record.model.n_layers
    layers = {layer for layer in range(n + 1) if band(layer, n)}
    if not layers:
        name = band.__name__.replace("_", "-")
        raise MissingError(f"a model of {n} layers has none that counts as {name}")
    return layers


def _there(found: T | None, why: str) -> T:
    if found is None:
        raise MissingError(why)
    return found
