"""Corpora of items: BLiMP, CLAMS, SyntaxGym, Ettinger's diagnostics, and the user's own tables.

A model fills in the last word of the diagnostics' contexts, before a full stop (Ettinger 2020). It
should prefer:

- CPRAG-102: the expected word to one of the same category and one of another category;
- ROLE-88: the target in the context with the usual roles to the one with reversed roles;
- NEG-136: the word that makes the sentence true to the one that makes it false. Only affirmative
  contexts have completion items, since a negated context determines no completion. A model that
  ignores *not* is right in all affirmative contexts and in no negated one, so the two are separate
  phenomena.

In the user's own tables, pairs have the columns ``sentence_good`` and ``sentence_bad``. Optional
are ``UID`` (the paradigm), ``linguistics_term`` (the phenomenon) and ``group`` (the cluster for
resampling). Facts (Petroni et al. 2019) have ``subject``, ``template`` and ``object``, and
optionally ``relation``. In the template, ``[X]`` stands for the subject and ``[Y]`` for the object.
"""

from __future__ import annotations

import csv
import json
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from probes.common.errors import UserError
from probes.common.files import read_text, sha256
from probes.data.downloads import read_members
from probes.data.items import Item, Kind, minimal_pair
from probes.data.sentence import Corpus
from probes.data.sources import Source

MERGED = {"s-selection": "argument_structure"}
"""Terms in BLiMP's files that its paper counts to another (Warstadt et al. 2020, table 4)."""

LANGUAGES = ("en", "de", "fr", "he", "ru")
"""Languages of CLAMS."""


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
                    phenomenon = MERGED.get(row["linguistics_term"], row["linguistics_term"])
                    items.append(minimal_pair(f"{uid}-{row['pairID']}", uid, *pair, phenomenon))
    except (OSError, zipfile.BadZipFile, zlib.error, ValueError, KeyError) as error:
        raise UserError(f"{archive}: cannot be read ({error}); fetch it again.") from error
    return source.corpus(items=items)


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
        for number, (good_line, bad_line) in enumerate(zip(lines[::2], lines[1::2], strict=True)):
            (first, good), (second, bad) = good_line.split("\t"), bad_line.split("\t")
            if (first, second) != ("True", "False"):
                raise UserError(f"{archive}: {path}, line {2 * number + 1}: no pair.")
            paradigm = f"{language}.{construction}"
            items.append(minimal_pair(f"{paradigm}-{number}", paradigm, good, bad, language))
    return source.corpus(items=items)


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
        predictions = tuple(formula for formula in formulas if "=" not in formula)
        equalities += len(formulas) - len(predictions)
        (circuit,) = (term for term, names in CIRCUITS.items() if name.startswith(names))
        for item in suite["items"]:
            texts = {
                condition["condition_name"]: region_texts(condition["regions"])
                for condition in item["conditions"]
            }
            number = f"{name}-{item['item_number']}"
            items.append(Item(number, "pairs", name, texts, circuit, predictions))
    notes = {"predictions that surprisals are equal, left out": equalities}
    return source.corpus({}, notes, items)


