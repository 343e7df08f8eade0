"""`python -m probes fetch`: download corpora, and read them once to check them."""

from __future__ import annotations

import argparse

from probes.cli.arguments import add_places
from probes.common.errors import UserError
from probes.common.registry import did_you_mean
from probes.data.find import find_corpus
from probes.data.registered import corpora
from probes.data.sentence import SPLITS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("name", nargs="+", help=f"all, or some of {', '.join(corpora)}")
    parser.add_argument(
        "--mirror",
        default="",
        metavar="URL",
        help="download from this address instead of the original; checksums stay the same",
    )
    add_places(parser)


def run(options: argparse.Namespace) -> int:
    """Download and read the named corpora, and print their counts.

    Raises:
        UserError: there is no such corpus, or a file cannot be downloaded or read.
    """
    names = list(corpora) if "all" in options.name else list(dict.fromkeys(options.name))
    for name in names:
        if name not in corpora:
            raise UserError(f"Unknown corpus {name!r}. {did_you_mean(name, [*corpora, 'all'])}")
    for name in names:
        source = find_corpus(
            name,
            data_dir=options.data_dir,
            cache_dir=options.cache_dir,
            mirror=options.mirror,
            complete=True,  # also the further annotation that a run can do without
        )
        corpus = source.load()
        sentences = " / ".join(f"{len(corpus.splits[split]):,}" for split in SPLITS)
        words = " / ".join(f"{sum(map(len, corpus.splits[split])):,}" for split in SPLITS)
        size = f"{sentences} sentences, {words} words"
        if corpus.items:
            size = f"{len(corpus.items):,} items in {corpus.notes['paradigms']} paradigms"
        print(f"{name} {corpus.version} ({corpus.licence})")
        print(f"  {size}, fingerprint {corpus.fingerprint[:16]}")
        for genre, counts in corpus.genres.items():
            print(f"  {genre}: {' / '.join(f'{count:,}' for count in counts)} sentences")
        for folder in dict.fromkeys(path.parent for part in source.files.values() for path in part):
            print(f"  in {folder}")
    return 0
