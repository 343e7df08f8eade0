"""Computes units in several processes of this machine."""

from __future__ import annotations

import multiprocessing
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing import connection, resource_tracker

from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.engines.model_run import ModelRun
from probes.engines.plan import Unit
from probes.engines.rebuilt import RunRequest
from probes.engines.units import Asked, Encode, Measure, Outcome, Plan
from probes.engines.worker import Said, Started, work
from probes.extraction.store import require_room

_GRACE = 10.0
"""Seconds that a process has to put its files in order before it is killed."""

_REMEDY = "if memory is short, use fewer --workers"


class ProcessEngine:
    """An engine (see `probes.engines.engine`) whose processes compute one unit each at a time.

    A process starts when there is a unit for it, and keeps what it has prepared until the end.
    """

    def __init__(self, runs: Sequence[ModelRun]) -> None:
        self._request, self._most = RunRequest.of(runs), runs[0].config.workers
        self._cache = runs[0].config.cache_dir
        self._workers: list[_Worker] = []
        self._started = 0
        self._said: set[tuple[str, ...]] = set()

    def measure(self, measurement: str, runs: Sequence[ModelRun]) -> None:
        """See `Engine`."""
        todo = {
            Measure.of(run.name, unit): (run, unit)
            for run in runs
            for unit, _ in run.remaining(measurement)
        }
        if not todo:
            return
        with progress.bar(measurement, total=len(todo), unit="unit"):
            # Units that another run is computing come last; they may be done by then.
            busy = self._encode_and_measure(measurement, todo)
            for asked, outcome in self._compute(busy, waiting=True):
                assert isinstance(asked, Measure)
                self._keep(*todo[asked], outcome)

    def _encode_and_measure(
        self, measurement: str, todo: Mapping[Measure, tuple[ModelRun, Unit]]
    ) -> list[Asked]:
        """Compute units and add their records to their runs; return those that others have.

        First comes a plan for each task: which shards are missing for it. They are made next, by
        all workers, and then its units are measured.
        """
        pending: list[Asked] = [
            Plan(model, task, measurement)
            for model, task in dict.fromkeys(unit.prepared for unit in todo)
        ]
        found: set[Asked] = set()
        to_write, busy = 0, list[Asked]()
        for asked, outcome in self._compute(pending, waiting=False):
            if isinstance(asked, Encode):
                to_write -= asked.n_bytes
            elif isinstance(asked, Plan):
                shards = [shard for shard in outcome.shards if shard not in found]
                found.update(shards)
                to_write += sum(shard.n_bytes for shard in shards)
                if shards:
                    require_room(self._cache, to_write)
                of_task = [unit for unit in todo if unit.prepared == asked.prepared]
                if outcome.death:
                    for unit in of_task:
                        self._keep(*todo[unit], outcome)
                else:
                    pending[:0] = shards
                    pending += of_task
            elif outcome.ending == "busy":
                busy.append(asked)
            else:
                self._keep(*todo[asked], outcome)
        return busy

    def _keep(self, run: ModelRun, unit: Unit, outcome: Outcome) -> None:
        """Add what became of a unit to its run."""
        progress.advance()
        run.omissions.update(outcome.omissions)
        if outcome.death:
            run.omissions.fail(run.name, unit.title, outcome.death)
        elif outcome.ending == "done":
            run.read(unit)

    def close(self) -> None:
        """See `Engine`."""
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    def _compute(self, pending: list[Asked], waiting: bool) -> Iterator[tuple[Asked, Outcome]]:
        """Each unit with what became of it, in the order in which they end.

        Args:
            pending: the units; they are taken out of the list, and more may be added meanwhile.
        """
        retried = set[Asked]()
        while pending or any(worker.unit for worker in self._workers):
            self._hand_out(pending, waiting)
            for worker in _with_news(self._workers):
                unit, news = worker.unit, worker.news()
                if news is None:
                    news = self._lost(worker)
                if isinstance(news, Exception):
                    raise news
                if isinstance(news, Said):
                    self._show(news, worker)
                elif isinstance(news, Started):
                    worker.started = True
                elif isinstance(news, Outcome) and unit is not None:
                    worker.unit = None
                    if not news.death:
                        yield unit, news
                    elif unit in retried:
                        why = f"{news.death}, and so was another; {_REMEDY}"
                        yield unit, replace(news, death=why)
                    else:
                        progress.warn(f"{news.death}; another one computes its unit again")
                        retried.add(unit)
                        self._new_worker().start(unit, waiting)

    def _hand_out(self, pending: list[Asked], waiting: bool) -> None:
        """Give a unit to every worker that has none, starting workers if there are too few."""
        while pending:
            idle = next((worker for worker in self._workers if worker.unit is None), None)
            if idle is None:
                if len(self._workers) == self._most:
                    return
                idle = self._new_worker()
            unit = self._choice(idle, pending)
            pending.remove(unit)
            idle.start(unit, waiting)

    def _new_worker(self) -> _Worker:
        self._started += 1
        return _Worker(self._request, self._started, self._workers)

    def _choice(self, worker: _Worker, pending: Sequence[Asked]) -> Asked:
        """The first unit of the model that a worker holds, if there is one.

        Among them, and else among all, the first for which it has prepared the data, or else no
        worker has.
        """
        somewhere = {each for other in self._workers for each in other.prepared}

        def rank(unit: Asked) -> tuple[bool, bool, bool]:
            another = worker.model not in ("", unit.model)
            return another, unit.prepared not in worker.prepared, unit.prepared in somewhere

        return min(pending, key=rank)

    def _lost(self, worker: _Worker) -> Outcome:
        """What became of the unit of a worker that is dead.

        Raises:
            UserError: it has not even started.
        """
        self._workers.remove(worker)
        code = worker.end()
        if code > 0 and not worker.started:
            raise UserError(
                f"--workers {self._most}: a worker could not be started; a Python script has to "
                'call run_probes() below if __name__ == "__main__":.'
            )
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        return Outcome("left out", death=f"a worker was lost ({how})")

    def _show(self, said: Said, worker: _Worker) -> None:
        """Show what a worker says; what others have said before is a detail."""
        model = worker.unit.model if worker.unit else ""
        key = model, said.event, re.sub(r"[\d.]+ s\b", "", said.message)
        level = "debug" if key in self._said else said.level
        self._said.add(key)
        progress.emit(level, said.message, said.event, {**said.fields, "worker": worker.number})


