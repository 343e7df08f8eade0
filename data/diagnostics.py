"""Psycholinguistic diagnostics for language models (Ettinger 2020): CPRAG-102, ROLE-88, NEG-136.

The model fills in the last word of a context, before a full stop. It should prefer:

- CPRAG-102: the expected word to one of the same category and one of another category;
- ROLE-88: the target in the context with the usual roles to the one with reversed roles;
- NEG-136: the word that makes the sentence true to the one that makes it false. Only affirmative
  contexts have completion items, since a negated context determines no completion. A model that
  ignores *not* is right in all affirmative contexts and in no negated one, so the two are separate
  phenomena.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator

from probes.common.errors import UserError
from probes.common.files import read_text
from probes.data.items import Item
from probes.data.minimal_pairs import corpus_of
from probes.data.sentence import Corpus
from probes.data.sources import Source

Row = dict[str, str]


def read_diagnostics(source: Source) -> Corpus:
    """Read the items of all three, in the order of the files."""
    readers = {"cprag": _cprag, "role": _role, "neg-simp": _neg, "neg-nat": _neg}
    items: list[Item] = []
    for role, read in readers.items():
        (path,) = source.files[role]
        rows = list(csv.DictReader(read_text(path).splitlines(), delimiter="\t"))
        try:
            items += read(path.stem, rows)
        except (KeyError, ValueError) as error:
            raise UserError(f"{path}: cannot be read ({error}); fetch it again.") from error
    return corpus_of(source, items)


def completed(context: str, word: str) -> tuple[str, str, str]:
    """A context, the word to fill in, and the rest."""
    return context.strip(), f" {word.strip()}", "."


def _cprag(name: str, rows: list[Row]) -> Iterator[Item]:
    constraint = {"H": "high constraint", "L": "low constraint"}
    for row in rows:
        context = f"{row['context_s1'].strip()} {row['context_s2']}"
        words = ("expected", "within_category", "between_category")
        yield Item(
            f"{name}-{row['item']}",
            "contexts",
            f"{name}, {constraint[row['constraint']]}",
            {word.replace("_", " "): completed(context, row[word]) for word in words},
            name,
            target=1,
            answers=("expected",),
            good="expected",
            rivals=("within category", "between category"),
        )


def _role(name: str, rows: list[Row]) -> Iterator[Item]:
    """Yield a completion item for each context, and a comparison for each pair of contexts."""
    pairs: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        pairs[row["item"].partition("-")[0]].append(row)
    for number, both in pairs.items():
        for row in both:
            expected = row["expected"].split("|")
            texts = {word: completed(row["context"], word) for word in expected}
            yield Item(
                f"{name}-{row['item']}",
                "contexts",
                name,
                texts,
                name,
                target=1,
                answers=tuple(expected),
                cluster=f"{name}-{number}",
            )
        one, other = sorted(both, key=lambda row: -float(row["tgt_cloze"]))
        texts = {
            "usual": completed(one["context"], one["target"]),
            "reversed": completed(other["context"], one["target"]),
        }
        yield Item(
            f"{name}-{number}",
            "contexts",
            name,
            texts,
            name,
            target=1,
            good="usual",
            rivals=("reversed",),
        )


def _neg(name: str, rows: list[Row]) -> Iterator[Item]:
    licensing = {"Y": ", natural", "N": ", less natural", None: ""}
    targets = {
        "affirmative": ("target_aff", "target_neg"),
        "negative": ("target_neg", "target_aff"),
    }
    for row in rows:
        for polarity, (true, false) in targets.items():
            context = row[f"context_{polarity[:3]}"]
            texts = {
                kind: completed(_with_article(context, row[word]), row[word])
                for kind, word in (("true", true), ("false", false))
            }
            yield Item(
                f"{name}-{row['item']}-{polarity}",
                "contexts",
                f"{name}, {polarity}{licensing[row.get('licensing')]}",
                texts,
                f"{name}, {polarity}",
                target=1,
                answers=("true",) if polarity == "affirmative" else (),
                good="true",
                rivals=("false",),
                cluster=f"{name}-{row['item']}",
            )


def _with_article(context: str, word: str) -> str:
    return context.replace("(a|an)", "an" if word.strip()[0] in "aeiou" else "a")