def region_texts(regions: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """The regions of a text, each after the first with the space before it.

    The published figures are of words and punctuation with spaces between, as in the files. Empty
    regions, as of a gap, stay empty.
    """
    texts: list[str] = []
    for region in sorted(regions, key=lambda region: int(region["region_number"])):
        content = " ".join(str(region["content"]).split())
        space = " " if any(texts) and content else ""
        texts.append(space + content)
    return tuple(texts)


def read_diagnostics(source: Source) -> Corpus:
    """Read the items of all three, in the order of the files."""
    readers = {"cprag": _cprag, "role": _role, "neg-simp": _neg, "neg-nat": _neg}
    items: list[Item] = []
    for role, reader in readers.items():
        (path,) = source.files[role]
        rows = list(csv.DictReader(read_text(path).splitlines(), delimiter="\t"))
        try:
            items += reader(path.stem, rows)
        except (KeyError, ValueError) as error:
            raise UserError(f"{path}: cannot be read ({error}); fetch it again.") from error
    return source.corpus(items=items)


def _context(
    name: str, paradigm: str, texts: Mapping[str, tuple[str, str, str]], **fields: Any
) -> Item:
    """An item whose second region is to be filled in."""
    return Item(name, "contexts", paradigm, texts, target=1, **fields)


def context_regions(context: str, word: str) -> tuple[str, str, str]:
    """A context, the word to fill in, and the rest."""
    return context.strip(), f" {word.strip()}", "."


def _cprag(name: str, rows: list[dict[str, str]]) -> Iterator[Item]:
    constraint = {"H": "high constraint", "L": "low constraint"}
    for row in rows:
        context = f"{row['context_s1'].strip()} {row['context_s2']}"
        words = ("expected", "within_category", "between_category")
        yield _context(
            f"{name}-{row['item']}",
            f"{name}, {constraint[row['constraint']]}",
            {word.replace("_", " "): context_regions(context, row[word]) for word in words},
            phenomenon=name,
            answers=("expected",),
            good="expected",
            rivals=("within category", "between category"),
        )


def _role(name: str, rows: list[dict[str, str]]) -> Iterator[Item]:
    """Yield a completion item for each context, and a comparison for each pair of contexts."""
    pairs: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        pairs[row["item"].partition("-")[0]].append(row)
    for number, contexts in pairs.items():
        cluster = f"{name}-{number}"
        for row in contexts:
            answers = tuple(row["expected"].split("|"))
            texts = {word: context_regions(row["context"], word) for word in answers}
            fields = {"answers": answers, "cluster": cluster}
            yield _context(f"{name}-{row['item']}", name, texts, phenomenon=name, **fields)
        usual_row, reversed_row = sorted(contexts, key=lambda row: -float(row["tgt_cloze"]))
        texts = {
            "usual": context_regions(usual_row["context"], usual_row["target"]),
            "reversed": context_regions(reversed_row["context"], usual_row["target"]),
        }
        rivals = ("reversed",)
        yield _context(cluster, name, texts, phenomenon=name, good="usual", rivals=rivals)


def _neg(name: str, rows: list[dict[str, str]]) -> Iterator[Item]:
    licensing = {"Y": ", natural", "N": ", less natural", None: ""}
    targets = {
        "affirmative": ("target_aff", "target_neg"),
        "negative": ("target_neg", "target_aff"),
    }
    for row in rows:
        for polarity, columns in targets.items():
            texts = {}
            for kind, column in zip(("true", "false"), columns, strict=True):
                article = "an" if row[column].strip()[0] in "aeiou" else "a"
                context = row[f"context_{polarity[:3]}"].replace("(a|an)", article)
                texts[kind] = context_regions(context, row[column])
            yield _context(
                f"{name}-{row['item']}-{polarity}",
                f"{name}, {polarity}{licensing[row.get('licensing')]}",
                texts,
                phenomenon=f"{name}, {polarity}",
                answers=("true",) if polarity == "affirmative" else (),
                good="true",
                rivals=("false",),
                cluster=f"{name}-{row['item']}",
            )


TableLine = Mapping[str, Any]
"""Cells of a row, by column."""

_FACT = "subject", "template", "object"


def find_items(
    name: str, paths: Sequence[Path], tables: Sequence[tuple[TableLine, list[int]]]
) -> Source | None:
    """Make a corpus of items from the user's files; None if their columns are not those of items.

    Args:
        name: name of the corpus in tables.
        tables: the columns of each file, and the line number of each row.

    Raises:
        UserError: the files hold items of several kinds.
    """
    kinds = {_kind_of_suite(columns) for columns, _ in tables}
    if None in kinds:
        return None
    if len(kinds) > 1:
        raise UserError(f"--corpus {name}: some files hold pairs, others facts; give one kind.")
    (kind,) = kinds

    def read(source: Source) -> Corpus:
        return source.corpus(items=_table_items(paths, tables, _pair if kind == "pairs" else _fact))

    identity = {f"{kind} {i}": sha256(path) for i, path in enumerate(paths)}
    files = {role: (path,) for role, path in zip(identity, paths, strict=True)}
    return Source(name, "", "", files, identity, read, frozenset((str(kind),)), from_user=True)


def _kind_of_suite(columns: TableLine) -> Kind | None:
    if "sentence_good" in columns and "sentence_bad" in columns:
        return "pairs"
    return "contexts" if all(name in columns for name in _FACT) else None


def _table_items(
    paths: Sequence[Path],
    tables: Sequence[tuple[TableLine, list[int]]],
    make: Callable[[str, TableLine, str], Item],
) -> Iterator[Item]:
    """Yield an item for each row."""
    stems = Counter(path.stem for path in paths)
    for number, (path, (columns, lines)) in enumerate(zip(paths, tables, strict=True), start=1):
        # Ids are unique among files of the same name.
        name = f"{number}-{path.stem}" if stems[path.stem] > 1 else path.stem
        for i, cells in enumerate(zip(*columns.values(), strict=True)):
            try:
                row = dict(zip(columns, cells, strict=True))
                yield make(f"{name}-{i + 1}", row, path.stem)
            except ValueError as error:
                where = f"line {lines[i]}" if lines else f"row {i + 1}"
                raise UserError(f"{path}, {where}: {error}; correct the row.") from error


def _pair(name: str, row: TableLine, default_paradigm: str) -> Item:
    return minimal_pair(
        name,
        _text_in_column(row, "UID", default_paradigm),
        _text_in_column(row, "sentence_good"),
        _text_in_column(row, "sentence_bad"),
        _text_in_column(row, "linguistics_term", ""),
        _text_in_column(row, "group", ""),
    )


def _fact(name: str, row: TableLine, _: str) -> Item:
    subject, template, answer = (_text_in_column(row, column) for column in _FACT)
    for mark in ("[X]", "[Y]"):
        if template.count(mark) != 1:
            raise ValueError(f"the template {template!r} must have exactly one {mark}")
    # The subject may contain the mark of the object.
    before, after = (part.replace("[X]", subject) for part in template.split("[Y]"))
    space = " " if before.endswith(" ") else ""
    texts = {"object": (before.rstrip(" "), space + answer, after)}
    relation = _text_in_column(row, "relation", template)
    return _context(name, relation, texts, answers=("object",), cluster=subject)


def _text_in_column(row: TableLine, name: str, otherwise: str | None = None) -> str:
    """The text in a column, without spaces around it."""
    value = row.get(name)
    text = value.strip() if isinstance(value, str) else ""
    if text:
        return text
    if otherwise is not None and value in (None, ""):
        return otherwise
    raise ValueError(f"{name} is empty or not text")
