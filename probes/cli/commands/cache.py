"""`python -m probes cache`: lists, verifies and deletes stored vectors and fitted parameters."""

from __future__ import annotations

import argparse
import shutil
import time
from typing import Any

from probes.cli.arguments import add_format, place
from probes.cli.cache_entries import DAMAGED, WHOLE, Entry, find_entries, find_parameters
from probes.common.default_folders import default_cache
from probes.common.errors import UserError
from probes.common.locks import SUFFIX, BusyError, locked, unused
from probes.common.wording import counted, listed
from probes.extraction.store import MANIFEST
from probes.records.parameters import FOLDER as PARAMETERS
from probes.records.table import Cell, Table, TableRow
from probes.rendering.printing import printer

SUMMARY = "List, verify and delete stored word vectors and fitted parameters."

_BROKEN = "broken"
"""The choice of `--prune` for everything that no run can read."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add(
        "--cache-dir",
        type=place,
        default=default_cache(),
        metavar="DIR",
        help="where they are stored (PROBES_CACHE_DIR)",
    )
    add("--verify", action="store_true", help="read every file and compare its checksum")
    add(
        "--prune",
        choices=("all", _BROKEN),
        help="delete vectors and parameters that the flags below select, among all, or among those "
        "that no run can read (damaged, unfinished, replaced, or in another version's format)",
    )
    add("--older-than", type=float, metavar="DAYS", help="only what was not used for this long")
    add("--model", metavar="M", help="only what is of this model")
    add(
        "--dry-run", action="store_true", help="print what --prune would delete, and delete nothing"
    )
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """List what is stored; verify and delete it if asked to.

    Returns:
        1 if something damaged remains, else 0.

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
            "--prune all would delete everything; select some with --older-than DAYS (0 for any "
            "age) or --model M."
        )
    cache = options.cache_dir
    stores = find_entries(cache / "vectors", thorough=options.verify)
    files = find_parameters(cache / PARAMETERS, thorough=options.verify)
    if options.model is not None:
        stores, files = ([x for x in some if x.model == options.model] for some in (stores, files))
    say = printer.say
    if stores:
        printer.show([_table(stores)])
        say(f"{counted(len(stores), 'store')}, {_size(stores)} in {cache / 'vectors'}")
    else:
        absent = "" if (cache / "vectors").exists() else ", which does not exist"
        say(f"No vectors in {cache / 'vectors'}{absent}.")
    if files:
        say(f"{_files(files)} in {cache / PARAMETERS}")
    pruned, pruned_files = (
        [x for x in some if options.prune and _chosen(x, options)] for some in (stores, files)
    )
    verb = "would delete" if options.dry_run else "deleted"
    for entry in pruned:
        what = f"{entry.path} ({_size([entry])}, {entry.state})"
        say(f"{verb} {what}" if options.dry_run else _delete(entry, what))
    if pruned_files:
        if not options.dry_run:
            _unlink(pruned_files)
        say(f"{verb} {_files(pruned_files)}")
    if options.prune and (stores or files) and not (pruned or pruned_files):
        say("nothing to delete")
    kept = [x for x in (*stores, *files) if x not in (*pruned, *pruned_files)]
    return int(any(entry.state == DAMAGED for entry in kept))


def _chosen(entry: Entry, options: argparse.Namespace) -> bool:
    if options.prune == _BROKEN and entry.state == WHOLE:
        return False
    return options.older_than is None or time.time() - entry.used >= 86400 * options.older_than


def _delete(entry: Entry, what: str) -> str:
    """Delete a store, unless a run is writing or reading it."""
    lock = entry.path.with_suffix(SUFFIX)
    try:
        with locked(lock, wait=False), unused(entry.path / MANIFEST):
            shutil.rmtree(entry.path)
    except BusyError:
        return f"kept {what}: a run is using it"
    except OSError as error:
        raise UserError(f"{entry.path}: cannot be deleted ({error.strerror}).") from error
    return f"deleted {what}"


def _unlink(files: list[Entry]) -> None:
    for entry in files:
        try:
            entry.path.unlink(missing_ok=True)
        except OSError as error:
            raise UserError(f"{entry.path}: cannot be deleted ({error.strerror}).") from error


def _files(files: list[Entry]) -> str:
    """What files of parameters are called, with their number and size."""
    damaged = sum(entry.state == DAMAGED for entry in files)
    found = f"{counted(len(files), 'file')} of fitted parameters, {_size(files)}"
    return f"{found}, {damaged} of them damaged" if damaged else found


def _table(entries: list[Entry]) -> Table:
    rows = []
    for entry in entries:
        manifest, key = entry.manifest, entry.manifest.get("key", {})
        revision = str(manifest.get("model", {}).get("revision") or key.get("model", ""))
        used = time.localtime(entry.used)
        row = TableRow.of(
            Cell(entry.model or entry.path.name, note=revision[:12]),
            Cell(str(manifest.get("corpus") or "unknown"), note=str(manifest.get("view", ""))),
            Cell(f"{manifest.get('rows', 0):,} × {entry.layers}", note=_computed(key)),
            entry.state,
            Cell(_size([entry]), value=entry.size / 1e6),
            Cell(time.strftime("%Y-%m-%d", used), note=time.strftime("%H:%M", used)),
        )
        rows.append(row)
    heads = ("model", "text", "vectors", "state", "size", "last used")
    return Table("stored vectors", heads, tuple(rows), left=4)


def _computed(key: dict[str, Any]) -> str:
    """How vectors were computed, as their key says, whichever format it has."""
    settings = key.get("settings", key)
    stored = f"in {settings['storage']}" if "storage" in settings else ""
    return ", ".join(filter(None, (settings.get("pooling"), key.get("dtype"), stored)))


def _size(entries: list[Entry]) -> str:
    return f"{sum(entry.size for entry in entries) / 1e6:,.1f} MB"
