"""CoNLL-U: the ten columns of Universal Dependencies, and two layers in MISC.

Chunks and frames have no columns of their own. They ride in MISC:

- ``Chunk=B-NP``: the BIO tag of the word's base chunk, on every word or on none.
- ``Frame=break.01`` on the first word of a predicate, with ``Pred=3-4`` if the predicate
  has several words, and ``Args=ARG1:1-2,ARGM-TMP:5-6`` if it has arguments.
  Words count from 1, both ends included, as in the ID column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import conllu
from conllu.exceptions import ParseException

from common.errors import UserError
from data.sentence import ROOT, Frame, Sentence, Span

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def read_conllu(path: Path, language: str) -> Iterator[Sentence]:
    """Yield the sentences of one CoNLL-U file, in order.

    Multiword-token lines (``12-13``) and empty nodes (``8.1``) are not words.

    Args:
        path: a UTF-8 file.
        language: BCP 47 tag, given to every sentence.

    Raises:
        UserError: the file cannot be read, or a line of it cannot be understood.
    """
    start = 1
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, (line, block) in enumerate(_blocks(file), start=1):
                start = line
                (tokens,) = conllu.parse(block)
                yield _sentence(tokens, f"{path.stem}-{number}", language)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 at byte {error.start}; convert the file.") from error
    except (ParseException, ValueError, KeyError, TypeError) as error:
        why = " ".join(str(error).split())
        raise UserError(
            f"{path}, sentence at line {start}: not valid CoNLL-U ({why}); mend the file."
        ) from error


def _blocks(file: TextIO) -> Iterator[tuple[int, str]]:
    """The sentences of a file as text, each with the number of its first line."""
    lines: list[str] = []
    for number, line in enumerate(file, start=1):
        if line.strip():
            lines.append(line)
        elif lines:
            yield number - len(lines), "".join(lines)
            lines = []
    if lines:
        yield number - len(lines) + 1, "".join(lines)


def _sentence(tokens: conllu.TokenList, fallback_id: str, language: str) -> Sentence:
    words = [token for token in tokens if isinstance(token["id"], int)]
    if [word["id"] for word in words] != list(range(1, len(words) + 1)):
        raise ValueError("word ids do not count 1, 2, 3 …")
    misc = [word["misc"] or {} for word in words]
    return Sentence(
        id=tokens.metadata.get("sent_id", fallback_id),
        language=language,
        words=tuple(word["form"] for word in words),
        upos=_column(words, "upos"),
        xpos=_column(words, "xpos"),
        feats=tuple(word["feats"] or {} for word in words)
        if any(word["feats"] for word in words)
        else (),
        heads=_heads(words),
        deprels=_column(words, "deprel"),
        chunks=tuple(m["Chunk"] for m in misc) if any("Chunk" in m for m in misc) else (),
        frames=tuple(_frame(m, i, len(words)) for i, m in enumerate(misc) if "Frame" in m),
    )


def _column(words: list[Any], name: str) -> tuple[str, ...]:
    """A column of strings; empty if any word has none (``_``)."""
    values = tuple(word[name] for word in words)
    return values if all(value not in (None, "_") for value in values) else ()


def _heads(words: list[Any]) -> tuple[int, ...]:
    """Heads counted from 0, `ROOT` for the root; empty if any word has none."""
    if any(word["head"] is None for word in words):
        return ()
    heads = tuple(word["head"] - 1 for word in words)
    for i, head in enumerate(heads):
        if not ROOT <= head < len(words):
            raise ValueError(f"word {i + 1} has head {head + 1}, but there are {len(words)} words")
    for i in range(len(heads)):
        above, steps = i, 0
        while above != ROOT:
            above, steps = heads[above], steps + 1
            if steps > len(words):
                raise ValueError(f"the heads above word {i + 1} form a cycle")
    return heads


def _frame(misc: dict[str, str], first: int, n_words: int) -> Frame:
    arguments = []
    for argument in filter(None, misc.get("Args", "").split(",")):
        label, _, place = argument.rpartition(":")
        arguments.append((label, _span(place, n_words)))
    predicate = _span(misc["Pred"], n_words) if "Pred" in misc else (first, first + 1)
    return Frame(misc["Frame"], predicate, tuple(sorted(arguments, key=lambda a: a[1])))


def _span(place: str, n_words: int) -> Span:
    match = _RANGE.fullmatch(place)
    if match:
        start, end = int(match[1]) - 1, int(match[2] or match[1])
        if 0 <= start < end <= n_words:
            return start, end
    raise ValueError(f"{place!r} is not a range of words 1 to {n_words}")
