"""Steering: the answer of a model after a step along a direction has been added to a layer.

A step of dose 1 is as long as the distance between the means of two classes of training states
along the direction (Rimsky et al. 2024). It counts if it moves answers further than random steps of
the same length and than steps between shuffled classes, and leaves the loss on neutral text alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from probes.examples.examples import NotServedError
from probes.examples.verb_forms import TASK
from probes.extraction.reading.views import View
from probes.families.interventions import SteeringOptions
from probes.families.interventions.directions import MEAN
from probes.families.interventions.experiment import (
    LOSS,
    exchange_rows,
    resampling_units,
)
from probes.families.interventions.steering_inputs import (
    CONTROLS,
    DIRECTIONS,
    NORM,
    Cell,
    SteeringInput,
    changes_of,
    damage_of,
    paradigm_inputs,
    task_input,
)
from probes.families.interventions.text_prompts import nothing_stored
from probes.measurements.chart_views import Lines
from probes.measurements.measurement import Measured, UseColumn, measurement
from probes.measurements.pivots import Pivot
from probes.measurements.row_filters import BestOnDev
from probes.records.row import AxisValue, Row
from probes.statistics.bootstrap import LEVEL
from probes.statistics.of_families.strata import Strata
from probes.statistics.partition import FEWEST
from probes.statistics.replicates import pooled
from probes.statistics.significance import printed_p

if TYPE_CHECKING:
    from probes.common.arrays import Floats
    from probes.data.sentence import Corpus
    from probes.measurements.context import ModelContext

STEERED, AGAINST = "steered_log_odds", "moved_against"

CHOSEN = "best on dev"
"""Value of ``chosen``: the layer and dose with the largest effect on dev at the allowed damage."""

_OF_ALL = {"paradigm": None, "less": None, "chosen": None}


@measurement(
    "steering",
    of="model",
    after="scores",
    items="pairs",
    options=SteeringOptions,
    head="needed",
    reads=lambda corpus, options: View("written", ()),
    collector=nothing_stored,
    shares_arrays=True,
    shows=(
        Pivot(
            "the layer and dose that are best on dev",
            (STEERED, AGAINST, LOSS),
            rows="direction",
            columns=("steered", "metric", "less"),
            where={**_OF_ALL, "chosen": CHOSEN, "less": (None, *CONTROLS)},
            places={("less", x): f"less {x}" for x in CONTROLS},
            note="Change of log p(answer of the positive class, or of the source) − log p(other). "
            "Log-odds of a text that a step has broken mean nothing: only doses are chosen whose "
            "increase of loss on neutral dev text is small enough.",
        ),
        Pivot(
            "by dose",
            (STEERED,),
            columns=("steered", "dose"),
            where={**_OF_ALL, "direction": (*DIRECTIONS, *CONTROLS)},
            apart="direction",
            note="Random controls: mean, and the range of one more draw in 95 %.",
        ),
        Pivot(
            "increase of loss on neutral dev text",
            (LOSS,),
            columns=("steered", "dose"),
            where={**_OF_ALL, "direction": DIRECTIONS, "split": "dev"},
            apart="direction",
        ),
        Lines(
            "steering",
            STEERED,
            title="Change of log-odds by dose",
            note="At the layer that is best on dev for the mean difference. Bands of random "
            "controls: one more draw in 95 %.",
            x="dose",
            line="direction",
            apart="steered",
            where={
                **_OF_ALL,
                "layer": BestOnDev(STEERED, {**_OF_ALL, "direction": MEAN, "chosen": CHOSEN}),
            },
        ),
    ),
    use_columns=(
        UseColumn(
            "steered",
            "Steered: change of the log-odds of answers by a step of dose 1 along the mean "
            "difference, in nats.",
            STEERED,
            {**_OF_ALL, "direction": MEAN, "dose": 1.0},
            "steered",
        ),
    ),
)
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
    layers and doses. ``steering_separation`` and ``steering_agreement`` describe training states.

    Raises:
        NotServedError: neither minimal pairs nor a task can be steered.
        UserError: answers are missing, or neutral text is not found.
    """
    from probes.data.find import find_corpus

    notes: list[str] = []
    inputs = list(
        paradigm_inputs(context) if context.corpus.items else _task_inputs(context, notes)
    )
    if not inputs:
        raise NotServedError("; ".join(notes) or "no paradigm has enough pairs of prompts that fit")
    neutral = find_corpus(context.options.neutral).load()
    parts = [_GroupEffects.of(context, x, neutral) for x in inputs]
    results = [_Effects(part.group.axes, [part]) for part in parts]
    if context.corpus.items:
        results.append(_Effects({"steered": TASK}, parts))
    rows = [row for x in inputs for row in x.training]
    for number, effects in enumerate(results):
        chosen = list(effects.chosen_rows(context, neutral))
        rows += [*effects.rows(), *chosen]
        if number < len(parts):
            notes += _sentences(effects, chosen)
    notes += [x.note for x in inputs if x.note]
    facts = {"prompts": sum(len(x.test.texts) for x in inputs)}
    return Measured(rows, facts=facts, notes=notes)


