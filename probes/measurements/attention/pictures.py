"""What views cannot say of heads: cards, mean maps, best heads by layer, and heads in a plane."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from probes.measurements.attention.names import TOKENS
from probes.measurements.head_patterns import CLASSES
from probes.measurements.head_rows import HeadNumbers, HeadRows
from probes.records.charts import Card, Chart, Grid, Panel
from probes.records.files import Arrays
from probes.records.gallery import Gallery, GalleryPanel, Picture
from probes.records.record import AnyRecord
from probes.records.row import Place
from probes.records.scatter import Scatter, ScatterPoint
from probes.statistics.formatting import shown

GRIDS: dict[str, tuple[str, str, Place, str]] = {
    "heads": ("Entropy of attention", "entropy", None, "As a share of the greatest possible"),
    "first_token": ("Attention to the first token", "first", None, "Mean over tokens"),
    "separators": ("Attention to separators", "separators", None, "Mean over tokens"),
    "previous_token": ("Attention to the previous token", "offset", -1, "Mean over tokens"),
    "next_token": ("Attention to the next token", "offset", 1, "Mean over tokens"),
}
"""Grids of layers and heads: title, measure, feature and what it is."""

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


class DrawnHeads(HeadRows):
    """The heads of one model.

    Attributes:
        layer_names, head_names: as panels have them.
    """

    def __init__(self, record: AnyRecord, arrays: Arrays) -> None:
        super().__init__(record.rows)
        self.facts = record.facts
        self.layer_names = tuple(map(str, self.layers))
        self.head_names = tuple(str(head) for head in range(1, self.n_heads + 1))
        self.positions = arrays.get("positions", np.empty(0))
        maps = arrays.get("mean_maps")
        # As it was rounded, which takes the fewest digits.
        self._maps = None if maps is None else maps.astype(np.float64).round(3)

    def picture(self, row: int, head: int) -> Picture | None:
        """The mean map of a head, by its places among layers and heads."""
        if self._maps is None:
            return None
        pattern = self.classes[self.layers[row], head + 1]
        return Picture(tuple(map(tuple, self._maps[row, head].tolist())), CLASSES[pattern], pattern)

    @property
    def pictures(self) -> tuple[tuple[Picture | None, ...], ...]:
        """The mean maps of all."""
        heads = range(self.n_heads)
        return tuple(
            tuple(self.picture(i, head) for head in heads) for i in range(len(self.layers))
        )

    @cached_property
    def cards(self) -> tuple[tuple[Card, ...], ...]:
        """Everything about each head."""
        described = {
            line: numbers
            for line, (measure, feature) in CARD_LINES.items()
            if (numbers := self.of(measure, feature)) is not None
        }
        relations = self.each("relation")
        return tuple(
            tuple(self._card(row, head, described, relations) for head in range(self.n_heads))
            for row in range(len(self.layers))
        )

    def _card(
        self,
        row: int,
        head: int,
        described: Mapping[str, HeadNumbers],
        relations: Mapping[tuple[Place, Place], HeadNumbers],
    ) -> Card:
        layer, place = self.layers[row], (row, head)

        def beside(each: HeadNumbers) -> str:
            value, baseline = (shown(x[place], "entropy") for x in (each.values, each.baseline))
            return f"{value} ({each.kind}: {baseline})"

        lines = [(line, beside(each)) for line, each in described.items()]
        above = {of: x.values[place] - x.baseline[place] for of, x in relations.items()}
        known = [of for of, value in above.items() if not np.isnan(value)]
        for of in sorted(known, key=lambda of: -above[of])[:IN_CARD]:
            lines.append((", ".join(map(str, of)), beside(relations[of])))
        own = [x for x in self.choices if x.name == f"{layer}–{head + 1}"]
        if own:
            named = ", ".join(x.feature or x.test.metric.upper() for x in own)
            lines.append(("best on dev for", named))
        title = f"Layer {layer}, head {head + 1}: {self.classes[layer, head + 1]}"
        return Card(title, tuple(lines), self.picture(row, head))

    def best_by_layer(self, relation: str) -> list[float | None]:
        """The test score of the cell of each layer that is best on dev, in either direction."""
        of_relation = [of for of in self.each("relation") if of[0] == relation]
        dev, test = (
            np.concatenate(
                [x.values for of in of_relation if (x := self.of("relation", *of, split))], 1
            )
            for split in ("dev", "test")
        )
        return [float(row[best]) for row, best in zip(test, np.nanargmax(dev, 1), strict=True)]


def pictures(records: Mapping[str, AnyRecord], arrays: Mapping[str, Arrays]) -> list[Chart]:
    """All charts, in the order of `Attention.figures`."""
    found = {label: DrawnHeads(record, arrays.get(label, {})) for label, record in records.items()}
    made: list[Chart] = [_grid(name, found) for name in GRIDS]
    return [*made, _patterns(found), _relations(found), _clusters(found)]


def _grid(name: str, models: Mapping[str, DrawnHeads]) -> Grid:
    title, measure, feature, note = GRIDS[name]
    note = f"{note}, averaged over test texts."
    grid = Grid(name, title, note, "layer", "head", low=0.0, high=1.0)
    for label, found in models.items():
        each = found.of(measure, feature)
        if each is None:
            grid.missing[label] = "it has none"
        else:
            values = tuple(map(tuple, each.values.tolist()))
            grid.panels[label] = Panel(found.layer_names, found.head_names, values)
            grid.cards[label] = found.cards
    return grid


def _patterns(models: Mapping[str, DrawnHeads]) -> Gallery:
    """The mean map of every head, with its class."""
    note = f"Mean maps of texts of {TOKENS} tokens; rows attend to columns. Signs: class by rule."
    order = tuple(CLASSES)
    gallery = Gallery(
        "patterns", "Attention patterns", note, "layer", "head", low=0.0, high=1.0, order=order
    )
    for label, found in models.items():
        if not found.facts["mean_map_texts"]:
            gallery.missing[label] = f"no text has {TOKENS} tokens"
        elif found.picture(0, 0) is None:
            gallery.missing[label] = "its arrays cannot be read"
        else:
            panel = GalleryPanel(found.layer_names, found.head_names, found.pictures)
            gallery.panels[label] = panel
    return gallery


def _relations(models: Mapping[str, DrawnHeads]) -> Grid:
    """The best head of each layer on dev, scored on test, for every relation."""
    grid = Grid(
        "relations",
        "Relations",
        "How often the word attended to most is the right one: the head of each layer that is best "
        "on dev, on test. Offset: the best fixed distance on train.",
        "relation",
        "layer",
        low=0.0,
        high=1.0,
    )
    for label, found in models.items():
        choices = sorted(found.choices_of("relation"), key=lambda x: -(x.test.n or 0))
        if not choices:
            grid.missing[label] = "it has no relations"
            continue
        drawn = choices[:MOST_RELATIONS][::-1]
        values = tuple((x.baseline.value, *found.best_by_layer(x.feature)) for x in drawn)
        names = tuple(x.feature for x in drawn)
        grid.panels[label] = Panel(names, ("offset", *found.layer_names), values)
    return grid


def _clusters(models: Mapping[str, DrawnHeads]) -> Scatter:
    """Heads as points, whose distances say how differently they attend."""
    points, missing, stress = {}, {}, []
    for label, found in models.items():
        if not len(found.positions):
            missing[label] = "its heads are too few, too much alike, or were not compared"
            continue
        stress.append(f"{label} {found.facts['heads_stress']:.2f}")
        points[label] = tuple(
            ScatterPoint(
                x=float(found.positions[layer - 1, head - 1, 0]),
                y=float(found.positions[layer - 1, head - 1, 1]),
                text=f"{layer}–{head}",
                group=found.classes[layer, head],
                level=layer,
            )
            for layer, head in sorted(found.classes)
        )
    note = (
        "Heads by multidimensional scaling of their Jensen–Shannon distances, on a sample of dev "
        f"and test. Stress (0: distances are kept, .2: poorly): {'; '.join(stress) or 'none'}."
    )
    return Scatter("clusters", "Distances of heads", note, points, "layer", missing, tuple(CLASSES))
