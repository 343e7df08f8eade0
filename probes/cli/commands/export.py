"""`python -m probes export`: packs results, predictions and provenance into one file."""

from __future__ import annotations

import argparse
from pathlib import Path

from probes.cli.arguments import place
from probes.cli.load_results import no_results, records_below
from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.common.wording import counted
from probes.measurements.shareable import with_sums
from probes.measurements.soundness import require_sound
from probes.records.bundles import write_bundle
from probes.records.record import Record

SUMMARY = "Pack results into one file to share."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "results", type=place, help="a folder of results, or the folder of one model in it"
    )
    parser.add_argument("file", type=place, metavar="FILE.zip", help="the file to write")
    parser.add_argument(
        "--sums",
        action="store_true",
        help="instead of predictions and labels, what each test document, or sentence where the "
        "corpus names no documents, contributes to the headline metric: enough for its intervals "
        "and tests, and no text (counts of a short one may still show its labels)",
    )


def run(options: argparse.Namespace) -> int:
    """Write the bundle.

    Raises:
        UserError: there are no results, or the file exists already or is not called .zip.
    """
    if options.file.suffix.lower() != ".zip":
        raise UserError(f"{options.file}: the name must end in .zip.")
    if options.file.exists():
        raise UserError(f"{options.file} exists already; name another file.")
    records = {
        path: record
        for path, record in records_below([options.results]).items()
        if _is_sound(record, path)
    }
    changed = with_sums(records) if options.sums else None
    if changed is not None:
        records = {path: records[path] for path in changed}
    if not records:
        raise no_results([options.results])
    files = write_bundle(options.file, records, changed)
    size = options.file.stat().st_size / 1e6
    contents = f"{counted(len(records), 'record')}, {counted(files, 'file')}"
    progress.say(f"wrote   {options.file}: {contents}, {size:.1f} MB")
    return 0


def _is_sound(record: Record, path: Path) -> bool:
    """Whether import would take the record; if not, it is named."""
    try:
        require_sound(record, path)
    except UserError as error:
        progress.say(f"left out {error}")
        return False
    return True
