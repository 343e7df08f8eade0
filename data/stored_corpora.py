"""Corpora as they were read, in the folder `sentences` of the cache, so that they are parsed once.

A file is named by a digest of what was read (content of the files, request) and of what read it
(code, libraries): if any of it changes, files are read anew. A run does without a file that is
damaged or cannot be written.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from probes import __version__
from probes.common.errors import DiskError, UserError
from probes.common.files import digest_of_code, sha256
from probes.common.process import infrequent_garbage_collection
from probes.common.terminal import progress
from probes.data.sentence import Corpus
from probes.data.sources import CorpusRequest, LabelColumn, Source
from probes.data.splits import SplitBy, files_by_split

FOLDER, SUFFIX = "sentences", ".arrow"

SHORTEST = 0.2
"""Processor seconds; what is read in less time is not stored."""

_LIBRARIES = ("conllu", "datasets", "pyarrow")
"""Libraries that parse files; the version of spaCy is part of the identity of raw text."""

DAMAGES = (
    OSError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RuntimeError,
    MemoryError, StopIteration,
)  # fmt: skip
"""Errors that a damaged or made-up file may raise."""

T = TypeVar("T")


def stored_corpus(source: Source, folder: Path) -> Corpus:
    """The corpus of a source, with its fingerprint; read from its files if it is not in `folder`.

    Raises:
        UserError: the files cannot be read.
    """

    def key() -> str:
        # The digest of a source leaves out which columns are labels, since tasks have them.
        about = source.digest_for(source.further), source.licence, repr(source.columns)
        return _digest(*about, *_contents(source.files))

    def read() -> tuple[Corpus, str]:
        corpus = source.read_files()
        return corpus, corpus.fingerprint

    corpus, fingerprint = _stored(folder, tuple[Corpus, str], key, read)
    vars(corpus)["fingerprint"] = fingerprint
    return corpus


@dataclass(frozen=True)
class _TableFacts:
    """Facts about a table, inferred from all of its rows.

    Attributes:
        identity, columns, split_by: see `Source`.
        warnings: what was said of its rows.
    """

    identity: Mapping[str, str | bool]
    columns: Mapping[str, LabelColumn]
    split_by: SplitBy | None
    warnings: tuple[str, ...]


def stored_table(
    name: str, paths: list[Path], request: CorpusRequest, find: Callable[..., Source]
) -> Source:
    """The table that `find` finds in files; its rows are read only if they are not stored.

    Raises:
        UserError: the files cannot be read, or they change meanwhile.
    """
    splits = files_by_split(name, paths)
    # What the digest of a corpus has anyway, and where files are, does not matter here.
    settings = {**vars(request), "name": name}
    for field in ("corpus", "data_dir", "cache_dir", "offline", "mirror", "limit", "drop_overlap"):
        del settings[field]
    new_sources: list[Source] = []

    def key() -> str:
        return _digest(repr(settings), *_contents(splits))

    def find_now() -> _TableFacts:
        warnings: list[str] = []

        def warn(message: str) -> None:
            warnings.append(message)
            progress.warn(message)

        source = find(name, paths, request, warn)
        new_sources.append(source)
        return _TableFacts(source.identity, source.columns, source.split_by, tuple(warnings))

    def read(source: Source) -> Corpus:
        again = find(name, paths, request, lambda message: None)  # which was said before
        if again.identity != source.identity:
            raise UserError(f"{paths[0]}: changed while it was read; start again.")
        return again.read(source)

    table = _stored(request.cache_dir / FOLDER, _TableFacts, key, find_now)
    if new_sources:
        return new_sources[0]
    for message in table.warnings:
        progress.warn(message)
    return Source(
        name,
        version="",
        licence="",
        files=splits,
        identity=table.identity,
        read=read,
        layers=frozenset(column.layer for column in table.columns.values()),
        from_user=True,
        columns=table.columns,
        split_by=table.split_by,
    )


_CODE = (
    __version__,
    digest_of_code(
        [Path(__file__).resolve().parents[1] / package for package in ("common", "data")],
        "[!.]*.py",
    ),
)
"""Made at import, for the code that runs: later there may be a newer one on disk."""


@cache
def readers() -> str:
    """Digest of what reads files: code, Python and libraries."""
    from importlib.metadata import version

    libraries = (f"{library} {version(library)}" for library in _LIBRARIES)
    return hashlib.sha256(repr((_CODE, platform.python_version(), *libraries)).encode()).hexdigest()


def _contents(paths_by_role: Mapping[str, Iterable[Path]]) -> Iterator[str]:
    """Role, name and digest of each file."""
    for role, paths in paths_by_role.items():
        for path in paths:
            yield f"{role} {path.name} {sha256(path)}"


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps((readers(), *parts)).encode()).hexdigest()


def _stored(folder: Path, hint: Any, key: Callable[[], str], make: Callable[[], T]) -> T:
    """The value that `folder` has under a key; if it has none, one that is made and stored.

    Args:
        hint: type of the value.
        key: digests what the value is made of.
    """
    if (name := _unless_unreadable(key)) is None:
        return make()  # says which file cannot be read
    path, about = folder / f"{name[:32]}{SUFFIX}", {"key": name, "readers": readers()}
    with infrequent_garbage_collection():
        if os.path.exists(path):  # unlike that of `Path`, False for what may not be looked at
            from probes.data.arrow_columns import read_columns

            try:
                value: T = read_columns(path, hint, about)
            except FileNotFoundError:
                pass  # deleted by another process
            except DAMAGES as error:
                reason = " ".join(str(error).split())[:100]
                progress.say(f"{path}: not as it was written ({reason}); the corpus is read anew")
            else:
                with suppress(OSError):  # a read-only cache
                    os.utime(path)  # the time of its last use
                return value
        clock = time.process_time()
        value = make()
        # If files changed meanwhile, nobody knows which of their contents were read.
        if time.process_time() - clock >= SHORTEST and _unless_unreadable(key) == name:
            from probes.data.arrow_columns import OtherTypeError, write_columns

            try:
                write_columns(path, hint, value, about)
            except (DiskError, OtherTypeError, MemoryError) as error:
                progress.detail(f"what was read of the corpus is not stored: {error}")
    return value


def _unless_unreadable(key: Callable[[], str]) -> str | None:
    with suppress(OSError):
        return key()
    return None
