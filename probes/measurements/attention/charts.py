"""Charts of attention: grids of layers and heads, mean maps, and relations by layer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from probes.measurements.attention.names import DESCRIBED
from probes.measurements.attention.patterns import CLASSES
from probes.measurements.attention.payload import Choice, Findings, HeadNumbers
from probes.records.charts import Card, Chart, Grid, Panel
from probes.records.gallery import Gallery, GalleryPanel, Picture
from probes.records.record import Record
from probes.records.scatter import Scatter, ScatterPoint
from probes.statistics.formatting import shown

GRIDS = {
    "heads": ("Entropy of attention", "entropy", "", "As a share of the greatest possible"),
    "first_token": ("Attention to the first token", "first", "", "Mean over tokens"),
    "separators": ("Attention to separators", "separators", "", "Mean over tokens"),
    "previous_token": ("Attention to the previous token", "offset", "-1", "Mean over tokens"),
    "next_token": ("Attention to the next token", "offset", "+1", "Mean over tokens"),
}
"""Grids of layers and heads: title, measure, feature and what it is."""

FIGURES = (*GRIDS, "patterns", "relations", "clusters")

MOST_RELATIONS = 20
"""Relations of the chart, the most frequent ones."""

IN_CARD = 5
"""Relations of a head's card, those in which it exceeds the offset most."""


def charts(records: Mapping[str, Record[Findings]]) -> list[Chart]:
    """All charts, in the order of `FIGURES`."""
    found = {label: record.payload for label, record in records.items()}
    made: list[Chart] = [_grid(name, found) for name in GRIDS]
    return [*made, _patterns(found), _relations(found), _clusters(found)]


def _grid(name: str, models: Mapping[str, Findings]) -> Grid:
    title, measure, feature, note = GRIDS[name]
    panels, missing = {}, {}
    for label, found in models.items():
        each = found.of(measure, feature)
        if each is None:
            missing[label] = "it has none"
        else:
            panels[label] = Panel(_layers(found), _heads(found), each.values)
    cards = {label: _cards(found) for label, found in models.items() if label in panels}
    return Grid(
        name,
        title,
        f"{note}, averaged over test texts.",
        "layer",
        "head",
        panels,
        low=0.0,
        high=1.0,
        missing=missing,
        cards=cards,
    )


def _layers(found: Findings) -> tuple[str, ...]:
    return tuple(map(str, found.layers))


def _heads(found: Findings) -> tuple[str, ...]:
    return tuple(str(head) for head in range(1, found.heads + 1))


def _cards(found: Findings) -> tuple[tuple[Card | None, ...], ...]:
    return tuple(
        tuple(_card(found, layer, head) for head in range(found.heads))
        for layer in range(len(found.layers))
    )


def _card(found: Findings, layer: int, head: int) -> Card:
    """Everything about one head.

    Args:
        layer, head: their places, from 0.
    """
    title = f"Layer {found.layers[layer]}, head {head + 1}: {found.patterns[layer][head]}"
    lines = [
        (each.line, _beside_uniform(numbers, layer, head))
        for each in DESCRIBED
        if (numbers := found.of(each.measure, each.feature)) is not None
    ]
    exceeding = sorted(
        (
            (value - baseline, each)
            for each in found.numbers
            if each.measure == "relation"
            and each.split == "test"
            and (value := each.values[layer][head]) is not None
            and (baseline := each.baseline_of(layer, head)) is not None
        ),
        key=lambda pair: -pair[0],
    )
    for _, each in exceeding[:IN_CARD]:
        value, baseline = each.values[layer][head], each.baseline_of(layer, head)
        text = f"{shown(value, 'accuracy')} ({each.baseline_kind}: {shown(baseline, 'accuracy')})"
        lines.append((f"{each.feature}, {each.direction}", text))
    chosen = [_named(x) for x in found.choices if (x.layer, x.head) == _at(found, layer, head)]
    if chosen:
        lines.append(("best on dev for", ", ".join(chosen)))
    return Card(title, tuple(lines), _picture(found, layer, head))


