"""`python -m probes cache`: lists, verifies and deletes stored word vectors."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from probes.cli.arguments import place
from probes.common.default_folders import default_cache
from probes.common.errors import UserError
from probes.common.locks import SUFFIX, BusyError, locked, unused
from probes.common.terminal import output_console
from probes.common.wording import counted, listed
from probes.extraction.store import (
    FORMAT,
    MANIFEST,
    STORE_FIELDS,
    read_manifest,
    read_shards,
    replacement,
)

SUMMARY = "List, verify and delete stored word vectors."

WHOLE, UNFINISHED, DAMAGED = "whole", "unfinished", "damaged"
OLDER, REPLACED = "older format", "replaced by fp32"

_NAME = re.compile(r"[0-9a-f]+(\.partial)?")
"""Names of stores, and of those that earlier versions had begun; other folders are left alone."""

_BROKEN = "broken"
"""The choice of `--prune` for everything that no run can read."""


@dataclass(frozen=True)
class Entry:
    """A folder of the cache.

    Attributes:
        manifest: its description of itself; empty if it has none.
        size: bytes on disk.
        used: time of its last use, in seconds since the epoch.
        state: WHOLE if a run can use it; else one of the others above.
        layers: how many are stored.
    """

    folder: Path
    manifest: dict[str, Any]
    size: int
    used: float
    state: str
    layers: int | str = "?"

    @property
    def model(self) -> str:
        """Name of the model; empty if unknown."""
        return str(self.manifest.get("model", {}).get("name", ""))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add(
        "--cache-dir",
        type=place,
        default=default_cache(),
        metavar="DIR",
        help="where vectors are stored (PROBES_CACHE_DIR)",
    )
    add("--verify", action="store_true", help="read every file and compare its checksum")
    add(
        "--prune",
        choices=("all", _BROKEN),
        help="delete vectors that the flags below select, among all, or among those that no run "
        "can read (damaged, unfinished, replaced, or in the format of another version)",
    )
    add("--older-than", type=float, metavar="DAYS", help="only vectors not used for this long")
    add("--model", metavar="M", help="only vectors of this model")
    add(
        "--dry-run", action="store_true", help="print what --prune would delete, and delete nothing"
    )


def run(options: argparse.Namespace) -> int:
    """List what is stored; verify and delete it if asked to.

    Returns:
        1 if damaged vectors remain, else 0.

    Raises:
        UserError: a flag is missing that another one needs.
    """
    if options.older_than is not None and not options.older_than >= 0:
        raise UserError(f"--older-than {options.older_than:g}: give a number of at least 0.")
    given = {"--older-than": options.older_than is not None, "--dry-run": options.dry_run}
    if options.prune is None and any(given.values()):
        flags = [flag for flag, there in given.items() if there]
        need = "needs" if len(flags) == 1 else "need"
        raise UserError(f"{listed(flags, 'and')} {need} --prune; add --prune all, for example.")
    if options.prune == "all" and options.older_than is None and options.model is None:
        raise UserError(
            "--prune all would delete all vectors; select some with --older-than DAYS (0 for any "
            "age) or --model M."
        )
    vectors = options.cache_dir / "vectors"
    entries = find_entries(vectors, thorough=options.verify)
    if options.model is not None:
        entries = [entry for entry in entries if entry.model == options.model]
    console = output_console()
    if not entries:
        absent = "" if vectors.exists() else ", which does not exist"
        console.print(f"No vectors in {vectors}{absent}.", highlight=False)
        return 0
    console.print(_table(entries))
    total = _megabytes(sum(entry.size for entry in entries))
    console.print(
        f"{counted(len(entries), 'store')}, {total} in {vectors}", highlight=False, soft_wrap=True
    )
    if options.prune is not None:
        pruned = [entry for entry in entries if _chosen(entry, options)]
        entries = [entry for entry in entries if entry not in pruned]
        for entry in pruned:
            what = f"{entry.folder} ({_megabytes(entry.size)}, {entry.state})"
            outcome = f"would delete {what}" if options.dry_run else _delete(entry, what)
            console.print(outcome, highlight=False, soft_wrap=True)
        if not pruned:
            console.print("nothing to delete")
    return int(any(entry.state == DAMAGED for entry in entries))


def find_entries(vectors: Path, *, thorough: bool = False) -> list[Entry]:
    """Every store below `vectors`, the most recently used one first.

    Args:
        thorough: compare checksums, not only sizes.
    """
    ours = (path for path in vectors.glob("*") if _NAME.fullmatch(path.name))
    folders = [path for path in ours if path.is_dir() and not path.is_symlink()]
    entries = [_entry(folder, thorough) for folder in folders]
    return sorted(entries, key=lambda entry: (-entry.used, entry.folder))


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


def _chosen(entry: Entry, options: argparse.Namespace) -> bool:
    if options.prune == _BROKEN and entry.state == WHOLE:
        return False
    return options.older_than is None or time.time() - entry.used >= 86400 * options.older_than


def _delete(entry: Entry, what: str) -> str:
    """Delete a store, unless a run is writing or reading it."""
    lock = entry.folder.with_suffix(SUFFIX)
    try:
        with locked(lock, wait=False), unused(entry.folder / MANIFEST):
            shutil.rmtree(entry.folder)
    except BusyError:
        return f"kept {what}: a run is using it"
    except OSError as error:
        raise UserError(f"{entry.folder}: cannot be deleted ({error.strerror}).") from error
    return f"deleted {what}"


def _table(entries: list[Entry]) -> Table:
    table = Table("model", "text", "vectors", box=None, pad_edge=False)
    table.add_column("size", justify="right")
    table.add_column("last used", justify="right")
    table.add_column("state")
    for entry in entries:
        manifest, key = entry.manifest, entry.manifest.get("key", {})
        revision = str(manifest.get("model", {}).get("revision") or key.get("model", ""))
        table.add_row(
            Text(f"{entry.model or entry.folder.name}\n{revision[:12]}"),
            Text(f"{manifest.get('corpus') or 'unknown'}\n{manifest.get('view', '')}"),
            f"{manifest.get('rows', 0):,} × {entry.layers}\n{_computed(key)}",
            _megabytes(entry.size),
            time.strftime("%Y-%m-%d\n%H:%M", time.localtime(entry.used)),
            entry.state,
        )
    return table


def _computed(key: dict[str, Any]) -> str:
    """How vectors were computed, as their key says, whichever format it has."""
    settings = key.get("settings", key)
    stored = f"in {settings['storage']}" if "storage" in settings else ""
    return ", ".join(filter(None, (settings.get("pooling"), key.get("dtype"), stored)))


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
