"""Merges records from elsewhere into a folder, without changing or losing what is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from probes.common.errors import UserError
from probes.common.files import writing
from probes.records.files import find_records, name_of, read_record
from probes.records.record import Record
from probes.records.unique import Identity, content_of, identity


@dataclass
class Merge:
    """What became of the records of a bundle, by their names in it.

    Attributes:
        added: records that were written.
        present: records that were there already, with the same content.
        conflicts: records that were there already, and how their content differs.
    """

    added: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)
    conflicts: dict[str, str] = field(default_factory=dict)


def merge(
    staged: Path,
    names: list[str],
    output: Path,
    require_sound: Callable[[Record, Path], None],
) -> Merge:
    """Move records from `staged` below `output`, on the same file system.

    Args:
        require_sound: raises UserError if what a record and its arrays hold cannot be used.

    Raises:
        UserError: one cannot be read or used, has a newer schema, or does not match its name.
            Nothing is moved then.
    """
    arriving = {name: _read(staged / name, name, require_sound) for name in names}
    places: dict[Identity, Path] = {}
    for path, record in find_records(output).items():
        if staged not in path.parents:
            places.setdefault(identity(record), path)
    found = Merge()
    for name, record in arriving.items():
        target = output / name
        # The same measurement may be stored in another folder.
        there = target if target.exists() else places.get(identity(record))
        if there is None:
            _move(staged / name, target)
            found.added.append(name)
        elif why := _difference(there, record):
            found.conflicts[name] = f"{there} {why}"
        else:
            _add_arrays(staged / name, there)
            found.present.append(name)
    return found


def _read(path: Path, name: str, require_sound: Callable[[Record, Path], None]) -> Record:
    try:
        record = read_record(path)
        require_sound(record, path)
    except UserError as error:
        # What is wrong, without what would help if it had been found in a folder of results.
        fault = str(error).replace(str(path.parent), str(Path(name).parent)).rpartition("; ")[0]
        raise UserError(f"{fault}; nothing is imported. Export the others without it.") from error
    if path.name != name_of(record):
        raise UserError(f"{name}: the file name does not match the result in it.")
    return record


def _difference(there: Path, record: Record) -> str:
    """How a stored record differs from another of the same name; empty if it does not."""
    try:
        stored = read_record(there)
    except UserError:
        return "is there and cannot be read"
    if identity(stored) != identity(record):
        return "has another model or key"
    if content_of(stored) == content_of(record):
        return ""
    if stored.extent.keys() != record.extent.keys():
        return "holds other layers"
    if stored.extent != record.extent:
        return "holds another number of fits or draws"
    return "has other numbers"


def _move(source: Path, target: Path) -> None:
    """Move a record; its arrays first, so that where the JSON is, they are too."""
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if (beside := source.with_suffix(".npz")).exists():
            beside.replace(target.with_suffix(".npz"))
        source.replace(target)


def _add_arrays(source: Path, there: Path) -> None:
    """Move arrays to a stored record that has none."""
    beside, wanted = source.with_suffix(".npz"), there.with_suffix(".npz")
    if beside.exists() and not wanted.exists():
        with writing(wanted):
            beside.replace(wanted)
