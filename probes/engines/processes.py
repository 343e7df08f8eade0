"""Computes units in several processes of this machine."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing import connection, resource_tracker

from probes.common.errors import UserError
from probes.engines.dispatcher import Dispatcher, Started, Worker
from probes.engines.model_run import ModelRun
from probes.engines.rebuilt import RunRequest
from probes.engines.units import Asked, UnitOutcome
from probes.engines.worker import work

_GRACE = 5.0
"""Seconds in which processes put their files in order before they are killed; for a whole container
Docker has ten."""


class Process(Worker):
    """A process that computes one unit at a time.

    Attributes:
        started: whether it has come as far as our code.
    """

    def __init__(self, request: RunRequest, number: int) -> None:
        super().__init__(number)
        context = multiprocessing.get_context("spawn")
        self.started = False
        self._until = 0.0
        self.pipe: connection.Connection
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, request), daemon=True)
        self.process.start()
        theirs.close()

    def send(self, unit: Asked, waiting: bool) -> None:
        """See `Worker`; if the process is dead, `pipe` says so next."""
        with suppress(OSError):
            self.pipe.send((unit, waiting))

    def news(self) -> object:
        """What the process has sent; None if it is dead."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            return None

    def stop(self) -> None:
        """See `Worker`."""
        self.process.terminate()
        self._until = time.monotonic() + _GRACE

    def end(self) -> int:
        """See `Worker`."""
        self.process.join(max(0.0, self._until - time.monotonic()))
        self.process.kill()
        self.process.join()
        self.pipe.close()
        return self.process.exitcode or 0


class ProcessEngine(Dispatcher[Process]):
    """An engine whose workers are processes of this machine."""

    remedy = "; if memory is short, use fewer --workers"

    def __init__(self, runs: Sequence[ModelRun]) -> None:
        super().__init__(runs)
        self._most = runs[0].config.workers

    @property
    def most(self) -> int:
        """See `Dispatcher`."""
        return self._most

    def new_worker(self, number: int) -> Process:
        """See `Dispatcher`."""
        # A worker inherits what is blocked: Ctrl-C is for this process, which stops its workers.
        # The tracker unblocks the signal when it is started, so this must not happen in between.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            worker = Process(self.request, number)
            self.workers.append(worker)
            return worker
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def news(self) -> Iterator[tuple[Process, object]]:
        """See `Dispatcher`."""
        ready = connection.wait([worker.pipe for worker in self.workers])
        for worker in [worker for worker in self.workers if worker.pipe in ready]:
            news = worker.news()
            if news is None:
                news = self._lost(worker)
            if isinstance(news, Started):
                worker.started = True
            else:
                yield worker, news

    def _lost(self, worker: Process) -> UnitOutcome:
        """What became of the unit of a worker that is dead.

        Raises:
            UserError: it has not even started.
        """
        self.workers.remove(worker)
        worker.process.join(_GRACE)
        code = worker.end()
        if code > 0 and not worker.started:
            raise UserError(
                f"--workers {self._most}: a worker could not be started; a Python script has to "
                'call run_probes() below if __name__ == "__main__":.'
            )
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        return UnitOutcome("left out", death=f"a worker was lost ({how})")
