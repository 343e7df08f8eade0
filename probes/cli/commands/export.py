"""`python -m probes export --sums`: writes results to share, without text of the corpus."""

from __future__ import annotations

import argparse
from pathlib import Path

from probes.boards.soundness import require_sound
from probes.cli.arguments import path_argument
from probes.cli.results import no_results, records_below
from probes.common.errors import UserError, counted
from probes.common.terminal import progress
from probes.probing.resampled_scores import with_sums
from probes.records.record import Record
from probes.records.record_files import path_in_results, write_record


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "results", type=path_argument, help="a folder of results, or the folder of one model in it"
    )
    parser.add_argument("folder", type=path_argument, metavar="DIR", help="the folder to write")
    parser.add_argument(
        "--sums",
        action="store_true",
        help="replace predictions and labels by sums of the headline metric over test documents, "
        "or sentences if there are none: enough for intervals and tests, and no text (counts of a "
        "short document may still show its labels)",
    )


def run(options: argparse.Namespace) -> int:
    """Write the folder.

    Raises:
        UserError: `--sums` is missing, there are no results, or the folder is not empty.
    """
    folder: Path = options.folder
    if not options.sums:
        raise UserError(
            "--sums is missing. To share results with labels and predictions, copy their folder."
        )
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UserError(f"{folder} exists and is not an empty folder; name another folder.")
    records = records_below([options.results])
    shared = with_sums(
        {path: record for path, record in records.items() if _is_sound(record, path)}
    )
    if not shared:
        raise no_results([options.results])
    targets: dict[Path, Path] = {}
    for path in shared:
        first_path = targets.setdefault(folder / path_in_results(path), path)
        if first_path != path:
            raise UserError(f"{path}: same name as {first_path}; export their folders one by one.")
    for target, path in targets.items():
        write_record(target, *shared[path])
    progress.say(f"wrote   {folder}: {counted(len(targets), 'record')}")
    return 0


def _is_sound(record: Record, path: Path) -> bool:
    """Whether a record can be used; if not, a message says why."""
    try:
        require_sound(record, path)
    except UserError as error:
        progress.say(f"left out {error}")
        return False
    return True
