"""Pruning: what zeroing more and more heads costs (Michel et al. 2019; Voita et al. 2019)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from probes.measurements.intervening.importance import Head
from probes.measurements.intervening.own_answers import LOSS, own_answers
from probes.measurements.intervening.probed_sample import DROP, ProbedSample, read_samples
from probes.measurements.intervening.variants import Variant
from probes.records.row import Place, Row

if TYPE_CHECKING:
    from probes.common.arrays import Ints
    from probes.measurements.context import Context

HEADS = "heads"
"""What is disabled: several heads, as many as the axis ``pruned`` says, in per cent."""

RANDOM = "random"

_DRAWS = 5
"""Random orders, of which rows have the mean, and as interval the range."""

Orders = Mapping[str, Sequence[Head]]
"""By how they are ordered, all heads, from the first that is pruned."""

_Labels = Mapping[frozenset[Head], Sequence[Mapping[str, Place]]]
"""By what is pruned, the axes of rows that say so; of several, one pass serves all."""


def pruning(
    context: Context, sample: Ints, orders: Mapping[str, Orders], steps: int
) -> Iterator[Row]:
    """What pruning costs the probes of the last layer, and the model's own answers.

    Args:
        sample: sentences of test.
        orders: by task, and for the model's own loss by `LOSS`, random ones apart.
        steps: into which 100 % of the heads are divided.
    """
    labels = {name: _labels(each, steps) for name, each in orders.items()}
    by_view: dict[str, list[Context]] = defaultdict(list)
    for task in context.of_results:
        if task.task.name in orders:
            by_view[task.examples.view].append(task)
    for view, tasks in by_view.items():
        own = [labels[each.task.name] for each in tasks]
        every = {heads: ({},) for each in own for heads in each}
        variants = _variants(every, context.model.n_layers)
        samples = [ProbedSample(each, sample, len(variants)) for each in tasks]
        for number, _, first, vectors in read_samples(context, samples, variants, view):
            for each in samples:
                each.take(number, vectors, first)
        place = {heads: number for number, heads in enumerate(every, start=1)}
        for each, its in zip(samples, own, strict=True):
            said = each.predicted[[0, *(place[heads] for heads in its)]]
            yield from _banded(each.rows(_variants(its, context.model.n_layers), DROP, said))
    if LOSS in orders:
        variants = _variants(labels[LOSS], context.model.n_layers)
        yield from _banded(own_answers(context, variants, sample))


def _labels(orders: Orders, steps: int) -> _Labels:
    """What is pruned in all orders, also at random."""
    rng, heads = np.random.default_rng(0), sorted(next(iter(orders.values())))
    every: list[tuple[dict[str, Place], Sequence[Head]]]
    every = [({"by": name}, order) for name, order in orders.items()]
    for draw in range(_DRAWS):
        order = [heads[i] for i in rng.permutation(len(heads))]
        every.append(({"by": RANDOM, "draw": draw}, order))
    found: dict[frozenset[Head], list[Mapping[str, Place]]] = defaultdict(list)
    for axes, order in every:
        for step in range(1, steps + 1):
            pruned = frozenset(order[: round(len(order) * step / steps)])
            found[pruned].append({**axes, "pruned": round(100 * step / steps)})
    return found


def _variants(labels: _Labels, last: int) -> list[Variant]:
    """An untouched pass, and those with heads pruned, of which the last layer alone is of use."""
    from probes.extraction.interventions import DisableHead

    return [Variant()] + [
        Variant(
            tuple(DisableHead(*head, "zero") for head in sorted(heads)),
            last,
            {"disabled": HEADS},
            tuple((0, axes) for axes in own),
        )
        for heads, own in labels.items()
    ]


def _banded(rows: Iterator[Row]) -> Iterator[Row]:
    """The rows, without a layer; of random orders their mean and range."""
    random: dict[tuple[str, Place], list[Row]] = defaultdict(list)
    for row in rows:
        if row.axes["by"] == RANDOM:
            random[row.metric, row.axes["pruned"]].append(row)
        else:
            yield row._replace(layer=None)
    for every in random.values():
        values = [np.nan if row.value is None else row.value for row in every]
        axes = {name: x for name, x in every[0].axes.items() if name != "draw"}
        ends = {"low": min(values), "high": max(values)}
        yield every[0]._replace(layer=None, value=np.mean(values), p=None, axes=axes, **ends)
