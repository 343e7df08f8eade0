"""What runs in an actor of Ray: it computes the units that it is sent, one after the other."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from probes.common.errors import DiskError
from probes.common.files import published
from probes.common.garbage_collection import infrequent_garbage_collection
from probes.common.terminal import progress
from probes.engines.dispatcher import Said
from probes.engines.rebuilt import RebuiltRun, RunRequest
from probes.engines.units import Asked, Measure, UnitOutcome
from probes.engines.worker import portable

Files = Mapping[str, bytes]
"""Contents of files, by their paths below the folder of results."""


@dataclass(frozen=True)
class Reply:
    """What an actor returns of a unit.

    Attributes:
        answer: what became of it; or the exception that ends the run.
        said: messages for the user.
    """

    answer: UnitOutcome | Exception
    said: tuple[Said, ...]


class RayWorker:
    """The run of the driver, rebuilt on a node.

    Args:
        request: what it takes to rebuild it.
        cache: the cache of the node's own; empty if it writes where the driver does. With a cache
            of its own it has results of its own, too, which it returns.
    """

    def __init__(self, request: RunRequest, cache: str) -> None:
        # Ray's processes work where Ray was started. A node without the folder can do with names.
        if os.path.isdir(request.folder):
            os.chdir(request.folder)
        self._own = tempfile.TemporaryDirectory(prefix="probes-results-") if cache else None
        if self._own:
            settings = json.loads(request.settings)
            settings |= {"cache_dir": cache, "output": self._own.name}
            request = replace(request, settings=json.dumps(settings))
        self._request = request
        self._run: RebuiltRun | None = None
        self._said: list[Said] = []

    def compute(self, asked: Asked, wait: bool, given: Files) -> Reply:
        """Compute a unit; what it says and finds is returned together.

        Args:
            wait: whether to wait if another run is computing it.
            given: records that it depends on, if results are not shared.
        """
        self._said = []
        progress.forward = lambda *message: self._said.append(Said(*message))
        answer: UnitOutcome | Exception
        try:
            with infrequent_garbage_collection():
                answer = self._answer(asked, wait, given)
        except DiskError as error:
            full = f"a node cannot be written to ({error})"
            answer = UnitOutcome("left out", death=full) if self._own else portable(error)
        except Exception as error:  # noqa: BLE001 - raised where the run is
            answer = portable(error)
        return Reply(answer, tuple(self._said))

    def _answer(self, asked: Asked, wait: bool, given: Files) -> UnitOutcome:
        if self._run is None:
            self._run = RebuiltRun(self._request)
            self._said = []  # the driver has said the same
        if self._own:
            write_files(Path(self._own.name), given)
        outcome = self._run.compute(asked, wait=wait)
        if self._own and isinstance(asked, Measure) and outcome.ending == "done":
            outcome = replace(outcome, files=files_of(self._run.path_of(asked)))
        return outcome


def files_of(path: Path) -> dict[str, bytes]:
    """The contents of a record's files by suffix, as far as they are there."""
    files = (path.with_suffix(suffix) for suffix in (".npz", ".json"))
    return {file.suffix: file.read_bytes() for file in files if file.is_file()}


def write_files(folder: Path, files: Files) -> None:
    """Write files below a folder, in the order in which they come."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with published(path) as temporary:
            temporary.write_bytes(content)
