"""A run as another process rebuilds it, from settings and names, to compute units."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from probes.common.errors import UserError
from probes.data.find import find_corpus
from probes.engines.inputs import find_models
from probes.engines.local import LocalEngine
from probes.engines.model_run import ModelRun
from probes.engines.plan import Stage
from probes.engines.runs import model_runs
from probes.engines.settings import validate
from probes.engines.units import Asked, Encode, Measure, Plan, UnitOutcome
from probes.measurements.plugin_keys import REGISTRIES, parts_of
from probes.measurements.plugins import discover


@dataclass(frozen=True)
class RunRequest:
    """All that it takes to rebuild a run.

    Attributes:
        settings: the configuration, as JSON.
        models: the models as the user named them, without their twins.
        command: the command line, for the records' provenance.
        folder: the working folder, at which relative paths begin.
        defined: kind, name and digest of what the run uses of a script's or notebook's own.
    """

    settings: str
    models: tuple[str, ...]
    command: str
    folder: str
    defined: tuple[tuple[str, str, str], ...]

    @classmethod
    def of(cls, runs: Sequence[ModelRun]) -> RunRequest:
        """The request for runs that share a configuration."""
        named = tuple(run.model.given for run in runs if not run.model.is_twin)
        used = dict.fromkeys(used for run in runs for used in _used(run))
        defined = tuple(
            (kind, name, origin.sha256)
            for kind, name in used
            if REGISTRIES[kind].is_defined_here(name) and (origin := REGISTRIES[kind].origin(name))
        )
        config, command = runs[0].config, runs[0].command
        return cls(config.model_dump_json(), named, command, os.getcwd(), defined)

    def require_defined(self) -> None:
        """Check that this process has what the other one's script defines.

        Raises:
            UserError: it has not, or something else of that name.
        """
        for kind, name, sha256 in self.defined:
            origin = REGISTRIES[kind].origin(name)
            if origin is None or origin.sha256 != sha256:
                raise UserError(
                    f"The {kind} {name!r}: another process does not find it as it is defined here; "
                    "move it to a file of its own, and give that as include=, or leave workers= "
                    "and engine= out."
                )


def _used(run: ModelRun) -> Iterator[tuple[str, str]]:
    """Kinds and names of what a run uses and a plug-in may define."""
    for task in run.tasks:
        for family in run.families:
            yield from parts_of(task, family)
    for name in (*run.evidence, *run.corpus_measurements):
        yield "measurement", name
    for name in run.config.corpus:
        yield "corpus", name


class RebuiltRun:
    """The run of another process, with plug-ins, models and corpus found as it has found them.

    Raises:
        UserError: one of them is not there any more, or cannot be used.
    """

    def __init__(self, request: RunRequest) -> None:
        settings = json.loads(request.settings)
        discover(settings["include"])
        request.require_defined()
        config = validate(settings)
        models = find_models(request.models, config)
        source = find_corpus(*config.corpus, **config.corpus_request)
        self._runs = {run.name: run for run in model_runs(config, source, models, request.command)}
        self._local = LocalEngine()

    def path_of(self, asked: Measure) -> Path:
        """The file of the record of a unit."""
        return self._runs[asked.model].find(asked).path

    def compute(self, asked: Asked, *, wait: bool) -> UnitOutcome:
        """Compute what is asked for; a shard or a record is written.

        Args:
            wait: whether to wait if another run is computing it.

        Raises:
            UserError: see `Engine.measure`; or this process would make another record.
        """
        from probes.engines.measuring import compute, plan

        run = self._runs[asked.model]
        prepared = self._local.prepared(run)
        if isinstance(asked, Plan):
            for each in run.units(asked.measurement):
                run.read_scores_behind(each)
            todo = [
                (unit, state)
                for unit, state in run.remaining(Stage(asked.measurement))
                if unit.of[0] == asked.task
            ]
            return UnitOutcome("done", run.omissions, shards=tuple(plan(prepared, todo)))
        if isinstance(asked, Encode):
            prepared.need(asked.layers)
            prepared.encode(asked.place, asked.shard)
            return UnitOutcome("done", run.omissions)
        return UnitOutcome(compute(prepared, run.find(asked), wait=wait), run.omissions)
