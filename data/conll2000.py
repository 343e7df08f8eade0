"""CoNLL-2000: base chunks of the Wall Street Journal (Tjong Kim Sang & Buchholz 2000).

Three columns per line: word, part-of-speech tag, BIO tag. According to the archive's README, the
part-of-speech tags come from the Brill tagger; the chunks are derived from the treebank's trees.
There is no dev split, so the last tenth of the training sentences is used, in file order.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from probes.common.errors import UserError
from probes.common.files import decoded
from probes.data.chunk_schemes import WordError, require_bio
from probes.data.sentence import Corpus, Sentence, interned
from probes.data.sources import Source

_MEMBERS = {"train": "conll2000/train.txt", "test": "conll2000/test.txt"}
_MAX_BYTES = 1 << 25
"""Ten times the larger member; anything bigger cannot be the registered file."""

_COLUMNS = 3


def read_corpus(source: Source) -> Corpus:
    """The shared task's train and test; a dev split is cut from the end of train."""
    (archive,) = source.files["archive"]
    return source.corpus({split: tuple(read_split(archive, split)) for split in _MEMBERS})


def read_split(archive: Path, split: str) -> Iterator[Sentence]:
    """Yield the sentences of the "train" or the "test" member of the archive.

    Raises:
        UserError: the archive cannot be read, or a line of the member cannot be understood.
    """
    member = f"{archive}: {_MEMBERS[split]}"
    lines: list[list[str]] = []
    n_sentences = 0
    for number, line in enumerate([*decoded(_member(archive, split), member).split("\n"), ""], 1):
        row = line.split()
        if row and len(row) != _COLUMNS:
            raise UserError(
                f"{member}, line {number}: {len(row)} columns where {_COLUMNS} were expected "
                "(word, tag, chunk); fetch the archive again."
            )
        if row:
            lines.append(row)
        elif lines:
            n_sentences += 1
            yield _conll_sentence(lines, f"{split}-{n_sentences}", member, number - len(lines))
            lines = []
    if not n_sentences:
        raise UserError(f"{member}: contains no sentence; fetch the archive again.")


def _member(archive: Path, split: str) -> bytes:
    name = _MEMBERS[split]
    try:
        with zipfile.ZipFile(archive) as packed:
            if packed.getinfo(name).file_size > _MAX_BYTES:
                raise UserError(
                    f"{archive}: {name} is larger than the registered file; fetch it again."
                )
            with packed.open(name) as file:
                return file.read(_MAX_BYTES)
    except KeyError as error:
        raise UserError(f"{archive}: does not contain {name}; fetch it again.") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError) as error:
        raise UserError(f"{archive}: a damaged archive ({error}); fetch it again.") from error
    except OSError as error:
        raise UserError(f"{archive}: cannot be read ({error}); fetch it again.") from error


def _conll_sentence(rows: list[list[str]], name: str, member: str, first_line: int) -> Sentence:
    words, tags, chunks = map(interned, zip(*rows, strict=True))
    try:
        require_bio(chunks)
    except WordError as error:
        raise UserError(
            f"{member}, line {first_line + error.word}: {error}; fetch the archive again."
        ) from error
    return Sentence(id=name, language="en", words=words, xpos=tags, chunks=chunks)
