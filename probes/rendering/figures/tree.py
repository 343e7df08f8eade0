"""A predicted tree below the gold one, as arcs under and over the words (Hewitt & Manning 2019)."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from matplotlib.lines import Line2D
from matplotlib.patches import Arc

from probes.data.sentence import ROOT
from probes.records.charts import LEFT_OUT, PredictedTree
from probes.rendering.figures.style import saved
from probes.rendering.palette import COLOURS

_BLACK, _GREY, _RIGHT, _WRONG = "black", "#9aa1a9", COLOURS[0], COLOURS[1]

_LETTER = 0.58
"""Mean width of a letter, relative to its height."""

_LARGEST, _SMALLEST = 7.0, 4.5
"""Sizes of words in points."""

_STEP, _HIGHEST = 0.17, 1.7
"""Height in inches of an arc over the arcs that it contains, and of all together at most."""


def draw(path: Path, tree: PredictedTree, width: float) -> None:
    """Draw one sentence: gold edges above, predicted ones below, dashed where they are wrong.

    A sentence whose words could not be read at this width is drawn wider.
    """
    letters = [len(word) + 2 for word in tree.words]
    size = 72 * (width - 0.1) / (_LETTER * sum(letters))
    size = min(max(size, _SMALLEST), _LARGEST)
    unit = _LETTER * size / 72
    width = max(width, unit * sum(letters) + 0.1)
    centres = [unit * (sum(letters[:i]) + n / 2) for i, n in enumerate(letters)]
    gold, aside, found = tree.gold_edges, tree.other_gold_edges, tree.predicted_edges
    above, below = _heights(gold | aside), _heights(found)
    top, bottom = (max(each.values(), default=1) + 1 for each in (above, below))
    step = min(_STEP, _HIGHEST / max(top, bottom))
    margin = size / 72
    height = step * (top + bottom) + 2 * margin + 0.45
    with saved(path, width, height) as figure:
        axes: Any = figure.subplots()
        for i, word in enumerate(tree.words):
            colour = _GREY if tree.predicted[i] == LEFT_OUT else _BLACK
            axes.text(centres[i], 0, word, ha="center", va="center", size=size, color=colour)
        for edge, level in above.items():
            colour = _GREY if edge in aside else _BLACK
            _arc(axes, edge, centres, margin, step * level, color=colour)
        for edge, level in below.items():
            right = edge in gold
            style = "-" if right else (0, (3, 2))
            colour = _RIGHT if right else _WRONG
            _arc(axes, edge, centres, -margin, -step * level, color=colour, linestyle=style)
        _root(axes, tree.gold, centres, margin, step * top, _BLACK)
        right = ROOT in tree.gold and tree.predicted[tree.gold.index(ROOT)] == ROOT
        _root(axes, tree.predicted, centres, -margin, -step * bottom, _RIGHT if right else _WRONG)
        aside_of_words = (width - unit * sum(letters)) / 2
        axes.set_xlim(-aside_of_words, width - aside_of_words)
        axes.set_ylim(-step * bottom - margin, step * top + margin)
        axes.set_axis_off()
        axes.set_title(f"{tree.title}: {len(found & gold)} of {len(gold)} edges")
        key = [
            Line2D([], [], color=_BLACK, linewidth=0.9, label="gold"),
            Line2D([], [], color=_RIGHT, linewidth=0.9, label="predicted"),
            Line2D([], [], color=_WRONG, linewidth=0.9, linestyle=(0, (3, 2)), label="wrong"),
        ]
        figure.legend(handles=key, loc="outside lower center", ncols=3, frameon=False)


def _heights(edges: Collection[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """The level of each arc: one above the highest that lies within it."""
    levels: dict[tuple[int, int], int] = {}
    for first, last in sorted(edges, key=lambda edge: (edge[1] - edge[0], edge)):
        inside = [n for (i, j), n in levels.items() if first <= i and j <= last]
        levels[first, last] = 1 + max(inside, default=0)
    return levels


def _arc(
    axes: Any,
    edge: tuple[int, int],
    centres: list[float],
    base: float,
    height: float,
    **style: Any,
) -> None:
    first, last = (centres[word] for word in edge)
    angles = (0, 180) if height > 0 else (180, 360)
    middle = ((first + last) / 2, base)
    axes.add_patch(
        Arc(
            middle,
            last - first,
            2 * abs(height),
            theta1=angles[0],
            theta2=angles[1],
            linewidth=0.9,
            **style,
        )
    )


def _root(
    axes: Any, heads: tuple[int, ...], centres: list[float], base: float, end: float, colour: str
) -> None:
    """A line to the root from outside."""
    for i, head in enumerate(heads):
        if head == ROOT:
            axes.plot([centres[i]] * 2, [base, end], color=colour, linewidth=0.9)