def _beside_uniform(each: HeadNumbers, layer: int, head: int) -> str:
    value, baseline = each.values[layer][head], each.baseline_of(layer, head)
    return f"{shown(value, 'accuracy')} (uniform: {shown(baseline, 'accuracy')})"


def _at(found: Findings, layer: int, head: int) -> tuple[int, int]:
    return found.layers[layer], head + 1


def _named(choice: Choice) -> str:
    return choice.feature or choice.measure.upper()


def _picture(found: Findings, layer: int, head: int) -> Picture | None:
    if not found.mean_maps.maps:
        return None
    pattern = found.patterns[layer][head]
    return Picture(found.mean_maps.maps[layer][head], CLASSES[pattern], pattern)


def _patterns(models: Mapping[str, Findings]) -> Gallery:
    """The mean map of every head, with its class."""
    panels, missing = {}, {}
    for label, found in models.items():
        if not found.mean_maps.maps:
            missing[label] = f"no text has {found.mean_maps.tokens} tokens"
            continue
        pictures = tuple(
            tuple(_picture(found, layer, head) for head in range(found.heads))
            for layer in range(len(found.layers))
        )
        panels[label] = GalleryPanel(_layers(found), _heads(found), pictures)
    tokens = next((found.mean_maps.tokens for found in models.values()), 0)
    note = f"Mean maps of texts of {tokens} tokens; rows attend to columns. Signs: class by rule."
    return Gallery(
        "patterns",
        "Attention patterns",
        note,
        "layer",
        "head",
        panels,
        low=0.0,
        high=1.0,
        missing=missing,
        order=tuple(CLASSES),
    )


def _relations(models: Mapping[str, Findings]) -> Grid:
    """The best head of each layer on dev, scored on test, for every relation."""
    panels, missing = {}, {}
    for label, found in models.items():
        choices = sorted(found.choices_of("relation"), key=lambda x: -x.n_test)[:MOST_RELATIONS]
        if not choices:
            missing[label] = "it has no relations"
            continue
        names = [choice.feature for choice in reversed(choices)]
        offsets = {choice.feature: choice.baseline.value for choice in choices}
        values = tuple((offsets[name], *_best_by_layer(found, name)) for name in names)
        panels[label] = Panel(tuple(names), ("offset", *_layers(found)), values)
    return Grid(
        "relations",
        "Relations",
        "How often the word attended to most is the right one: the head of each layer that is best "
        "on dev, on test. Offset: the best fixed distance on train.",
        "relation",
        "layer",
        panels,
        low=0.0,
        high=1.0,
        missing=missing,
    )


def _clusters(models: Mapping[str, Findings]) -> Scatter:
    """Heads as points, whose distances say how differently they attend."""
    points, missing, stress = {}, {}, []
    for label, found in models.items():
        places = found.clusters.found.positions if found.clusters else ()
        if not places:
            missing[label] = "its heads are too few, too much alike, or were not compared"
            continue
        assert found.clusters
        stress.append(f"{label} {found.clusters.found.stress:.2f}")
        points[label] = tuple(
            ScatterPoint(
                *places[layer - 1][head],
                f"{layer}–{head + 1}",
                found.patterns[row][head],
                layer,
            )
            for row, layer in enumerate(found.layers)
            for head in range(found.heads)
        )
    note = (
        "Heads by multidimensional scaling of their Jensen–Shannon distances, on a sample of dev "
        f"and test. Stress (0: distances are kept, .2: poorly): {'; '.join(stress) or 'none'}."
    )
    return Scatter("clusters", "Distances of heads", note, points, "layer", missing, tuple(CLASSES))


def _best_by_layer(found: Findings, relation: str) -> list[float | None]:
    """The test score of the cell of each layer that is best on dev, in either direction."""
    dev, test = (
        np.array(
            [
                each.values
                for each in found.numbers
                if (each.measure, each.feature, each.split) == ("relation", relation, split)
            ],
            dtype=np.float64,
        )
        for split in ("dev", "test")
    )
    best: list[float | None] = []
    for layer in range(len(found.layers)):
        on_dev, on_test = dev[:, layer].ravel(), test[:, layer].ravel()
        best.append(float(on_test[np.nanargmax(on_dev)]))
    return best
