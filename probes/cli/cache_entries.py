"""What is in the cache: stores of vectors, files of fitted parameters, whole or not. No torch."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probes.common.errors import UserError
from probes.extraction.store import (
    FORMAT,
    MANIFEST,
    STORE_FIELDS,
    read_manifest,
    read_shards,
    replacement,
)
from probes.records.parameters import SUFFIX, read_about, read_file

WHOLE, UNFINISHED, DAMAGED = "whole", "unfinished", "damaged"
OLDER, REPLACED = "older format", "replaced by fp32"

_NAME = re.compile(r"[0-9a-f]+(\.partial)?")
"""Names of stores and files, and of stores that earlier versions had begun; other names are left
alone."""


@dataclass(frozen=True)
class Entry:
    """A store of vectors, or a file of parameters.

    Attributes:
        manifest: its description of itself; empty if it has none.
        size: bytes on disk.
        used: time of its last use, in seconds since the epoch.
        state: WHOLE if a run can use it; else one of the others above.
        layers: how many are stored.
    """

    path: Path
    manifest: dict[str, Any]
    size: int
    used: float
    state: str
    layers: int | str = "?"

    @property
    def model(self) -> str:
        """Name of the model; empty if unknown."""
        return str(self.manifest.get("model", {}).get("name", ""))


def find_entries(vectors: Path, *, thorough: bool = False) -> list[Entry]:
    """Every store below `vectors`, the most recently used one first.

    Args:
        thorough: compare checksums, not only sizes.
    """
    ours = (path for path in vectors.glob("*") if _NAME.fullmatch(path.name))
    folders = [path for path in ours if path.is_dir() and not path.is_symlink()]
    entries = [_entry(folder, thorough) for folder in folders]
    return sorted(entries, key=lambda entry: (-entry.used, entry.path))


def find_parameters(folder: Path, *, thorough: bool = False) -> list[Entry]:
    """Every file of fitted parameters in `folder`, in the order of their names.

    Args:
        thorough: compare checksums, not only sizes.
    """
    return [
        _parameters_entry(path, thorough)
        for path in sorted(folder.glob(f"*{SUFFIX}"))
        if _NAME.fullmatch(path.stem) and path.is_file()
    ]


def _parameters_entry(path: Path, thorough: bool) -> Entry:
    size, used = path.stat().st_size, path.stat().st_mtime
    try:
        about = read_file(path).about if thorough else read_about(path)
    except UserError:
        return Entry(path, {}, size, used, DAMAGED)
    return Entry(path, {"model": {"name": about["model"]}}, size, used, WHOLE)


def _entry(folder: Path, thorough: bool) -> Entry:
    size = used = 0.0
    with suppress(OSError):  # a run may rename or delete it meanwhile
        used = folder.stat().st_mtime
        size = sum(path.lstat().st_size for path in folder.rglob("*"))
    if folder.suffix:
        return Entry(folder, {}, int(size), used, OLDER)
    try:
        manifest = read_manifest(folder / MANIFEST, STORE_FIELDS)
    except UserError:
        manifest = _any_manifest(folder)
        older = manifest.get("format", FORMAT) != FORMAT
        layers = manifest.get("layers", "?")
        return Entry(folder, manifest, int(size), used, OLDER if older else DAMAGED, layers)
    return Entry(folder, manifest, int(size), used, *_inspect(folder, manifest, thorough))


def _inspect(folder: Path, manifest: dict[str, Any], thorough: bool) -> tuple[str, int]:
    """The state of a store of the current format, and how many arrays its shards have."""
    files: list[set[str]] = [set() for _ in range(manifest["shards"])]
    try:
        for shard in read_shards(folder, manifest["shards"]):
            files[shard.number].update(shard.files)
            if any(file.damage(thorough=thorough) for file in shard.files.values()):
                return DAMAGED, len(shard.files)
        if replacement(folder):
            return REPLACED, 0
    except UserError:
        return DAMAGED, 0
    everywhere = set.union(*files)
    whole = bool(everywhere) and all(parts == everywhere for parts in files)
    return WHOLE if whole else UNFINISHED, len(everywhere)


def _any_manifest(folder: Path) -> dict[str, Any]:
    """A manifest of any format; empty if it cannot be read."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        kinds = {"model": dict, "key": dict, "rows": int, "layers": int, "format": int}
        known = {name: kind for name, kind in kinds.items() if name in manifest}
        whole = all(isinstance(manifest[name], kind) for name, kind in known.items())
        return dict(manifest) if whole and "model" in known else {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
