"""Where the units of a run are computed. An engine alone knows; whoever asks it does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from probes.engines.local import LocalEngine
from probes.engines.model_run import ModelRun
from probes.engines.plan import Stage
from probes.engines.processes import ProcessEngine


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
    return ProcessEngine(runs) if config.workers > 1 else LocalEngine()
