"""Computes units in workers, by the executor of a library."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait

from probes.common.terminal import progress
from probes.engines.model_run import ModelRun
from probes.engines.plan import Stage, Unit
from probes.engines.rebuilt import RunRequest
from probes.engines.units import Answer, Asked, Encode, Measure, Plan, Said, UnitOutcome
from probes.extraction.store import require_room

_MOMENT = 0.2
"""Seconds after which messages are shown."""


class PoolEngine(ABC):
    """An engine (see `probes.engines.engine`) of several workers.

    Attributes:
        request: what a worker needs to rebuild the run.
        todo: units of the stage that is being made, with their runs.
        plans: what has been planned, by model, task and measurement.
        running: what is being computed.
    """

    def __init__(self, runs: Sequence[ModelRun]) -> None:
        self.request = RunRequest.of(runs)
        self.todo: dict[Measure, tuple[ModelRun, Unit]] = {}
        self.plans: dict[Plan, UnitOutcome] = {}
        self.running: dict[Future[Answer], Asked] = {}
        self._cache = runs[0].config.cache_dir
        self._asked_for: set[Encode] = set()
        self._numbers: dict[str, int] = {}
        self._said: set[tuple[str, ...]] = set()

    @abstractmethod
    def begin(self) -> None:
        """Get ready, now that there is something to compute."""

    @property
    @abstractmethod
    def most(self) -> int:
        """How many units may be computed at once."""

    @property
    def shares_cache(self) -> bool:
        """Whether workers read what others encode."""
        return True

    @abstractmethod
    def submit(self, asked: Asked, waiting: bool) -> Future[Answer]:
        """Hand in a unit.

        Args:
            waiting: whether to wait if another run is computing it.
        """

    @abstractmethod
    def outcome(self, asked: Asked, future: Future[Answer]) -> Answer | None:
        """What became of a unit that has ended; None if it is to be handed in once more."""

    @abstractmethod
    def messages(self) -> Iterable[Said]:
        """What workers have said since the last time."""

    def measure(self, stage: Stage, runs: Sequence[ModelRun]) -> None:
        """See `Engine`.

        First comes a plan for each task: which shards it needs. They are made next, by all workers,
        and then its units are measured.
        """
        self.todo = {
            Measure.of(run.name, unit): (run, unit)
            for run in runs
            for unit, _ in run.remaining(stage)
        }
        if not self.todo:
            return
        self.begin()
        plans = dict.fromkeys(self.plan_of(asked) for asked in self.todo)
        queue, busy = deque[Asked](plans), deque[Asked]()
        with progress.bar(stage.title, total=len(self.todo), unit="unit"):
            for asked, outcome in self._ended(queue, waiting=False):
                if isinstance(asked, Plan):
                    self.plans[asked] = outcome
                    of_plan = [unit for unit in self.todo if self.plan_of(unit) == asked]
                    if outcome.death:
                        for unit in of_plan:
                            self.keep(*self.todo[unit], outcome)
                        continue
                    new = [x for x in outcome.shards if x not in self._asked_for]
                    self._asked_for.update(new)
                    queue.extendleft(reversed(new))
                    queue.extend(of_plan)
                    if new and self.shares_cache:
                        self._require_room(queue)
                elif isinstance(asked, Measure):
                    # Units that another run is computing come last; they may be done by then.
                    if outcome.ending == "busy":
                        busy.append(asked)
                    else:
                        self.keep(*self.todo[asked], outcome)
            for asked, outcome in self._ended(busy, waiting=True):
                assert isinstance(asked, Measure)
                self.keep(*self.todo[asked], outcome)

    @staticmethod
    def plan_of(asked: Measure) -> Plan:
        """The plan to which a unit belongs."""
        return Plan(asked.model, asked.task, asked.measurement)

    def _require_room(self, queue: Iterable[Asked]) -> None:
        """Check that the shards that are still to be made fit on the disk.

        Raises:
            UserError: they do not.
        """
        waiting = (*queue, *self.running.values())
        require_room(self._cache, sum(x.n_bytes for x in waiting if isinstance(x, Encode)))

    def keep(self, run: ModelRun, unit: Unit, outcome: UnitOutcome) -> None:
        """Add what became of a unit to its run."""
        progress.advance()
        run.omissions.update(outcome.omissions)
        if outcome.death:
            run.omissions.fail(run.name, unit.title, outcome.death)
        elif outcome.ending == "done":
            run.read(unit)

    def _ended(self, queue: deque[Asked], waiting: bool) -> Iterator[tuple[Asked, UnitOutcome]]:
        """Each unit with what became of it, in the order in which they end.

        Args:
            queue: the units; they are taken out of it, and more may be added meanwhile.
        """
        while queue or self.running:
            while queue and len(self.running) < self.most:
                asked = queue.popleft()
                self.running[self.submit(asked, waiting)] = asked
            done, _ = wait(self.running, timeout=_MOMENT, return_when=FIRST_COMPLETED)
            for said in self.messages():
                self._show(said)
            for future in done:
                asked = self.running.pop(future)
                answer = self.outcome(asked, future)
                if isinstance(answer, Exception):
                    raise answer
                if answer is None:
                    queue.appendleft(asked)
                else:
                    yield asked, answer

    def _show(self, said: Said) -> None:
        """Show what a worker says; what others have said before is a detail."""
        key = said.model, said.event, re.sub(r"[\d.]+ s\b", "", said.message)
        level = "debug" if key in self._said else said.level
        self._said.add(key)
        number = self._numbers.setdefault(said.worker, len(self._numbers) + 1)
        progress.emit(level, said.message, said.event, {**said.fields, "worker": number})
