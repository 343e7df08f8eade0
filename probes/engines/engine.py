"""Where the units of a run are computed. An engine alone knows; whoever asks it does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from probes.engines.model_run import ModelRun
from probes.engines.plan import Stage

if TYPE_CHECKING:
    from probes.engines.prepared import Prepared


class Engine(Protocol):
    """Computes units; nothing is loaded before there is one."""

    def measure(self, stage: Stage, runs: Sequence[ModelRun]) -> None:
        """Compute what remains of a stage; every record is written as soon as it is done.

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

    def measure(self, stage: Stage, runs: Sequence[ModelRun]) -> None:
        """See `Engine`."""
        for run in runs:
            todo = list(run.remaining(stage))
            if not todo:
                continue
            from probes.engines.measuring import compute, plan

            prepared = self.prepared(run)
            # What is missing is encoded view by view, when the first unit asks for it.
            plan(prepared, todo)
            # Units that another run is computing come last; they may be done by then.
            busy = [unit for unit, _ in todo if compute(prepared, unit, wait=False) == "busy"]
            for unit in busy:
                compute(prepared, unit, wait=True)

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
