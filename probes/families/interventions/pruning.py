"""Pruning: the cost of zeroing more and more heads (Michel et al. 2019; Voita et al. 2019).

The importance of a head is the gradient of a loss at a gate on the head's output: the absolute
value of the sum over a text, averaged over texts of dev. It approximates to first order the cost of
zeroing the head.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from probes.common.errors import NoHeadError
from probes.families.interventions.own_answers import (
    LOSS,
    Variant,
    own_answers,
    questions,
)
from probes.families.interventions.probed_sample import (
    DROP,
    ProbedSample,
    SampledExamples,
    drawn,
    read_samples,
)
from probes.measurements.stored_probes import StoredProbes
from probes.records.row import Place, Row
from probes.statistics.bootstrap import means

if TYPE_CHECKING:
    from probes.common.arrays import Floats, Ints
    from probes.extraction.collectors import Collector
    from probes.extraction.views import Text, View
    from probes.extraction.windows import Pooling
    from probes.measurements.context import ModelContext, TaskContext


IMPORTANCE, AGREEMENT = "importance", "rank_correlation"

Head = tuple[int, int]
"""Block and number, from 1."""

OfHeads = Mapping[Head, float]
"""A number for each head."""


def importance_for_probes(
    context: ModelContext, tasks: Sequence[TaskContext], n_sentences: int
) -> Iterator[Row]:
    """Importance for the stored probe of the last layer, for each task.

    Args:
        tasks: tasks whose probes can be applied again.
        n_sentences: number of random dev sentences; equal ones count once.
    """
    import torch

    from probes.extraction.head_collectors import ProbeGradients

    dev = context.corpus.splits["dev"]
    once = {dev[i].words: i for i in drawn(len(dev), n_sentences)}
    sentences = np.sort([*once.values()])
    by_view: dict[str, list[SampledExamples]] = defaultdict(list)
    for task in tasks:
        by_view[task.examples.view].append(SampledExamples(task, "dev", sentences))
    last, document = context.model.n_layers, context.partition("dev").of_sentence
    for name, every in by_view.items():
        samples = [each for each in every if len(each.kept)]
        if not samples:
            continue
        ((_, view, first, vectors),) = read_samples(context, samples, [Variant()], name)
        errors = torch.stack([_errors(each, vectors[last], first) for each in samples])
        ends = [*list(first.values())[1:], errors.shape[1]]
        of_text = {x: errors[:, i:j] for (x, i), j in zip(first.items(), ends, strict=True)}
        pooling = cast("Pooling", samples[0].context.result.pooling)
        found = _read(context, view, ProbeGradients(of_text, pooling))
        for number, each in enumerate(samples):
            own = {x: document[s] for x, s in zip(each.texts, each.sentences, strict=True)}
            gradients = found[[view.index[text] for text in own], number]
            yield from _rows(context, gradients, np.array([*own.values()]), each.context.task.name)


def importance_for_model(context: ModelContext, n_sentences: int) -> Iterator[Row]:
    """Importance for the model's own loss; see `questions`.

    Raises:
        NoHeadError: the model has no language-model head.
    """
    from probes.extraction.head_collectors import SurprisalGradients
    from probes.extraction.views import view_over

    asked = questions(context, "dev", drawn(len(context.corpus.splits["dev"]), n_sentences))
    if not asked.texts:
        return
    view = view_over(asked.texts, "written")
    found = _read(context, view, SurprisalGradients(asked.words))
    gradients = found[[view.index[text] for text in asked.texts], 0]
    yield from _rows(context, gradients, asked.partition.of_sentence[asked.of_text], LOSS)


def _errors(sample: SampledExamples, vectors: Any, first: Mapping[Text, int]) -> Any:
    """Gradient of the loss of the last layer's probe with respect to the vectors of words."""
    context = sample.context
    labels = context.examples.targets("dev")[sample.kept]
    last = context.model.n_layers
    return StoredProbes(context, [last]).errors(last, vectors, sample.spans(first), labels)


def _read(context: ModelContext, view: View, collector: Collector) -> Floats:
    """The collector's values for each text. Shape (texts, losses, blocks, heads)."""
    parts = [(shard.index, arrays) for shard, arrays in context.read(view, collector)]
    order = np.argsort(np.concatenate([index for index, _ in parts]))
    found: Floats = np.concatenate([arrays["found"].numpy() for _, arrays in parts])[order]
    return found


def _rows(context: ModelContext, gradients: Floats, document: Ints, predicts: str) -> Iterator[Row]:
    """The importance of each head; intervals resample documents.

    Args:
        gradients: shape (texts, blocks, heads).
    """
    n, _, n_heads = gradients.shape
    sizes = np.abs(gradients.astype(np.float64)).reshape(n, -1)
    for number, each in enumerate(means(sizes, document, context.partition("dev").n, "documents")):
        layer, head = divmod(number, n_heads)
        axes = {"head": head + 1, "predicts": predicts}
        yield Row.estimated(IMPORTANCE, each, layer + 1, split="dev", n=n, axes=axes)


