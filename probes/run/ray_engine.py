"""`--engine ray`: actors that keep their models, and a queue of jobs in the driver.

An actor has the GPUs of one model, or a group of cores. The driver holds the lock of each job that
an actor makes, and writes its record. Nothing but settings, jobs and records travels: where a node
does not share the driver's files, its actors encode what its own cache lacks.
"""

from __future__ import annotations

import os
import pickle
import time
import traceback
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from typing import Any

from probes.common.errors import UserError, counted
from probes.common.files import default_cache
from probes.common.locks import BusyError
from probes.common.origin import described
from probes.common.process import infrequent_garbage_collection
from probes.common.terminal import progress
from probes.run.cluster import alive, caches, connect
from probes.run.jobs import Job
from probes.run.local_engine import claimed, publish
from probes.run.model_run import ModelRun
from probes.run.task_choice import LeftOutError
from probes.run.workers import RunRequest

_THREADS = 4
"""CPU threads of each actor, if --threads does not say."""

_TRIES = 3
"""How often a job is given out whose actor is lost."""

_MOMENT, _PATIENCE = 0.2, 60
"""Seconds after which messages are shown; and after which a run says that it waits for room."""


class RayWorker:
    """An actor: a process that keeps the runner, and with it the model, from job to job.

    Args:
        shared: ids of the nodes that read and write the driver's files.
        messages: a queue of Ray, which takes what it says.
    """

    def __init__(self, request: RunRequest, shared: frozenset[str], messages: Any) -> None:
        import ray

        os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when torch is imported
        # Ray's processes work where Ray was started. A node without the folder can do with names.
        if os.path.isdir(request.folder):
            os.chdir(request.folder)
        self._node = ray.get_runtime_context().get_node_id()
        if self._node not in shared:
            request = request.with_settings(cache_dir=str(default_cache()))
        self._request, self._messages = request, messages

    def node(self) -> str:
        """The node that it is on; answers when it has been started, or started again."""
        return str(self._node)

    @cached_property
    def _runs(self) -> dict[str, ModelRun]:
        return {run.name: run for run in self._request.runs()}

    @cached_property
    def _runner(self) -> Any:
        from probes.run.runner import Runner

        return Runner(list(self._runs.values()))

    def make(self, job: Job) -> Any:
        """Make the record of a job; an exception that the driver can read is returned, too."""
        worker = f"{self._node} {os.getpid()}"

        def say(*message: object) -> None:
            self._messages.put((worker, *message))

        with progress.forwarded(say), infrequent_garbage_collection():
            try:
                self._runs[job.model].require_same(job)
                return self._runner.make(job)
            except Exception as error:  # noqa: BLE001 - raised where the run is
                return portable(error)


def portable(error: Exception) -> Exception:
    """An exception that another process can read: this one, or one that says the same.

    Where it was raised is in a note.
    """
    if isinstance(error, LeftOutError):
        return error.with_traceback(None)
    if isinstance(error, UserError):
        return UserError(str(error))
    note = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    except Exception:  # noqa: BLE001 - whatever its class does
        error = RuntimeError(described(error))
    error.add_note(note)
    return error


