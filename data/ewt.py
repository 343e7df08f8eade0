"""The English Web Treebank: UD English-EWT joined with PropBank's release and UDS's ratings.

Universal Dependencies (Silveira et al. 2014) has the words. PropBank's release has *skeletons*
(`.gold_skel` files): part-of-speech tags, the constituency tree and the predicates with their
arguments, one word per line in the columns of CoNLL-2012 (Pradhan et al. 2012), with the words
blanked out. Both keep the order of sentences, so the UD sentence ``<genre>-<document>-<nnnn>``
corresponds to skeleton ``nnnn`` of the document, counted from 1. UD has corrected some
tokenisation since, and the release lacks some documents; such sentences are counted, not matched.

Annotators of Universal Decompositional Semantics (UDS 2.0, White et al. 2020) rated properties of
predicates, of arguments, and of pairs of both. Ratings belong to words of UD 1.2, numbered from 1,
in sentences whose ids ``ud_ids.json`` gives. PropBank's skeletons have the words of UD 1.2 too: a
sentence with another number of words than its skeleton was tokenised anew since; its ratings are
counted and left out.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

from probes.common.errors import UserError
from probes.data.chunks import Tree, chunk
from probes.data.downloads import read_members
from probes.data.sentence import Corpus, Frame, Rating, Sentence
from probes.data.sources import Source
from probes.data.treebank import read_english

_BRACKETS = re.compile(r"((?:\([^()*]+)*)\*(\)*)")
_FIXED_COLUMNS = 8
_NO_ROLESET = "-"


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


Skeletons = Mapping[str, Sequence[Skeleton]]
"""Skeletons by document, named ``<genre>-<document>`` as in UD English-EWT."""


def read_skeletons(
    members: Mapping[str, bytes], documents: Collection[str] | None = None
) -> Skeletons:
    """Parse the skeletons of PropBank's release, whose files `members` has by path.

    Args:
        documents: names of the documents to read; None for all.
    """
    skeletons = {}
    for path, content in members.items():
        # ``reviews/00/042012.xml.gold_skel`` is UD's document ``reviews-042012``.
        genre, file = path.partition("/")[0], path.rpartition("/")[2]
        name = f"{genre}-{file.removesuffix('.gold_skel').removesuffix('.xml')}"
        if documents is None or name in documents:
            skeletons[name] = tuple(_skeletons(content, f"PropBank's {path}"))
    return skeletons


def _skeletons(content: bytes, file_name: str) -> Iterator[Skeleton]:
    """The sentences of one file; `file_name` names it in error messages."""
    rows: list[list[str]] = []
    n_sentences = 0
    try:
        lines = content.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UserError(f"{file_name}: not UTF-8 at byte {error.start}; fetch it again.") from error
    for number, line in enumerate([*lines, ""], start=1):
        row = line.split()
        try:
            if row:
                n_columns = len(rows[0]) if rows else max(len(row), _FIXED_COLUMNS)
                if len(row) != n_columns:
                    raise ValueError(f"{len(row)} columns instead of {n_columns}")
                if row[1:3] != [str(n_sentences), str(len(rows))]:
                    raise ValueError(
                        f"sentence {row[1]!r}, word {row[2]!r} instead of sentence {n_sentences}, "
                        f"word {len(rows)}"
                    )
                rows.append(row)
            elif rows:
                yield _skeleton(rows)
                rows = []
                n_sentences += 1
        except ValueError as error:
            raise UserError(
                f"{file_name}, line {number}: {error}. Is this the registered release?"
            ) from error


def _skeleton(rows: Sequence[Sequence[str]]) -> Skeleton:
    columns = list(zip(*rows, strict=True))
    rolesets = [roleset for roleset in columns[7] if roleset != _NO_ROLESET]
    arguments = columns[_FIXED_COLUMNS:]
    if len(rolesets) != len(arguments):
        raise ValueError(f"{len(rolesets)} predicates, but {len(arguments)} columns of arguments")
    roots = _brackets(columns[5])
    if len(roots) != 1 or isinstance(roots[0], int):
        raise ValueError("the constituents of the sentence above do not form a single tree")
    return Skeleton(columns[4], roots[0], tuple(map(_frame_of_brackets, rolesets, arguments)))


def _frame_of_brackets(roleset: str, bits: Sequence[str]) -> Frame:
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


JoinCounts = Counter[str]
"""Number of sentences by outcome: `JOINED` or one of the reasons in `NOT_JOINED`."""

JOINED = "joined with PropBank"
NO_DOCUMENT = "not joined: document not in the PropBank release"
NO_SENTENCE = "not joined: no such sentence in the PropBank release"
OTHER_LENGTH = "not joined: another number of words in the PropBank release"
OTHER_TAGS = "not joined: fewer than half of the tags agree with the PropBank release"
NOT_JOINED = (NO_DOCUMENT, NO_SENTENCE, OTHER_LENGTH, OTHER_TAGS)


def join_propbank(
    sentences: Iterable[Sentence], skeletons: Skeletons
) -> tuple[list[Sentence], JoinCounts]:
    """Add the constituents, base chunks and frames of its skeleton to each sentence of EWT.

    Returns:
        all sentences, in order, and their number by outcome. A sentence that does not join keeps
        its UD layers and has none of these.
    """
    counts: JoinCounts = Counter(dict.fromkeys((JOINED, *NOT_JOINED), 0))
    result = []
    for sentence in sentences:
        skeleton = skeleton_of(sentence, skeletons)
        if isinstance(skeleton, str):
            counts[skeleton] += 1
        else:
            counts[JOINED] += 1
            sentence = replace(
                sentence,
                chunks=chunk(skeleton.tree, skeleton.tags),
                frames=skeleton.frames,
                constituents=skeleton.tree.constituents(),
            )
        result.append(sentence)
    return result, counts


def skeleton_of(sentence: Sentence, skeletons: Skeletons) -> Skeleton | str:
    """The skeleton of a sentence, or the reason why it has none."""
    document, _, number = sentence.id.rpartition("-")
    if document not in skeletons:
        return NO_DOCUMENT
    if not number.isdecimal() or not 1 <= int(number) <= len(skeletons[document]):
        return NO_SENTENCE
    skeleton = skeletons[document][int(number) - 1]
    if len(skeleton) != len(sentence):
        return OTHER_LENGTH
    # Short sentences may be equally long by chance, but another sentence has other tags.
    agreeing = sum(map(str.__eq__, skeleton.tags, sentence.xpos))
    return skeleton if 2 * agreeing >= len(sentence) else OTHER_TAGS


SUBSPACES = ("protoroles", "factuality", "genericity", "wordsense")
"""The sets of properties that are read, each in an archive of its own."""

IDS = "ud_ids"

RATINGS_JOINED = "ratings of UDS"
NO_RATED_SENTENCE = "ratings of UDS left out: no such sentence in this release of the treebank"
RATED_ANEW = "ratings of UDS left out: the sentence was tokenised anew since UD 1.2"

_NODE = re.compile(r"(.+)-semantics-(?:sub)?(?:pred|predhead|arg)-([1-9]\d*)")

Ratings = Mapping[str, Sequence[Rating]]
"""Ratings by the id of their sentence in the treebank."""


def read_ratings(files: Mapping[str, Path]) -> Ratings:
    """The ratings of every sentence, in order of `SUBSPACES` and of words.

    Args:
        files: the archive of each of `SUBSPACES`, and `IDS`.

    Raises:
        UserError: a file is not in the format of UDS 2.0.
    """
    ratings: dict[str, list[Rating]] = defaultdict(list)
    path = files[IDS]
    try:
        graphs = json.loads(path.read_bytes())
        ids = {graph: about["sentence_id"] for graph, about in graphs.items()}
        for subspace in SUBSPACES:
            path = files[subspace]
            with zipfile.ZipFile(path) as archive:
                graphs = json.loads(archive.read(f"{subspace}.json"))["data"]
            for graph, nodes in graphs.items():
                rated = [_rating(graph, node, subspace, values) for node, values in nodes.items()]
                ratings[ids[graph]] += sorted(rated, key=lambda rating: rating.words)
    except (AttributeError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise UserError(
            f"{path}: not the normalised annotation of UDS 2.0 ({type(error).__name__}: {error}); "
            "fetch it again."
        ) from error
    return ratings


def _rating(graph: str, node: str, subspace: str, attributes: Mapping[str, Any]) -> Rating:
    """The rating of a node, or of an edge, which joins two nodes by ``%%``."""
    words = []
    for end in node.split("%%"):
        match = _NODE.fullmatch(end)
        if match is None or match[1] != graph:
            raise ValueError(f"{end!r} is no word of {graph!r}")
        words.append(int(match[2]) - 1)
    values = {name: float(rated["value"]) for name, rated in attributes[subspace].items()}
    return Rating(subspace, tuple(words), values)


def join_ratings(
    splits: Mapping[str, Iterable[Sentence]], skeletons: Skeletons, ratings: Ratings
) -> tuple[dict[str, tuple[Sentence, ...]], Counter[str]]:
    """Add the ratings of each sentence of UD English-EWT.

    Returns:
        all sentences, and the number of ratings by outcome: `RATINGS_JOINED`,
        `NO_RATED_SENTENCE`, `RATED_ANEW`.

    Raises:
        UserError: a rating is of a word beyond the end of its sentence.
    """
    counts = Counter(dict.fromkeys((RATINGS_JOINED, NO_RATED_SENTENCE, RATED_ANEW), 0))
    counts[NO_RATED_SENTENCE] = sum(map(len, ratings.values()))

    def with_ratings(sentence: Sentence) -> Sentence:
        own_ratings = tuple(ratings.get(sentence.id, ()))
        retokenised = skeleton_of(sentence, skeletons) == OTHER_LENGTH
        counts[NO_RATED_SENTENCE] -= len(own_ratings)
        counts[RATED_ANEW if retokenised else RATINGS_JOINED] += len(own_ratings)
        if retokenised or not own_ratings:
            return sentence
        if (last := max(max(rating.words) for rating in own_ratings)) >= len(sentence):
            raise UserError(
                f"Sentence {sentence.id!r}: UDS rates its word {last + 1}, but it has "
                f"{len(sentence)}; fetch the registered files of both again."
            )
        return replace(sentence, ratings=own_ratings)

    return {split: tuple(map(with_ratings, part)) for split, part in splits.items()}, counts


def read_ewt(source: Source) -> Corpus:
    """Read the treebank, with PropBank's annotation and UDS's ratings where they join."""
    treebank = read_english(source)
    (release,) = source.files["propbank"]
    documents = {sentence.document for sentence in treebank}
    skeletons = read_skeletons(read_members("ewt", release), documents)
    counts: Counter[str] = Counter()
    splits = {}
    for split, sentences in treebank.splits.items():
        joined_sentences, join_counts = join_propbank(sentences, skeletons)
        splits[split] = tuple(joined_sentences)
        counts.update(join_counts)
    if IDS in source.files:
        ratings = read_ratings({role: paths[0] for role, paths in source.files.items()})
        splits, rating_counts = join_ratings(splits, skeletons, ratings)
        counts.update(rating_counts)
    return replace(treebank, splits=splits, notes=dict(counts))
