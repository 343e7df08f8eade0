"""Corpora as they were read, kept in the cache: parsing EWT takes 13 seconds, this takes 3.

A file has a line of counts, a line of JSON for each sentence, and the digest of both, which is
checked. Its name has a digest of the corpus's files and of the code that reads them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path

from pydantic import TypeAdapter

from probes.common.errors import DiskError
from probes.common.files import published, sha256
from probes.common.terminal import progress
from probes.data.sentence import SPLITS, Corpus, Sentence
from probes.data.sources import Source


@cache
def _sentence() -> TypeAdapter[Sentence]:
    return TypeAdapter(Sentence)


def read_once(read: Callable[[Source], Corpus], folder: Path, source: Source) -> Corpus:
    """Read a corpus and keep it; read what was kept from then on.

    Of what was kept only as many sentences are parsed as the source's limit asks for, and one more
    of each split, by which `Source.load` sees that there are others.

    Args:
        folder: where it is kept.

    Raises:
        UserError: a file of the corpus is invalid.
    """
    whole = replace(source, limit=None, drop_overlap=False)
    content = f"{whole.digest_for(whole.further)} {_readers()}".encode()
    path = folder / f"{source.name}-{hashlib.sha256(content).hexdigest()[:16]}.jsonl"
    if path.is_file():
        if found := _kept(path, source):
            return found
        progress.say(f"{path}: damaged; the files of {source.name} are read again")
    corpus = read(source)
    try:
        _keep(path, corpus)
    except DiskError as error:
        progress.say(f"{source.name} is not kept as it was read: {error}")
    return corpus


@cache
def _readers() -> str:
    """Digest of the readers of corpora, since a change of one may read other sentences."""
    return " ".join(sha256(path) for path in sorted(Path(__file__).parent.glob("*.py")))


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _keep(path: Path, corpus: Corpus) -> None:
    sizes = {split: len(corpus.splits[split]) for split in SPLITS}
    head = json.dumps({"sizes": sizes, "notes": dict(corpus.notes)}).encode()
    content = b"\n".join((head, *map(_sentence().dump_json, corpus)))
    with published(path) as temporary:
        temporary.write_bytes(content + b"\n" + _digest(content))


def _kept(path: Path, source: Source) -> Corpus | None:
    """The corpus in a file; None if the file is damaged."""
    content, _, last = path.read_bytes().rpartition(b"\n")
    if last != _digest(content):
        return None
    first, *lines = content.split(b"\n")
    head = json.loads(first)
    rest = iter(lines)
    splits = {}
    for split in SPLITS:
        part = list(islice(rest, head["sizes"][split]))
        some = part if source.limit is None else part[: source.limit + 1]
        splits[split] = tuple(map(_sentence().validate_json, some))
    return Corpus(source.name, source.version, source.licence, splits, head["notes"])