def _task_inputs(context: ModelContext, notes: list[str]) -> Iterator[SteeringInput]:
    """Tasks that can be steered; the reasons why others cannot are added to notes."""
    for task in context.tasks:
        try:
            yield task_input(context, task)
        except NotServedError as error:
            notes.append(str(error))


class _GroupEffects(NamedTuple):
    """Changes of log-odds of a paradigm or a task.

    Attributes:
        dev, test: changes by cell. Each (draws, prompts); dev has no controls.
        damage: increase of loss on neutral dev text, by cell.
    """

    group: SteeringInput
    dev: Mapping[Cell, Floats]
    test: Mapping[Cell, Floats]
    damage: Mapping[Cell, float]

    @classmethod
    def of(cls, context: ModelContext, group: SteeringInput, neutral: Corpus) -> _GroupEffects:
        """Steer the prompts of dev and test at all layers."""
        own = {cell: x for cell, x in group.steps.items() if cell[0] in DIRECTIONS}
        dev, test = (
            changes_of(context, group.dev, own),
            changes_of(context, group.test, group.steps),
        )
        return cls(group, dev, test, damage_of(context, own, neutral, "dev"))

    def like(self, control: str, cell: Cell) -> Floats:
        """Draws of a control whose steps are as long as that of a direction. (draws, prompts).

        Controls are measured at the lengths of steps along the mean difference, and other lengths
        interpolated: the step of dose 1 along another direction is shorter.
        """
        from scipy.interpolate import interp1d  # slow to import

        name, layer, dose = cell
        steps = self.group.steps
        longest, length = (float(np.linalg.norm(steps[x, layer, dose])) for x in (NORM, name))
        # Random steps are as likely as their reverse; a norm is not.
        sign = float(np.sign(dose)) if control == NORM else 1.0
        sizes: list[float] = sorted(sign * x for c, k, x in self.test if (c, k) == (control, layer))
        effects = [self.test[control, layer, sign * x] for x in sizes if x > 0]
        at = [0.0, *(x for x in sizes if x > 0)], [np.zeros_like(effects[0]), *effects]
        size = abs(dose) * (min(length / longest, 1.0) if longest else 0.0)
        between: Floats = interp1d(*map(np.asarray, at), axis=0)(size)
        return between


