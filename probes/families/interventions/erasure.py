"""Erasure: the cost of making a task's labels undecodable at a layer.

At one layer, an eraser removes what a linear probe could read (LEACE, Belrose et al. 2023) from
every piece of every word, and the pass goes on (amnesic probing, Elazar et al. 2021). Two controls
show what any such change costs: erasing labels of the control task, and erasing random directions.
Each control has several draws.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from probes.common.errors import NoHeadError
from probes.examples.scoring import NO_TYPES, control_labels, has_types
from probes.families.interventions import ErasureOptions
from probes.families.interventions.erasers import Moments, leace, random_subspace
from probes.families.interventions.own_answers import (
    ANSWERS,
    CLOZE,
    NO_HEAD,
    Variant,
    own_answers,
    questions_in,
)
from probes.families.interventions.probed_sample import (
    ProbedSample,
    csv_lines_by_task,
    predict_in_passes,
    probed_samples,
    sampled_sentences,
)
from probes.measurements.chart_views import Lines
from probes.measurements.measurement import Measured, UseColumn, measurement
from probes.measurements.pivots import Pivot
from probes.measurements.row_filters import PlacesOf
from probes.records.row import Row

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from probes.common.arrays import Floats
    from probes.examples.examples import Examples
    from probes.measurements.context import ModelContext, TaskContext

DROP, SCORE = "erasure_drop", "probe_score"

LABELS, CONTROL, RANDOM, NOTHING = "labels", "control task", "random", "nothing"
"""Values of ``eraser``, and of ``less``, the drop subtracted (``nothing``: none)."""

N_ERASER_DRAWS = 5
"""Number of draws of control labels, and of random directions."""

_ROWS = 1 << 13
"""Number of examples whose moments are summed at a time."""

_FROM_LAST = {"at": PlacesOf("unbiased_cka"), "probes": "own"}

_LESS = {("less", NOTHING): "", ("less", CONTROL): "less control task"}


@measurement(
    "erasure",
    of="model",
    after="scores",
    version=5,
    options=ErasureOptions,
    head="used",
    csv_lines=csv_lines_by_task,
    shows=(
        Pivot(
            "the task's probe at the last layer",
            (DROP,),
            columns=("eraser", "less"),
            where={**_FROM_LAST, "fit": "frozen", "less": (NOTHING, CONTROL)},
            apart="erased",
            places=_LESS,
            note="Drop of the score, in points. Rows: the layer where labels are erased.",
        ),
        Pivot(
            "the model's own answers",
            ANSWERS,
            columns=("metric", "eraser", "less"),
            where={"less": (NOTHING, CONTROL)},
            apart="erased",
            places=_LESS,
        ),
        Pivot(
            "other tasks' probes at the last layer",
            (DROP,),
            columns=("predicts",),
            where={**_FROM_LAST, "probes": "other", "eraser": LABELS, "less": CONTROL},
            apart="erased",
            note="Drop minus the drop from erasing the labels of the control task.",
        ),
        Lines(
            "erasure",
            (SCORE, DROP, CLOZE),
            title="Score, and drop if erased",
            note="Score of the layer's probe. Drop: loss of the last layer's frozen probe, and of "
            "the model's own agreement, if labels are erased at this layer, minus the loss from "
            "erasing labels of the control task.",
            where={
                "eraser": (LABELS, None),
                "less": (CONTROL, None),
                "fit": ("frozen", None),
                "probes": ("own", None),
                "at": PlacesOf("unbiased_cka", or_none=True),
            },
            apart="erased",
        ),
    ),
    use_columns=(
        UseColumn(
            "erased, own answers",
            "Erased: drop of the model's own answers, or of the last layer's probe, if labels are "
            "erased at this layer, minus the drop from erasing labels of the control task.",
            CLOZE,
            {"eraser": LABELS, "less": CONTROL},
            "erased",
        ),
        UseColumn(
            "erased, last probe",
            "",
            DROP,
            {**_FROM_LAST, "eraser": LABELS, "less": CONTROL, "fit": "frozen"},
            "erased",
        ),
    ),
)
def erasure(context: ModelContext) -> Measured:
    """Cost of erasing a task's labels at each layer for probes and the model's answers.

    The task ``erased`` is erased at the ``layer`` of the row. ``erasure_drop`` is the loss of the
    probe of layer ``at`` on a task (``predicts``; ``probes`` is ``own`` if that is the erased
    task). ``fit`` is ``frozen``: probes are not fitted again. ``eraser`` names what is erased:
    ``labels``, labels of the ``control task``, or ``random`` directions that change vectors as
    much. ``less`` names the control whose drop was subtracted. The last layer has p, corrected over
    the layers of erasure.

    The model's own answers are those of `ablation`. ``probe_score`` is the reported score of the
    layer; ``erased_rank`` and ``erased_variance`` give the size of the change. Values of controls
    are means over `N_ERASER_DRAWS` draws, whose variance is part of intervals and tests.
    """
    options = context.options
    sample = sampled_sentences(len(context.corpus.splits["test"]), options.sentences)
    samples, notes = probed_samples(context, sample)
    questions = questions_in(context, "test", sample)
    rows: list[Row] = []
    for task in samples:
        examples = task.context.examples
        targets = [examples.targets("train")]
        if has_types(examples):
            targets.extend(control_labels(examples, "train", range(N_ERASER_DRAWS)))
        else:
            notes.append(f"{task.name} has no control task: {NO_TYPES}.")
        variants, sizes = _erasures(task, targets)
        compared = list(predict_in_passes(context, samples, variants, task.view))
        for task_sample in samples:
            whose = "own" if task_sample is task else "other"
            compared += task_sample.rows(variants, DROP, fit="frozen", probes=whose)
        rows += [*sizes, *_mean_of_draws(compared)]
        try:
            rows += own_answers(context, variants, questions)
        except NoHeadError:
            notes.append(NO_HEAD)
    return Measured(rows, facts={"sentences": len(sample)}, notes=list(dict.fromkeys(notes)))


def _erasures(
    task: ProbedSample, targets: Sequence[NDArray[Any]]
) -> tuple[list[Variant], list[Row]]:
    """The untouched pass, then at each layer the erasure of labels and the controls.

    Args:
        targets: labels of train, then draws of the control task's labels if there is one.

    Returns:
        the passes; and rows with the score of each layer's probe and the size of the erasures.
    """
    from probes.extraction.changing.interventions import Erase

    variants, rows, context = [Variant()], [], task.context
    for layer in task.layers:
        if score := context.result.at(context.task.metric, layer):
            between, score_axes = (score.low, score.high), {"erased": task.name}
            rows.append(Row(SCORE, score.value, layer, *between, n=score.n, axes=score_axes))
        moments = _moments_of_layer(context, layer, targets)
        width = moments.xz.shape[-1] // len(targets)
        columns = [slice(i * width, (i + 1) * width) for i in range(len(targets))]
        labels, *controls = (leace(moments.with_labels(x)) for x in columns)
        change = labels.change(moments)
        erasers = {LABELS: [labels], **({CONTROL: controls} if controls else {})}
        erasers[RANDOM] = [random_subspace(moments, change, seed) for seed in range(N_ERASER_DRAWS)]
        starts = accumulate(map(len, erasers.values()), initial=len(variants))
        first = dict(zip(erasers, starts, strict=False))
        for name, draws in erasers.items():
            axes = {"erased": task.name, "eraser": name}
            control_names = [x for x in erasers if x != LABELS] if name == LABELS else []
            against = ((0, {"less": NOTHING}), *((first[x], {"less": x}) for x in control_names))
            for eraser in draws:
                erase = (Erase(layer, *eraser, positions="pieces"),)
                variants.append(Variant(erase, layer, axes, against, first[name]))
            sizes = np.mean([(x.rank, x.change(moments)) for x in draws], axis=0)
            for metric, size in zip(("erased_rank", "erased_variance"), sizes, strict=True):
                rows.append(Row(metric, float(size), layer, split="train", axes=axes))
    return variants, rows


def _moments_of_layer(context: TaskContext, layer: int, targets: Sequence[NDArray[Any]]) -> Moments:
    """Moments of all training examples at one layer.

    Args:
        targets: several sets of labels in the form of `Examples.targets`; their columns are put
            side by side.
    """
    import torch

    from probes.training.standardisation import SpanRows, gather

    vectors = context.vectors.layer(layer)
    examples, n = context.examples, len(targets[0])
    spans = examples.rows("train", context.view, context.vectors)

    def blocks() -> Iterator[tuple[Floats, Floats]]:
        for first in range(0, n, _ROWS):
            part = slice(first, min(first + _ROWS, n))
            out = torch.empty(part.stop - first, len(spans) * vectors.shape[1])
            gather(vectors, [SpanRows.of(span[part]) for span in spans], out)
            labels = [_as_columns(examples, x[part]) for x in targets]
            yield out.numpy().reshape(len(out), len(spans), -1), np.concatenate(labels, axis=1)

    return Moments.of(blocks())


def _as_columns(examples: Examples, targets: NDArray[Any]) -> Floats:
    """Labels as numbers: a column for each class or label, or the number itself. Shape (n, K).

    Args:
        targets: in the form of `Examples.targets`.
    """
    if examples.members is not None:
        return examples.members[targets, : len(examples.classes)].astype(np.float64)
    if not examples.classes:
        return targets[:, None].astype(np.float64)
    columns: Floats = np.eye(len(examples.classes))[targets]
    return columns


def _mean_of_draws(rows: Iterable[Row]) -> Iterator[Row]:
    """Replace rows that differ only in value by one row with their mean."""
    groups = defaultdict(list)
    for row in rows:
        groups[row.metric, row.layer, *row.axes.items()].append(row)
    for some in groups.values():
        yield some[0]._replace(value=float(np.mean([row.value for row in some])))
