"""Computes units in several processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from itertools import count
from multiprocessing import connection, resource_tracker
from threading import RLock, Thread

from tqdm import tqdm

from probes.common.errors import UserError
from probes.common.stopping import stopping_at_sigterm
from probes.common.terminal import progress
from probes.run.model_run import ModelRun
from probes.run.pool import PoolEngine
from probes.run.rebuilt import RunRequest, answer, rebuilt
from probes.run.unit import Answer, Asked, Said, UnitOutcome

_GRACE = 5.0
"""Seconds in which processes put their files in order before they are killed; for a whole container
Docker has ten."""


class Process:
    """A pool of one process: if it is killed, nothing else is lost, and its unit is known.

    Attributes:
        number: its own among all that were started, from 1.
        process: what computes; None before there is a unit for it.
        unit: what is being computed; None if nothing is.
    """

    def __init__(self, number: int, of: int) -> None:
        self.number, self._of = number, of
        self.process: multiprocessing.process.BaseProcess | None = None
        self.unit: Future[Answer] | None = None
        self._started = False
        context = multiprocessing.get_context("spawn")
        self._pipe, self._theirs = context.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(1, context, initializer=_begin, initargs=(self._theirs,))

    def submit(self, request: RunRequest, asked: Asked, waiting: bool) -> Future[Answer]:
        """Begin a unit."""
        if self.process is None:
            before = set(multiprocessing.active_children())
            self.unit = self._pool.submit(_compute, request, asked, waiting, f"{self.number}")
            (self.process,) = set(multiprocessing.active_children()) - before
            self._theirs.close()
        else:
            self.unit = self._pool.submit(_compute, request, asked, waiting, f"{self.number}")
        return self.unit

    def messages(self) -> Iterable[Said]:
        """What it has said."""
        with suppress(EOFError, OSError):
            while self._pipe.poll():
                if isinstance(said := self._pipe.recv(), Said):
                    yield said
                self._started = True

    def stop(self) -> None:
        """Tell it to end, with files and locks in order."""
        if self.process is not None:
            self.process.terminate()

    def end(self, until: float) -> None:
        """Wait until it has ended; from a moment on, kill it."""
        if self.process is not None:
            self.process.join(max(0.0, until - time.monotonic()))
            self.process.kill()
        self._pool.shutdown()
        self._pipe.close()

    def death(self) -> str:
        """How it has died.

        Raises:
            UserError: it has not even started.
        """
        assert self.process is not None
        until = time.monotonic() + _GRACE
        # The pool's own thread may be the one that has learnt it, and is about to say so.
        while (code := self.process.exitcode) is None and time.monotonic() < until:
            time.sleep(0.01)
        code = code or 0
        if code > 0 and not self._started:
            raise UserError(
                f"--workers {self._of}: a worker could not be started; a Python script has to call "
                'run_probes() below if __name__ == "__main__":.'
            )
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"


class ProcessEngine(PoolEngine):
    """An engine whose workers are processes of this machine."""

    def __init__(self, runs: Sequence[ModelRun]) -> None:
        super().__init__(runs)
        self._most = runs[0].config.workers
        self._next = count(1)
        self._workers: list[Process] = []
        self._lost = Counter[Asked]()

    def begin(self) -> None:
        """See `PoolEngine`."""
        while len(self._workers) < self._most:
            self._workers.append(self._new())

    def _new(self) -> Process:
        return Process(next(self._next), self._most)

    @property
    def most(self) -> int:
        """See `PoolEngine`."""
        return self._most

    def submit(self, asked: Asked, waiting: bool) -> Future[Answer]:
        """See `PoolEngine`."""
        worker = next(each for each in self._workers if each.unit is None)
        # A worker inherits what is blocked: Ctrl-C is for this process, which stops its workers.
        # A stop waits until a worker that is being started is known.
        # The tracker unblocks signals when it is started, so this must not happen in between.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        try:
            with suppress(BrokenProcessPool):
                return worker.submit(self.request, asked, waiting)
            # It was killed while it had nothing to do.
            return self._replaced(worker).submit(self.request, asked, waiting)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _replaced(self, worker: Process) -> Process:
        """A new worker in the place of one that is dead."""
        worker.end(0)
        place = self._workers.index(worker)
        self._workers[place] = self._new()
        return self._workers[place]

    def outcome(self, asked: Asked, future: Future[Answer]) -> Answer | None:
        """See `PoolEngine`; a unit whose worker was lost is computed once more."""
        (worker,) = (each for each in self._workers if each.unit is future)
        worker.unit = None
        with suppress(BrokenProcessPool):
            return future.result()
        lost = f"a worker was lost ({worker.death()})"
        self._replaced(worker)
        self._lost[asked] += 1
        if self._lost[asked] > 1:
            remedy = "if memory is short, use fewer --workers"
            return UnitOutcome("left out", death=f"{lost}, and so was another; {remedy}")
        progress.warn(f"{lost}; another one computes its unit again: {asked}")
        return None

    def messages(self) -> Iterable[Said]:
        """See `PoolEngine`."""
        return [said for worker in self._workers for said in worker.messages()]

    def close(self) -> None:
        """See `Engine`."""
        until = time.monotonic() + _GRACE
        for worker in self._workers:
            worker.stop()
        for worker in self._workers:
            worker.end(until)


_pipe: connection.Connection
"""In a worker: to the process that has started it."""


def _begin(pipe: connection.Connection) -> None:
    global _pipe
    _pipe = pipe
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    Thread(target=_end_with_parent, daemon=True).start()
    # The default is a semaphore of the system, which would outlive a worker that is killed.
    tqdm.set_lock(RLock())
    pipe.send(None)


def _compute(request: RunRequest, asked: Asked, waiting: bool, name: str) -> Answer:
    """What a worker does with a unit."""
    # A worker that is stopped ends as a run does at Ctrl-C, with locks and files in order.
    with suppress(KeyboardInterrupt), stopping_at_sigterm():
        return answer(
            lambda: rebuilt(request).compute(asked, wait=waiting), asked, name, _pipe.send
        )
    # At once: the interpreter takes seconds to clear up torch.
    with suppress(OSError):
        print(end="", flush=True)  # what a plug-in has printed
    os._exit(0)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)
