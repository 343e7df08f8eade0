"""Charts of heads that are no plain rows: cards, mean maps and relations."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from probes.measurements.chart_views import Cells, Maps
from probes.measurements.head_rows import CLASS, CLASSES, TOKENS, Choice, HeadNumbers, HeadRows
from probes.records.charts import Card, Grid, Panel, Picture
from probes.records.row import Place
from probes.statistics.metrics import shown

if TYPE_CHECKING:
    from probes.measurements.frame import Findings
    from probes.tables.charts import Chart, Look

CARD_LINES: dict[str, tuple[str, Place]] = {
    "entropy": ("entropy", None),
    "to the first token": ("first", None),
    "to separators": ("separators", None),
    "to punctuation": ("feature", "punctuation"),
    "to the previous token": ("offset", -1),
    "to itself": ("offset", 0),
    "to the next token": ("offset", 1),
}
"""What the card of a head says in any case."""

MOST_RELATIONS = 20
"""Relations of the chart, the most frequent ones."""

IN_CARD = 5
"""Relations of a head's card, those in which it exceeds the offset most."""

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


def pictures_of(found: Findings, model: str) -> tuple[tuple[Picture | None, ...], ...]:
    """The pictures of cards."""
    from probes.measurements.old_charts import _pictures

    return _pictures(PATTERNS, found, model).pictures


def heads_grid(name: str, title: str, metric: str, feature: Place, note: str) -> Cells:
    """A grid of layers and heads with a card of each head."""
    return Cells(
        name,
        metric,
        across="head",
        title=title,
        note=f"{note}, averaged over test texts.",
        low=0.0,
        high=1.0,
        where={"head": ..., "feature": feature, "baseline": None, "chosen": None},
        cards=head_cards,
    )


@lru_cache(maxsize=8)
def head_cards(found: Findings, model: str) -> tuple[tuple[Card, ...], ...]:
    """Everything about each head."""
    heads = HeadRows(found.records[model].rows)
    described = {
        line: numbers
        for line, (measure, feature) in CARD_LINES.items()
        if (numbers := heads.of(measure, feature)) is not None
    }
    relations = heads.each("relation")
    drawn = None if model in PATTERNS.missing(found) else pictures_of(found, model)
    best_for: dict[str, list[str]] = {}
    for choice in heads.choices:
        best_for.setdefault(choice.name, []).append(choice.feature or choice.test.metric.upper())

    def card(row: int, head: int) -> Card:
        layer, place = heads.layers[row], (row, head)
        lines = [(line, _beside(each, place)) for line, each in described.items()]
        above = {of: x.values[place] - x.baseline[place] for of, x in relations.items()}
        known = [of for of, value in above.items() if not np.isnan(value)]
        for of in sorted(known, key=lambda of: -above[of])[:IN_CARD]:
            lines.append((", ".join(map(str, of)), _beside(relations[of], place)))
        if best := best_for.get(f"{layer}–{head + 1}"):
            lines.append(("best on dev for", ", ".join(best)))
        title = f"Layer {layer}, head {head + 1}: {heads.classes[layer, head + 1]}"
        return Card(title, tuple(lines), drawn[row][head] if drawn else None)

    return tuple(
        tuple(card(row, head) for head in range(heads.n_heads)) for row in range(len(heads.layers))
    )


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

    def chart(self, found: Findings) -> Grid:
        """A panel for each model, whose first column is the best offset."""
        grid = Grid(
            self.name,
            self.title,
            self.note,
            "relation",
            "layer",
            low=0.0,
            high=1.0,
        )
        for model, record in found.records.items():
            heads = HeadRows(record.rows)
            drawn = _relations(heads)
            if not drawn:
                grid.missing[model] = "it has no relations"
                continue
            best = [(x.baseline.value, *_best_by_layer(heads, x.feature)) for x in drawn]
            layers = map(str, heads.layers)
            grid.panels[model] = Panel(
                tuple(x.feature for x in drawn), ("offset", *layers), tuple(best)
            )
        return grid


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
