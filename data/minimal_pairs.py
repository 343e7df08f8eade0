"""Readers of minimal pairs: BLiMP and CLAMS."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from probes.common.errors import UserError
from probes.data.archive_members import Members
from probes.data.items import Item, minimal_pair
from probes.data.sentence import SPLITS, Corpus, Sentence
from probes.data.sources import Source

CLAMS = Members(
    what="the evaluation sets of CLAMS",
    pattern=r"(?:[^/]+/)?([a-z]{2}_evalset/[a-z_]+\.txt)",
    digest="b703945a3c1891249c7113d1e0bd1402f23a3a7d303d5a942140b5ef58897aa5",
    folder="clams",
)

MERGED = {"s-selection": "argument_structure"}
"""Terms in BLiMP's files that its paper counts to another (Warstadt et al. 2020, table 4)."""

LANGUAGES = ("en", "de", "fr", "he", "ru")
"""Those of CLAMS."""


def corpus_of(source: Source, items: Sequence[Item], notes: Mapping[str, int] = {}) -> Corpus:
    """A corpus of items, without sentences."""
    none: dict[str, tuple[Sentence, ...]] = dict.fromkeys(SPLITS, ())
    return Corpus(source.name, source.version, source.licence, none, notes, items=tuple(items))


def read_blimp(source: Source) -> Corpus:
    """BLiMP's 67 paradigms (Warstadt et al. 2020), in alphabetical order."""
    (archive,) = source.files["archive"]
    items: list[Item] = []
    try:
        with zipfile.ZipFile(archive) as packed:
            for name in sorted(packed.namelist()):
                if not (name.startswith("data/") and name.endswith(".jsonl")):
                    continue
                for line in packed.read(name).decode().splitlines():
                    row = json.loads(line)
                    uid = row["UID"]
                    pair = row["sentence_good"], row["sentence_bad"]
                    of = MERGED.get(row["linguistics_term"], row["linguistics_term"])
                    items.append(minimal_pair(f"{uid}-{row['pairID']}", uid, *pair, of))
    except (OSError, zipfile.BadZipFile, zlib.error, ValueError, KeyError) as error:
        raise UserError(f"{archive}: cannot be read ({error}); fetch it again.") from error
    return corpus_of(source, items)


def read_clams(source: Source, languages: Sequence[str] = LANGUAGES) -> Corpus:
    """CLAMS (Mueller et al. 2020): pairs of each construction of each language.

    Phenomena are languages; paradigms are named ``de.subj_rel``.
    """
    (archive,) = source.files["archive"]
    items: list[Item] = []
    for path, content in sorted(CLAMS.read(archive).items()):
        language, construction = path[:2], Path(path).stem
        if language not in languages:
            continue
        lines = content.decode().splitlines()
        for number, (one, other) in enumerate(zip(lines[::2], lines[1::2], strict=True)):
            (first, good), (second, bad) = one.split("\t"), other.split("\t")
            if (first, second) != ("True", "False"):
                raise UserError(f"{archive}: {path}, line {2 * number + 1}: no pair.")
            paradigm = f"{language}.{construction}"
            items.append(minimal_pair(f"{paradigm}-{number}", paradigm, good, bad, language))
    return corpus_of(source, items)
