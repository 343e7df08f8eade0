"""Corpora as they were read, in the folder `sentences` of the cache, so that they are parsed once.

A file is named by a digest of what was read (content of the files, request) and of what read it
(code of this package, libraries), so it is never out of date. A run does without a file that is
damaged or cannot be written.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from probes.common.errors import DiskError, UserError
from probes.common.files import sha256
from probes.common.terminal import progress
from probes.data.sentence import Corpus
from probes.data.sources import CorpusRequest, LabelColumn, Source
from probes.data.splits import SplitBy, files_by_split

FOLDER, SUFFIX = "sentences", ".arrow"

SHORTEST = 0.2
"""Processor seconds; what is read in less time is not stored."""

_LIBRARIES = ("conllu", "datasets", "pyarrow")
"""Libraries that parse files; the version of spaCy is part of the identity of raw text."""

T = TypeVar("T")


def stored_corpus(source: Source, folder: Path) -> Corpus:
    """The corpus of a source, with its fingerprint; read from its files if it is not in `folder`.

    Raises:
        UserError: the files cannot be read.
    """

    def key() -> str:
        return _digest(source.digest_for(source.further), source.licence, *_contents(source.files))

    def read() -> tuple[Corpus, str]:
        corpus = source.read_files()
        return corpus, corpus.fingerprint

    corpus, fingerprint = _stored(folder, tuple[Corpus, str], key, read)
    vars(corpus)["fingerprint"] = fingerprint
    return corpus


@dataclass(frozen=True)
class _FoundTable:
    """Facts about a table, inferred from all of its rows.

    Attributes:
        identity, columns, split_by: see `Source`.
        messages: level, text and event of each message.
    """

    identity: Mapping[str, str]
    columns: Mapping[str, LabelColumn]
    split_by: SplitBy | None
    messages: tuple[tuple[str, str, str], ...]


def stored_table(
    name: str,
    paths: list[Path],
    request: CorpusRequest,
    find: Callable[[str, list[Path], CorpusRequest], Source],
) -> Source:
    """The table that `find` finds in files; its rows are read only if they are not stored.

    Raises:
        UserError: the files cannot be read, or they change meanwhile.
    """
    files = files_by_split(name, paths)
    # What the digest of a corpus has anyway, and where files are, does not matter here.
    settings = {**vars(request), "name": name}
    for field in ("corpus", "data_dir", "cache_dir", "offline", "mirror", "limit", "drop_overlap"):
        del settings[field]
    messages: list[tuple[str, str, str]] = []
    sources: list[Source] = []

    def key() -> str:
        return _digest(repr(settings), *_contents(files))

    def find_now() -> _FoundTable:
        try:
            with progress.forwarded(lambda *message: messages.append(message[:3])):
                source = find(name, paths, request)
        finally:
            _emit(messages)
        sources.append(source)
        return _FoundTable(source.identity, source.columns, source.split_by, tuple(messages))

    def read(source: Source) -> Corpus:
        with progress.forwarded(lambda *_: None):
            again = find(name, paths, request)
        if again.identity != source.identity:
            raise UserError(f"{paths[0]}: changed while it was read; start again.")
        return again.read(source)

    table = _stored(request.cache_dir / FOLDER, _FoundTable, key, find_now)
    if sources:
        return sources[0]
    _emit(table.messages)
    return Source(
        name,
        version="",
        licence="",
        files=files,
        identity=table.identity,
        read=read,
        layers=frozenset(column.layer for column in table.columns.values()),
        from_user=True,
        columns=table.columns,
        split_by=table.split_by,
    )


def _emit(messages: Iterable[tuple[str, str, str]]) -> None:
    for level, message, event in messages:
        progress.emit(level, message, event, {})


@cache
def readers() -> str:
    """Digest of what reads files: Python, libraries, and the code of this package."""
    from importlib.metadata import version

    digest = hashlib.sha256(platform.python_version().encode())
    for library in _LIBRARIES:
        digest.update(f"{library} {version(library)}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _contents(files: Mapping[str, Iterable[Path]]) -> Iterator[str]:
    """Role, name and digest of each file."""
    for role, paths in files.items():
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
    name = key()
    path, about = folder / f"{name[:32]}{SUFFIX}", {"key": name, "readers": readers()}
    with _no_garbage_collection():
        if path.exists():
            from probes.data.arrow_columns import read_columns

            try:
                value: T = read_columns(path, hint, about)
            except (OSError, ValueError, TypeError, LookupError, StopIteration) as error:
                reason = " ".join(str(error).split())[:100]
                progress.say(f"{path}: not as it was written ({reason}); the corpus is read anew")
            else:
                with suppress(OSError):  # a read-only cache
                    os.utime(path)  # the time of its last use
                return value
        clock = time.process_time()
        value = make()
        # If files changed meanwhile, nobody knows which of their contents were read.
        if time.process_time() - clock >= SHORTEST and key() == name:
            from probes.data.arrow_columns import OtherTypeError, write_columns

            try:
                write_columns(path, hint, value, about)
            except (DiskError, OtherTypeError) as error:
                progress.detail(f"what was read of the corpus is not stored: {error}")
    return value


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Pause the garbage collector: it would go through all sentences, again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
