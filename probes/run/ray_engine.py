"""Computes units as tasks of Ray, which places them, tries them again, and moves what they need."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.common.wording import counted
from probes.run.cluster import alive, caches, connect
from probes.run.engine import Step
from probes.run.model_run import ModelRun
from probes.run.pool import PoolEngine
from probes.run.ray_task import Given, Unwritable, compute, record_files, write_records
from probes.run.unit import Answer, Asked, Encode, Measure, Said, UnitOutcome

_THREADS = 4
"""CPU threads of each task, if --threads does not say."""

_RETRIES = 2
"""How often Ray computes a unit again whose process or node was lost."""


class RayEngine(PoolEngine):
    """An engine whose workers are processes of Ray.

    With GPUs each unit has one; without, as many cores as threads. Where nodes do not share the
    driver's files, shards stay where they were made, as objects of Ray: who measures gets those
    that it needs, preferably where they are, and the driver alone writes results.
    """

    def __init__(self, runs: Sequence[ModelRun]) -> None:
        super().__init__(runs)
        self._config = runs[0].config
        self.ray: Any = None
        self._started_here = False
        self._ends_agents: subprocess.Popen[bytes] | None = None
        self._nodes: dict[str, dict[str, Any]] = {}
        self._caches: dict[str, str] = {}
        self._unwritable: dict[str, str] = {}
        self._messages: Any = None
        self._remote: Any = None
        self._answers: dict[Future[Answer], Any] = {}
        self._shards: dict[Encode, Any] = {}

    def begin(self) -> None:
        """See `PoolEngine`: Ray is connected with, or started.

        Raises:
            UserError: there is no Ray, or it has no room for a unit.
        """
        first = self.ray is None
        if first:
            self.ray, self._started_here = connect(self._config.address)
            if self._started_here:
                self._ends_agents = end_agents_with_driver()
            self._messages = self._new_queue()
        self._look()
        if first:
            # A process that has had one of several GPUs cannot be given another one.
            once = int(max(self._most_of("GPU"), default=0) > 1)
            self._remote = self.ray.remote(max_calls=once)(compute)
        if not self._room:
            raise UserError(
                f"--threads {self._threads}: no node of the cluster has as many cores; give fewer."
            )
        if first and self._config.address:
            own = sum(map(bool, self._caches.values()))
            progress.say(
                f"cluster {counted(len(self._nodes), 'node')}, {counted(self.most, 'worker')} · "
                + (f"{counted(own, 'node')} with files of its own" if own else "files are shared"),
                "cluster",
            )

    def _new_queue(self) -> Any:
        """A queue on the driver's node, which takes what workers say."""
        from ray.util.queue import Queue
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = self.ray.get_runtime_context().get_node_id()
        strategy = NodeAffinitySchedulingStrategy(here, soft=False)
        return Queue(actor_options={"num_cpus": 0, "scheduling_strategy": strategy})

    def _look(self) -> None:
        """Find the nodes that are alive, and what those that are new share with the driver."""
        nodes = {str(node["NodeID"]): node for node in alive(self.ray)}
        self._nodes = {name: node for name, node in nodes.items() if name not in self._unwritable}
        new = {
            x: str(y["NodeManagerAddress"]) for x, y in self._nodes.items() if x not in self._caches
        }
        if new:
            self._caches |= caches(self.ray, self._config, new)

    def _most_of(self, resource: str) -> list[int]:
        """What each node has of a resource."""
        return [int(node["Resources"].get(resource, 0)) for node in self._nodes.values()]

    @property
    def _gpus(self) -> int:
        """GPUs of a unit."""
        wanted = self._config.device == "auto" or self._config.device.startswith("cuda")
        return int(wanted and any(self._most_of("GPU")))

    @property
    def _threads(self) -> int:
        smallest = min(filter(None, self._most_of("CPU")), default=1)
        return self._config.threads or min(_THREADS, smallest)

    @property
    def _room(self) -> int:
        """How many units the nodes have room for at once."""
        by_cores = [cpus // self._threads for cpus in self._most_of("CPU")]
        if not self._gpus:
            return sum(by_cores)
        return sum(map(min, by_cores, self._most_of("GPU")))

    @property
    def most(self) -> int:
        """See `PoolEngine`."""
        limited = "workers" in self._config.model_fields_set
        return min(self._room, self._config.workers) if limited else self._room

    @property
    def shares_cache(self) -> bool:
        """See `PoolEngine`."""
        return not any(self._caches.values())

    def submit(self, asked: Asked, waiting: bool) -> Future[Answer]:
        """See `PoolEngine`."""
        threads, per_node = self._threads, max(self._most_of("CPU")) // self._threads
        settings = self._config.model_copy(
            update={"threads": threads, "workers": per_node, "engine": "local", "address": None}
        )
        request = replace(self.request, settings=settings.model_dump_json())
        shared = frozenset(node for node, cache in self._caches.items() if not cache)
        plan = self.plans.get(self.plan_of(asked)) if isinstance(asked, Measure) else None
        options = {
            "num_cpus": threads,
            "num_gpus": self._gpus,
            "memory": min(plan.memory if plan else 0, *self._most_of("memory")),
            "num_returns": 2,
            "max_retries": _RETRIES,
            "name": str(asked),
        }
        if self._unwritable:
            others = f"!in({','.join(self._unwritable)})"
            options["label_selector"] = {"ray.io/node-id": others}
        needs: list[Any] = []
        records: dict[str, bytes] = {}
        if not self.shares_cache:
            records = self._records_behind(asked)
        if isinstance(asked, Measure) and not self.shares_cache:
            needs = [self._shards[shard] for shard in plan.shards] if plan else []
        given = Given(request, shared, waiting, records, self._messages)
        found, shards = self._remote.options(**options).remote(given, asked, *needs)
        if isinstance(asked, Encode):
            self._shards[asked] = shards
        future: Future[Answer] = found.future()
        self._answers[future] = found
        return future

    def outcome(self, asked: Asked, future: Future[Answer]) -> Answer | None:
        """See `PoolEngine`; Ray has tried a unit again, but for those of unwritable nodes."""
        del self._answers[future]
        try:
            found: Answer | Unwritable = future.result()
        except self.ray.exceptions.RayError as error:
            progress.detail(f"lost    {error}", "lost")
            why = f"its worker was lost, and so were {_RETRIES} others"
            return UnitOutcome("left out", death=why)
        if not isinstance(found, Unwritable):
            return found
        if found.node not in self._unwritable:
            self._unwritable[found.node] = found.why
            progress.warn(f"a node cannot be written to ({found.why}); others compute its units")
        threads = self._threads
        self._look()
        if not self._nodes:
            raise UserError(
                "--engine ray: no node of the cluster can be written to, for the reasons above; "
                "free some space, and run again."
            )
        if not self._room:
            raise UserError(
                f"--threads {threads}: no node that is left has as many cores; give fewer."
            )
        return None

    def messages(self) -> Iterator[Said]:
        """See `PoolEngine`."""
        if n := self._messages.qsize():
            yield from self._messages.get_nowait_batch(n)

    def _records_behind(self, asked: Asked) -> dict[str, bytes]:
        """The records that units read: their own, and the scores that they stand behind."""
        return {
            str(each.path.relative_to(run.config.output).with_suffix(suffix)): content
            for measure, (run, unit, _) in self.todo.items()
            if asked in (measure, self.plan_of(measure))
            for each in (unit, *run.units_behind(unit))
            for suffix, content in record_files(each.path).items()
        }

    def keep(self, step: Step, outcome: UnitOutcome) -> Step:
        """See `PoolEngine`; a record that comes as bytes is written."""
        path = step.unit.path
        names = {path.with_suffix(x).name: content for x, content in outcome.files.items()}
        write_records(path.parent, names)
        return super().keep(step, outcome)

    def close(self) -> None:
        """See `Engine`: at once, since whatever a killed process leaves is made again."""
        if self.ray is None:
            return
        for answer in self._answers.values():
            self.ray.cancel(answer, force=True)
        self._messages.shutdown(force=True)
        if self._started_here:
            self.ray.shutdown()
        if self._ends_agents:
            self._ends_agents.communicate()


_END = """\
import contextlib, signal, sys
sys.stdin.read()
for handle in map(int, sys.argv[1:]):
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGKILL)
"""


def end_agents_with_driver() -> subprocess.Popen[bytes] | None:
    """Start a process that ends Ray's agents with this one, even if this one is killed.

    Most of Ray ends at once; its agents would wait for a minute for a server that has ended. The
    process ends them when its standard input is closed.

    Returns:
        the process; None where Linux's handles of processes are missing.
    """
    if sys.platform != "linux":
        return None
    import psutil  # type: ignore[import-untyped]  # Ray brings it along

    handles: list[int] = []
    try:
        for raylet in psutil.Process().children():
            if raylet.name() == "raylet":
                # Unlike numbers, handles never come to mean other processes.
                handles += [os.pidfd_open(agent.pid) for agent in raylet.children()]
        command = [sys.executable, "-Sc", _END, *map(str, handles)]
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, pass_fds=handles, start_new_session=True
        )
    except (OSError, psutil.Error):
        return None
    finally:
        for handle in handles:
            os.close(handle)
