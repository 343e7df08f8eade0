"""Ratings of Universal Decompositional Semantics (UDS 2.0, White et al. 2020) on EWT.

Annotators rated properties of predicates, of arguments, and of pairs of both; the values are
normalised over annotators. They belong to words of UD 1.2, numbered from 1, in sentences whose ids
``ud_ids.json`` gives. PropBank's skeletons have the words of UD 1.2 too: a sentence with another
number of words than its skeleton was tokenised anew since; its ratings are counted and left out.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from probes.common.errors import UserError
from probes.data.ewt_join import OTHER_LENGTH, skeleton_of
from probes.data.propbank import Skeleton
from probes.data.sentence import Rating, Sentence

SUBSPACES = ("protoroles", "factuality", "genericity", "wordsense")
"""The sets of properties that are read, each in an archive of its own."""

IDS = "ud_ids"

JOINED = "ratings of UDS"
NO_SENTENCE = "ratings of UDS left out: no such sentence in this release of the treebank"
OTHER_WORDS = "ratings of UDS left out: the sentence was tokenised anew since UD 1.2"

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
    found: dict[str, list[Rating]] = defaultdict(list)
    path = files[IDS]
    try:
        graphs = json.loads(path.read_bytes())
        ids = {graph: about["sentence_id"] for graph, about in graphs.items()}
        for subspace in SUBSPACES:
            path = files[subspace]
            with zipfile.ZipFile(path) as archive:
                graphs = json.loads(archive.read(f"{subspace}.json"))["data"]
            for graph, nodes in graphs.items():
                rated = [_rating(graph, node, subspace, of) for node, of in nodes.items()]
                found[ids[graph]] += sorted(rated, key=lambda rating: rating.words)
    except (AttributeError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise UserError(
            f"{path}: not the normalised annotation of UDS 2.0 ({type(error).__name__}: {error}); "
            "fetch it again."
        ) from error
    return found


def _rating(graph: str, node: str, subspace: str, attributes: Mapping[str, Any]) -> Rating:
    """The rating of a node, or of an edge, which joins two nodes by ``%%``."""
    words = []
    for end in node.split("%%"):
        match = _NODE.fullmatch(end)
        if match is None or match[1] != graph:
            raise ValueError(f"{end!r} is no word of {graph!r}")
        words.append(int(match[2]) - 1)
    values = {name: float(its["value"]) for name, its in attributes[subspace].items()}
    return Rating(subspace, tuple(words), values)


def join(
    splits: Mapping[str, Iterable[Sentence]],
    skeletons: Mapping[str, Sequence[Skeleton]],
    ratings: Ratings,
) -> tuple[dict[str, tuple[Sentence, ...]], Counter[str]]:
    """Add its ratings to each sentence.

    Args:
        splits: sentences of UD English-EWT.
        skeletons: as for `probes.data.ewt_join.join`.

    Returns:
        all sentences, and the number of ratings by outcome: `JOINED`, `NO_SENTENCE`, `OTHER_WORDS`.

    Raises:
        UserError: a rating is of a word beyond the end of its sentence.
    """
    counts = Counter(dict.fromkeys((JOINED, NO_SENTENCE, OTHER_WORDS), 0))
    counts[NO_SENTENCE] = sum(map(len, ratings.values()))

    def joined(sentence: Sentence) -> Sentence:
        its = tuple(ratings.get(sentence.id, ()))
        anew = skeleton_of(sentence, skeletons) == OTHER_LENGTH
        counts[NO_SENTENCE] -= len(its)
        counts[OTHER_WORDS if anew else JOINED] += len(its)
        if anew or not its:
            return sentence
        if (last := max(max(rating.words) for rating in its)) >= len(sentence):
            raise UserError(
                f"Sentence {sentence.id!r}: UDS rates its word {last + 1}, but it has "
                f"{len(sentence)}; fetch the registered files of both again."
            )
        return replace(sentence, ratings=its)

    return {split: tuple(map(joined, part)) for split, part in splits.items()}, counts
