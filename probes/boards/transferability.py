"""Which layers serve many tasks, and which tasks agree about layers (after Liu et al. 2019).

A table has a row per layer and a column per task: headline test scores, higher is better.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from probes.common.arrays import Floats


class Agreement(NamedTuple):
    """How alike two tasks order the layers.

    Attributes:
        rho: Spearman's correlation of their scores; None if one has no two different scores.
        n: layers that both have.
    """

    task: str
    other: str
    rho: float | None
    n: int


def layer_ranks(scores: Floats) -> Floats:
    """Ranks over the last axis, 1 for the highest score; ties share their mean rank."""
    from scipy.stats import rankdata  # slow to import, and most runs rank nothing

    ranks: Floats = np.asarray(rankdata(-scores, axis=-1), dtype=np.float64)
    return ranks


def complete(table: pd.DataFrame) -> tuple[list[str], dict[str, str]]:
    """The tasks that have a score at every layer of the table, and why the others do not."""
    left_out = {}
    for task in table:
        missing = table.index[table[task].isna()]
        if len(missing):
            left_out[str(task)] = "no score at layer " + ", ".join(map(str, missing))
    return [str(task) for task in table if task not in left_out], left_out


def ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Ranks of layers within every complete task, and their mean in the column `mean rank`.

    No column at all if no task is complete.
    """
    tasks, _ = complete(table)
    if not tasks:
        return table[[]]
    found = table[tasks].rank(ascending=False)
    return found.assign(**{"mean rank": found.mean(axis=1)})


def agreements(table: pd.DataFrame) -> list[Agreement]:
    """Spearman's correlation of every two tasks' scores, over the layers that both have."""
    found = []
    for task, other in combinations(table.columns, 2):
        both = table[[task, other]].dropna()
        x, y = both.rank().to_numpy().T
        varied = len(both) > 1 and x.std() > 0 and y.std() > 0
        rho = float(np.corrcoef(x, y)[0, 1]) if varied else None
        found.append(Agreement(str(task), str(other), rho, len(both)))
    return found


def csv_table(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Ranks of all probe families side by side, as `transfer.csv` has them."""
    return pd.concat([ranks(t).add_suffix(f" ({family})") for family, t in tables.items()], axis=1)


def markdown(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """The section of `layers.md`, as lines: mean ranks and correlations by probe family."""
    lines = ["## Transferability", ""]
    for family, table in tables.items():
        tasks, left_out = complete(table)
        lines += [f"### {family} probe", ""]
        if tasks:
            mean = ranks(table)["mean rank"]
            lines += [
                f"Mean rank of each layer by test score over {len(tasks)} tasks "
                f"({', '.join(tasks)}), 1 being best:",
                "",
                "| layer | " + " | ".join(map(str, mean.index)) + " |",
                "| --- |" + " ---: |" * len(mean),
                "| mean rank | " + " | ".join(_bold_least(mean)) + " |",
                "",
            ]
        lines += [f"Left out: {task} ({why})." for task, why in left_out.items()]
        lines += [""] * bool(left_out)
        lines += _correlations(table)
    return [
        *lines,
        "Correlations are Spearman's over layers. Neighbouring layers are not independent samples: "
        "there is no p-value for them, and a few layers correlate easily.",
        "",
    ]


def _bold_least(mean: pd.Series[float]) -> list[str]:
    texts = [f"{value:.1f}" for value in mean]
    return [f"**{t}**" if v == mean.min() else t for t, v in zip(texts, mean, strict=True)]


def _correlations(table: pd.DataFrame) -> list[str]:
    """A task × task triangle of correlations; nothing for a single task."""
    names = [str(task) for task in table]
    heads = [name.replace("|", "\\|") for name in names]
    if len(names) < 2:
        return []
    found = {(a.task, a.other): a for a in agreements(table)}
    layers = sorted({a.n for a in found.values()})
    lines = [
        "| layer profiles (n = "
        + ", ".join(map(str, layers))
        + " layers) | "
        # The first task needs no row and the last no column.
        + " | ".join(heads[:-1])
        + " |",
        "| --- |" + " ---: |" * (len(names) - 1),
    ]
    for j, row in enumerate(names[1:], start=1):
        cells = [_rho(found[column, row], layers) for column in names[:j]]
        lines.append(f"| {heads[j]} | " + " | ".join([*cells, *[""] * (len(names) - 1 - j)]) + " |")
    return [*lines, ""]


def _rho(agreement: Agreement, layers: list[int]) -> str:
    text = "–" if agreement.rho is None else f"{agreement.rho:.2f}".replace("0.", ".", 1)
    return text if len(layers) == 1 else f"{text} (n = {agreement.n})"
