"""Trajectories: at which training step a score leaves its floor, and is half-way to its end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from probes.boards.comparable import SAME_CHART, SAME_CURVE
from probes.boards.floors import with_floor
from probes.boards.recipes import RecipeResult, recipe_and_seed
from probes.boards.score_charts import revision_of
from probes.common.arrays import Floats
from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.frames.header_columns import values
from probes.measurements.table_cells import counted_head, score_cell
from probes.records.record import corpus_title
from probes.records.result import Result
from probes.statistics.bootstrap import LEVEL
from probes.statistics.seeds import interval_over_seeds, mean_over_seeds
from probes.tables.table import NOTHING, Cell, Table, TableRow
from probes.tasks.builtin import table_order

_NOTE = (
    "Scores of the layer that is best on dev at the last step; means, if there are several seeds. "
    "Half-way: between the floor and the score of the last step, if that is above its floor. In "
    "brackets: where a 95 % band of all steps, over test data and seeds, first reaches the "
    "threshold, and where it first lies above it. Floors are plain numbers."
)


_Curve = tuple[str, tuple[Hashable, ...]]
"""A task, and what its results have to agree in."""


def step_tables(found: Mapping[Path, Result]) -> Iterator[Table]:
    """For each model or recipe with three steps or more, corpus and probe family: a row by task.

    Raises:
        UserError: two results are of the same seed and step.
    """
    groups: dict[tuple[Hashable, ...], dict[_Curve, dict[int, dict[str, Result]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(dict))
    )
    for result in found.values():
        at = None if result.model.random_seed is not None else revision_of(result.model.name)
        if at:
            recipe, seed = recipe_and_seed(at.model) or (at.model, "")
            about = recipe, corpus_title(result), result.probe.family
            curve = result.task.name, values(result, SAME_CURVE)
            own = groups[*about, values(result, SAME_CHART)][curve][at.step]
            other = own.setdefault(seed, with_floor(result, found.values()))
            if other.key != result.key:
                raise UserError(
                    f"{other.path} and {result.path} are of one step; name one of them."
                )
    for (model, corpus, family, _), tasks in groups.items():
        name, order = str(model or "checkpoints"), sorted(tasks, key=lambda x: table_order(x[0]))
        rows = [row for curve in order for row in _trajectory_row(name, tasks[curve])]
        if rows:
            yield Table(
                f"{name} · {corpus} · {family} probe · training steps",
                ("task", "seeds", "layer", "first above the floor", "half-way", "last", "score"),
                tuple(rows),
                notes=(_NOTE,),
            )


def _trajectory_row(recipe: str, by_step: Mapping[int, Mapping[str, Result]]) -> Iterator[TableRow]:
    steps = sorted(by_step)
    results = [RecipeResult(recipe, by_step[step]) for step in steps]
    last = results[-1]
    ragged = any(len({x.layers for x in each.seeds.values()}) > 1 for each in results)
    complete = len(steps) >= 3 and all({*x.seeds} == {*last.seeds} for x in results)
    if ragged or not complete or any(last.best_layer not in x.replicates for x in results):
        progress.say(
            f"left out {last.first.task.name} of {recipe}: fewer than three steps, or a seed, the "
            "layer or its predictions are missing at a step"
        )
        return
    layer = last.best_layer
    found = [(x.replicates[layer], x.key) for x in results]
    means = [mean_over_seeds(own, key) if len(own) > 1 else own[0] for own, key in found]
    scores = np.array([x.scores[0] for x in means])
    drawn = np.array([x.resampled[0] for x in means])
    floors = np.array([np.mean([x.floor[1] for x in r.seeds.values() if x.floor]) for r in results])
    half = (floors[-1] + scores[-1]) / 2, (floors[-1] + drawn[-1]) / 2
    learned = scores[-1] > floors[-1]
    yield TableRow.of(
        counted_head(last.first),
        str(len(last.seeds)),
        str(layer),
        _first_above(steps, scores - floors, drawn - floors[:, None]),
        _first_above(steps, scores - half[0], drawn - half[1]) if learned else NOTHING,
        str(steps[-1]),
        score_cell(float(scores[-1]), interval_over_seeds(means[-1]), last.first.task.metric),
    )


def _first_above(steps: Sequence[int], distances: Floats, drawn: Floats) -> Cell:
    """The first step at which a distance is above 0, with an interval from a band over all steps.

    Args:
        distances: shape (steps,).
        drawn: in each resample. Those in which a score is undefined are ignored. Shape (steps, n).
    """
    drawn = drawn[:, ~np.isnan(drawn).any(0)]
    if not drawn.size:
        return Cell(NOTHING)
    deviations = drawn.std(1)
    moved = np.abs(drawn - distances[:, None])[deviations > 0] / deviations[deviations > 0, None]
    width = np.quantile(moved.max(0, initial=0), LEVEL) * deviations
    ends = [np.flatnonzero(x > 0) for x in (distances + width, distances, distances - width)]
    early, first, late = (steps[x[0]] if len(x) else None for x in ends)
    if first is None:
        return Cell(NOTHING)
    text = f"{first:,} [{early:,}, {f'{late:,}' if late is not None else f'after {steps[-1]:,}'}]"
    return Cell(text, value=first)
