"""Where the units of a run are computed. An engine alone knows; whoever asks it does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Protocol

from probes.engines.model_run import ModelRun
from probes.engines.plan import Step

if TYPE_CHECKING:
    from probes.engines.prepared import Prepared


class Engine(Protocol):
    """Computes units; nothing is loaded before there is one."""

    def measure(self, steps: Sequence[Step]) -> Iterator[Step]:
        """Compute the steps of a stage, and yield each when it is done and its record is written.

        Raises:
            UserError: `--layers` names a layer that the model does not have, `--project` is wider
                than its vectors, or `--memory` is less than a unit needs.
        """

    def close(self) -> None:
        """Stop what is being computed, and let go of models and stores."""


def engine_for(runs: Sequence[ModelRun]) -> Engine:
    """The engine that the configuration asks for."""
    config = runs[0].config
    if config.engine == "ray":
        # Imported here: a newcomer with a laptop has no Ray.
        from probes.engines.ray_engine import RayEngine

        return RayEngine(runs)
    if config.workers > 1:
        from probes.engines.processes import ProcessEngine

        return ProcessEngine(runs)
    return LocalEngine()


class LocalEngine:
    """Computes units in this process, with one model in memory at a time."""

    def __init__(self) -> None:
        self._prepared: dict[str, Prepared] = {}

    def measure(self, steps: Sequence[Step]) -> Iterator[Step]:
        """See `Engine`."""
        for _, of_run in groupby(steps, key=lambda step: step.run.name):
            from probes.engines.measuring import compute, plan

            todo, busy = list(of_run), list[Step]()
            prepared = self.prepared(todo[0].run)
            # What is missing is encoded view by view, when the first unit asks for it.
            plan(prepared, todo)
            for step in todo:
                if compute(prepared, step.unit, wait=False) == "busy":
                    busy.append(step)
                else:
                    yield step
            # Units that another run was computing may be done by now.
            for step in busy:
                compute(prepared, step.unit, wait=True)
                yield step

    def prepared(self, run: ModelRun) -> Prepared:
        """The model of a run with what its units need; the other models are released.

        Raises:
            UserError: there is no such device.
        """
        from probes.engines.prepared import Prepared, prepare_torch

        if run.name not in self._prepared:
            prepare_torch(run.config)
        for name, other in self._prepared.items():
            if name != run.name:
                other.release()
        if run.base is not None and run.base.name not in self._prepared:
            self._prepared[run.base.name] = Prepared(run.base)
        base = self._prepared[run.base.name] if run.base else None
        return self._prepared.setdefault(run.name, Prepared(run, base))

    def close(self) -> None:
        """See `Engine`."""
        for prepared in self._prepared.values():
            prepared.run.model.release()
        self._prepared.clear()
