"""SyntaxGym's suites (Hu et al. 2020): texts under several conditions, in regions.

A prediction is a formula over the surprisals of regions. One that two surprisals are equal cannot
come true of real numbers; such predictions are left out and counted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from probes.data.archive_members import Members
from probes.data.items import Item
from probes.data.minimal_pairs import corpus_of
from probes.data.sentence import Corpus
from probes.data.sources import Source

MEMBERS = Members(
    what="the suites of SyntaxGym",
    pattern=r"(?:[^/]+/)?test_suites/json/([^/]+\.json)",
    digest="0bc9a0b08444a92b2d1c17da606e3284bc414e404c59786cbbdfd1931f7987cf",
    folder="syntactic-generalization/test_suites/json",
)

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
    """All suites, in alphabetical order. A paradigm is a suite."""
    (archive,) = source.files["archive"]
    items: list[Item] = []
    equalities = 0
    for path, content in sorted(MEMBERS.read(archive).items()):
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
