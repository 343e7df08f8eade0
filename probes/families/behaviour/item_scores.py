"""Items as a model reads them, and rows of their scores by paradigm, by phenomenon and overall."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats, Ints
from probes.data.items import Item
from probes.extraction.reading.views import Text, View, view_over
from probes.families.behaviour import ItemOptions
from probes.measurements.measurement import Measured
from probes.records.row import AxisValue, Row
from probes.records.values import ends
from probes.statistics.bootstrap import bounds, informative, interval
from probes.statistics.of_families.strata import Strata
from probes.statistics.partition import FEWEST

if TYPE_CHECKING:
    from probes.data.sentence import Corpus
    from probes.extraction.reading.collectors import Collector
    from probes.extraction.reading.token_scores import ScoredStretches
    from probes.measurements.context import ModelContext


def _item_view(corpus: Corpus, options: ItemOptions) -> View:
    """The texts of all conditions, each once; contexts have the word filled in."""
    items = [*corpus.items]
    for change in PERTURBED if options.malformed else ():
        items += filter(None, (malformed_item(item, change) for item in corpus.items))
    texts = (text_in(item, condition) for item in items for condition in item.texts)
    return view_over(texts, "written")


def _score_collector(corpus: Corpus, layers: Sequence[int], options: ItemOptions) -> Collector:
    """The collector of token scores."""
    from probes.extraction.reading.token_scores import TokenScores

    return TokenScores()


OF_ITEMS: dict[str, Any] = {
    "options": ItemOptions,
    "head": "needed",
    "extent": lambda request: {request.n_layers: 1},  # the last layer gives the answer
    "reads": _item_view,
    "collector": _score_collector,
    "shares_arrays": True,
}
"""Arguments of `@measurement` for scoring items with the language-model head."""


def scored_items(
    context: ModelContext,
    columns_of: Callable[[Sequence[Item], ScoredStretches, bool], list[Column]],
    *,
    notes_of: Callable[[Sequence[Item], ScoredStretches], list[str]] = lambda items, scores: [],
    by_chance: Callable[[Sequence[Item]], Iterable[Row]] = lambda items: (),
    mean_metric: str = "",
    pools_phenomena: bool = True,
) -> Measured:
    """Score all items.

    Arrays: ``values`` (scales, items), in the order of the facts ``scale 1`` and so on, NaN where
    an item does not count; ``cluster`` and ``stratum`` (items,) for resampling; ``phenomenon``
    (items,). Malformed texts have the same rows with the axis ``perturbation``, and ``lost``, the
    decrease of the value on the same items.

    Args:
        columns_of: returns scales with the value of each item, given items, scores, and True if the
            model is causal.
        notes_of: returns notes for tables.
        by_chance: returns rows for guesses.
        mean_metric: metric of the unweighted mean over paradigms; empty for none.
        pools_phenomena: make rows over several phenomena.
    """
    from probes.extraction.reading.token_scores import stored_scores

    items, scores = context.corpus.items, stored_scores(context.view, context.stored)
    if context.options.word_ends:
        scores = scores.with_word_ends()
    columns = columns_of(items, scores, context.model.causal)
    intact, notes = [values for _, values in columns], notes_of(items, scores)
    for change in PERTURBED if context.options.malformed else ():
        changed = [malformed_item(item, change) for item in items]
        there = np.array([item is not None for item in changed])
        if equal := sum(map(_is_plain, items)) - int(there.sum()):
            notes.append(
                f"{equal:,} of {len(items):,} items do not count when {change}: their texts become "
                "equal."
            )
        if there.any():
            of_changed = columns_of([x for x in changed if x], scores, context.model.causal)
            columns += _malformed_columns(of_changed, intact, there, change)
    if unknown := context.stored.count("unknown_words"):
        notes.append(
            f"{unknown:,} of {len(scores.pieces):,} texts (or regions) consist of unknown tokens "
            "by half or more."
        )
    values = np.stack([column for _, column in columns])
    facts = {f"scale {i}": scale.name for i, (scale, _) in enumerate(columns, start=1)}
    rows = list(accuracy_rows(items, values.T, [scale for scale, _ in columns], mean_metric))
    rows += by_chance(items)
    # Rows over all items have neither axis.
    if not pools_phenomena and len({item.phenomenon for item in items}) > 1:
        rows = [row for row in rows if {"paradigm", "phenomenon"} & {*row.axes}]
    return Measured(
        rows,
        {"values": values.astype(np.float32), **arrays_of(items)},
        facts={"items": len(items), **facts},
        notes=notes,
    )


def _malformed_columns(
    of_changed: Sequence[Column], intact: Sequence[Floats], there: NDArray[np.bool_], change: str
) -> Iterator[Column]:
    """The values of malformed items, and their decrease from the intact ones."""
    for (scale, values), before in zip(of_changed, intact, strict=True):
        column = np.full(len(there), np.nan)
        column[there] = values
        axes = {**scale.axes, "perturbation": change}
        yield Scale(scale.metric, axes), column
        yield Scale("lost", {**axes, "of": scale.metric}), before - column


LOST = "Score on intact texts minus score on malformed ones, for the same items."
"""The note of tables of losses."""

PERTURBED = "shuffled", "cut"
"""Ways to make texts malformed: words in random order; or cut to their first half, contexts of a
filled-in word to their last two words (Ettinger 2020, section 7.1)."""


def malformed_item(item: Item, change: str) -> Item | None:
    """A malformed item, whose texts of equal length change alike.

    None if it has several regions, or if its texts become equal, such as a cut pair that differed
    in the last word.
    """
    if not _is_plain(item):
        return None

    def changed(text: str, *, context: bool) -> str:
        words = text.split(" ")
        if change == "shuffled":
            seed = sha256(f"{item.id} {len(words)}".encode()).digest()
            order = np.random.default_rng(list(seed)).permutation(len(words))
            return " ".join(words[i] for i in order)
        return " ".join(words[-2:] if context else words[: (len(words) + 1) // 2])

    texts = {}
    for condition, regions in item.texts.items():
        target = item.target if item.kind == "contexts" else 1
        before = changed("".join(regions[:target]), context=item.kind == "contexts")
        texts[condition] = (before, *regions[target:])
    compared = [*texts] if item.kind == "pairs" else [item.good, *item.rivals] * bool(item.rivals)
    if len({texts[condition] for condition in compared}) < len(compared):
        return None
    return replace(item, texts=texts, target=1 if item.kind == "contexts" else 0)


def _is_plain(item: Item) -> bool:
    """Whether texts can be made malformed: they are not divided into regions."""
    return item.kind == "contexts" or all(len(regions) == 1 for regions in item.texts.values())


def text_in(item: Item, condition: str) -> Text:
    """The text of an item under a condition, as the model reads it."""
    regions, start = item.texts[condition], item.target
    kept_regions = (start, start + 1) if item.kind == "contexts" else (0, len(regions))
    return Text(regions, kept_regions, written=True)


def strata_of(items: Sequence[Item]) -> Strata:
    """Clusters for resampling, within paradigms."""
    clusters = [item.cluster or item.id for item in items]
    return Strata.of(clusters, [item.paradigm for item in items])


def arrays_of(items: Sequence[Item]) -> dict[str, NDArray[np.generic]]:
    """Arrays beside the values of items: ``cluster``, ``stratum`` and ``phenomenon``."""
    strata = strata_of(items)
    return {
        "cluster": strata.cluster.astype(np.int32),
        "stratum": strata.stratum.astype(np.int32),
        "phenomenon": np.array([item.phenomenon for item in items], dtype=str),
    }


@dataclass(frozen=True)
class Scale:
    """A way to score items: a metric, and the axes of the rows."""

    metric: str
    axes: Mapping[str, AxisValue]

    @property
    def name(self) -> str:
        """Metric and axes as text, for facts."""
        return ", ".join([self.metric, *(f"{axis} {value}" for axis, value in self.axes.items())])


Column = tuple[Scale, Floats]
"""A scale, and the value of each item on it. Shape (items,)."""


def accuracy_rows(
    items: Sequence[Item], values: Floats, scales: Sequence[Scale], mean: str = ""
) -> Iterator[Row]:
    """Means by paradigm, by phenomenon and overall, with intervals.

    Args:
        values: value of each item. Shape (items, scales); NaN where an item does not count.
        mean: metric of the unweighted mean over paradigms; no such row if empty.
    """
    is_counted = ~np.isnan(values)
    groups: dict[bytes, list[int]] = {}  # scales that count the same items are resampled together
    for number, column in enumerate(is_counted.T):
        if column.any():
            groups.setdefault(column.tobytes(), []).append(number)
    rows_by_scale: dict[int, list[Row]] = {}
    for numbers in groups.values():
        counted = np.flatnonzero(is_counted[:, numbers[0]])
        counted_items = [items[i] for i in counted.tolist()]
        of_these = [scales[number] for number in numbers]
        of_scales = _rows_by_scale(counted_items, values[counted][:, numbers], of_these, mean)
        rows_by_scale |= dict(zip(numbers, of_scales, strict=True))
    for number in sorted(rows_by_scale):
        yield from rows_by_scale[number]


def _rows_by_scale(
    items: Sequence[Item], values: Floats, scales: Sequence[Scale], mean: str
) -> list[list[Row]]:
    """The rows of each scale; see `accuracy_rows`. All items count."""
    strata, groups = strata_of(items), list(groups_of(items))
    means = strata.means(values, [indices for _, indices in groups], fewest=1)
    rows: list[list[Row]] = [[] for _ in scales]
    paradigms, n_clusters = [], 0
    for (axes, indices), group_means in zip(groups, means, strict=True):
        n_clusters = strata.n_clusters(indices)  # the last group is all items
        for i, scale in enumerate(scales):
            numbers = float(group_means[0][i]), group_means[1][:, i], n_clusters
            rows[i].append(
                _score_row(scale.metric, *numbers, n=len(indices), axes={**axes, **scale.axes})
            )
        if "paradigm" in axes:
            paradigms.append(group_means)
    if mean and len(paradigms) > 1:
        mean_scores, resamples = (np.mean(x, axis=0) for x in zip(*paradigms, strict=True))
        for i, scale in enumerate(scales):
            if scale.metric != "lost":
                numbers = float(mean_scores[i]), resamples[:, i], n_clusters
                rows[i].append(_score_row(mean, *numbers, n=len(paradigms), axes=scale.axes))
    return rows


def groups_of(items: Sequence[Item]) -> Iterator[tuple[dict[str, AxisValue], Ints]]:
    """The items of each paradigm, of each phenomenon, and all items, with their axes."""
    axes: dict[str, AxisValue]
    keys: tuple[Callable[[Item], dict[str, AxisValue]], ...] = (
        lambda item: {"paradigm": item.paradigm, "phenomenon": item.phenomenon or None},
        lambda item: {"phenomenon": item.phenomenon or None},
        lambda item: {},
    )
    for key in keys:
        groups: dict[tuple[AxisValue, ...], list[int]] = {}
        for i, item in enumerate(items):
            groups.setdefault(tuple(key(item).values()), []).append(i)
        for indices in groups.values():
            axes = {name: x for name, x in key(items[indices[0]]).items() if x is not None}
            if axes or key is keys[-1]:
                yield axes, np.array(indices)


def _score_row(
    metric: str,
    value: float,
    resampled: Floats,
    n_clusters: int,
    *,
    n: int,
    axes: Mapping[str, AxisValue],
) -> Row:
    pair, reason = bounds(interval(resampled)), ""
    if n_clusters < FEWEST or pair is None:
        pair = None
        reason = f"fewer than {FEWEST} items or groups of them"
    elif informative(pair) is None:
        reason = "nearly all items have the same value"
    low, high = ends(informative(pair))
    return Row(metric, value, None, low, high, n=n, why=reason, axes=dict(axes))
