"""Computes units in workers, by the executor of a library."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait

from probes.common.terminal import progress
from probes.run.engine import Step
from probes.run.model_run import ModelRun
from probes.run.rebuilt import RunRequest
from probes.run.unit import Answer, Asked, Encode, FindShards, Measure, Said, UnitOutcome
from probes.extraction.store import require_room

_MOMENT = 0.2
"""Seconds after which messages are shown."""


class PoolEngine(ABC):
    """An engine (see `probes.run.engine`) of several workers.

    Attributes:
        request: what a worker needs to rebuild the run.
        todo: the steps of the stage that is being made.
        plans: shards that have been found, by model, task and measurement.
        running: what is being computed.
    """

    def __init__(self, runs: Sequence[ModelRun]) -> None:
        self.request = RunRequest.of(runs)
        self.todo: dict[Measure, Step] = {}
        self.plans: dict[FindShards, UnitOutcome] = {}
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

    def measure(self, steps: Sequence[Step]) -> Iterator[Step]:
        """See `Engine`.

        First it is found out which shards each task needs. They are made next, by all workers, and
        then its units are measured.
        """
        if not steps:
            return
        self.todo = {Measure.of(step.run.name, step.unit): step for step in steps}
        self.begin()
        queue = deque[Asked](dict.fromkeys(map(self.plan_of, self.todo)))
        busy = deque[Asked]()
        for asked, outcome in self._ended(queue, waiting=False):
            if isinstance(asked, FindShards):
                self.plans[asked] = outcome
                of_plan = [unit for unit in self.todo if self.plan_of(unit) == asked]
                if outcome.death:
                    yield from (self.keep(self.todo[unit], outcome) for unit in of_plan)
                else:
                    self._hand_in(outcome.shards, queue)
                    queue.extend(of_plan)
            elif isinstance(asked, Measure):
                # Units that another run is computing come last; they may be done by then.
                if outcome.ending == "busy":
                    busy.append(asked)
                else:
                    yield self.keep(self.todo[asked], outcome)
        for asked, outcome in self._ended(busy, waiting=True):
            assert isinstance(asked, Measure)
            yield self.keep(self.todo[asked], outcome)

    @staticmethod
    def plan_of(asked: Measure) -> FindShards:
        """The plan to which a unit belongs."""
        return FindShards(asked.model, asked.task, asked.measurement)

    def _hand_in(self, shards: Sequence[Encode], queue: deque[Asked]) -> None:
        """Put the shards that are new at the head of a queue.

        Raises:
            UserError: what is to be encoded does not fit on the disk.
        """
        new = [shard for shard in shards if shard not in self._asked_for]
        self._asked_for.update(new)
        queue.extendleft(reversed(new))
        if new and self.shares_cache:
            waiting = (*queue, *self.running.values())
            require_room(self._cache, sum(x.n_bytes for x in waiting if isinstance(x, Encode)))

    def keep(self, step: Step, outcome: UnitOutcome) -> Step:
        """Add what became of a step to its run."""
        run, unit, _ = step
        run.omissions.update(outcome.omissions)
        if outcome.death:
            run.omissions.fail(run.name, unit.title, outcome.death)
        elif outcome.ending == "done":
            run.read(unit)
        return step

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
