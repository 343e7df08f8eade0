"""Readers of minimal pairs: BLiMP, CLAMS and SyntaxGym."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from probes.common.errors import UserError
from probes.data.downloads import read_members
from probes.data.items import Item, minimal_pair
from probes.data.sentence import SPLITS, Corpus, Sentence
from probes.data.sources import Source

MERGED = {"s-selection": "argument_structure"}
"""Terms in BLiMP's files that its paper counts to another (Warstadt et al. 2020, table 4)."""

LANGUAGES = ("en", "de", "fr", "he", "ru")
"""Languages of CLAMS."""


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
    for path, content in sorted(read_members("clams", archive).items()):
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


CIRCUITS = {
    "Agreement": ("number_",),
    "Licensing": ("npi_", "reflexive_"),
    "Garden-path effects": ("mvrr", "npz_", "nn-nv"),
    "Gross syntactic state": ("subordination",),
    "Center embedding": ("center_embed",),
    "Long-distance dependencies": ("cleft", "fgd"),
}
"""The phenomena of Hu et al. (2020, section 3.1), with the beginnings of their suites' names."""


def read_suites(source: Source) -> Corpus:
    """SyntaxGym's suites (Hu et al. 2020), in alphabetical order. A paradigm is a suite.

    A text stands in regions, under several conditions; a prediction is a formula over the
    surprisals of regions. One that two surprisals are equal cannot come true of real numbers; such
    predictions are left out and counted.
    """
    (archive,) = source.files["archive"]
    items: list[Item] = []
    equalities = 0
    for path, content in sorted(read_members("syntaxgym", archive).items()):
        suite = json.loads(content)
        name = path.removesuffix(".json")
        formulas = [prediction["formula"] for prediction in suite["predictions"]]
        tested = tuple(formula for formula in formulas if "=" not in formula)
        equalities += len(formulas) - len(tested)
        (circuit,) = (each for each, names in CIRCUITS.items() if name.startswith(names))
        for item in suite["items"]:
            texts = {
                condition["condition_name"]: written(condition["regions"])
                for condition in item["conditions"]
            }
            number = f"{name}-{item['item_number']}"
            items.append(Item(number, "pairs", name, texts, circuit, tested))
    notes = {"predictions that surprisals are equal, left out": equalities}
    return corpus_of(source, items, notes)


def written(regions: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """The regions of a text, each after the first with the space before it.

    The published figures are of words and punctuation with spaces between, as in the files. Empty
    regions, as of a gap, stay empty.
    """
    found: list[str] = []
    for region in sorted(regions, key=lambda region: int(region["region_number"])):
        content = " ".join(str(region["content"]).split())
        space = " " if any(found) and content else ""
        found.append(space + content)
    return tuple(found)
