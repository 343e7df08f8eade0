"""Effects of steps on answers, compared with those of controls, and what is best on dev."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from probes.families.interventions.directions import MEAN
from probes.families.interventions.experiment import ChangedPass, exchange_rows, resampling_units
from probes.families.interventions.steering_damage import Damage
from probes.families.interventions.steering_inputs import (
    CONTROLS,
    DIRECTIONS,
    NORM,
    Cell,
    SteeringInput,
    stepped,
)
from probes.families.interventions.text_prompts import Prompts
from probes.records.row import AxisValue, Row
from probes.statistics.bootstrap import LEVEL
from probes.statistics.of_families.strata import Strata
from probes.statistics.partition import FEWEST
from probes.statistics.replicates import pooled

if TYPE_CHECKING:
    from probes.common.arrays import Floats
    from probes.measurements.context import ModelContext

STEERED, AGAINST = "steered_log_odds", "moved_against"

CHOSEN = "best on dev"
"""Value of ``chosen``: the layer and dose with the largest effect on dev at the allowed damage."""


def changes_of(
    context: ModelContext, prompts: Prompts, steps: Mapping[Cell, Floats]
) -> dict[Cell, Floats]:
    """Changes of log-odds by cell. Each (draws, prompts)."""
    flat = [(cell, draw) for cell, draws in steps.items() for draw in draws]
    moving = [i for i, (_, draw) in enumerate(flat) if draw.any()]

    def passes(sign: int) -> list[ChangedPass]:
        changed = (flat[i] for i in moving)
        return [ChangedPass(), *(stepped(cell, sign * draw) for cell, draw in changed)]

    untouched, *changed = prompts.log_odds(context, passes)
    changes = np.zeros((len(flat), len(untouched)))
    changes[moving] = np.array(changed).reshape(-1, len(untouched)) - untouched
    ends = np.cumsum([len(draws) for draws in steps.values()])
    return dict(zip(steps, np.split(changes, ends[:-1]), strict=True))


class GroupEffects(NamedTuple):
    """Changes of log-odds of a paradigm or a task.

    Attributes:
        dev, test: changes by cell. Each (draws, prompts); dev has no controls.
        damage: to neutral dev text.
    """

    group: SteeringInput
    dev: Mapping[Cell, Floats]
    test: Mapping[Cell, Floats]
    damage: Damage

    @classmethod
    def of(cls, context: ModelContext, group: SteeringInput) -> GroupEffects:
        """Steer the prompts of dev and test at all layers."""
        own = {cell: x for cell, x in group.steps.items() if cell[0] in DIRECTIONS}
        dev = changes_of(context, group.dev, own)
        test = changes_of(context, group.test, group.steps)
        return cls(group, dev, test, Damage.of(context, own, "dev"))

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
        sizes = sorted(sign * x for c, k, x in self.test if (c, k) == (control, layer))
        effects = {x: self.test[control, layer, sign * x] for x in sizes if x > 0}
        effects = {0.0: np.zeros_like(next(iter(effects.values()))), **effects}
        size = abs(dose) * (min(length / longest, 1.0) if longest else 0.0)
        between: Floats = interp1d([*effects], np.array([*effects.values()]), axis=0)(size)
        return between


class Effects(NamedTuple):
    """Changes of log-odds of a paradigm, a task, or all paradigms.

    Attributes:
        axes: values on axes of all rows.
        parts: the paradigm or task, or all paradigms.
    """

    axes: Mapping[str, str]
    parts: Sequence[GroupEffects]

    @property
    def cells(self) -> list[Cell]:
        """Cells of directions."""
        return list(self.parts[0].dev)

    def axes_of(self, cell: Cell, **more: str) -> dict[str, AxisValue]:
        """Values on axes of a cell's rows."""
        return {**self.axes, "direction": cell[0], "dose": cell[2], **more}

    def rows(self) -> Iterator[Row]:
        """Rows of all cells, those of a direction and dose tested together."""
        doses = dict.fromkeys(dose for _, _, dose in self.cells)
        layers = dict.fromkeys(layer for _, layer, _ in self.cells)
        for dose in doses:
            for name in DIRECTIONS:
                yield from self.compared([x for x in self.cells if (x[0], x[2]) == (name, dose)])
            for control, layer in product(CONTROLS, layers):
                yield self._of_control((control, layer, dose))
        yield from map(self._on_dev, self.cells)
        yield from Damage.mean([x.damage for x in self.parts]).rows(self.axes_of)

    def _on_dev(self, cell: Cell, **more: str) -> Row:
        changes = np.concatenate([x.dev[cell][0] for x in self.parts])
        axes = self.axes_of(cell, **more)
        return Row(STEERED, float(changes.mean()), cell[1], split="dev", axes=axes)

    def compared(self, cells: Sequence[Cell], **more: str) -> Iterator[Row]:
        """Rows of directions in some cells, compared with controls; tested together."""
        places = [(cell[1], self.axes_of(cell, **more)) for cell in cells]
        own = np.stack([np.concatenate([x.test[y][0] for x in self.parts]) for y in cells], axis=1)
        strata, words = self.resampled()
        everything = np.arange(len(own))
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

    def resampled(self) -> tuple[Strata, tuple[str, str]]:
        """Units of resampling of the prompts of test, and words for a reason for no interval."""
        groups = [x.group for x in self.parts]
        units = resampling_units([unit for x in groups for unit in x.test.units])
        strata = Strata.of(units, [str(x.axes) for x in groups for _ in x.test.units])
        return strata, (groups[0].units, "prompts")

    def _of_control(self, cell: Cell) -> Row:
        """Mean of the draws of a control, and the range of one more draw in 95 %."""
        from scipy.special import stdtrit  # slow to import

        control, layer, dose = cell
        longest = MEAN, layer, dose
        draws = np.concatenate([x.like(control, longest) for x in self.parts], axis=1).mean(1)
        spread, mean = pooled([draws.tolist()], 1 + 1 / len(draws)), float(draws.mean())
        half = spread.sd * float(stdtrit(spread.df, (1 + LEVEL) / 2)) if spread else np.nan
        axes = self.axes_of((control, layer, dose))
        return Row(STEERED, mean, layer, mean - half, mean + half, n=len(draws), axes=axes)

    def best_on_dev(self, most_damage: float) -> Iterator[Cell]:
        """The layer and dose of each direction with the largest effect on dev.

        Args:
            most_damage: largest increase of loss on neutral text, in nats per piece.
        """
        damage = Damage.mean([x.damage for x in self.parts])
        for name in DIRECTIONS:
            effects = {
                cell: effect
                for cell in self.cells
                if cell[0] == name and damage.increase(cell) <= most_damage
                if (effect := (self._on_dev(cell).value or 0.0) * float(np.sign(cell[2]))) > 0
            }
            if effects:
                yield max(effects, key=lambda x: effects[x])

    def chosen_rows(self, context: ModelContext, cell: Cell) -> Iterator[Row]:
        """Rows of a cell that is best on dev."""
        axes = partial(self.axes_of, chosen=CHOSEN)
        yield self._on_dev(cell, chosen=CHOSEN)
        # A direction that is far out by chance is so on dev and on test alike: where it is
        # farthest, p has to be corrected over all cells.
        all_rows = self.compared([x for x in self.cells if x[0] == cell[0]], chosen=CHOSEN)
        yield from (x for x in all_rows if (x.layer, x.axes["dose"]) == cell[1:])
        steps = [{cell: x.group.steps[cell]} for x in self.parts]
        yield from Damage.mean([Damage.of(context, x, "test") for x in steps]).rows(axes)
