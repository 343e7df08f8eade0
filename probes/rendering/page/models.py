"""The models of a report, and how charts draw them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from probes.boards.groups import model_key, model_labels, model_order
from probes.extraction.model_names import pretrained_name
from probes.records.record import Record
from probes.rendering.palette import COLOURS, SYMBOLS

MOST_DRAWN = 8
"""Number of models that are drawn in the charts at first; more are hard to read."""


MOST_OPENED = 3
"""Number of trained models that the overview shows unfolded."""


@dataclass(frozen=True)
class Shown:
    """A model as the page shows it.

    Attributes:
        record: any record of it.
        random: whether its weights were never trained; it has its model's colour, dotted.
        drawn: whether it is drawn in the charts at first.
        opened: whether the overview shows it unfolded.
    """

    id: int
    label: str
    record: Record
    colour: str
    glyph: str
    random: bool
    drawn: bool
    opened: bool


def shown_models(found: Mapping[Path, Record]) -> dict[str, Shown]:
    """Models by label, each followed by its random twins."""
    labels = model_labels(found)
    firsts: dict[str, Record] = {}
    for record in found.values():
        firsts.setdefault(labels[model_key(record)], record)
    order = sorted(firsts, key=model_order)
    bases = list(dict.fromkeys(map(pretrained_name, order)))
    shown = {}
    for place, label in enumerate(order):
        base, random = bases.index(pretrained_name(label)), _is_random(firsts[label])
        symbol = list(SYMBOLS)[base // len(COLOURS) % len(SYMBOLS)]
        shown[label] = Shown(
            id=place,
            label=label,
            record=firsts[label],
            colour=COLOURS[base % len(COLOURS)],
            glyph=SYMBOLS[symbol][random],
            random=random,
            drawn=place < MOST_DRAWN,
            opened=base < MOST_OPENED and not random,
        )
    return shown


def _is_random(record: Record) -> bool:
    return record.model.random_seed is not None
