"""`python -m probes corpora`: lists corpora with their files and the tasks they serve."""

from __future__ import annotations

import argparse

from probes.cli.arguments import add_format, add_places
from probes.data.downloads import FileFinder
from probes.data.registered import Registered, corpora
from probes.tables.printing import printer
from probes.tables.table import Table, TableRow
from probes.tasks.builtin import tasks

_NOTES = (
    "Download a corpus: python -m probes fetch NAME.",
    "Your own data: --corpus with a folder of CoNLL-U files; with a .jsonl, .csv or .parquet file "
    "and --task-from COLUMN; or with a .txt file and --annotate PIPELINE.",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_places(parser)
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """Print the table."""
    finder = FileFinder(options.data_dir, options.cache_dir, offline=True)
    rows = []
    for name in corpora:
        x = corpora.get(name)
        rows.append(TableRow.of(name, x.version, x.licence, location(x, finder), served_tasks(x)))
    heads = ("corpus", "version", "licence", "where", "tasks")
    printer.show([Table("corpora", heads, tuple(rows), left=5, notes=_NOTES)])
    return 0


def location(corpus: Registered, finder: FileFinder) -> str:
    """Location of the files: embedded, cached, below `--data-dir`, or not downloaded."""
    if not corpus.remotes:
        return "embedded"
    remotes = {role: file for x in corpus.further.values() for role, file in x.remotes.items()}
    paths = {role: finder.find(file) for role, file in (corpus.remotes | remotes).items()}
    if None not in paths.values():
        folders = {
            "cached" if path.parent == finder.folder else "--data-dir"
            for path in paths.values()
            if path is not None
        }
        return ", ".join(sorted(folders))
    n_present = sum(path is not None for path in paths.values())
    return f"{n_present} of {len(paths)} files" if n_present else "not downloaded"


def served_tasks(corpus: Registered) -> str:
    """The tasks that a corpus serves; those with automatic labels are marked as silver."""
    names = []
    for name in tasks:
        task = tasks.get(name)
        if not task.missing(corpus.layers.union(corpus.further)):
            silver = set(task.on(corpus.layers).needs) & corpus.silver
            names.append(f"{name} (silver)" if silver else name)
    return ", ".join(names)