class RayEngine:
    """A queue of jobs, and the actors that make them."""

    def __init__(self, runs: Sequence[ModelRun]) -> None:
        self._runs = {run.name: run for run in runs}
        self._config = runs[0].config
        self._ray: Any = None
        self._started_here = False
        self._messages: Any = None
        self._caches: dict[str, str] = {}  # of each node; empty if it shares the driver's files
        self._node: dict[Any, str] = {}  # of each actor, as far as they are known
        self._idle = deque[Any]()
        self._making: dict[Any, tuple[Any, Job | None]] = {}  # by future: actor, and its job
        self._claims: dict[Job, ExitStack] = {}  # the locks of jobs that are being made
        self._model: dict[Any, str] = {}  # what each actor has loaded last
        self._tries = Counter[Job]()
        self._workers: dict[str, int] = {}
        self._heard = 0.0

    def make(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, bool]]:
        """Make jobs, and yield each; see `Engine`."""
        queue = deque(jobs)
        if queue:
            self._begin()
        while queue or self._claims:
            yield from self._give_out(queue)
            for future in self._done() if queue or self._claims else ():
                yield from self._collect(future, queue)

    # The actors, and the room that there is for them.

    def _begin(self) -> None:
        """Connect with Ray, or start it, and start an actor wherever there is room."""
        first = self._ray is None
        request = RunRequest.of(list(self._runs.values()))
        if first:
            self._ray, self._started_here = connect(self._config.address)
            progress.said = set()
            self._messages = self._new_queue()
        nodes = {str(node["NodeID"]): node for node in alive(self._ray)}
        if new := {x: str(nodes[x]["NodeManagerAddress"]) for x in nodes if x not in self._caches}:
            self._caches |= caches(self._ray, self._config, new)
        room = [node["Resources"] for node in nodes.values()]
        gpus, threads = self._gpus(room), self._threads(room)
        per_node = [self._room(node, threads, gpus) for node in room]
        most = sum(per_node)
        # The default of --workers is 1, and a cluster is there to be filled.
        if "workers" in self._config.model_fields_set:
            most = min(most, self._config.workers)
        if not most:
            raise UserError(
                f"--threads {threads}: no node of the cluster has as many cores; give fewer."
            )
        # An actor is a plain run of one process, which must not look for a cluster itself.
        settings = {"threads": threads, "workers": max(per_node), "engine": "local"}
        settings |= {"address": None, "gpus_per_model": None}
        if gpus > 1:
            settings["device"] = "map"
        shared = frozenset(node for node, cache in self._caches.items() if not cache)
        maker = self._ray.remote(RayWorker).options(
            num_cpus=threads, num_gpus=gpus, max_restarts=-1, scheduling_strategy="SPREAD"
        )
        while len(self._node) < most:
            actor = maker.remote(request.with_settings(**settings), shared, self._messages)
            self._wait_for_start(actor)
        if first and self._config.address:
            apart = sum(map(bool, self._caches.values()))
            progress.say(
                f"cluster {counted(len(nodes), 'node')}, {counted(most, 'worker')} · "
                + (
                    f"{counted(apart, 'node')} with files of its own"
                    if apart
                    else "files are shared"
                ),
                "cluster",
            )

    def _new_queue(self) -> Any:
        """A queue on the driver's node, which takes what actors say."""
        from ray.util.queue import Queue
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        driver_node = self._ray.get_runtime_context().get_node_id()
        strategy = NodeAffinitySchedulingStrategy(driver_node, soft=False)
        return Queue(actor_options={"num_cpus": 0, "scheduling_strategy": strategy})

    def _gpus(self, room: Sequence[dict[str, float]]) -> int:
        """GPUs of an actor."""
        device, n_gpus = self._config.device, self._config.gpus_per_model
        there = max((int(node.get("GPU", 0)) for node in room), default=0)
        if n_gpus and n_gpus > there:
            raise UserError(f"--gpus-per-model {n_gpus}: no node has more than {there} GPUs.")
        needs_gpu = device in ("auto", "map") or device.startswith("cuda")
        return (n_gpus or 1) if needs_gpu and there else 0

    def _threads(self, room: Sequence[dict[str, float]]) -> int:
        """Cores of an actor."""
        smallest = min((int(n) for node in room if (n := node.get("CPU", 0))), default=1)
        return self._config.threads or min(_THREADS, smallest)

    @staticmethod
    def _room(node: dict[str, float], threads: int, gpus: int) -> int:
        """Number of actors that a node has room for."""
        by_cores = int(node.get("CPU", 0)) // threads
        return min(by_cores, int(node.get("GPU", 0)) // gpus) if gpus else by_cores

    def _wait_for_start(self, actor: Any) -> None:
        """Have an actor among the idle ones as soon as it has been started."""
        self._node[actor] = ""
        self._model.pop(actor, None)
        self._making[actor.node.options(max_task_retries=-1).remote()] = actor, None

    # The queue.

    def _give_out(self, queue: deque[Job]) -> Iterator[tuple[Job, bool]]:
        """Give jobs to idle actors; yields those that need no actor, or that others are making."""
        while queue and self._idle:
            actor, claim = self._idle[0], ExitStack()
            job = self._next(queue, actor)
            run = self._runs[job.model]
            try:
                remaining = claim.enter_context(claimed(run, job))
            except BusyError:
                yield job, True
            except Exception as error:
                if (left_out := run.left_out(job, error)) is None:
                    raise
                run.omissions.add(left_out)
                yield job, False
            else:
                if remaining is None:
                    claim.close()
                    yield job, False
                    continue
                self._idle.popleft()
                self._claims[job], self._model[actor] = claim, job.model
                # Only the actor needs the predictions that `remaining` has.
                self._making[actor.make.remote(remaining)] = actor, job

    def _next(self, queue: deque[Job], actor: Any) -> Job:
        """The next job for an actor: one of the model that it has, or of one that nobody has."""
        # Loading a model takes longer than most jobs.
        jobs_of_model = (job for job in queue if job.model == self._model.get(actor))
        free = (job for job in queue if job.model not in self._model.values())
        job = next(jobs_of_model, None) or next(free, None) or queue[0]
        queue.remove(job)
        return job

    def _done(self) -> list[Any]:
        """The futures that have come; says so if there has been no room for a minute."""
        if not self._node:
            raise UserError("--engine ray: all workers are lost; see Ray's messages.")
        done, _ = self._ray.wait(list(self._making), num_returns=1, timeout=_MOMENT)
        self._show_messages()
        clock = time.monotonic()
        if done or self._claims or not self._heard:
            self._heard = clock
        elif clock > self._heard + _PATIENCE:
            self._heard, free = clock, self._ray.available_resources()
            progress.warn(
                f"waiting for the cluster, which has room for no worker: {free.get('CPU', 0):g} "
                f"cores and {free.get('GPU', 0):g} GPUs are free"
            )
        return list(done)

    def _collect(self, future: Any, queue: deque[Job]) -> Iterator[tuple[Job, bool]]:
        """Write the record that has come, and yield its job, unless it is to be made again."""
        actor, job = self._making.pop(future)
        try:
            output = self._ray.get(future)
        except self._ray.exceptions.RayActorError as error:
            yield from self._lost(actor, job, queue, error)
            return
        if job is None:  # it has started
            self._node[actor] = output
            self._idle.append(actor)
            return
        run, claim = self._runs[job.model], self._claims.pop(job)
        with claim:
            self._idle.append(actor)
            if isinstance(output, LeftOutError):
                run.omissions.add(output)
            elif isinstance(output, Exception):
                raise output
            else:
                publish(run, job, output)
        yield job, False

    def _lost(
        self, actor: Any, job: Job | None, queue: deque[Job], error: Exception
    ) -> Iterator[tuple[Job, bool]]:
        """Put the job of a lost actor back; Ray starts the actor again where there is room."""
        progress.detail(f"lost    {error}", "lost")
        if job is None:
            del self._node[actor]
            return
        self._claims.pop(job).close()
        self._wait_for_start(actor)
        self._tries[job] += 1
        if self._tries[job] < _TRIES:
            queue.appendleft(job)
            return
        reason = f"its worker was lost, and so were {_TRIES - 1} others"
        self._runs[job.model].omissions.fail(job.model, job.title, reason)
        yield job, False

    def _show_messages(self) -> None:
        if n := self._messages.qsize():
            for worker, level, message, event, fields in self._messages.get_nowait_batch(n):
                number = self._workers.setdefault(worker, len(self._workers) + 1)
                progress.emit(level, message, event, {**fields, "worker": number})

    def close(self, *, stop: bool) -> None:
        """End at once, since whatever a killed process leaves is made again."""
        while self._claims:
            self._claims.popitem()[1].close()
        progress.said = None
        if self._ray is None:
            return
        with suppress(self._ray.exceptions.RayError):
            self._show_messages()
            for actor in self._node:
                self._ray.kill(actor, no_restart=True)
            self._messages.shutdown(force=True)
        if self._started_here:
            self._ray.shutdown()
