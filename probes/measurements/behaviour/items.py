"""Items as a model reads them, and their scores as rows: by paradigm, by phenomenon and overall."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from probes.common.arrays import Floats, Ints
from probes.data.items import Item
from probes.extraction.views import Text, View, view_over
from probes.records.row import Place, Row
from probes.statistics.bootstrap import bounds, interval
from probes.statistics.partition import FEWEST
from probes.statistics.strata import Strata


def text_of_regions(regions: tuple[str, ...], target: int | None = None) -> Text:
    """Regions as a text, of which all are scored, or the target alone."""
    keep = (0, len(regions)) if target is None else (target, target + 1)
    return Text(regions, keep, written=True)


def view_of_items(items: Sequence[Item]) -> View:
    """The texts of all conditions, each once; of contexts, the word that is filled in is scored."""
    texts = (text_in(item, condition) for item in items for condition in item.texts)
    return view_over(texts, "written")


def text_in(item: Item, condition: str) -> Text:
    """What a model reads of an item under a condition."""
    target = item.target if item.kind == "contexts" else None
    return text_of_regions(item.texts[condition], target)


def strata_of(items: Sequence[Item]) -> Strata:
    """Clusters within paradigms."""
    clusters = [item.cluster or item.id for item in items]
    return Strata.of(clusters, [item.paradigm for item in items])


@dataclass(frozen=True)
class Scale:
    """How items are scored: a metric and the places on axes that its rows have."""

    metric: str
    axes: Mapping[str, Place]

    @property
    def name(self) -> str:
        """In words, for facts."""
        return ", ".join([self.metric, *(f"{axis} {place}" for axis, place in self.axes.items())])


def accuracy_rows(
    items: Sequence[Item], values: Floats, scales: Sequence[Scale], mean: str = ""
) -> Iterator[Row]:
    """Means by paradigm, by phenomenon and overall, with intervals.

    Args:
        values: of each item. Shape (items, scales); NaN where an item does not count.
        mean: metric of the mean over paradigms, which counts each alike; no such row if empty.
    """
    for scale, column in zip(scales, values.T, strict=True):
        known = np.flatnonzero(~np.isnan(column))
        if not len(known):
            continue
        chosen = [items[i] for i in known.tolist()]
        groups = list(groups_of(chosen))
        found = strata_of(chosen).means(column[known, None], [own for _, own in groups])
        replicates = []
        for (axes, own), (value, resampled) in zip(groups, found, strict=True):
            yield _row(
                scale.metric, float(value[0]), resampled[:, 0], len(own), {**axes, **scale.axes}
            )
            if "paradigm" in axes:
                replicates.append((value[0], resampled[:, 0]))
        if mean and len(replicates) > 1:
            each, of_resamples = (np.stack(x) for x in zip(*replicates, strict=True))
            n = len(each)
            yield _row(mean, float(each.mean()), of_resamples.mean(0), n, dict(scale.axes))


def groups_of(items: Sequence[Item]) -> Iterator[tuple[dict[str, Place], Ints]]:
    """The items of each paradigm, of each phenomenon, and all, with their places on axes."""
    axes: dict[str, Place]
    keys: tuple[Callable[[Item], dict[str, Place]], ...] = (
        lambda item: {"paradigm": item.paradigm, "phenomenon": item.phenomenon or None},
        lambda item: {"phenomenon": item.phenomenon or None},
        lambda item: {},
    )
    for key in keys:
        groups: dict[tuple[Place, ...], list[int]] = {}
        for i, item in enumerate(items):
            groups.setdefault(tuple(key(item).values()), []).append(i)
        for own in groups.values():
            axes = {name: x for name, x in key(items[own[0]]).items() if x is not None}
            if axes or key is keys[-1]:
                yield axes, np.array(own)


def _row(metric: str, value: float, resampled: Floats, n: int, axes: Mapping[str, Place]) -> Row:
    pair = bounds(interval(resampled))
    low, high = pair or (None, None)
    why = "" if pair else f"fewer than {FEWEST} items or groups of them"
    return Row(metric, value, None, low, high, n=n, why=why, axes=dict(axes))
