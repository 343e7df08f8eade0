"""Compression: what smaller models retain of another one's scores, which is called the base.

As in DistilBERT's table (Sanh et al. 2019; A Primer in BERTology, section 6): scores at the best
layer on dev as shares of the base's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from probes.boards.board import Board, Candidate, make_boards, named
from probes.boards.groups import Group
from probes.boards.paired import readable_layer_scores
from probes.boards.ranking_tables import size
from probes.common.arrays import Floats
from probes.measurements.cells import score_cell
from probes.records.result import Result
from probes.records.values import Interval
from probes.statistics.bootstrap import bounds, informative, interval
from probes.tables.table import NOTHING, Cell, Table, TableRow

MEAN, FRONT = "mean", "Pareto front"

NOTE = (
    "Scores at the best layer on dev as shares of the base's. Intervals resample test text for "
    "both together, with the variance of training where it was measured. Words per second are of "
    "the forward pass on the machine that made the records; parameters and weights on disk are "
    "those of the encoder and of its files."
)


@dataclass(frozen=True)
class Share:
    """A model's score as a share of the base's.

    Attributes:
        resampled: the same in every resample, NaN where there are none. Shape (resamples,).
    """

    value: float
    resampled: Floats

    @property
    def interval(self) -> Interval:
        """95 % interval; None if the two cannot be resampled together."""
        return informative(bounds(interval(self.resampled)))


def shares(board: Board, base: str) -> dict[str, dict[str, Share]]:
    """By model, from large to small, and task; with the mean, for a model that has all tasks.

    Without random twins, and tasks on which the base scores nothing.
    """
    every = [c for of_task in board.tasks.values() for c in of_task if not c.random and c.score]
    every.sort(key=lambda c: (-c.result.model.parameters, c.name))
    bases = {c.result.task.name: c for c in every if c.name == base and (c.score or 0) > 0}
    found: dict[str, dict[str, Share]] = {}
    for candidate in every:
        task = candidate.result.task.name
        if task in bases:
            found.setdefault(candidate.name, {})[task] = _share(candidate, bases[task])
    for of_tasks in found.values():
        if len(of_tasks) == len(bases) > 1:
            values, resampled = zip(
                *((x.value, x.resampled) for x in of_tasks.values()), strict=True
            )
            of_tasks[MEAN] = Share(float(np.mean(values)), np.mean(resampled, axis=0))
    return found


def _share(one: Candidate, base: Candidate) -> Share:
    scores, of_base = (
        readable_layer_scores(c.result, c.path, [c.result.best_layer])[0] for c in (one, base)
    )
    paired = 1.0 if scores.paired_with(of_base) else np.nan
    value = (one.score or 0.0) / (base.score or np.nan)
    return Share(value, paired * scores.resampled / of_base.resampled)


def retention_table(board: Board, base: str) -> Table | None:
    """The models of a board, with what they cost; None if the base is not among them."""
    found, of_model = shares(board, base), _results(board)
    tasks = [x for x in (*board.tasks, MEAN) if any(x in of_tasks for of_tasks in found.values())]

    def cell(share: Share | None) -> Cell:
        return score_cell(share.value, share.interval, "retention") if share else Cell(NOTHING)

    def known(name: str, what: str, unit: float) -> str:
        said = [r.provenance[what] for r in of_model[name] if what in r.provenance]
        return f"{float(said[-1]) / unit:,.0f}" if said else NOTHING

    rows = (
        TableRow.of(
            name,
            size(of_model[name][0].model.parameters),
            known(name, "bytes_on_disk", 1e6),
            known(name, "words_per_second", 1),
            *(cell(of_tasks.get(task)) for task in tasks),
        )
        for name, of_tasks in found.items()
    )
    title = f"{board.setting} · share of {base}'s score, %"
    heads = ("model", "size", "MB on disk", "words/s", *tasks)
    return Table(title, heads, tuple(rows), notes=(NOTE,)) if found else None


def sizes_and_shares(group: Group) -> tuple[str, list[tuple[str, str, int, Share]]]:
    """The largest model, and of each task and model the number of parameters and the share."""
    results = {path: r for of_model in group.paths.values() for path, r in of_model.items()}
    board = make_boards(named(results), together=True)[0]
    sizes = {name: of[0].model.parameters for name, of in _results(board).items()}
    base = max(sizes, key=lambda name: (sizes[name], name), default="")
    return base, [
        (task, name, sizes[name], share)
        for name, of_tasks in reversed(shares(board, base).items())
        for task, share in of_tasks.items()
    ]


def front(shown: pd.DataFrame) -> pd.DataFrame:
    """The models that score above all smaller ones of their panel, as one that is called `FRONT`.

    Args:
        shown: with the columns panel, x and value.
    """
    best = shown.loc[shown.groupby(["panel", "x"])["value"].idxmax()].sort_values("x")
    smaller = best.groupby("panel")["value"].transform(lambda x: x.cummax().shift())
    kept = best[smaller.isna() | (best["value"] > smaller)]
    return kept.assign(model=FRONT, low=None, high=None)


def _results(board: Board) -> dict[str, list[Result]]:
    """By model, without random twins."""
    found: dict[str, list[Result]] = {}
    for candidate in (c for of_task in board.tasks.values() for c in of_task if not c.random):
        found.setdefault(candidate.name, []).append(candidate.result)
    return found
