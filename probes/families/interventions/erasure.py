"""Erasure: the cost of making a task's labels undecodable at a layer.

At one layer, an eraser removes what a linear probe could read (LEACE, Belrose et al. 2023) from
every piece of every word, and the pass goes on (amnesic probing, Elazar et al. 2021). Two controls
show what any such change costs: erasing labels of the control task (of whole texts, shuffled
labels), and erasing random directions. Each control has several draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from probes.common.errors import NoHeadError
from probes.examples.examples import NotServedError
from probes.examples.scoring import NO_TYPES, control_labels, has_types
from probes.families.interventions import ErasureOptions
from probes.families.interventions.changes import NOTHING, erased
from probes.families.interventions.controls import N_ERASER_DRAWS, random_subspace
from probes.families.interventions.erasers import leace, moments_of_layer
from probes.families.interventions.experiment import (
    ANSWERS,
    CLOZE,
    LOG_ODDS,
    NO_HEAD,
    ChangedPass,
    comparisons,
    mean_effect_rows,
    mean_rows_of_draws,
    sampled_sentences,
)
from probes.families.interventions.probe_readout import (
    ProbedSample,
    csv_lines_by_task,
    predict_in_passes,
    probed_samples,
)
from probes.families.interventions.text_prompts import (
    about_answers,
    require_two_tokens,
    text_prompts,
)
from probes.measurements.chart_views import Lines
from probes.measurements.measurement import Measured, UseColumn, measurement
from probes.measurements.pivots import Pivot
from probes.measurements.row_filters import PlacesOf
from probes.records.row import Row

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from probes.measurements.context import ModelContext, TaskContext

DROP, SCORE = "erasure_drop", "probe_score"

ANSWER = "answer_drop"
"""Fall of the share of texts where log p(answer of its label) − log p(other) is above 0."""

LABELS, CONTROL, RANDOM = "labels", "control task", "random"
SHUFFLED = "shuffled labels"
"""Values of ``eraser``, and of ``less``, the control whose drop is subtracted."""

_FROM_LAST = {"at": PlacesOf("unbiased_cka"), "probes": "own"}

_LABELS = {"eraser": LABELS, "less": (CONTROL, SHUFFLED)}

_LESS = {("less", NOTHING): "", **{("less", x): f"less {x}" for x in (CONTROL, SHUFFLED)}}


@measurement(
    "erasure",
    of="model",
    after="scores",
    version=6,
    options=ErasureOptions,
    check=partial(require_two_tokens, "--erasure-answers"),
    head="used",
    csv_lines=csv_lines_by_task,
    shows=(
        Pivot("the task's probe at the last layer", (DROP,), columns=("eraser", "less"),
              where={**_FROM_LAST, "fit": "frozen", "less": (NOTHING, CONTROL, SHUFFLED)},
              apart="erased",
              places=_LESS,
              note="Drop of the score, in points. Rows: the layer where labels are erased."),
        Pivot("the model's own answers", (*ANSWERS, ANSWER), columns=("metric", "eraser", "less"),
              where={"less": (NOTHING, CONTROL, SHUFFLED)}, apart="erased", places=_LESS),
        Pivot("other tasks' probes at the last layer", (DROP,), columns=("predicts",),
              where={**_FROM_LAST, **_LABELS, "probes": "other"}, apart="erased",
              note="Drop minus the drop from erasing the labels of the control task, or shuffled "
              "labels."),
        Lines("erasure", (SCORE, DROP, CLOZE), "Score, and drop if erased",
              "Score of the layer's probe. Drop: loss of the last layer's frozen probe, and of the "
              "model's own agreement, if labels are erased at this layer, minus the loss from "
              "erasing labels of the control task, or shuffled labels.",
              where={"eraser": (LABELS, None), "less": (CONTROL, SHUFFLED, None),
                     "fit": ("frozen", None), "probes": ("own", None),
                     "at": PlacesOf("unbiased_cka", or_none=True)},
              apart="erased"),
    ),
    use_columns=(
        UseColumn("erased, own answers",
                  "Erased: drop of the model's own answers, or of the last layer's probe, if "
                  "labels are erased at this layer, minus the drop from erasing labels of the "
                  "control task, or shuffled labels.", CLOZE, _LABELS, "erased"),
        UseColumn("erased, last probe", "", DROP, {**_FROM_LAST, **_LABELS, "fit": "frozen"},
                  "erased"),
    ),
)  # fmt: skip
def erasure(context: ModelContext) -> Measured:
    """Cost of erasing a task's labels at each layer for probes and the model's answers.

    The task ``erased`` is erased at the ``layer`` of the row. ``erasure_drop`` is the loss of the
    probe of layer ``at`` on a task (``predicts``; ``probes`` is ``own`` if that is the erased
    task). ``fit`` is ``frozen``: probes are not fitted again. ``eraser`` names what is erased:
    ``labels``, labels of the ``control task`` (of whole texts, ``shuffled labels``), or ``random``
    directions that change vectors as much. ``less`` names the control whose drop was subtracted.
    The last layer has p, corrected over the layers of erasure.

    The model's own answers are those of `ablation`; of texts with given answers, those of
    `_answers_of_texts`. ``probe_score`` is the reported score of the layer; ``erased_rank`` and
    ``erased_variance`` give the size of the change. Values of controls are means over
    `N_ERASER_DRAWS` draws, whose variance is part of intervals and tests.
    """
    from probes.families.interventions.readouts import own_answers, questions_in

    options = context.options
    sample = sampled_sentences(len(context.corpus.splits["test"]), options.sentences)
    samples, notes = probed_samples(context, sample)
    questions = questions_in(context, "test", sample)
    rows: list[Row] = []
    for task in samples:
        control, targets = _control_targets(task)
        if not targets:
            notes.append(f"{task.name} has no control task: {NO_TYPES}.")
        passes, sizes = _erasures(task, control, targets)
        compared = list(predict_in_passes(context, samples, passes, task))
        for task_sample in samples:
            whose = "own" if task_sample is task else "other"
            compared += task_sample.rows(passes, DROP, fit="frozen", probes=whose)
        rows += [*sizes, *mean_rows_of_draws(compared)]
        try:
            rows += own_answers(context, passes, questions)
            if task.position:
                rows += _answers_of_texts(context, task.context, passes, notes)
        except NoHeadError:
            notes.append(NO_HEAD)
    return Measured(rows, facts={"sentences": len(sample)}, notes=list(dict.fromkeys(notes)))


def _control_targets(task: ProbedSample) -> tuple[str, list[NDArray[Any]]]:
    """Name of the control with other labels, and draws of its labels of train, if it has any."""
    examples = task.context.examples
    if task.position:  # hardly any text occurs twice, so there are no types
        rng = np.random.default_rng(0)
        targets = examples.targets("train")
        return SHUFFLED, [rng.permutation(targets) for _ in range(N_ERASER_DRAWS)]
    if not has_types(examples):
        return CONTROL, []
    return CONTROL, [*control_labels(examples, "train", range(N_ERASER_DRAWS))]


def _answers_of_texts(
    context: ModelContext, task: TaskContext, passes: Sequence[ChangedPass], notes: list[str]
) -> Iterator[Row]:
    """Rows of `LOG_ODDS` and `ANSWER`, whose intervals resample documents; notes are added to.

    They are of up to `--erasure-sentences` test texts whose label train has.

    Raises:
        NoHeadError: the model has no language-model head.
        UserError: the answers begin with the same token.
    """
    part, flag = task.examples.splits["test"], "--erasure-answers"
    if not context.options.answers:
        notes.append(f"What the model answers is left out: give two answers with {flag}.")
        return
    try:
        if task.task.kind != "classification" or len(task.examples.classes) != 2:
            raise NotServedError(f"{task.task.name}: answers are compared for two classes")
        prompts, examples = text_prompts(context, task, "test", context.options.sentences, flag)
    except NotServedError as error:
        notes.append(f"{error}.")
        return
    targets = task.examples.targets("test")[examples]
    labelled = np.flatnonzero(targets >= 0)
    log_odds = (prompts.log_odds(context, lambda _: passes) * (2 * targets - 1))[:, labelled]
    right, compared = (np.sign(log_odds) + 1) / 2, comparisons(passes)
    share = f"{right[0].mean():.0%} of {len(labelled):,} texts the answer of their label."
    notes.append(f"{about_answers(context, task, prompts)} Untouched, the model gives {share}")
    where = part.sentence[examples[labelled]], np.ones(len(labelled)), part.partition, "test"
    yield from mean_effect_rows(LOG_ODDS, compared, log_odds, *where)
    yield from mean_effect_rows(ANSWER, compared, right, *where)


def _erasures(
    task: ProbedSample, control: str, others: Sequence[NDArray[Any]]
) -> tuple[list[ChangedPass], list[Row]]:
    """The untouched pass, then at each layer the erasure of labels and the controls.

    Args:
        control: name of the control with other labels.
        others: draws of its labels of train; empty for none.

    Returns:
        the passes; and rows with the score of each layer's probe and the size of the erasures.
    """
    passes, rows, context = [ChangedPass()], [], task.context
    axes, targets = {"erased": task.name}, [context.examples.targets("train"), *others]
    for layer in task.layers:
        if score := context.result.at(context.task.metric, layer):
            between = score.low, score.high
            rows.append(Row(SCORE, score.value, layer, *between, n=score.n, axes=axes))
        moments = moments_of_layer(context, layer, targets)
        by_targets = np.split(moments.xz, len(targets), axis=-1)
        labels, *controls = (leace(replace(moments, xz=xz)) for xz in by_targets)
        change = labels.change(moments)
        erasers = {LABELS: [labels], **({control: controls} if controls else {})}
        erasers[RANDOM] = [random_subspace(moments, change, seed) for seed in range(N_ERASER_DRAWS)]
        passes += erased(erasers, layer, axes, len(passes))
        for name, draws in erasers.items():
            sizes = np.mean([(x.rank, x.change(moments)) for x in draws], axis=0)
            for metric, size in zip(("erased_rank", "erased_variance"), sizes, strict=True):
                of_eraser = {**axes, "eraser": name}
                rows.append(Row(metric, float(size), layer, split="train", axes=of_eraser))
    return passes, rows
