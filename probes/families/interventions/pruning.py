"""Pruning: the cost of disabling more and more heads, the least important first.

The importance of a head is E|∂L/∂ξ|, where ξ = 1 is a gate on its output, and L the model's own
loss of a text (Michel et al. 2019, equation 2). It needs one forward and one backward pass for all
heads, and approximates what each costs when it alone is disabled (its output is set to 0).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from probes.families.interventions import PruningOptions
from probes.families.interventions.own_answers import (
    ANSWERS,
    LOSS,
    SMALLEST,
    Variant,
    own_answers,
    questions_in,
)
from probes.families.interventions.probed_sample import (
    DROP,
    csv_lines_by_task,
    predict_in_passes,
    probed_samples,
    sampled_sentences,
)
from probes.measurements.chart_views import Lines
from probes.measurements.measurement import Measured, measurement
from probes.measurements.pivots import Pivot
from probes.records.row import AxisValue, Row
from probes.statistics.bootstrap import means

if TYPE_CHECKING:
    from probes.common.arrays import Floats
    from probes.measurements.context import ModelContext

IMPORTANCE, CORRELATION = "head_importance", "importance_correlation"

Head = tuple[int, int]
"""Block and number, from 1."""

RANDOM = "random"
"""Value of ``order``, of several orders; their rows have the mean, and the range as interval."""

N_RANDOM = 5

N_STEPS = 10
"""Most steps from no head to all heads."""

_NOTE = f"Random: mean and range of {N_RANDOM} orders."


@measurement(
    "pruning",
    of="model",
    after="scores",
    options=PruningOptions,
    head="needed",
    extent=lambda request: dict.fromkeys(range(1, request.n_layers + 1), 1),
    csv_lines=csv_lines_by_task,
    shows=(
        Pivot(
            "importance of heads",
            (IMPORTANCE,),
            columns=("head",),
            where={"split": "dev"},
            note="Mean absolute gradient of the model's own loss at a gate on the head, on dev.",
        ),
        Pivot(
            "one head disabled",
            (LOSS,),
            columns=("head",),
            where={"order": None},
            note="Increase of the model's own loss.",
        ),
        Pivot("importance and loss without the head, rank correlation", (CORRELATION,)),
        Pivot(
            "% of heads disabled: drop at the last layer",
            (DROP,),
            rows="percent_disabled",
            columns=("predicts", "order"),
            note=f"Drop of the task's metric, as a share of 1. {_NOTE}",
        ),
        Pivot(
            "% of heads disabled: the model's own answers",
            ANSWERS,
            rows="percent_disabled",
            columns=("metric", "order"),
            where={"order": ...},
            note=_NOTE,
        ),
        Lines(
            "pruning",
            DROP,
            "Drop of probes without some heads",
            "Drop of the task's metric at the last layer, as a share of 1, if heads are disabled "
            f"in the order of importance, or at random (band: range of {N_RANDOM} orders).",
            x="percent_disabled",
            line="order",
            apart="predicts",
        ),
        Lines(
            "pruning_loss",
            LOSS,
            note=_NOTE,
            x="percent_disabled",
            line="order",
            where={"order": ...},
        ),
    ),
)
def pruning(context: ModelContext) -> Measured:
    """Importance of heads by gradients, and the cost of disabling the least important ones.

    ``head_importance`` is measured on dev. Heads are sorted by it, divided by the l2 norm of their
    layer (Michel et al. 2019, section 4.1). The first ``percent_disabled`` of all heads in this
    ``order``, or in a ``random`` one, are disabled on test: ``ablation_drop`` of the last layer's
    probe on a task (``predicts``), and the model's own answers, are those of `ablation`. Rows with
    a ``head`` have the ``loss_increase`` without this head alone, and ``importance_correlation``
    is Spearman's correlation of importance with it.
    """
    from scipy.stats import spearmanr  # slow to import

    rows, importance = _importance(context)
    heads = [(block + 1, head + 1) for block, head in np.ndindex(importance.shape)]
    norms = np.linalg.norm(importance, axis=1, keepdims=True)
    by_layer = importance / np.where(norms > 0, norms, 1)
    order = [heads[i] for i in np.argsort(by_layer, axis=None, kind="stable")]
    sample = sampled_sentences(len(context.corpus.splits["test"]), context.options.sentences)
    questions = questions_in(context, "test", sample)

    single = [Variant(), *(_without_heads([x], x[0], {"head": x[1]}) for x in heads)]
    of_heads = list(own_answers(context, single, replace(questions, verbs=())))
    correlation = spearmanr(importance.ravel(), [row.value for row in of_heads])
    rows += [*of_heads, Row(CORRELATION, correlation.statistic, n=len(heads), p=correlation.pvalue)]

    last = min(task.layers[-1] for task in context.tasks)
    variants = [Variant(), *_variants(order, last)]
    samples, notes = probed_samples(context, sample)
    drops = list(predict_in_passes(context, samples, variants, ""))
    for task_sample in samples:
        sample_rows = task_sample.rows(variants, DROP)
        drops += (row for row in sample_rows if row.axes["at"] == task_sample.layers[-1])
    rows += _with_ranges([*drops, *own_answers(context, variants, questions)])
    return Measured(rows, facts={"sentences": len(sample), "heads": len(heads)}, notes=notes)


def _importance(context: ModelContext) -> tuple[list[Row], Floats]:
    """Rows of importance, whose intervals resample documents of dev, and values (blocks, heads)."""
    from probes.extraction.changing.head_collectors import BY_HEAD, LossGradients
    from probes.extraction.reading.views import view_over

    sample = sampled_sentences(len(context.corpus.splits["dev"]), context.options.sentences)
    questions = questions_in(context, "dev", sample)
    view, partition = view_over(questions.texts, "written"), questions.partition
    gradients = np.zeros((len(view.texts), context.model.n_layers, context.sites().n_heads))
    for shard, arrays in context.read(view, LossGradients(questions.words)):
        gradients[shard.index] = arrays[BY_HEAD].numpy()
    sizes = np.abs(gradients[[view.index[text] for text in questions.texts]])
    n, document = len(sizes), partition.of_sentence[questions.of_text]
    estimates = means(sizes.reshape(n, -1), document, partition.n, partition.clusters)
    places = zip(np.ndindex(sizes.shape[1:]), estimates, strict=True)
    rows = [
        Row.estimated(IMPORTANCE, estimate, block + 1, split="dev", n=n, axes={"head": head + 1})
        for (block, head), estimate in places
    ]
    return rows, sizes.mean(0)


def _variants(order: Sequence[Head], last: int) -> Iterator[Variant]:
    """Passes without the first heads of this order and of random ones.

    Args:
        last: the layer whose probes predict.
    """
    rng, n, steps = np.random.default_rng(0), len(order), min(N_STEPS, len(order))
    draws = [[sorted(order)[i] for i in rng.permutation(n)] for _ in range(N_RANDOM)]
    for draw, heads in enumerate((order, *draws)):
        for step in range(steps + 1):
            axes: dict[str, AxisValue] = {"order": RANDOM if draw else "importance", "draw": draw}
            axes["percent_disabled"] = round(100 * step / steps)
            yield _without_heads(heads[: round(n * step / steps)], last, axes)


def _without_heads(heads: Sequence[Head], layer: int, axes: Mapping[str, AxisValue]) -> Variant:
    """A pass without some heads, which is compared with pass 0."""
    from probes.extraction.changing.interventions import DisableHead

    changes = tuple(DisableHead(*head, "zero") for head in sorted(heads))
    return Variant(changes, layer, axes, ((0, {}),))


def _with_ranges(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows without a layer; those of random orders become their mean and range."""
    groups: dict[tuple[AxisValue, ...], list[Row]] = defaultdict(list)
    for row in rows:
        axes = {name: value for name, value in row.axes.items() if name != "draw"}
        # The smallest drop that would be detected is that of one order, not of a mean of several.
        if row.metric != SMALLEST or axes["order"] != RANDOM:
            key = row.metric, axes.get("predicts"), axes["order"], axes["percent_disabled"]
            groups[key].append(row._replace(layer=None, axes=axes))
    for group in groups.values():
        values = [row.value for row in group if row.value is not None]
        if len(values) > 1:
            mean, low, high = float(np.mean(values)), min(values), max(values)
            yield group[0]._replace(value=mean, low=low, high=high, p=None)
        else:
            yield group[0]