def normalised(importance: OfHeads) -> dict[Head, float]:
    """Importance divided by the l2 norm of the layer, as in Michel et al."""
    squares: dict[int, float] = defaultdict(float)
    for (layer, _), value in importance.items():
        squares[layer] += value**2
    return {head: x / math.sqrt(squares[head[0]] or 1.0) for head, x in importance.items()}


def agreement(importance: OfHeads, ablation: OfHeads, predicts: str) -> Row:
    """Spearman's correlation of importance and cost of disabling each head, with p-value."""
    from scipy.stats import spearmanr  # slow to import

    found = spearmanr([importance[head] for head in ablation], list(ablation.values()))
    axes: dict[str, Place] = {"predicts": predicts, "heads": len(ablation)}
    return Row(AGREEMENT, found.statistic, n=len(ablation), p=found.pvalue, axes=axes)


HEADS = "heads"
"""Value of ``disabled`` for several heads; ``pruned`` is their share in per cent."""

RANDOM = "random"

_DRAWS = 5
"""Number of random orders. Rows have their mean, and their range as the interval."""

Orders = Mapping[str, Sequence[Head]]
"""All heads in the order of pruning, by the name of the order."""

_Labels = Mapping[frozenset[Head], Sequence[Mapping[str, Place]]]
"""Axes of rows by set of pruned heads; one pass serves all rows of a set."""


def importance_and_pruning(
    context: ModelContext, tasks: Sequence[TaskContext], ablated: Sequence[Row], sample: Ints
) -> Iterator[Row]:
    """Importance of heads, its agreement with ablation, and the cost of pruning by either.

    Args:
        tasks: tasks whose probes can be applied again.
        ablated: rows with the cost of disabling each head on dev, which gives an order, and test.
        sample: sentences of test.
    """
    last, options = context.model.n_layers, context.options
    tasks = [each for each in tasks if last in each.layers]
    found = list(importance_for_probes(context, tasks, options.sentences))
    with suppress(NoHeadError):
        found += importance_for_model(context, options.sentences)
    yield from found
    costs = {split: _by_head(ablated, last, split) for split in ("dev", "test")}
    orders = {}
    for predicts, importance in _by_head(found, last, "dev").items():
        yield agreement(importance, costs["test"][predicts], predicts)
        orders[predicts] = {
            "importance": _ascending(normalised(importance)),
            "ablation": _ascending(costs["dev"][predicts]),
        }
    if options.steps:
        yield from pruning(context, sample, orders, options.steps)


def _by_head(rows: Iterable[Row], last: int, split: str) -> dict[str, dict[Head, float]]:
    """Importance of heads, or their cost at the last layer, by task or own loss."""
    found: dict[str, dict[Head, float]] = defaultdict(dict)
    for row in rows:
        of_head = row.metric in (IMPORTANCE, DROP, LOSS) and row.axes.get("at", last) == last
        of_head = of_head and row.split == split
        if of_head and (head := row.axes.get("head")):
            value = np.nan if row.value is None else row.value
            place = row.layer or 0, int(head)
            found[str(row.axes.get("predicts", LOSS))][place] = float(np.nan_to_num(value))
    return found


def _ascending(values: OfHeads) -> list[Head]:
    return sorted(values, key=lambda head: (values[head], head))


def pruning(
    context: ModelContext, sample: Ints, orders: Mapping[str, Orders], steps: int
) -> Iterator[Row]:
    """Cost of pruning to the probes of the last layer and to the model's own answers.

    Args:
        sample: sentences of test.
        orders: orders by task, and by `LOSS` for the model's own loss, without random ones.
        steps: number of steps from 0 to 100 %, at most the number of heads.
    """
    labels = {name: _labels(each, steps) for name, each in orders.items()}
    by_view: dict[str, list[TaskContext]] = defaultdict(list)
    for task in context.tasks:
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
        for each, pruned in zip(samples, own, strict=True):
            said = each.predicted[[0, *(place[heads] for heads in pruned)]]
            yield from _banded(each.rows(_variants(pruned, context.model.n_layers), DROP, said))
    if LOSS in orders:
        variants = _variants(labels[LOSS], context.model.n_layers)
        yield from _banded(own_answers(context, variants, questions(context, "test", sample)))


def _labels(orders: Orders, steps: int) -> _Labels:
    """Sets of pruned heads for all orders, including random ones."""
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
    """An untouched pass and those with pruned heads, of which only the last layer is used."""
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
    """Rows without a layer; those of random orders become their mean and range."""
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
