"""`python -m probes import`: verifies and merges results that another machine exported."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from probes.boards.leaderboard_csv import write_leaderboard
from probes.cli.arguments import place
from probes.common.errors import UserError
from probes.common.files import writing
from probes.common.locks import SUFFIX, locked
from probes.common.terminal import progress
from probes.common.wording import counted
from probes.measurements.soundness import require_sound
from probes.records.bundles import unpack
from probes.records.merging import merge

_STAGING = ".import-"

SUMMARY = "Merge exported results; conflicts are reported, nothing is overwritten."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("file", type=place, metavar="FILE.zip", help="a file written by export")
    add("--output", type=place, default=Path("results"), metavar="DIR", help="default: results")


def run(options: argparse.Namespace) -> int:
    """Merge the bundle; the status is 2 if results conflict with existing ones.

    Raises:
        UserError: the bundle does not exist, is damaged, unsafe or of another schema, or has a
            record that cannot be used; then nothing is written.
    """
    output: Path = options.output
    if not options.file.exists():
        raise UserError(f"{options.file}: there is no such file.")
    with locked(output / f"import{SUFFIX}", waiting="for another import to finish"):
        # Left by imports that were killed; the lock means that no other one is running.
        for left in output.glob(f"{_STAGING}*"):
            shutil.rmtree(left, ignore_errors=True)
        with writing(output):
            staging = tempfile.TemporaryDirectory(dir=output, prefix=_STAGING)
        with staging as name:
            staged = Path(name)
            found = merge(staged, unpack(options.file, staged), output, require_sound)
    added = counted(len(found.added), "result")
    progress.say(f"added   {added}; {len(found.present)} existed already")
    for name, why in found.conflicts.items():
        progress.warn(f"not imported: {name}: {why}; to keep both, import into another --output")
    progress.say(f"wrote   {write_leaderboard(output)}")
    return 2 if found.conflicts else 0
