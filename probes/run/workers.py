"""`--workers N`: N − 1 further processes that go through the same loop with the same results.

They share nothing but files, and are told what the run is by plain values, as Ray's actors are.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from threading import Thread
from typing import Any

from probes.common.errors import UserError
from probes.common.process import same_imports
from probes.common.terminal import progress
from probes.data.find import find_corpus
from probes.measurements.plugin_keys import REGISTRIES, parts_of
from probes.run.inputs import find_models
from probes.run.model_run import ModelRun
from probes.run.plan import model_runs
from probes.run.settings import validate

_GRACE = 5.0
"""Seconds in which processes put their files in order before they are killed; for a whole container
Docker has ten."""


@dataclass(frozen=True)
class RunRequest:
    """All that it takes to find a run in another process, as plain values.

    Attributes:
        settings: the configuration, as JSON.
        models: the models as the user named them, without their twins.
        command: the command line, for the records' provenance.
        folder: the working folder, at which relative paths begin.
        began: when the run began.
    """

    settings: str
    models: tuple[str, ...]
    command: str
    folder: str
    began: str

    @classmethod
    def of(cls, runs: Sequence[ModelRun]) -> RunRequest:
        """The request for runs that share a configuration.

        Raises:
            UserError: they use what this script or notebook defines, which no name leads to.
        """
        for kind, name in dict.fromkeys(used for run in runs for used in _used(run)):
            if REGISTRIES[kind].is_defined_here(name):
                raise UserError(
                    f"The {kind} {name!r}: another process does not find it as it is defined here; "
                    "move it to a file of its own, and give that as include=, or leave workers= "
                    "and engine= out."
                )
        names = tuple(run.model.name_given for run in runs if not run.model.is_twin)
        first = runs[0]
        about = first.command, os.getcwd(), first.began.isoformat()
        return cls(first.config.model_dump_json(), names, *about)

    def with_settings(self, **changed: Any) -> RunRequest:
        """The request with other settings."""
        return replace(self, settings=json.dumps({**json.loads(self.settings), **changed}))

    def runs(self) -> list[ModelRun]:
        """The runs, with plug-ins, models and corpus found as the first process has found them."""
        settings = json.loads(self.settings)
        # The process that has asked for it has said the same.
        with progress.forwarded(lambda *_: None):
            config = validate(settings)
            models = find_models(self.models, config)
            source = find_corpus(*config.tested, **config.corpus_request)
            began = datetime.fromisoformat(self.began)
            return model_runs(config, source, models, self.command, began)


def _used(run: ModelRun) -> Iterator[tuple[str, str]]:
    """Kinds and names of all that a run uses and a plug-in may define."""
    for task in run.tasks:
        for family in run.families:
            yield from parts_of(task, family)
    for name in (*run.evidence, *run.corpus_measurements):
        yield "measurement", name
    for name in run.config.corpus:
        yield "corpus", name


class WorkerPool:
    """The further processes of a run, none of which is started before there is a job."""

    def __init__(self, runs: Sequence[ModelRun], n: int) -> None:
        self._runs, self._n = runs, n
        self._started: list[tuple[subprocess.Popen[str], Thread]] = []
        self._stopping = False

    def start(self) -> None:
        """Start them; all that they say is shown as it comes, once."""
        if self._n:
            request = json.dumps(asdict(RunRequest.of(self._runs)))
            progress.said = set()
            for number in range(2, self._n + 2):
                self._started.append(self._start(request, number))

    def _start(self, request: str, number: int) -> tuple[subprocess.Popen[str], Thread]:
        messages, theirs = os.pipe()
        # A process inherits what is blocked: Ctrl-C is for this one, which stops the others.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "probes.run.worker_main", str(theirs)],
                env=same_imports(),
                stdin=subprocess.PIPE,  # closed when this process ends, however it ends
                pass_fds=[theirs],
                text=True,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(theirs)
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.write(f"{request}\n")
            process.stdin.flush()
        shown = Thread(target=self._show, args=(process, number, messages), daemon=True)
        shown.start()
        return process, shown

    def _show(self, process: subprocess.Popen[str], number: int, messages: int) -> None:
        """Show the messages of a helper as they come, and say so if it is killed."""
        with open(messages, encoding="utf-8") as lines:
            for line in lines:
                if line.endswith("\n"):  # it may be killed while it writes one
                    level, message, event, fields = json.loads(line)
                    progress.emit(level, message, event, {**fields, "worker": number})
        if (status := process.wait()) < 0 and not self._stopping:
            how = signal.Signals(-status).name
            progress.warn(f"a worker was lost (killed by {how}); another one makes its record")

    def end(self, *, stop: bool) -> None:
        """Wait until all have ended.

        Args:
            stop: whether to stop them. They end by themselves when there is nothing to make.
        """
        try:
            for _, shown in self._started if not stop else ():
                shown.join()
        finally:
            self._stopping, until = True, time.monotonic() + _GRACE
            for process, _ in self._started:
                process.terminate()
            for process, shown in self._started:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, until - time.monotonic()))
                process.kill()
                shown.join()
            self._started, progress.said = [], None
