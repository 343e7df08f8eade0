"""What a task of Ray does: it computes one unit, in a process that keeps the run for the next."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from probes.common.errors import DiskError
from probes.common.files import default_cache, published
from probes.run.rebuilt import RunRequest, answer, rebuilt
from probes.run.unit import Answer, Asked, Encode, Measure, UnitOutcome
from probes.extraction.shipped_shards import Files, packed, unpack

Records = Mapping[str, bytes]
"""Contents of files of records, by their paths within the folder of results."""


@dataclass(frozen=True)
class Given:
    """What a unit needs beside its name.

    Attributes:
        request: the run.
        shared: ids of the nodes that read and write the driver's files.
        waiting: whether to wait if another run is computing it.
        records: that it depends on, if results are not shared.
        messages: a queue of Ray, which takes what it says.
    """

    request: RunRequest
    shared: frozenset[str]
    waiting: bool
    records: Records
    messages: Any


@dataclass(frozen=True)
class Unwritable:
    """A node that cannot be written to, on which a unit was not computed.

    Attributes:
        node: its id.
    """

    node: str
    why: str


def compute(given: Given, asked: Asked, *needs: Files) -> tuple[Answer | Unwritable, Files]:
    """Compute a unit.

    Without the driver's files a node has a cache and results of its own; records return with the
    outcome, and shards beside it.

    Args:
        needs: shards that other nodes may have made.
    """
    import ray

    node = ray.get_runtime_context().get_node_id()
    request, shared = given.request, node in given.shared
    # Ray's processes work where Ray was started. A node without the folder can do with names.
    if os.path.isdir(request.folder):
        os.chdir(request.folder)
    if not shared:
        settings = json.loads(request.settings)
        settings |= {"cache_dir": str(default_cache()), "output": _own_results()}
        request = replace(request, settings=json.dumps(settings))
    shards: Files = {}

    def work() -> UnitOutcome:
        nonlocal shards
        run = rebuilt(request)
        if shared:
            return run.compute(asked, wait=given.waiting)
        write_records(Path(_own_results()), given.records)
        for files in needs:
            unpack(default_cache() / "vectors", files)
        outcome = run.compute(asked, wait=given.waiting, afresh=True)
        if isinstance(asked, Encode):
            shards = packed(run.shard_folder(asked), asked.shard)
        elif isinstance(asked, Measure) and outcome.ending == "done":
            outcome = replace(outcome, files=record_files(run.path_of(asked)))
        return outcome

    found = answer(work, asked, f"{node} {os.getpid()}", given.messages.put)
    if not shared:
        for folder in Path(_own_results()).iterdir():
            shutil.rmtree(folder)
        if isinstance(found, DiskError):
            return Unwritable(node, str(found)), {}
    return found, shards


@lru_cache(maxsize=1)
def _own_results() -> str:
    """The folder of results of this process, which is empty between units."""
    folder = tempfile.mkdtemp(prefix="probes-results-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def record_files(path: Path) -> dict[str, bytes]:
    """The contents of a record's files by suffix, as far as they are there."""
    files = (path.with_suffix(suffix) for suffix in (".npz", ".json"))
    return {file.suffix: file.read_bytes() for file in files if file.is_file()}


def write_records(folder: Path, files: Records) -> None:
    """Write files below a folder, in the order in which they come."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with published(path) as temporary:
            temporary.write_bytes(content)
