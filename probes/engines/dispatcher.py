"""Hands units out to workers, which compute one at a time, wherever they are."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from probes.common.terminal import progress
from probes.engines.model_run import ModelRun
from probes.engines.plan import Stage, Unit
from probes.engines.rebuilt import RunRequest
from probes.engines.units import Asked, Encode, Measure, Plan, UnitOutcome
from probes.extraction.store import require_room


@dataclass(frozen=True)
class Started:
    """The first thing that a worker sends."""


@dataclass(frozen=True)
class Said:
    """A message for the user; see `Progress.emit`."""

    level: str
    message: str
    event: str
    fields: dict[str, Any]


class Worker(ABC):
    """Whoever computes one unit at a time.

    Attributes:
        number: counts from 1.
        unit: what it is computing; None if nothing.
        prepared: what is prepared in it; see `OfTask.prepared`.
        model: the model that it holds; empty if none.
        where: what it shares a cache with; empty for the driver's.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.unit: Asked | None = None
        self.prepared: set[tuple[str, str]] = set()
        self.model = self.where = ""

    def start(self, unit: Asked, waiting: bool) -> None:
        """Begin a unit."""
        self.unit, self.model = unit, unit.model
        self.prepared.add(unit.prepared)
        self.send(unit, waiting)

    @abstractmethod
    def send(self, unit: Asked, waiting: bool) -> None:
        """Hand over a unit; whether the worker is dead is found out later."""

    @abstractmethod
    def stop(self) -> None:
        """Tell it to end."""

    @abstractmethod
    def end(self) -> int:
        """Wait until it has ended; its exit code, if it has one."""


W = TypeVar("W", bound=Worker)


