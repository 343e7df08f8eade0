"""The results that a sub-command reads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from probes.common.errors import UserError
from probes.records.files import or_published
from probes.records.result import Result
from probes.records.unique import unique_results


def load_results(folders: Iterable[Path]) -> dict[Path, Result]:
    """All results below the folders.

    Raises:
        UserError: a folder does not exist, or there are no results in any of them.
    """
    folders = tuple(folders)
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder}: there is no such folder; name a folder of results.")
    found = unique_results(*folders)
    if not found:
        where = ", ".join(map(str, folders))
        raise UserError(
            f"{where}: no results; probe a model first: python run_probes.py --model M"
            f"{or_published(*folders)}."
        )
    return found
