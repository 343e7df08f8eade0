"""Pruning: what zeroing more and more heads costs (Michel et al. 2019; Voita et al. 2019)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from probes.common.errors import NoHeadError
from probes.measurements.intervening.importance import (
    IMPORTANCE,
    Head,
    OfHeads,
    agreement,
    importance_for_model,
    importance_for_probes,
    normalised,
)
from probes.measurements.intervening.own_answers import LOSS, Variant, own_answers, questions
from probes.measurements.intervening.probed_sample import DROP, ProbedSample, read_samples
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


def importance_and_pruning(
    context: Context, tasks: Sequence[Context], ablated: Sequence[Row], sample: Ints
) -> Iterator[Row]:
    """The importance of heads, how it agrees with ablation, and what pruning by either costs.

    Args:
        tasks: those whose probes can be applied again.
        ablated: what disabling each head costs.
        sample: sentences of test.
    """
    last, options = context.model.n_layers, context.options
    tasks = [each for each in tasks if last in each.layers]
    found = list(importance_for_probes(context, tasks, options.sentences))
    with suppress(NoHeadError):
        found += importance_for_model(context, options.sentences)
    yield from found
    costs, orders = _by_head(ablated, last), {}
    for predicts, importance in _by_head(found, last).items():
        own = costs[predicts]
        yield agreement(importance, own, predicts)
        orders[predicts] = {
            "importance": _ascending(normalised(importance)),
            "ablation": _ascending(own),
        }
    if options.steps:
        yield from pruning(context, sample, orders, options.steps)


def _by_head(rows: Iterable[Row], last: int) -> dict[str, dict[Head, float]]:
    """How important heads are, or what they cost at the last layer, by what is predicted."""
    found: dict[str, dict[Head, float]] = defaultdict(dict)
    for row in rows:
        of_head = row.metric in (IMPORTANCE, DROP, LOSS) and row.axes.get("at", last) == last
        if of_head and (head := row.axes.get("head")):
            value = np.nan if row.value is None else row.value
            place = row.layer or 0, int(head)
            found[str(row.axes.get("predicts", LOSS))][place] = float(np.nan_to_num(value))
    return found


def _ascending(values: OfHeads) -> list[Head]:
    return sorted(values, key=lambda head: (values[head], head))


def pruning(
    context: Context, sample: Ints, orders: Mapping[str, Orders], steps: int
) -> Iterator[Row]:
    """What pruning costs the probes of the last layer, and the model's own answers.

    Args:
        sample: sentences of test.
        orders: by task, and for the model's own loss by `LOSS`, random ones apart.
        steps: into which 100 % of the heads are divided, or as many as there are heads.
    """
    labels = {name: _labels(each, steps) for name, each in orders.items()}
    by_view: dict[str, list[Context]] = defaultdict(list)
    for task in context.of_results:
        if task.task.name in orders:
            by_view[task.examples.view].append(task)
    for view, tasks in by_view.items():
        own = [labels[each.task.name] for each in tasks]
        every: _Labels = {heads: ({},) for each in own for heads in each}
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
        yield from _banded(own_answers(context, variants, questions(context, sample)))


def _labels(orders: Orders, steps: int) -> _Labels:
    """What is pruned in all orders, also at random."""
    rng, heads = np.random.default_rng(0), sorted(next(iter(orders.values())))
    steps = min(steps, len(heads))
    every: list[tuple[dict[str, Place], Sequence[Head]]]
    every = [({"by": name}, order) for name, order in orders.items()]
    for draw in range(_DRAWS):
        mixed = [heads[i] for i in rng.permutation(len(heads))]
        every.append(({"by": RANDOM, "draw": draw}, mixed))
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
        mean = every[0]._replace(layer=None, value=float(np.mean(values)), p=None, axes=axes)
        yield mean._replace(low=min(values), high=max(values))
