"""Pruning: the cost of disabling more and more heads, the least important first.

The importance of a head is E|∂L/∂ξ|, where ξ = 1 is a gate on its output, and L the model's own
loss of a text (Michel et al. 2019, equation 2). It needs one forward and one backward pass for all
heads, and approximates what each costs when it alone is disabled (its output is set to 0).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from probes.families.interventions import PruningOptions
from probes.families.interventions.changes import pruned, without_heads
from probes.families.interventions.controls import N_ORDERS, random_orders
from probes.families.interventions.experiment import (
    ANSWERS,
    DROP,
    LOSS,
    SMALLEST,
    ChangedPass,
    mean_rows_of_draws,
    sampled_sentences,
)
from probes.families.interventions.probe_readout import (
    csv_lines_by_task,
    predict_in_passes,
    probed_samples,
)
from probes.measurements.chart_views import Lines
from probes.measurements.measurement import Measured, measurement
from probes.measurements.pivots import Pivot
from probes.records.row import Row

if TYPE_CHECKING:
    from probes.measurements.context import ModelContext

IMPORTANCE, CORRELATION = "head_importance", "importance_correlation"

RANDOM = "random"
"""Value of ``order``, of several orders; their rows have the mean, and the range as interval."""

_NOTE = f"Random: mean and range of {N_ORDERS} orders."


@measurement(
    "pruning",
    of="model",
    after="scores",
    options=PruningOptions,
    head="needed",
    extent=lambda request: dict.fromkeys(range(1, request.n_layers + 1), 1),
    csv_lines=csv_lines_by_task,
    shows=(
        Pivot("importance of heads", (IMPORTANCE,), columns=("head",), where={"split": "dev"},
              note="Mean absolute gradient of the model's own loss at a gate on the head, on dev."),
        Pivot("one head disabled", (LOSS,), columns=("head",), where={"order": None},
              note="Increase of the model's own loss."),
        Pivot("importance and loss without the head, rank correlation", (CORRELATION,)),
        Pivot("% of heads disabled: drop at the last layer", (DROP,), rows="percent_disabled",
              columns=("predicts", "order"),
              note=f"Drop of the task's metric, as a fraction. {_NOTE}"),
        Pivot("% of heads disabled: the model's own answers", ANSWERS, rows="percent_disabled",
              columns=("metric", "order"), where={"order": ...}, note=_NOTE),
        Lines("pruning", DROP, "Drop of probes without some heads",
              "Drop of the task's metric at the last layer, as a fraction, if heads are disabled "
              f"in the order of importance, or at random (band: range of {N_ORDERS} orders).",
              x="percent_disabled", line="order", apart="predicts"),
        Lines("pruning_loss", LOSS, note=_NOTE, x="percent_disabled", line="order",
              where={"order": ...}),
    ),
)  # fmt: skip
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

    from probes.families.interventions import readouts  # imports torch

    size, splits = context.options.sentences, context.corpus.splits
    dev, test = (sampled_sentences(len(splits[x]), size) for x in ("dev", "test"))
    on_dev = readouts.questions_in(context, "dev", dev)
    questions = readouts.questions_in(context, "test", test)
    importance, estimates = readouts.head_importance(context, on_dev)
    heads = [(block + 1, head + 1) for block, head in np.ndindex(importance.shape)]
    about = {"split": "dev", "n": len(on_dev.texts)}
    rows = [
        Row.estimated(IMPORTANCE, estimate, block, **about, axes={"head": head})
        for (block, head), estimate in zip(heads, estimates, strict=True)
    ]
    norms = np.linalg.norm(importance, axis=1, keepdims=True)
    by_layer = importance / np.where(norms > 0, norms, 1)
    order = [heads[i] for i in np.argsort(by_layer, axis=None, kind="stable")]

    single = [ChangedPass(), *(without_heads([x], x[0], {"head": x[1]}) for x in heads)]
    of_heads = list(readouts.own_answers(context, single, replace(questions, verbs=())))
    correlation = spearmanr(importance.ravel(), [row.value for row in of_heads])
    rows += [*of_heads, Row(CORRELATION, correlation.statistic, n=len(heads), p=correlation.pvalue)]

    last = min(task.layers[-1] for task in context.tasks)
    orders = {"importance": [order], RANDOM: random_orders(heads)}
    passes = [ChangedPass(), *pruned(orders, last)]
    samples, notes = probed_samples(context, test)
    effects = list(predict_in_passes(context, samples, passes))
    for task in samples:
        effects += (x for x in task.rows(passes, DROP) if x.axes["at"] == task.layers[-1])
    effects += readouts.own_answers(context, passes, questions)
    # The smallest drop that would be detected is that of one order, not of a mean of several.
    effects = [x for x in effects if x.metric != SMALLEST or x.axes["order"] != RANDOM]
    rows += mean_rows_of_draws((x._replace(layer=None) for x in effects), with_range=True)
    return Measured(rows, facts={"sentences": len(test), "heads": len(heads)}, notes=notes)
