"""A run: the one loop that makes records. This file reads from top to bottom.

Any number of processes may go through it at once, with the same results: each takes the jobs whose
locks are free. A job whose process is killed is free at once, and made by another.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from probes.common.errors import counted
from probes.common.locks import locked
from probes.common.terminal import progress
from probes.records.result import SCORES
from probes.run.jobs import Job
from probes.run.local_engine import Engine, LocalEngine
from probes.run.model_run import ModelRun
from probes.run.plan import Stage, stages_of


def make_records(
    runs: Sequence[ModelRun],
    show: Callable[[Stage], None] = lambda stage: None,
    engine: Engine | None = None,
) -> None:
    """Make every record that is missing, stage by stage.

    Jobs of other processes come last: the first of them is waited for, and then is the time to look
    what remains. A stage of scores is complete before the next one begins.

    Args:
        show: called after a stage of scores if there was something to make, and others follow.
        engine: where jobs are made; by default as the configuration says.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when torch is imported
    stages, ended = list(stages_of(runs)), set[Job]()
    remaining = [stage.remaining() for stage in stages]
    n_jobs = sum(len(stage.jobs()) for stage in stages)
    # Helpers go through the same loop.
    say = progress.detail if progress.forward else progress.say
    with running(engine or engine_for(runs)) as at, progress.bar("run", n_jobs, "record") as bar:

        def make(jobs: Sequence[Job]) -> list[Job]:
            """Make what is free of some jobs; returns what other processes have."""
            busy_jobs = []
            for job, busy in at.make([x for x in jobs if x not in ended]):
                if busy:
                    busy_jobs.append(job)
                else:
                    ended.add(job)
                    bar.update()
            return busy_jobs

        for number, stage in enumerate(stages, 1):
            clock, jobs = time.perf_counter(), stage.remaining()
            bar.total -= len(stage.jobs()) - len(jobs)  # the others are there
            bar.set_description(stage.title)
            line = f"stage   {number} of {len(stages)} · {stage.title} · "
            about = {"measurement": stage.measurement, "records": len(jobs)}
            if jobs:  # the bar says it in a terminal
                say_begin = say if bar.disable else progress.detail
                say_begin(f"{line}{counted(len(jobs), 'record')}", "stage", **about)
            busy_jobs = make(jobs)
            while busy_jobs and stage.measurement == SCORES:
                wait_for(runs, busy_jobs[0])
                busy_jobs = make(stage.remaining())
            if jobs and not busy_jobs:
                say(f"{line}done in {time.perf_counter() - clock:.1f} s", "stage done", **about)
            if stage.measurement == SCORES and any(remaining[number - 1 :]) and stage != stages[-1]:
                show(stage)
        while busy_jobs := [job for stage in stages for job in make(stage.remaining())]:
            wait_for(runs, busy_jobs[0])


def wait_for(runs: Sequence[ModelRun], job: Job) -> None:
    """Wait until no process is making a job."""
    (run,) = (run for run in runs if run.name == job.model)
    with locked(job.lock, waiting=f"for another process to measure {run.title(job)}"):
        pass


# Where jobs are made.


@contextmanager
def running(engine: Engine) -> Iterator[Engine]:
    """An engine that ends with the block."""
    try:
        yield engine
    except BaseException:
        engine.close(stop=True)
        raise
    engine.close(stop=False)


def engine_for(runs: Sequence[ModelRun]) -> Engine:
    """The engine that the configuration asks for."""
    if runs[0].config.engine == "ray":
        # Imported here: a newcomer with a laptop has no Ray.
        from probes.run.ray_engine import RayEngine

        return RayEngine(runs)
    return LocalEngine(runs, helpers=runs[0].config.workers - 1)
