"""The results that a command or a notebook reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from glob import glob
from pathlib import Path

from probes.boards.groups import of_corpora
from probes.cli.results import Results
from probes.common.errors import UserError
from probes.measurements.joined_results import joined
from probes.records.files import or_published, unique_records
from probes.records.record import Record
from probes.records.result import Result
from probes.tasks.builtin import table_order


def load_results(*places: str | os.PathLike[str]) -> Results:
    """Everything that was found and stored below some folders.

    Args:
        places: folders, or patterns such as ``results/*/ewt``.

    Raises:
        UserError: a folder does not exist, or there are no records in any of them.
    """
    folders: list[Path] = []
    for place in [os.fspath(each) for each in places]:
        found = [Path(place)] if Path(place).exists() else [*map(Path, sorted(glob(place)))]
        if not found:
            raise UserError(f"{place}: there is no such folder; name a folder of results.")
        folders += [path for path in found if path.is_dir()]
    records = records_below(folders)
    return Results(_in_order(joined(records)), measured=of_corpora(records))


def _in_order(results: Mapping[Path, Result]) -> dict[Path, Result]:
    """Random twins last, and tasks as runs have them."""

    def place(entry: tuple[Path, Result]) -> tuple[object, ...]:
        result = entry[1]
        return result.model.random_seed is not None, table_order(result.task.name)

    return dict(sorted(results.items(), key=place))


def results_below(folders: Iterable[Path]) -> dict[Path, Result]:
    """All results below the folders, with their evidence.

    Raises:
        UserError: a folder does not exist, or there are no results in any of them.
    """
    folders = tuple(folders)
    found = joined(records_below(folders))
    if not found:
        raise no_results(folders)
    return found


def records_below(folders: Iterable[Path], flag: str = "") -> dict[Path, Record]:
    """All records below the folders.

    Args:
        flag: the option that names another folder, which errors suggest.

    Raises:
        UserError: a folder does not exist, or there are no records in any of them.
    """
    folders = tuple(folders)
    for folder in folders:
        if not folder.is_dir():
            name = f"name a folder of results{f' with {flag}' * bool(flag)}"
            raise UserError(f"{folder}: there is no such folder; {name}.")
    found = unique_records(*folders)
    if not found:
        raise no_results(folders, flag)
    return found


def no_results(folders: Iterable[Path], flag: str = "") -> UserError:
    """The error for folders without any results; `flag` names another one."""
    folders = tuple(folders)
    where = ", ".join(map(str, folders))
    return UserError(
        f"{where}: no results; probe a model first: python run_probes.py --model M"
        f"{f', or name another folder with {flag}' * bool(flag)}{or_published(*folders)}."
    )
