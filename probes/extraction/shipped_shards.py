"""Shards on their way from one machine to another, as plain arrays of bytes."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from probes.common.files import published, writing
from probes.common.locks import locked
from probes.extraction.store import MANIFEST, shard_folders, shard_lock

Files = Mapping[str, NDArray[np.uint8]]
"""Contents of files, by their paths within the folder of all stores."""

_ARRIVING = ".part-"


def packed(folder: Path, shard: int) -> Files:
    """The files of a shard, and the manifest of its store; none if the shard is not there.

    Args:
        folder: that of the store.
    """
    files = [file for its in shard_folders(folder, shard) for file in sorted(its.iterdir())]
    if files:
        files.insert(0, folder / MANIFEST)
    return {str(file.relative_to(folder.parent)): np.fromfile(file, np.uint8) for file in files}


def unpack(stores: Path, files: Files) -> None:
    """Add a shard to its store, unless it is there.

    Args:
        stores: the folder of all stores.
        files: what `packed` returned.

    Raises:
        UserError: the disk is full or the folder cannot be written.
    """
    folders: dict[Path, list[str]] = {}
    for name in files:
        folders.setdefault(stores / Path(name).parent, []).append(name)
    for folder, names in folders.items():
        if folder.parent == stores:
            _add_manifest(folder / MANIFEST, files[names[0]])
        else:
            _add_shard(folder, {Path(name).name: files[name] for name in names})


def _add_manifest(path: Path, content: NDArray[np.uint8]) -> None:
    if not path.exists():
        with published(path) as temporary:
            content.tofile(temporary)


def _add_shard(folder: Path, files: Files) -> None:
    store, number = folder.parent, int(folder.name.split("-")[0])
    begun = store / f"{_ARRIVING}{number:05d}"
    with writing(folder), locked(shard_lock(store, number)):
        if folder.exists():
            return
        shutil.rmtree(begun, ignore_errors=True)  # left by a process that was killed
        try:
            begun.mkdir()
            for name, content in files.items():
                content.tofile(begun / name)
            begun.rename(folder)
        finally:
            shutil.rmtree(begun, ignore_errors=True)
