"""Steering: the answer of a model after a step along a direction has been added to a layer.

A step of dose 1 is as long as the distance between the means of two classes of training states
along the direction (Rimsky et al. 2024). It counts if it moves answers further than random steps of
the same length and than steps between shuffled classes, and leaves the loss on neutral text alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from probes.examples.examples import NotServedError
from probes.examples.verb_forms import TASK
from probes.extraction.reading.views import View
from probes.families.interventions import SteeringOptions
from probes.families.interventions.directions import MEAN
from probes.families.interventions.experiment import LOSS
from probes.families.interventions.steering_answers import ANSWERED, FIRST, written_answers
from probes.families.interventions.steering_effects import (
    AGAINST,
    CHOSEN,
    STEERED,
    Effects,
    GroupEffects,
)
from probes.families.interventions.steering_inputs import (
    CONTROLS,
    DIRECTIONS,
    SteeringInput,
    paradigm_inputs,
    task_input,
)
from probes.families.interventions.text_prompts import nothing_stored, require_two_tokens
from probes.measurements.chart_views import Lines
from probes.measurements.measurement import Measured, UseColumn, measurement
from probes.measurements.pivots import Pivot
from probes.measurements.row_filters import BestOnDev
from probes.records.row import Row
from probes.statistics.significance import printed_p

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from probes.measurements.context import ModelContext

_OF_ALL = {"paradigm": None, "less": None, "chosen": None}


@measurement(
    "steering",
    of="model",
    after="scores",
    version=2,
    items="pairs",
    options=SteeringOptions,
    head="needed",
    reads=lambda corpus, options: View("written", ()),
    collector=nothing_stored,
    check=partial(require_two_tokens, "--steering-answers"),
    shows=(
        Pivot("the layer and dose that are best on dev", (STEERED, AGAINST, LOSS), rows="direction",
              columns=("steered", "metric", "less"),
              where={**_OF_ALL, "chosen": CHOSEN, "less": (None, *CONTROLS)},
              places={("less", x): f"less {x}" for x in CONTROLS},
              note="Change of log p(answer of the positive class, or of the source) − log p(other)."
              " Log-odds of a text that a step has broken mean nothing: only doses are chosen "
              "whose increase of loss on neutral dev text is small enough."),
        Pivot("by dose", (STEERED,), columns=("steered", "dose"), apart="direction",
              where={**_OF_ALL, "direction": (*DIRECTIONS, *CONTROLS)},
              note="Random controls: mean, and the range of one more draw in 95 %."),
        Pivot("increase of loss on neutral dev text", (LOSS,), columns=("steered", "dose"),
              where={**_OF_ALL, "direction": DIRECTIONS, "split": "dev"}, apart="direction"),
        Pivot("which answer comes first in what the model writes, at the layer and dose that are "
              "best on dev, %", (ANSWERED,), rows="direction", columns=("step", "answer"),
              where={"chosen": CHOSEN, "answer": FIRST[:2]}, apart="steered",
              note="The remaining texts have neither. Random: one step of the same length, since "
              "any step may break what is written."),
        Lines("steering", STEERED, title="Change of log-odds by dose", x="dose", line="direction",
              note="At the layer that is best on dev for the mean difference. Bands of random "
              "controls: one more draw in 95 %.",
              where={**_OF_ALL, "layer": BestOnDev(
                  STEERED, {**_OF_ALL, "direction": MEAN, "chosen": CHOSEN})},
              apart="steered"),
    ),
    use_columns=(
        UseColumn("steered",
                  "Steered: change of the log-odds of answers by a step of dose 1 along the mean "
                  "difference, in nats (▽: not significantly further than by each control; without "
                  "an interval, there are too few prompts for a test).",
                  STEERED, {**_OF_ALL, "direction": MEAN, "dose": 1.0}, "steered", tested=True),
    ),
)  # fmt: skip
def steering(context: ModelContext) -> Measured:
    """Answers after steps of several doses along directions, by layer, with controls and damage.

    Rows by layer, ``direction`` and ``dose`` of what is ``steered``: a task, or `TASK` of minimal
    pairs, also by ``paradigm``. ``steered_log_odds`` is the mean change of the log-odds of the
    answer of the positive class, or of the source; ``less`` names the control whose mean is
    subtracted. p counts the direction as one more draw, and is corrected over layers. The row
    without ``less`` has the largest p of the `CONTROLS`, 1 unless the step moves answers further
    than each in the direction of its dose. ``moved_against`` is the share of prompts that move
    against it, ``loss_increase`` the damage to neutral text. Rows with ``chosen`` are of the
    layer and dose with the largest effect on dev at the allowed damage; their p is corrected over
    layers and doses. ``answered`` is the share of texts after which the model writes an ``answer``
    first, after each ``step``. ``steering_separation`` and ``steering_agreement`` describe training
    states.

    Raises:
        NotServedError: neither minimal pairs nor a task can be steered.
        UserError: the answers begin with the same token.
    """
    notes: list[str] = []
    inputs = list(
        paradigm_inputs(context) if context.corpus.items else _task_inputs(context, notes)
    )
    if not inputs:
        raise NotServedError("; ".join(notes) or "no paradigm has enough pairs of prompts that fit")
    writes = context.options.generate and context.model.causal and not context.corpus.items
    parts = [GroupEffects.of(context, x) for x in inputs]
    results = [Effects(part.group.axes, [part]) for part in parts]
    if context.corpus.items:
        results.append(Effects({"steered": TASK}, parts))
    rows = [row for x in inputs for row in x.training]
    texts: dict[str, NDArray[Any]] = {}
    for number, effects in enumerate(results):
        best = list(effects.best_on_dev(context.options.damage))
        chosen = [row for cell in best for row in effects.chosen_rows(context, cell)]
        rows += [*effects.rows(), *chosen]
        if number < len(parts):
            notes += _sentences(effects, chosen)
        if writes and best:
            of_answers, written, note = written_answers(context, effects, best)
            rows, notes = [*rows, *of_answers], [*notes, note]
            texts |= {f"{inputs[number].axes['steered']} {x}": y for x, y in written.items()}
    notes += [x.note for x in inputs if x.note]
    if context.options.generate and not writes:
        notes.append("Answers are written by models that read from left to right, after texts.")
    facts = {"prompts": sum(len(x.test.texts) for x in inputs)}
    return Measured(rows, texts, facts=facts, notes=notes)


def _task_inputs(context: ModelContext, notes: list[str]) -> Iterator[SteeringInput]:
    """Tasks that can be steered; the reasons why others cannot are added to notes."""
    for task in context.tasks:
        try:
            yield task_input(context, task)
        except NotServedError as error:
            notes.append(str(error))


def _sentences(effects: Effects, rows: Sequence[Row]) -> Iterator[str]:
    """A sentence on the layer and dose of each direction that were chosen on dev."""
    name = effects.axes.get("paradigm", effects.axes["steered"])
    for direction in DIRECTIONS:
        by_metric = {
            (row.metric, row.axes.get("less")): row
            for row in rows
            if row.axes["direction"] == direction and row.split == "test"
        }
        if not by_metric:
            yield f"{name}, {direction}: nothing moves answers the right way at this damage."
            continue
        of, against, damage = (by_metric[x, None] for x in (STEERED, AGAINST, LOSS))
        tests = "; ".join(
            f"less {control} {row.value:+.2f}"
            + (f" (p {printed_p(row.p)})" if row.p is not None else "")
            for control in CONTROLS
            if (row := by_metric[STEERED, control])
        )
        yield (
            f"{name}, {direction}: best on dev at layer {of.layer} with dose {of.axes['dose']:g}. "
            f"There, log-odds change by {of.value:+.2f} nats ({tests}), {against.value:.0%} of "
            f"prompts move against the dose, and the loss on neutral text by {damage.value:+.2f}."
        )