class _Effects(NamedTuple):
    """Changes of log-odds of a paradigm, a task, or all paradigms.

    Attributes:
        axes: values on axes of all rows.
        parts: the paradigm or task, or all paradigms.
    """

    axes: Mapping[str, str]
    parts: Sequence[_GroupEffects]

    @property
    def cells(self) -> list[Cell]:
        """Cells of directions."""
        return list(self.parts[0].dev)

    def _axes(self, cell: Cell, **more: str) -> dict[str, AxisValue]:
        return {**self.axes, "direction": cell[0], "dose": cell[2], **more}

    def on_dev(self, cell: Cell) -> float:
        """Mean change of a direction on dev."""
        return float(np.concatenate([x.dev[cell][0] for x in self.parts]).mean())

    def damage(self, cell: Cell) -> float:
        """Increase of loss on neutral dev text."""
        return float(np.mean([x.damage[cell] for x in self.parts]))

    def rows(self) -> Iterator[Row]:
        """Rows of all cells, those of a direction and dose tested together."""
        doses = dict.fromkeys(dose for _, _, dose in self.cells)
        layers = dict.fromkeys(layer for _, layer, _ in self.cells)
        for dose in doses:
            for name in DIRECTIONS:
                yield from self.compared([x for x in self.cells if (x[0], x[2]) == (name, dose)])
            for control, layer in product(CONTROLS, layers):
                yield self._of_control((control, layer, dose))
        for cell in self.cells:
            axes = self._axes(cell)
            yield Row(STEERED, self.on_dev(cell), cell[1], split="dev", axes=axes)
            yield Row(LOSS, self.damage(cell), cell[1], split="dev", axes=axes)

    def compared(self, cells: Sequence[Cell], **more: str) -> Iterator[Row]:
        """Rows of directions in some cells, compared with controls; tested together."""
        places = [(cell[1], self._axes(cell, **more)) for cell in cells]
        own = np.stack([np.concatenate([x.test[y][0] for x in self.parts]) for y in cells], axis=1)
        groups = [x.group for x in self.parts]
        units = resampling_units([unit for x in groups for unit in x.test.units])
        strata = Strata.of(units, [str(x.axes) for x in groups for _ in x.test.units])
        everything = np.arange(len(own))
        words = groups[0].units, "prompts"
        rows = partial(exchange_rows, strata=strata, group=everything, words=words)
        signs = np.sign([dose for *_, dose in cells])
        enough = strata.n_clusters(everything) >= FEWEST
        least_p: list[float | None] = [0.0 if enough else None] * len(cells)
        for control in CONTROLS:
            draws = [np.concatenate([x.like(control, y) for x in self.parts], 1) for y in cells]
            spreads = [pooled([x.mean(1).tolist()], 1 + 1 / len(x)) for x in draws]
            noise = [(f"{control} {x}", y) for x, y in zip(places, spreads, strict=True) if y]
            less = [(k, {**axes, "less": control}) for k, axes in places]
            differences = own - np.stack([x.mean(0) for x in draws], axis=1)
            beyond = differences.mean(0) * signs > 0
            of_control = rows(STEERED, differences, cells=less, tested=True, noise=noise)
            for i, row in enumerate(of_control):
                yield row
                # Answers have to move further than by each control, the way that the dose says.
                p, so_far = row.p if beyond[i] else 1.0, least_p[i]
                least_p[i] = None if p is None or so_far is None else max(p, so_far)
        for row, p in zip(rows(STEERED, own, cells=places, tested=False), least_p, strict=True):
            yield row._replace(p=p)
        against = (own * signs < 0).astype(np.float64)
        yield from rows(AGAINST, against, cells=places, tested=False)

    def _of_control(self, cell: Cell) -> Row:
        """Mean of the draws of a control, and the range of one more draw in 95 %."""
        from scipy.special import stdtrit  # slow to import

        control, layer, dose = cell
        longest = MEAN, layer, dose
        draws = np.concatenate([x.like(control, longest) for x in self.parts], axis=1).mean(1)
        spread, mean = pooled([draws.tolist()], 1 + 1 / len(draws)), float(draws.mean())
        half = spread.sd * float(stdtrit(spread.df, (1 + LEVEL) / 2)) if spread else np.nan
        axes = self._axes((control, layer, dose))
        return Row(STEERED, mean, layer, mean - half, mean + half, n=len(draws), axes=axes)

    def chosen_rows(self, context: ModelContext, neutral: Corpus) -> Iterator[Row]:
        """Rows of the layer and dose of each direction with the largest effect on dev."""
        for name in DIRECTIONS:
            effects = {
                cell: effect
                for cell in self.cells
                if cell[0] == name and self.damage(cell) <= context.options.damage
                if (effect := self.on_dev(cell) * float(np.sign(cell[2]))) > 0
            }
            if effects:
                cell = max(effects, key=lambda x: effects[x])
                axes = self._axes(cell, chosen=CHOSEN)
                yield Row(STEERED, self.on_dev(cell), cell[1], split="dev", axes=axes)
                # A direction that is far out by chance is so on dev and on test alike: where it is
                # farthest, p has to be corrected over all cells.
                all_rows = self.compared([x for x in self.cells if x[0] == name], chosen=CHOSEN)
                yield from (x for x in all_rows if (x.layer, x.axes["dose"]) == cell[1:])
                steps = [{cell: x.group.steps[cell]} for x in self.parts]
                damage = [damage_of(context, x, neutral, "test")[cell] for x in steps]
                yield Row(LOSS, float(np.mean(damage)), cell[1], axes=axes)


def _sentences(effects: _Effects, rows: Sequence[Row]) -> Iterator[str]:
    """A sentence on the layer and dose of each direction that were chosen on dev."""
    name = effects.axes.get("paradigm", effects.axes["steered"])
    for direction in DIRECTIONS:
        by_metric = {
            (row.metric, row.axes.get("less")): row
            for row in rows
            if row.axes["direction"] == direction and row.split == "test"
        }
        if not by_metric:
            yield f"{name}, {direction}: no layer and dose moves answers at the allowed damage."
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
