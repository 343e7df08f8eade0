"""Computes units on Ray, in one actor for each worker."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.common.wording import counted
from probes.engines.cluster import Node, connect, nodes_of
from probes.engines.dispatcher import Dispatcher, Worker
from probes.engines.model_run import ModelRun
from probes.engines.plan import Unit
from probes.engines.ray_agents import end_agents_with_driver
from probes.engines.ray_worker import RayWorker, Reply, files_of, write_files
from probes.engines.units import Asked, Measure, UnitOutcome

_THREADS = 4
"""CPU threads of each actor, if --threads does not say."""


class Actor(Worker):
    """An actor on a node.

    Attributes:
        node: where it is.
        pending: what it is computing, as Ray's reference; None if nothing.
    """

    def __init__(self, number: int, node: Node, actor: Any, engine: RayEngine) -> None:
        super().__init__(number)
        self.node, self.where = node, node.cache and node.id
        self.actor, self.pending, self._engine = actor, None, engine

    def send(self, unit: Asked, waiting: bool) -> None:
        """See `Worker`."""
        given = self._engine.records_behind(unit) if self.where else {}
        self.pending = self.actor.compute.remote(unit, waiting, given)

    def stop(self) -> None:
        """See `Worker`: at once, since whatever a killed process leaves is made again."""
        self._engine.ray.kill(self.actor)

    def end(self) -> int:
        """See `Worker`."""
        return 0


class RayEngine(Dispatcher[Actor]):
    """An engine whose workers are actors of Ray, as many as its nodes have room for.

    With GPUs each actor has one; without, as many cores as threads.
    """

    retries = 2

    def __init__(self, runs: Sequence[ModelRun]) -> None:
        super().__init__(runs)
        self._config = runs[0].config
        self.ray: Any = None
        self._started_here = False
        self._ends_agents: subprocess.Popen[bytes] | None = None
        self._nodes: dict[str, Node] = {}
        self._given_up: set[str] = set()

    def begin(self) -> None:
        """See `Dispatcher`: Ray is connected with, or started.

        Raises:
            UserError: there is no Ray, or it has no room for a worker.
        """
        if self.ray is not None:
            return
        self.ray, self._started_here = connect(self._config.address)
        if self._started_here:
            self._ends_agents = end_agents_with_driver()
        nodes = self.nodes
        if not any(map(self._room, nodes)):
            raise UserError(
                f"--threads {self._threads}: no node of the cluster has as many cores; give fewer."
            )
        if self._config.address:
            own = sum(bool(node.cache) for node in nodes)
            progress.say(
                f"cluster {counted(len(nodes), 'node')}, {counted(self.most, 'worker')} · "
                + (f"{counted(own, 'node')} with files of its own" if own else "files are shared"),
                "cluster",
            )

    @property
    def nodes(self) -> list[Node]:
        """The nodes that are alive and can be written to."""
        alive = nodes_of(self.ray, self._config, self._nodes)
        return [node for node in alive if node.id not in self._given_up]

    @property
    def _gpus(self) -> int:
        """GPUs of an actor."""
        wanted = self._config.device == "auto" or self._config.device.startswith("cuda")
        return int(wanted and any(node.gpus for node in self._nodes.values()))

    @property
    def _threads(self) -> int:
        smallest = min((node.cpus for node in self._nodes.values() if node.cpus), default=1)
        return self._config.threads or min(_THREADS, smallest)

    def _room(self, node: Node) -> int:
        """How many actors a node has room for."""
        by_cores = node.cpus // self._threads
        return min(by_cores, node.gpus) if self._gpus else by_cores

    @property
    def most(self) -> int:
        """See `Dispatcher`."""
        room = sum(map(self._room, self.nodes))
        limited = "workers" in self._config.model_fields_set
        return min(room, self._config.workers) if limited else room

    @property
    def shares_cache(self) -> bool:
        """See `Dispatcher`."""
        return not any(node.cache for node in self._nodes.values())

    def new_worker(self, number: int) -> Actor:
        """See `Dispatcher`: on the node with the fewest workers for its room."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        if not (nodes := [node for node in self.nodes if self._room(node)]):
            raise UserError(
                "--engine ray: no node of the cluster is left, for the reasons above; run again."
            )

        def load(node: Node) -> float:
            return sum(x.node.id == node.id for x in self.workers) / self._room(node)

        node = min(nodes, key=load)
        settings = self._config.model_copy(
            update={
                "threads": self._threads,
                "workers": self._room(node),
                "engine": "local",
                "address": None,
            }
        )
        request = replace(self.request, settings=settings.model_dump_json())
        options = {
            "num_cpus": self._threads,
            "num_gpus": self._gpus,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node.id, soft=False),
        }
        actor = self.ray.remote(RayWorker).options(**options).remote(request, node.cache)
        worker = Actor(number, node, actor, self)
        self.workers.append(worker)
        return worker

    def news(self) -> Iterator[tuple[Actor, object]]:
        """See `Dispatcher`."""
        busy = {worker.pending: worker for worker in self.workers if worker.pending is not None}
        ready, _ = self.ray.wait(list(busy))
        for ref in ready:
            worker = busy[ref]
            worker.pending = None
            try:
                reply: Reply = self.ray.get(ref)
            except self.ray.exceptions.RayError as error:
                yield worker, self._lost(worker, error)
                continue
            for said in reply.said:
                yield worker, said
            if isinstance(reply.answer, UnitOutcome) and reply.answer.death:
                self._given_up.add(worker.node.id)
            yield worker, reply.answer
        for worker in [x for x in self.workers if x.node.id in self._given_up]:
            if worker.pending is None:
                worker.stop()
                self.workers.remove(worker)

    def _lost(self, worker: Actor, error: Exception) -> UnitOutcome:
        """What became of the unit of an actor that is dead."""
        self.workers.remove(worker)
        progress.detail(f"lost    {error}", "lost")
        address = worker.node.address
        if isinstance(error, self.ray.exceptions.ActorDiedError) and error.actor_init_failed:
            self._given_up.add(worker.node.id)
            why = str(error).strip().splitlines()[-1]
            return UnitOutcome("left out", death=f"no worker can be started on {address} ({why})")
        what = "a worker" if worker.node in self.nodes else "a node"
        return UnitOutcome("left out", death=f"{what} was lost ({address})")

    def records_behind(self, asked: Asked) -> dict[str, bytes]:
        """The records that a unit reads: its own, and the scores that it stands behind."""
        if not isinstance(asked, Measure):
            return {}
        run, unit = self.todo[asked]
        return {
            str(each.path.relative_to(run.config.output).with_suffix(suffix)): content
            for each in (unit, *run.units_behind(unit))
            for suffix, content in files_of(each.path).items()
        }

    def keep(self, run: ModelRun, unit: Unit, outcome: UnitOutcome) -> None:
        """See `Dispatcher`; a record that comes as bytes is written."""
        names = {unit.path.with_suffix(x).name: content for x, content in outcome.files.items()}
        write_files(unit.path.parent, names)
        super().keep(run, unit, outcome)

    def close(self) -> None:
        """See `Engine`; what was started here ends here."""
        super().close()
        if self._started_here:
            self.ray.shutdown()
        if self._ends_agents:
            self._ends_agents.communicate()
