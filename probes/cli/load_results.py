"""The results that a sub-command reads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from probes.common.errors import UserError
from probes.measurements.results import joined
from probes.records.files import or_published
from probes.records.record import AnyRecord
from probes.records.result import Result
from probes.records.unique import unique_records


def load_results(folders: Iterable[Path]) -> dict[Path, Result]:
    """All results below the folders, with their evidence.

    Raises:
        UserError: a folder does not exist, or there are no results in any of them.
    """
    folders = tuple(folders)
    found = joined(load_records(folders))
    if not found:
        raise no_results(folders)
    return found


def load_records(folders: Iterable[Path]) -> dict[Path, AnyRecord]:
    """All records below the folders.

    Raises:
        UserError: a folder does not exist, or there are no records in any of them.
    """
    folders = tuple(folders)
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder}: there is no such folder; name a folder of results.")
    found = unique_records(*folders)
    if not found:
        raise no_results(folders)
    return found


def no_results(folders: Iterable[Path]) -> UserError:
    """The error for folders without any results."""
    folders = tuple(folders)
    where = ", ".join(map(str, folders))
    return UserError(
        f"{where}: no results; probe a model first: python run_probes.py --model M"
        f"{or_published(*folders)}."
    )
