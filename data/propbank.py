"""PropBank's annotation of the English Web Treebank: the release's `.gold_skel` files.

A skeleton is a sentence with its words blanked out: part-of-speech tags, the constituency tree and
the predicates with their arguments, one word per line, in the columns of CoNLL-2012 (Pradhan et al.
2012). The words come from UD English-EWT; see data/ewt_join.py.

The release is read from its archive; see data/downloads.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path

from probes.common.errors import UserError
from probes.data.downloads import Members
from probes.data.sentence import ROOT, Constituent, Frame

MEMBERS = Members(
    what="the registered release of PropBank",
    pattern=r"[^/]+/data/google/ewt/(.+\.gold_skel)",
    digest="a6b094d3d7c3efa4c9fd2704fa4790609c819dc2ee0161d1e832e0f345ceb849",
    folder="propbank-release/data/google/ewt",
)
"""The skeletons of EWT at commit 4abade0b."""

_BRACKETS = re.compile(r"((?:\([^()*]+)*)\*(\)*)")
_FIXED_COLUMNS = 8
_NO_ROLESET = "-"


@dataclass(frozen=True, slots=True)
class Tree:
    """A constituent, the words `[start, end)`.

    Attributes:
        label: its category, e.g. ``NP``.
        start: index of its first word.
        end: index after its last word.
        children: constituents, and indices of words, in order.
    """

    label: str
    start: int
    end: int
    children: tuple[Tree | int, ...]

    def constituents(self) -> tuple[Constituent, ...]:
        """The tree as a list, each constituent before its parts."""
        found: list[Constituent] = []

        def add(tree: Tree, parent: int) -> None:
            place = len(found)
            found.append(Constituent(tree.label, (tree.start, tree.end), parent))
            for child in tree.children:
                if isinstance(child, Tree):
                    add(child, place)

        add(self, ROOT)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The annotation of one sentence in the release.

    Attributes:
        tags: Penn Treebank part-of-speech tag of each word.
        tree: the constituency tree, without function tags and traces.
        frames: one per predicate, in order of columns. The predicate is the ``V`` bracket; ``C-V``,
            the rest of a split predicate, is among the arguments.
    """

    tags: tuple[str, ...]
    tree: Tree
    frames: tuple[Frame, ...]

    def __len__(self) -> int:
        return len(self.tags)


def read_skeletons(archive: Path, members: Members = MEMBERS) -> dict[str, tuple[Skeleton, ...]]:
    """The skeletons of every document, in order.

    Args:
        archive: the release as a tar file, complete or only the members that are read here,
            ``<prefix>/data/google/ewt/**/*.gold_skel``.
        members: which members these are.

    Returns:
        skeletons by document, named ``<genre>-<document>`` as UD English-EWT does.

    Raises:
        UserError: the archive cannot be read, has other content, or a line is invalid.
    """
    return {
        _document(path): tuple(_skeletons(content, f"{archive}: {path}"))
        for path, content in members.read(archive).items()
    }


def _document(path: str) -> str:
    """``reviews/00/042012.xml.gold_skel`` is UD's document ``reviews-042012``."""
    genre = path.partition("/")[0]
    name = path.rpartition("/")[2].removesuffix(".gold_skel").removesuffix(".xml")
    return f"{genre}-{name}"


def _skeletons(content: bytes, place: str) -> Iterator[Skeleton]:
    """The sentences of one file; `place` names the file in error messages."""
    rows: list[list[str]] = []
    n_sentences = 0
    try:
        lines = content.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UserError(f"{place}: not UTF-8 at byte {error.start}; fetch it again.") from error
    for number, line in enumerate([*lines, ""], start=1):
        row = line.split()
        try:
            if row:
                _check(row, n_sentences, rows)
                rows.append(row)
            elif rows:
                yield _skeleton(rows)
                rows = []
                n_sentences += 1
        except ValueError as error:
            raise UserError(
                f"{place}, line {number}: {error}. Is this the registered release?"
            ) from error


def _check(row: Sequence[str], n_sentences: int, rows: Sequence[Sequence[str]]) -> None:
    """Check that a line is the next word of this sentence."""
    expected = len(rows[0]) if rows else _FIXED_COLUMNS
    if len(row) < _FIXED_COLUMNS or (rows and len(row) != expected):
        raise ValueError(f"{len(row)} columns instead of {expected}")
    if row[1:3] != [str(n_sentences), str(len(rows))]:
        raise ValueError(
            f"sentence {row[1]!r}, word {row[2]!r} instead of sentence {n_sentences}, "
            f"word {len(rows)}"
        )


def _skeleton(rows: Sequence[Sequence[str]]) -> Skeleton:
    columns = list(zip(*rows, strict=True))
    rolesets = [roleset for roleset in columns[7] if roleset != _NO_ROLESET]
    arguments = columns[_FIXED_COLUMNS:]
    if len(rolesets) != len(arguments):
        raise ValueError(f"{len(rolesets)} predicates, but {len(arguments)} columns of arguments")
    return Skeleton(
        tags=columns[4],
        tree=_tree(columns[5]),
        frames=tuple(map(_frame, rolesets, arguments)),
    )


def _tree(bits: Sequence[str]) -> Tree:
    roots = _brackets(bits)
    if len(roots) != 1 or isinstance(roots[0], int):
        raise ValueError("the constituents of the sentence above do not form a single tree")
    return roots[0]


def _frame(roleset: str, bits: Sequence[str]) -> Frame:
    spans = [(a.label, (a.start, a.end)) for a in _brackets(bits) if isinstance(a, Tree)]
    predicates = [span for label, span in spans if label == "V"]
    if len(predicates) != 1:
        raise ValueError(f"{roleset} has {len(predicates)} V brackets in the sentence above")
    arguments = (span for span in spans if span[0] != "V")
    return Frame(roleset, predicates[0], tuple(sorted(arguments, key=itemgetter(1))))


def _brackets(bits: Sequence[str]) -> list[Tree | int]:
    """Parse a column of brackets, with one part per word: ``(NP*``, ``*``, ``*)``."""
    pending: list[tuple[str, int, list[Tree | int]]] = []
    top: list[Tree | int] = []
    for i, bit in enumerate(bits):
        labels, n_closing = _bit(bit)
        pending.extend((label, i, []) for label in labels)
        (pending[-1][2] if pending else top).append(i)
        for _ in range(n_closing):
            if not pending:
                raise ValueError(f"unmatched closing bracket at word {i} of the sentence above")
            label, start, children = pending.pop()
            (pending[-1][2] if pending else top).append(Tree(label, start, i + 1, tuple(children)))
    if pending:
        raise ValueError(f"({pending[-1][0]} is not closed in the sentence above")
    return top


@cache
def _bit(bit: str) -> tuple[tuple[str, ...], int]:
    """Labels of the brackets that open before a word, and the number that close after it."""
    match = _BRACKETS.fullmatch(bit)
    if match is None:
        raise ValueError(f"{bit!r} in the sentence above is not valid bracketing")
    return tuple(match[1].split("(")[1:]), len(match[2])
