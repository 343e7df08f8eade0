"""Layers that serve many tasks, and tasks that agree about layers (after Liu et al. 2019).

A frame has a row per layer and a column per task: headline test scores, higher is better.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from probes.common.errors import counted
from probes.common.grouping import grouped
from probes.statistics.metrics import decimals
from probes.tables.table import NOTHING, Cell, Table, TableRow
from probes.tasks.builtin import group_of_task
from probes.tasks.task import plain_name


def complete_tasks(scores: pd.DataFrame) -> tuple[list[str], dict[str, str]]:
    """The tasks of one site with a score at every layer of the frame, and why others are not."""
    left_out = {}
    sites = [str(task).removeprefix(plain_name(str(task))) for task in scores]
    for task, site in zip(scores, sites, strict=True):
        missing = scores.index[scores[task].isna()]
        if site != sites[0]:
            left_out[str(task)] = "it is read at another site"
        elif len(missing):
            left_out[str(task)] = "no score at layer " + ", ".join(map(str, missing))
    return [str(task) for task in scores if task not in left_out], left_out


def ranks(scores: pd.DataFrame) -> pd.DataFrame:
    """Ranks of layers within every complete task, and their mean in the column `mean rank`.

    No column at all if no task is complete.
    """
    tasks, _ = complete_tasks(scores)
    if not tasks:
        return scores[[]]
    task_ranks = scores[tasks].rank(ascending=False)
    return task_ranks.assign(**{"mean rank": task_ranks.mean(axis=1)})


def all_ranks(scores: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Ranks of all probe families side by side, as `transfer.csv` has them."""
    return pd.concat([ranks(t).add_suffix(f" ({family})") for family, t in scores.items()], axis=1)


def mean_rank_table(scores: pd.DataFrame) -> Table:
    """The mean rank of every layer, also within each group of tasks; without rows if no task is
    complete.

    A group has a row if it has several of the tasks but not all.
    """
    tasks, left_out = complete_tasks(scores)
    layer_ranks = ranks(scores)
    lines = {"mean rank": tasks} if tasks else {}
    lines |= {
        f"{x} ({len(y)})": y
        for x, y in grouped(tasks, group_of_task).items()
        if 1 < len(y) < len(tasks)
    }
    rows = []
    for label, group_tasks in lines.items():
        mean = layer_ranks[group_tasks].mean(axis=1)
        cells = (Cell(f"{value:.1f}", value=value, best=value == mean.min()) for value in mean)
        rows.append(TableRow.of(label, *cells))
    return Table(
        f"Mean rank of each layer by test score over {counted(len(tasks), 'task')} "
        f"({', '.join(tasks)}), 1 being best",
        ("layer", *map(str, scores.index)),
        tuple(rows),
        notes=tuple(f"Left out: {task} ({reason})." for task, reason in left_out.items()),
    )


def correlation_table(scores: pd.DataFrame) -> Table:
    """A task × task triangle of correlations over the layers that both tasks have; without rows
    for a single task.
    """
    names = [str(task) for task in scores]
    rho = scores.corr("spearman", min_periods=2).to_numpy()
    has_score = scores.notna().to_numpy().astype(int)
    counts = has_score.T @ has_score
    layers = sorted({*map(int, counts[np.tril_indices(len(names), -1)])})
    rows = []
    # The first task needs no row and the last one no column.
    for j, row in enumerate(names[1:], start=1):
        texts = [_rho(rho[j, i], int(counts[j, i]), layers) for i in range(j)]
        rows.append(TableRow.of(row, *texts, *[""] * (len(names) - 1 - j)))
    n = ", ".join(map(str, layers))
    return Table(
        "Correlations of layer profiles",
        (f"layer profiles (n = {n} layers)", *names[:-1]),
        tuple(rows),
        notes=(
            "Correlations are Spearman's over layers. Neighbouring layers are not independent "
            "samples: there is no p-value for them, and a few layers correlate easily.",
        ),
    )


def _rho(value: float, n: int, layers: list[int]) -> str:
    text = NOTHING if np.isnan(value) else decimals(value, 2)
    return text if len(layers) == 1 else f"{text} (n = {n})"
