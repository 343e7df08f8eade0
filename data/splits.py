"""Train, dev and test: found in file names, cut where the user asks, checked for overlap."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from probes.common.errors import UserError
from probes.data.sentence import SPLITS, Sentence

SplitBy = Literal["document", "sentence"]
Parts = Mapping[str, Sequence[Sentence]]
Splits = dict[str, tuple[Sentence, ...]]

SHARE = 0.1
"""Of the sentences, for a dev or test split that has to be cut."""

UNNAMED = "all"
"""The part that files stand in whose names say no split."""

_SPLIT_WORDS = {
    "train": "train",
    "dev": "dev",
    "validation": "dev",
    "valid": "dev",
    "val": "dev",
    "test": "test",
}
_MARK = re.compile(rf"(?:^|[-_.])({'|'.join(_SPLIT_WORDS)})(?=$|[-_.])", re.IGNORECASE)


def canonical_split(name: str) -> str | None:
    """``validation`` is ``dev``; None for a name that is no split's."""
    return _SPLIT_WORDS.get(name.lower())


def split_in_name(stem: str) -> tuple[str, str, str] | None:
    """What a file name without its ending says: what stands before the split, it, and the rest.

    UD's convention is ``en_ewt-ud-train``; parts of one split follow it, ``de_hdt-ud-train-a-1``.
    None if the name says no split.
    """
    marks = list(_MARK.finditer(stem))
    if not marks:
        return None
    mark = marks[-1]
    return stem[: mark.start()], _SPLIT_WORDS[mark[1].lower()], stem[mark.end() + 1 :]


def files_by_split(name: str, paths: Iterable[Path]) -> dict[str, tuple[Path, ...]]:
    """Files grouped by the split that their names say, numbered parts in their order.

    Args:
        name: what an error calls the corpus.

    Returns:
        files by split; by `UNNAMED` if no name says one.

    Raises:
        UserError: files of several corpora, or some that say their split beside some that do not.
    """
    files: dict[str, tuple[Path, ...]] = {}
    corpora: dict[tuple[str, str], Path] = {}
    for path in sorted(paths, key=_natural):
        stem, split, rest = split_in_name(path.stem) or ("", UNNAMED, "")
        files[split] = (*files.get(split, ()), path)
        # A part is told by a number or one letter; a word, such as a language, is another text.
        word = rest if re.fullmatch(r"[^\W\d]{2,}", rest) else ""
        corpora.setdefault((stem, word), path)
    if UNNAMED in files and len(files) > 1:
        raise UserError(
            f"--corpus {name}: {files[UNNAMED][0]} does not say its split, though other files do; "
            "name it like my-train, or leave it out."
        )
    if len(corpora) > 1:
        raise UserError(
            f"--corpus {name}: files of several corpora ("
            + ", ".join(str(path) for path in corpora.values())
            + "); name those of one, such as 'FOLDER/en_ewt-ud-*.conllu'."
        )
    return files


def _natural(path: Path) -> list[tuple[int, int | str]]:
    """Sorts part 2 before part 10."""
    parts = re.split(r"(\d+)", str(path))
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts]


def require_splits(present: Collection[str], split_by: SplitBy | None, what: str) -> None:
    """Refuse a corpus that lacks a split which the user has not asked to be cut.

    Raises:
        UserError: the message names what is missing and the remedy.
    """
    missing = [split for split in SPLITS if split not in present]
    if missing and split_by is None:
        there = ", ".join(split for split in SPLITS if split in present) or "no split"
        cut = (
            "cut all there is in three" if "train" in missing else "cut what is missing from train"
        )
        raise UserError(
            f"{what}: has {there}, but no {' and no '.join(missing)} split; add the file, or let "
            f"--split-by document (or sentence) {cut}."
        )


def complete(parts: Parts, split_by: SplitBy, what: str) -> tuple[Splits, dict[str, int]]:
    """Cut the splits that are missing from the end of train, each a tenth of its sentences.

    Without a train split, all there is is taken together, in order, and cut in three.

    Args:
        split_by: what is never torn apart: documents, or only sentences.
        what: what an error calls the corpus.

    Returns:
        the three splits, and sentences cut, by a note that says from what.

    Raises:
        UserError: the corpus marks no documents, or is too small to be cut.
    """
    cut = [split for split in ("test", "dev") if split not in parts]
    result = {split: tuple(part) for split, part in parts.items()}
    if "train" not in parts:
        cut = ["test", "dev"]
        result = {"train": tuple(sentence for part in parts.values() for sentence in part)}
    elif not cut:
        return result, {}
    units = _units(result["train"], split_by, what)
    every = result["train"]
    wanted = math.ceil(SHARE * len(every))
    notes = {}
    for split in cut:
        taken: list[int] = []
        while len(taken) < wanted and units:
            taken += units.pop()
        result[split] = tuple(every[i] for i in sorted(taken))
        notes[f"{split} sentences cut from {'train' if 'train' in parts else 'all'}"] = len(taken)
    if not units:
        raise UserError(
            f"{what}: too few {split_by}s to cut {' and '.join(cut)} from"
            + ("; try --split-by sentence." if split_by == "document" else ".")
        )
    result["train"] = tuple(every[i] for i in sorted(i for unit in units for i in unit))
    return result, {f"{note}, by {split_by}": n for note, n in notes.items()}


def _units(sentences: Sequence[Sentence], split_by: SplitBy, what: str) -> list[list[int]]:
    """Places of the sentences that stay together, in the order in which they begin."""
    if split_by == "sentence":
        return [[i] for i in range(len(sentences))]
    if not all(sentence.document for sentence in sentences):
        raise UserError(f"{what}: does not say where documents begin; use --split-by sentence.")
    units: dict[str, list[int]] = defaultdict(list)
    for i, sentence in enumerate(sentences):
        units[sentence.document].append(i)
    return list(units.values())


def overlap(parts: Parts) -> dict[str, int]:
    """Sentences of dev and test that stand word for word in train too, as notes."""
    train = {sentence.words for sentence in parts["train"]}
    return {
        f"{split} sentences that stand in train too": count
        for split in ("dev", "test")
        if (count := sum(sentence.words in train for sentence in parts[split]))
    }


def without_overlap(parts: Parts) -> tuple[Splits, dict[str, int]]:
    """The splits, train without the sentences that stand in dev or test, and how many went.

    Raises:
        UserError: nothing would be left of train.
    """
    held_out = {s.words for split in ("dev", "test") for s in parts[split]}
    kept = tuple(s for s in parts["train"] if s.words not in held_out)
    if not kept:
        raise UserError("--drop-overlap: every training sentence stands in dev or test too.")
    splits = {**{split: tuple(part) for split, part in parts.items()}, "train": kept}
    dropped = len(parts["train"]) - len(kept)
    return splits, {"train sentences dropped, being in dev or test": dropped}


def require_distinct_ids(parts: Iterable[tuple[str, Sequence[Sentence]]]) -> None:
    """Refuse two sentences of one id in different files.

    Args:
        parts: file names with their sentences.

    Raises:
        UserError: the message names both files.
    """
    place: dict[str, str] = {}
    for name, sentences in parts:
        for sentence in sentences:
            if place.setdefault(sentence.id, name) != name:
                raise UserError(
                    f"{name}: the sent_id {sentence.id!r} stands in {place[sentence.id]} too; "
                    "ids must differ within a corpus."
                )
