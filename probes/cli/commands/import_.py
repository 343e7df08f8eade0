"""`python -m probes import`: results that another machine exported, verified and merged."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from probes.boards.leaderboard_csv import write_leaderboard
from probes.cli.arguments import place
from probes.common.files import writing
from probes.common.locks import SUFFIX, locked
from probes.common.terminal import progress
from probes.records.bundles import unpack
from probes.records.merging import merge

_STAGING = ".import-"

SUMMARY = "Merge results that export packed; conflicting ones are reported, not overwritten."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("file", type=place, metavar="FILE.zip", help="what export wrote")
    add("--output", type=place, default=Path("results"), metavar="DIR", help="default: results")


def run(options: argparse.Namespace) -> int:
    """Merge the bundle; 2 if results conflict with those that are there.

    Raises:
        UserError: the bundle is damaged, unsafe or of another schema; nothing was written then.
    """
    output: Path = options.output
    with locked(output / f"import{SUFFIX}", waiting="for another import to end"):
        # Of imports that were killed; nobody else is importing now.
        for left in output.glob(f"{_STAGING}*"):
            shutil.rmtree(left, ignore_errors=True)
        with writing(output):
            staging = tempfile.TemporaryDirectory(dir=output, prefix=_STAGING)
        with staging as name:
            staged = Path(name)
            found = merge(staged, unpack(options.file, staged), output)
    progress.say(f"added   {len(found.added)} results; {len(found.present)} were there already")
    for name, why in found.conflicts.items():
        progress.insist(f"not imported: {name}: {why}; to keep both, import with another --output")
    progress.say(f"wrote   {write_leaderboard(output)}")
    return 2 if found.conflicts else 0