class Dispatcher(ABC, Generic[W]):
    """An engine (see `probes.engines.engine`) of several workers.

    A worker starts when there is a unit for it, and keeps what it has prepared until the end.

    Attributes:
        retries: how often a unit is computed again whose worker was lost.
        remedy: what may help if that is not enough.
        todo: units of the measurement that is being made, with their runs.
    """

    retries = 1
    remedy = ""

    def __init__(self, runs: Sequence[ModelRun]) -> None:
        self.request = RunRequest.of(runs)
        self.workers: list[W] = []
        self.todo: Mapping[Measure, tuple[ModelRun, Unit]] = {}
        self._cache = runs[0].config.cache_dir
        self._started = 0
        self._said: set[tuple[str, ...]] = set()

    def begin(self) -> None:
        """Get ready to start workers, now that there is something to compute."""

    @property
    @abstractmethod
    def most(self) -> int:
        """How many workers there may be."""

    @abstractmethod
    def new_worker(self, number: int) -> W:
        """Start one, and add it to `workers`."""

    @abstractmethod
    def news(self) -> Iterator[tuple[W, object]]:
        """Wait until workers have something to say; `UnitOutcome` is the last thing of a unit.

        A worker that was lost is no longer among `workers`, and its outcome names its death.
        """

    @property
    def shares_cache(self) -> bool:
        """Whether workers read what others encode."""
        return True

    def measure(self, stage: Stage, runs: Sequence[ModelRun]) -> None:
        """See `Engine`."""
        self.todo = {
            Measure.of(run.name, unit): (run, unit)
            for run in runs
            for unit, _ in run.remaining(stage)
        }
        if not self.todo:
            return
        self.begin()
        with progress.bar(stage.title, total=len(self.todo), unit="unit"):
            # Units that another run is computing come last; they may be done by then.
            busy = self._encode_and_measure(stage.measurement)
            for asked, outcome in self._compute(busy, waiting=True):
                assert isinstance(asked, Measure)
                self.keep(*self.todo[asked], outcome)

    def _encode_and_measure(self, measurement: str) -> list[Asked]:
        """Compute units and add their records to their runs; return those that others have.

        First comes a plan for each task: which shards are missing for it. They are made next, by
        all workers, and then its units are measured.
        """
        pending: list[Asked] = [
            Plan(model, task, measurement)
            for model, task in dict.fromkeys(unit.prepared for unit in self.todo)
        ]
        found: set[Asked] = set()
        to_write, busy = 0, list[Asked]()
        for asked, outcome in self._compute(pending, waiting=False):
            if isinstance(asked, Encode):
                to_write -= asked.n_bytes
            elif isinstance(asked, Plan):
                # Without a common cache, whoever measures encodes what is missing there.
                planned = outcome.shards if self.shares_cache else ()
                shards = [shard for shard in planned if shard not in found]
                found.update(shards)
                to_write += sum(shard.n_bytes for shard in shards)
                if shards:
                    require_room(self._cache, to_write)
                of_task = [unit for unit in self.todo if unit.prepared == asked.prepared]
                if outcome.death:
                    for unit in of_task:
                        self.keep(*self.todo[unit], outcome)
                else:
                    pending[:0] = shards
                    pending += of_task
            elif outcome.ending == "busy":
                busy.append(asked)
            else:
                self.keep(*self.todo[asked], outcome)
        return busy

    def keep(self, run: ModelRun, unit: Unit, outcome: UnitOutcome) -> None:
        """Add what became of a unit to its run."""
        progress.advance()
        run.omissions.update(outcome.omissions)
        if outcome.death:
            run.omissions.fail(run.name, unit.title, outcome.death)
        elif outcome.ending == "done":
            run.read(unit)

    def close(self) -> None:
        """See `Engine`."""
        for worker in self.workers:
            worker.stop()
        for worker in self.workers:
            worker.end()
        self.workers.clear()

    def _compute(self, pending: list[Asked], waiting: bool) -> Iterator[tuple[Asked, UnitOutcome]]:
        """Each unit with what became of it, in the order in which they end.

        Args:
            pending: the units; they are taken out of the list, and more may be added meanwhile.
        """
        lost = Counter[Asked]()
        while pending or any(worker.unit for worker in self.workers):
            self._hand_out(pending, waiting)
            for worker, news in self.news():
                unit = worker.unit
                if isinstance(news, Exception):
                    raise news
                if isinstance(news, Said):
                    self._show(news, worker)
                elif isinstance(news, UnitOutcome) and unit is not None:
                    worker.unit = None
                    if not news.death:
                        yield unit, news
                    elif lost[unit] == self.retries:
                        others = (
                            "was another" if self.retries == 1 else f"were {self.retries} others"
                        )
                        why = f"{news.death}, and so {others}{self.remedy}"
                        yield unit, replace(news, death=why)
                    else:
                        lost[unit] += 1
                        progress.warn(f"{news.death}; another one computes its unit again")
                        pending.insert(0, unit)

    def _hand_out(self, pending: list[Asked], waiting: bool) -> None:
        """Give a unit to every worker that has none, starting workers if there are too few."""
        while pending:
            idle = next((worker for worker in self.workers if worker.unit is None), None)
            if idle is None:
                if self.workers and len(self.workers) >= self.most:
                    return
                self._started += 1
                idle = self.new_worker(self._started)
            unit = self._choice(idle, pending)
            pending.remove(unit)
            idle.start(unit, waiting)

    def _choice(self, worker: W, pending: Sequence[Asked]) -> Asked:
        """The first unit of the model that a worker holds, if there is one.

        Among them, and else among all, the first for which it has prepared the data, or else no
        worker has; and rather not of a model that is read into another cache.
        """
        somewhere = {each for other in self.workers for each in other.prepared}
        elsewhere = {x.model for x in self.workers if x.where != worker.where}

        def rank(unit: Asked) -> tuple[bool, ...]:
            another = worker.model not in ("", unit.model)
            new = unit.prepared not in worker.prepared
            return another, unit.model in elsewhere, new, unit.prepared in somewhere

        return min(pending, key=rank)

    def _show(self, said: Said, worker: W) -> None:
        """Show what a worker says; what others have said before is a detail."""
        model = worker.unit.model if worker.unit else ""
        key = model, said.event, re.sub(r"[\d.]+ s\b", "", said.message)
        level = "debug" if key in self._said else said.level
        self._said.add(key)
        progress.emit(level, said.message, said.event, {**said.fields, "worker": worker.number})
