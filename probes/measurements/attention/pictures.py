"""Charts of heads that are no plain rows: tooltips, mean maps and relations."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from probes.measurements.chart_views import Cells, Maps
from probes.measurements.head_rows import CLASS, CLASSES, TOKENS, Choice, HeadNumbers, HeadRows
from probes.records.row import Place
from probes.statistics.metrics import shown

if TYPE_CHECKING:
    from probes.measurements.frame import Findings
    from probes.tables.charts import Chart, Look

DESCRIBED: dict[str, tuple[str, Place]] = {
    "entropy": ("entropy", None),
    "to the first token": ("first", None),
    "to separators": ("separators", None),
    "to punctuation": ("feature", "punctuation"),
    "to the previous token": ("offset", -1),
    "to itself": ("offset", 0),
    "to the next token": ("offset", 1),
}
"""What a tooltip says of a head in any case."""

MOST_RELATIONS = 20
"""Relations of the chart, the most frequent ones."""

MOST_DESCRIBED = 5
"""Relations in a tooltip, those in which a head exceeds the offset most."""

PATTERNS = Maps(
    "patterns",
    array="mean_maps",
    metric=CLASS,
    kind="feature",
    title="Attention patterns",
    note=f"Mean maps of texts of {TOKENS} tokens; rows attend to columns. Signs: class by rule.",
    absent=f"no text has {TOKENS} tokens",
    kinds=CLASSES,
)


def heads_grid(name: str, title: str, metric: str, feature: Place, note: str) -> Cells:
    """A grid of layers and heads whose tooltips describe each head."""
    return Cells(
        name,
        metric,
        across="head",
        title=title,
        note=f"{note}, averaged over test texts.",
        low=0.0,
        high=1.0,
        where={"head": ..., "feature": feature, "baseline": None, "chosen": None},
        more=about_heads,
    )


@lru_cache(maxsize=8)
def about_heads(found: Findings, model: str) -> dict[tuple[int, int], dict[str, str]]:
    """Everything about each head, by layer and head."""
    heads = HeadRows(found.records[model].rows)
    described = {
        line: numbers
        for line, (measure, feature) in DESCRIBED.items()
        if (numbers := heads.of(measure, feature)) is not None
    }
    relations = heads.each("relation")
    best_for: dict[str, list[str]] = {}
    for choice in heads.choices:
        best_for.setdefault(choice.name, []).append(choice.feature or choice.test.metric.upper())

    def about(row: int, head: int) -> dict[str, str]:
        layer, place = heads.layers[row], (row, head)
        texts = {"head": f"layer {layer}, head {head + 1}: {heads.classes[layer, head + 1]}"}
        texts |= {line: _beside(each, place) for line, each in described.items()}
        above = {of: x.values[place] - x.baseline[place] for of, x in relations.items()}
        known = [of for of, value in above.items() if not np.isnan(value)]
        for of in sorted(known, key=lambda of: -above[of])[:MOST_DESCRIBED]:
            texts[", ".join(map(str, of))] = _beside(relations[of], place)
        if best := best_for.get(f"{layer}–{head + 1}"):
            texts["best on dev for"] = ", ".join(best)
        return texts

    return {
        (layer, head + 1): about(row, head)
        for row, layer in enumerate(heads.layers)
        for head in range(heads.n_heads)
    }


def _beside(each: HeadNumbers, place: tuple[int, int]) -> str:
    """The number of a head with its baseline."""
    value, baseline = (shown(x[place], "entropy") for x in (each.values, each.baseline))
    return f"{value} ({each.kind}: {baseline})"


class RelationsGrid:
    """The best head of each layer on dev, scored on test, for every relation."""

    name = "relations"
    title = "Relations"
    note = (
        "How often the word attended to most is the right one: the head of each layer that is best "
        "on dev, on test. Offset: the best fixed distance on train."
    )

    def missing(self, found: Findings) -> dict[str, str]:
        """Models without relations."""
        without = (m for m, x in found.records.items() if not _relations(HeadRows(x.rows)))
        return {**found.lacking, **dict.fromkeys(without, "it has no relations")}

    def draw(self, found: Findings, look: Look) -> Chart:
        """A panel for each model, whose first column is the best offset."""
        import pandas as pd

        from probes.tables import charts

        numbers = []
        for model, record in found.records.items():
            heads = HeadRows(record.rows)
            for choice in _relations(heads):
                best = _best_by_layer(heads, choice.feature)
                places = ("offset", *heads.layers)
                values = (choice.baseline.value, *best)
                numbers += [(model, choice.feature, *x) for x in zip(places, values, strict=True)]
        frame = pd.DataFrame(numbers, columns=["model", "row", "column", "value"])
        text = frame["value"].map("{:.2f}".format).str.replace("0.", ".", 1)
        return charts.heat_map(
            frame.assign(panel=frame["model"], text=text),
            look,
            down="relation",
            across="layer",
            bar="attended to most: how often right",
            title=self.title,
            low=0.0,
            high=1.0,
        )


def _relations(heads: HeadRows) -> list[Choice]:
    """The most frequent relations, the most frequent of them last."""
    choices = sorted(heads.choices_of("relation"), key=lambda x: -(x.test.n or 0))
    return choices[:MOST_RELATIONS][::-1]


def _best_by_layer(heads: HeadRows, relation: str) -> list[float | None]:
    """The test score of the cell of each layer that is best on dev, in either direction."""
    of_relation = [of for of in heads.each("relation") if of[0] == relation]
    dev, test = (
        np.concatenate(
            [x.values for of in of_relation if (x := heads.of("relation", *of, split))], 1
        )
        for split in ("dev", "test")
    )
    return [float(row[best]) for row, best in zip(test, np.nanargmax(dev, 1), strict=True)]


OF_TOKENS = "Mean over tokens"

VIEWS = (
    heads_grid(
        "heads", "Entropy of attention", "entropy", None, "As a share of the greatest possible"
    ),
    heads_grid("first_token", "Attention to the first token", "first", None, OF_TOKENS),
    heads_grid("separators", "Attention to separators", "separators", None, OF_TOKENS),
    heads_grid("previous_token", "Attention to the previous token", "offset", -1, OF_TOKENS),
    heads_grid("next_token", "Attention to the next token", "offset", 1, OF_TOKENS),
    PATTERNS,
    RelationsGrid(),
)
"""The charts of `Attention`, in their order."""
