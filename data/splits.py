"""Train, dev and test splits: from file names, cut on request, checked for overlap."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from probes.common.errors import UserError, listed
from probes.data.sentence import SPLITS, Sentence

SplitBy = Literal["document", "sentence"]
Parts = Mapping[str, Sequence[Sentence]]
Splits = dict[str, tuple[Sentence, ...]]

SHARE = 0.1
"""Share of the sentences for a dev or test split that is cut."""

UNNAMED = "all"
"""The split of files whose names contain no split."""

_SPLIT_WORDS = {"train": "train", "test": "test"}
_SPLIT_WORDS |= dict.fromkeys(("dev", "validation", "valid", "val"), "dev")
_MARK = re.compile(rf"(?:^|[-_.])({'|'.join(_SPLIT_WORDS)})(?=$|[-_.])", re.IGNORECASE)


def canonical_split(name: str) -> str | None:
    """The standard name of a split (``validation`` is ``dev``); None if it is not a split."""
    return _SPLIT_WORDS.get(name.lower())


def split_in_name(stem: str) -> tuple[str, str, str] | None:
    """Divide a file name without ending into prefix, split and rest; None if it has no split.

    UD's convention is ``en_ewt-ud-train``, or ``de_hdt-ud-train-a-1`` for parts of one split.
    """
    *_, mark = [None, *_MARK.finditer(stem)]
    return mark and (stem[: mark.start()], _SPLIT_WORDS[mark[1].lower()], stem[mark.end() + 1 :])


def files_by_split(name: str, paths: Iterable[Path]) -> dict[str, tuple[Path, ...]]:
    """Group files by the split in their names, with numbered parts in order.

    Args:
        name: name of the corpus in error messages.

    Returns:
        files by split; all under `UNNAMED` if no name contains a split.

    Raises:
        UserError: files of several corpora, or only some names contain a split.
    """
    files: dict[str, tuple[Path, ...]] = {}
    corpora: dict[tuple[str, str], Path] = {}
    for path in sorted(paths, key=_natural):
        stem, split, suffix = split_in_name(path.stem) or ("", UNNAMED, "")
        files[split] = (*files.get(split, ()), path)
        # Parts of a split are marked by a number or one letter, in treebanks by anything (UD has
        # cs_pdt-ud-train-ca.conllu); elsewhere a word marks another corpus.
        treebank = path.suffix.lower() == ".conllu"
        word = suffix if re.fullmatch(r"[^\W\d]{2,}", suffix) and not treebank else ""
        corpora.setdefault((stem, word), path)
    if UNNAMED in files and len(files) > 1:
        raise UserError(
            f"--corpus {name}: {files[UNNAMED][0]} has no split in its name, but other files do; "
            "rename it, e.g. to my-train, or leave it out."
        )
    if len(corpora) > 1:
        raise UserError(
            f"--corpus {name}: files of several corpora ("
            + ", ".join(str(path) for path in corpora.values())
            + "); give those of one, e.g. 'FOLDER/en_ewt-ud-*.conllu'."
        )
    return files


def _natural(path: Path) -> list[tuple[int, int | str]]:
    """Sort key that puts part 2 before part 10."""
    parts = re.split(r"(\d+)", str(path))
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts]


def worded_note(note: str, group: str, *, of_texts: bool) -> str:
    """A note on a corpus in the words of its user: ``test texts that also occur in train``.

    Args:
        group: column that stands for documents; empty if none was named.
        of_texts: whether each sentence is a whole text.
    """
    words = {f"{x} document": f"{x} {group or 'document'}" for x in ("by", "name no")}
    words |= {" sentences ": " texts ", "by sentence": "by text"} if of_texts else {}
    for word, other in words.items():
        note = note.replace(word, other)
    return note


def require_splits(present: Collection[str], split_by: SplitBy | None, flag: str) -> None:
    """Check that all splits are present or may be cut.

    Raises:
        UserError: a split is missing and `split_by` is None.
    """
    missing = [split for split in SPLITS if split not in present]
    if missing and split_by is None:
        present_splits = [split for split in SPLITS if split in present]
        has = f"has {listed(present_splits, 'and')}, but no" if present_splits else "has no"
        missed = f"{listed(missing)} split"
        add, them = ("the file", "it") if len(missing) == 1 else ("the files", "them")
        cut = "divide all sentences" if "train" in missing else f"cut {them} from train"
        raise UserError(
            f"{flag}: {has} {missed}; add {add}, or use --split-by document (or sentence) to {cut}."
        )


def cut_missing_splits(
    parts: Parts, split_by: SplitBy, flag: str, group: str = ""
) -> tuple[Splits, dict[str, int]]:
    """Cut missing splits from the end of train, each a tenth of its sentences.

    Without a train split, all sentences are put together, in order, and divided into three.

    Args:
        split_by: unit that stays whole.
        flag: how error messages refer to the corpus, e.g. ``--corpus ewt``.
        group: column that stands for documents, for error messages.

    Returns:
        the three splits, and notes with the number of sentences that were cut.

    Raises:
        UserError: the corpus has no document boundaries, or is too small.
    """
    cut = [split for split in ("test", "dev") if split not in parts]
    result = {split: tuple(part) for split, part in parts.items()}
    if "train" not in parts:
        cut = ["test", "dev"]
        result = {"train": tuple(sentence for part in parts.values() for sentence in part)}
    elif not cut:
        return result, {}
    sentences, notes = result["train"], {}
    noun = "texts" if any(sentence.whole for sentence in sentences) else "sentences"
    units = _split_units(sentences, split_by, flag, noun, group)
    for split in cut:
        indices: list[int] = []
        while len(indices) < math.ceil(SHARE * len(sentences)) and units:
            indices += units.pop()
        result[split] = tuple(sentences[i] for i in sorted(indices))
        origin = "train" if "train" in parts else "all"
        notes[f"{split} sentences cut from {origin}, by {split_by}"] = len(indices)
    if not units:
        several = {"sentence": noun, "document": f"values of {group}" if group else "documents"}
        raise UserError(
            f"{flag}: too few {several[split_by]} to cut {' and '.join(cut)} from"
            + ("; try --split-by sentence." if split_by == "document" else ".")
        )
    result["train"] = tuple(sentences[i] for i in sorted(i for unit in units for i in unit))
    return result, notes


def _split_units(
    sentences: Sequence[Sentence], split_by: SplitBy, flag: str, noun: str, group: str
) -> list[list[int]]:
    """Indices of the sentences of each unit, units in order of their first sentence."""
    n_without = sum(not sentence.document for sentence in sentences)
    if split_by == "document" and n_without:
        reason = f"{n_without:,} of {len(sentences):,} {noun} name no {group or 'document'}"
        if not group and n_without == len(sentences):
            reason = "has no document boundaries"
        remedy = "use --split-by sentence"
        if not group and noun == "texts":
            remedy = f"name their column with --group, or {remedy}"
        raise UserError(f"{flag}: {reason}; {remedy}.")
    units: dict[str | int, list[int]] = defaultdict(list)
    for i, sentence in enumerate(sentences):
        units[sentence.document if split_by == "document" else i].append(i)
    return list(units.values())


def overlap(parts: Parts) -> dict[str, int]:
    """Number of dev and test sentences that occur verbatim in train, as notes."""
    train = {sentence.words for sentence in parts["train"]}
    return {
        f"{split} sentences that also occur in train": count
        for split in ("dev", "test")
        if (count := sum(sentence.words in train for sentence in parts[split]))
    }


def without_overlap(parts: Parts) -> tuple[Splits, dict[str, int]]:
    """Drop training sentences that occur in dev or test.

    Returns:
        the splits, and a note with the number of dropped sentences.

    Raises:
        UserError: no training sentence would remain.
    """
    held_out = {s.words for split in ("dev", "test") for s in parts[split]}
    kept_train = tuple(s for s in parts["train"] if s.words not in held_out)
    if not kept_train:
        raise UserError(
            "--drop-overlap: all training sentences also occur in dev or test; leave the flag out."
        )
    splits = {**{split: tuple(part) for split, part in parts.items()}, "train": kept_train}
    return splits, {DROPPED: len(parts["train"]) - len(kept_train)}


DROPPED = "train sentences dropped, being in dev or test"
"""The note of `--drop-overlap`."""


def with_distinct_ids(parts: Mapping[str, Sequence[Sentence]]) -> dict[str, tuple[Sentence, ...]]:
    """Put file names, the keys of `parts`, before ids and documents that restart in every file.

    Raises:
        UserError: the same text has the same ids in two files, or files of the same name share ids.
    """
    places: dict[str, list[tuple[str, Sentence]]] = defaultdict(list)
    for name, sentences in parts.items():
        for sentence in sentences:
            places[sentence.id].append((name, sentence))
    groups = [group for group in places.values() if len(group) > 1]
    if not groups:
        return {name: tuple(sentences) for name, sentences in parts.items()}
    # Ids restart if one stands for different texts; else files repeat the same sentences.
    restart = any(len({sentence.words for _, sentence in group}) > 1 for group in groups)
    if not restart or len({Path(name).stem for name in parts}) < len(parts):
        (other_name, _), (name, sentence), *_ = groups[0]
        raise UserError(
            f"{name}: the sent_id {sentence.id!r} also occurs in {other_name}; "
            "ids must be unique within a corpus."
        )

    def with_stem(stem: str, sentence: Sentence) -> Sentence:
        document = sentence.document and f"{stem}-{sentence.document}"
        return replace(sentence, id=f"{stem}-{sentence.id}", document=document)

    return {
        name: tuple(with_stem(Path(name).stem, sentence) for sentence in sentences)
        for name, sentences in parts.items()
    }
