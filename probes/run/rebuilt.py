"""What another process does: it rebuilds a run, from settings and names, and computes units."""

from __future__ import annotations

import json
import os
import pickle
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from probes.common.errors import DiskError, UserError
from probes.common.garbage_collection import infrequent_garbage_collection
from probes.common.origin import described
from probes.common.terminal import progress
from probes.data.find import find_corpus
from probes.run.engine import LocalEngine, Stage
from probes.run.inputs import find_models
from probes.run.model_run import ModelRun, model_runs
from probes.run.settings import validate
from probes.run.unit import Answer, Asked, Encode, FindShards, Measure, Said, UnitOutcome
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
        source = find_corpus(*config.tested, **config.corpus_request)
        self._runs = {run.name: run for run in model_runs(config, source, models, request.command)}
        self._local = LocalEngine()

    def path_of(self, asked: Measure) -> Path:
        """The file of the record of a unit."""
        return self._runs[asked.model].find(asked).path

    def shard_folder(self, asked: Encode) -> Path:
        """The folder of the store to which a shard belongs."""
        prepared = self._local.prepared(self._runs[asked.model])
        prepared.need(asked.layers)
        return prepared.reading(asked.place).folder

    def compute(self, asked: Asked, *, wait: bool, afresh: bool = False) -> UnitOutcome:
        """Compute what is asked for; a shard or a record is written.

        Args:
            wait: whether to wait if another run is computing it.
            afresh: whether a plan names all shards, not only those that are missing here.

        Raises:
            UserError: see `Engine.measure`; or this process would make another record.
        """
        from probes.run.measuring import compute, expected_memory, plan

        run = self._runs[asked.model]
        prepared = self._local.prepared(run)
        if isinstance(asked, FindShards):
            for unit in run.units(asked.measurement):
                run.read_scores_behind(unit)
            stage = Stage([run], asked.measurement)
            todo = [step for step in stage.remaining() if step.unit.of[0] == asked.task]
            shards = tuple(plan(prepared, todo, every=afresh))
            memory = expected_memory(prepared, [step.unit for step in todo])
            return UnitOutcome("done", run.omissions, shards=shards, memory=memory)
        if isinstance(asked, Encode):
            prepared.need(asked.layers)
            prepared.encode(asked.place, asked.shard)
            return UnitOutcome("done", run.omissions)
        return UnitOutcome(compute(prepared, run.find(asked), wait=wait), run.omissions)


@lru_cache(maxsize=1)
def rebuilt(request: RunRequest) -> RebuiltRun:
    """The run of a request, which stays for further units."""
    # The process that has asked for it has said the same.
    with progress.forwarded(lambda *_: None):
        return RebuiltRun(request)


def answer(
    work: Callable[[], UnitOutcome], asked: Asked, worker: str, send: Callable[[Said], None]
) -> Answer:
    """What `work` returns, or an exception that another process can read.

    Args:
        asked: what it computes.
        worker: who computes it.
        send: takes what it says meanwhile.
    """

    def forward(*message: object) -> None:
        send(Said(worker, asked.model, *message))  # type: ignore[arg-type]

    try:
        with progress.forwarded(forward), infrequent_garbage_collection():
            return work()
    except Exception as error:  # noqa: BLE001 - raised where the run is
        return portable(error)


def portable(error: Exception) -> Exception:
    """An exception that another process can read: this one, or one that says the same.

    Where it was raised is in a note.
    """
    for kind in (DiskError, UserError):
        if isinstance(error, kind):
            return kind(str(error))
    note = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    except Exception:  # noqa: BLE001 - whatever its class does
        error = RuntimeError(described(error))
    error.add_note(note)
    return error
