"""`python -m probes cache`: lists and deletes stored vectors, parameters, corpora and answers."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probes.cli.arguments import add_format, add_setting
from probes.common import kept_values
from probes.common.errors import UserError, counted, listed
from probes.common.locks import SUFFIX, BusyError, locked, unused
from probes.data import stored_corpora
from probes.extraction.reading.store import (
    MANIFEST,
    STORE_FIELDS,
    read_manifest,
    read_shards,
    replacement,
)
from probes.records.parameters import FOLDER as PARAMETERS
from probes.records.parameters import SUFFIX as PARAMETERS_SUFFIX
from probes.records.parameters import read_about
from probes.tables.printing import printer
from probes.tables.table import Cell, Table, TableRow

WHOLE, UNFINISHED, BROKEN = "whole", "unfinished", "broken"

PARAMETERS_NOUN, CORPORA_NOUN = "fitted parameters", "corpora as they were read"
KEPT_NOUN = "tests and answers of commands"

_NAME = re.compile(r"[0-9a-f]+(\.partial)?")
"""Names of stores and files, and of unfinished stores of earlier versions; others are ignored."""


@dataclass(frozen=True)
class Entry:
    """A store of vectors, a file of parameters, a stored corpus, or the file of kept values.

    Attributes:
        size: bytes on disk.
        used: time of last use, in seconds since the epoch.
        manifest: description of the contents; empty if no run can read it.
        state: WHOLE, UNFINISHED (some shards are missing) or BROKEN (no run can read it).
        layers: number of stored layers.
    """

    path: Path
    size: int
    used: float
    manifest: dict[str, Any]
    state: str
    layers: int = 0

    @property
    def model(self) -> str:
        """Name of the model; empty if unknown."""
        return str(self.manifest.get("model", {}).get("name", ""))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add_setting(parser, "cache_dir")
    add(
        "--prune",
        choices=("all", BROKEN),
        help="delete selected vectors, parameters, corpora and answers: all, or only broken ones "
        "(damaged, unfinished, replaced, or in another version's format)",
    )
    add("--older-than", type=float, metavar="DAYS", help="only those not used for this long")
    add("--model", metavar="M", help="only those of this model")
    add(
        "--dry-run", action="store_true", help="print what --prune would delete, and delete nothing"
    )
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """List what is stored; delete it if asked to.

    Raises:
        UserError: a flag is missing that another one needs, or something cannot be deleted.
    """
    if options.older_than is not None and not options.older_than >= 0:  # < would let NaN pass
        raise UserError(f"--older-than {options.older_than:g}: give a number of at least 0.")
    prune_flags = {"--older-than": options.older_than is not None, "--dry-run": options.dry_run}
    if options.prune is None and any(prune_flags.values()):
        flags = [flag for flag, is_set in prune_flags.items() if is_set]
        need = "needs" if len(flags) == 1 else "need"
        raise UserError(f"{listed(flags, 'and')} {need} --prune; add --prune all, for example.")
    if options.prune == "all" and options.older_than is None and options.model is None:
        raise UserError(
            "--prune all would delete everything; select some with --older-than DAYS (0 for any "
            "age) or --model M."
        )
    vectors, parameters = options.cache_dir / "vectors", options.cache_dir / PARAMETERS
    sentences = options.cache_dir / stored_corpora.FOLDER
    stores, files = find_stores(vectors), find_parameters(parameters)
    corpora, kept = find_corpora(sentences), find_kept(options.cache_dir / kept_values.FILE)
    if options.model is not None:
        stores, files = ([x for x in some if x.model == options.model] for some in (stores, files))
        corpora, kept = [], []
    if stores:
        printer.show([_stores_table(stores)])
        printer.say(f"{counted(len(stores), 'store')}, {_size(stores)} in {vectors}")
    else:
        absent = "" if vectors.exists() else ", which does not exist"
        printer.say(f"No vectors in {vectors}{absent}.")
    if corpora:
        printer.say(f"{_files_line(corpora, CORPORA_NOUN)} in {sentences}")
    if files:
        printer.say(f"{_files_line(files, PARAMETERS_NOUN)} in {parameters}")
    if kept:
        printer.say(f"{_files_line(kept, KEPT_NOUN)} in {options.cache_dir}")
    if options.prune and (stores or files or corpora or kept):
        selected = (
            [x for x in some if _is_selected(x, options)] for some in (stores, corpora, files, kept)
        )
        try:
            _prune(*selected, dry_run=options.dry_run)
        except OSError as error:
            raise UserError(f"{error.filename}: cannot be deleted ({error.strerror}).") from error
    return 0


def find_stores(vectors: Path) -> list[Entry]:
    """Every store in `vectors`, the most recently used one first."""
    store_paths = (path for path in vectors.glob("*") if _NAME.fullmatch(path.name))
    stores = [_store(path) for path in store_paths if path.is_dir() and not path.is_symlink()]
    return sorted(stores, key=lambda entry: (-entry.used, entry.path))


def _store(folder: Path) -> Entry:
    size = used = 0.0
    with suppress(OSError):  # a run may rename or delete it meanwhile
        used = folder.stat().st_mtime
        size = sum(path.lstat().st_size for path in folder.rglob("*"))
    try:
        manifest = read_manifest(folder / MANIFEST, STORE_FIELDS)
        parts: list[set[str]] = [set() for _ in range(manifest["shards"])]
        for shard in read_shards(folder, manifest["shards"]):
            parts[shard.number].update(shard.files)
        # Runs read the store that replaces this one.
        state = BROKEN if replacement(folder) else WHOLE
    except UserError:
        return Entry(folder, int(size), used, {}, BROKEN)
    all_parts = set().union(*parts)
    if state == WHOLE and not (all_parts and all(part == all_parts for part in parts)):
        state = UNFINISHED
    layers = {part[0] for part in map(re.compile(r"layer-\d+").match, all_parts) if part}
    return Entry(folder, int(size), used, manifest, state, len(layers or all_parts))


def find_parameters(folder: Path) -> list[Entry]:
    """Every file of fitted parameters in `folder`, in the order of their names."""
    paths = sorted(folder.glob(f"*{PARAMETERS_SUFFIX}"))
    return [_parameters(path) for path in paths if _NAME.fullmatch(path.stem) and path.is_file()]


def _parameters(path: Path) -> Entry:
    size, used = path.stat().st_size, path.stat().st_mtime
    try:
        return Entry(path, size, used, {"model": {"name": read_about(path)["model"]}}, WHOLE)
    except UserError:
        return Entry(path, size, used, {}, BROKEN)


def find_corpora(folder: Path) -> list[Entry]:
    """Every file of a corpus as it was read, in the order of their names."""
    paths = sorted(folder.glob(f"*{stored_corpora.SUFFIX}"))
    if paths:
        from probes.data.arrow_columns import read_metadata
    entries = []
    for path in (x for x in paths if _NAME.fullmatch(x.stem) and os.path.isfile(x)):
        try:
            about = path.stat()
        except OSError:  # deleted by another process
            continue
        try:
            current = read_metadata(path).get("readers") == stored_corpora.readers()
        except stored_corpora.DAMAGES:
            current = False
        entries.append(Entry(path, about.st_size, about.st_mtime, {}, WHOLE if current else BROKEN))
    return entries


def find_kept(path: Path) -> list[Entry]:
    """The file of `probes.common.kept_values`, if there is one."""
    # A damaged one is deleted when it is used.
    is_file = os.path.isfile(path)
    return [Entry(path, path.stat().st_size, path.stat().st_mtime, {}, WHOLE)] if is_file else []


def _is_selected(entry: Entry, options: argparse.Namespace) -> bool:
    if options.prune == BROKEN and entry.state == WHOLE:
        return False
    return options.older_than is None or time.time() - entry.used >= 86400 * options.older_than


def _prune(stores: Sequence[Entry], *others: Sequence[Entry], dry_run: bool) -> None:
    """Delete stores, unless a run is writing or reading them; parameters, corpora and answers."""
    verb = "would delete" if dry_run else "deleted"
    for entry in stores:
        title = f"{entry.path} ({_size([entry])}, {entry.state})"
        try:
            if not dry_run:
                lock = entry.path.with_suffix(SUFFIX)
                with locked(lock, wait=False), unused(entry.path / MANIFEST):
                    shutil.rmtree(entry.path)
            printer.say(f"{verb} {title}")
        except BusyError:
            printer.say(f"kept {title}: a run is using it")
    nouns = CORPORA_NOUN, PARAMETERS_NOUN, KEPT_NOUN
    for entries, noun in zip(others, nouns, strict=True):
        if entries:
            if not dry_run:
                for entry in entries:
                    entry.path.unlink(missing_ok=True)
            printer.say(f"{verb} {_files_line(entries, noun)}")
    if not (stores or any(others)):
        printer.say("nothing to delete")


def _files_line(files: Sequence[Entry], noun: str) -> str:
    """Number and size of files, for messages."""
    broken = sum(entry.state == BROKEN for entry in files)
    line = f"{counted(len(files), 'file')} of {noun}, {_size(files)}"
    return f"{line}, {broken} of them broken" if broken else line


def _stores_table(entries: Sequence[Entry]) -> Table:
    heads = ("model", "text", "vectors", "state", "size", "last used")
    return Table("stored vectors", heads, tuple(_cache_rows(entries)), left=4)


def _cache_rows(entries: Sequence[Entry]) -> Iterator[TableRow]:
    for entry in entries:
        manifest = entry.manifest
        about = manifest.get("key", {})
        settings = about.get("settings", {})
        stored = f"in {settings['storage']}" if "storage" in settings else ""
        computed = ", ".join(filter(None, (settings.get("pooling"), about.get("dtype"), stored)))
        revision = str(manifest.get("model", {}).get("revision") or about.get("model", ""))
        used = time.localtime(entry.used)
        yield TableRow.of(
            Cell(entry.model or entry.path.name, note=revision[:12]),
            Cell(str(manifest.get("corpus") or "unknown"), note=str(manifest.get("view", ""))),
            Cell(f"{manifest.get('rows', 0):,} × {entry.layers}", note=computed),
            entry.state,
            Cell(_size([entry]), value=entry.size / 1e6),
            Cell(time.strftime("%Y-%m-%d", used), note=time.strftime("%H:%M", used)),
        )


def _size(entries: Sequence[Entry]) -> str:
    return f"{sum(entry.size for entry in entries) / 1e6:,.1f} MB"