class _Worker:
    """A process that computes one unit at a time.

    Attributes:
        number: counts from 1.
        unit: what it is computing; None if nothing.
        prepared: what is prepared in it; see `OfTask.prepared`.
        model: the model that it holds; empty if none.
        started: whether it has come as far as our code.
    """

    def __init__(self, request: RunRequest, number: int, workers: list[_Worker]) -> None:
        context = multiprocessing.get_context("spawn")
        self.number, self.started = number, False
        self.unit: Asked | None = None
        self.prepared: set[tuple[str, str]] = set()
        self.model = ""
        self.pipe: connection.Connection
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, request), daemon=True)
        # A worker inherits what is blocked: Ctrl-C is for this process, which stops its workers.
        # The tracker unblocks the signal when it is started, so this must not happen in between.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
            workers.append(self)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()

    def start(self, unit: Asked, waiting: bool) -> None:
        """Begin a unit; if the process is dead, `pipe` says so next."""
        self.unit, self.model = unit, unit.model
        self.prepared.add(unit.prepared)
        with suppress(OSError):
            self.pipe.send((unit, waiting))

    def news(self) -> object:
        """What the process has sent; None if it is dead."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            return None

    def end(self) -> int:
        """Wait for the process, which is dead or has been told to end; its exit code."""
        self.process.join(_GRACE)
        self.process.kill()
        self.process.join()
        self.pipe.close()
        return self.process.exitcode or 0


def _with_news(workers: Sequence[_Worker]) -> list[_Worker]:
    """Wait until some workers have sent something, or are dead."""
    ready = connection.wait([worker.pipe for worker in workers])
    return [worker for worker in workers if worker.pipe in ready]
