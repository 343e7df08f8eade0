"""Jobs that are made in this process, and what all places where jobs are made do with each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from probes.common.locks import BusyError, locked
from probes.run.announcements import announce_record
from probes.run.jobs import Job
from probes.run.model_run import ModelRun
from probes.run.workers import WorkerPool

if TYPE_CHECKING:
    from probes.run.runner import JobOutput, Runner


class Engine(Protocol):
    """A place where jobs are made; nothing is loaded before there is one."""

    def make(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, bool]]:
        """Make jobs, and yield each when it has ended, or when another process is making it.

        Returns:
            the job, and whether another process has it.
        """

    def close(self, *, stop: bool) -> None:
        """End everything that was started, and let go of models and stores.

        Args:
            stop: whether jobs are still being made.
        """


@contextmanager
def claimed(run: ModelRun, job: Job) -> Iterator[Job | None]:
    """Hold the lock of a job inside the block.

    Returns:
        the job with what remains of it and its inputs; None if it has just been made.

    Raises:
        BusyError: another process is making it.
    """
    with locked(job.lock, wait=False):
        # Another process may have made it, or the scores behind it, since the job was planned.
        remaining = run.what_remains(job)
        yield None if remaining is None else run.with_inputs(remaining)


def publish(run: ModelRun, job: Job, output: JobOutput) -> None:
    """Write the record of a job, and say so."""
    output.write(run, job)
    run.made(job, output.record)
    announce_record(output.record, run.title(job), job.path)


class LocalEngine:
    """Makes jobs in this process, and in helpers that go through the same loop."""

    def __init__(self, runs: Sequence[ModelRun], helpers: int) -> None:
        self._runs = {run.name: run for run in runs}
        self._helpers = WorkerPool(runs, helpers)
        self._runner: Runner | None = None

    def make(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, bool]]:
        """Make jobs, and yield each; see `Engine`."""
        for job in jobs:
            run = self._runs[job.model]
            try:
                with claimed(run, job) as remaining:
                    if remaining is not None:
                        publish(run, remaining, self._begun().make(remaining))
            except BusyError:
                yield job, True
                continue
            except Exception as error:
                if (left_out := run.left_out(job, error)) is None:
                    raise
                run.omissions.add(left_out)
            yield job, False

    def _begun(self) -> Runner:
        """The runner, now that there is a job."""
        if self._runner is None:
            self._helpers.start()
            from probes.run.runner import Runner

            self._runner = Runner(list(self._runs.values()))
        return self._runner

    def close(self, *, stop: bool) -> None:
        """End helpers and release the model; see `Engine`."""
        self._helpers.end(stop=stop)
        if self._runner is not None:
            self._runner.close()
