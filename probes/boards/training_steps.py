"""Scores by layer and training step: revisions of one model, such as M@step1000."""

from __future__ import annotations

import re
from typing import NamedTuple

from probes.boards.groups import Group
from probes.common.errors import UserError
from probes.records.charts import Grid, Panel
from probes.records.result import Result

_STEP = re.compile(r"step[-_]?(\d+)", re.IGNORECASE)

_FOLDER = re.compile(r"(.*?)[-_]?(?:checkpoint|step)[-_]?(\d+)", re.IGNORECASE)


class Revision(NamedTuple):
    """A state of a model in training; the name of what is in folders may be empty."""

    model: str
    step: int


def revision_of(name: str) -> Revision | None:
    """What a model's name says of training; None if it names no step.

    The step is the number after "step" in a revision (``M@stage1-step150-tokens1B``: 150), else its
    only number (``M@1000``); of a local folder the number after checkpoint or step
    (``checkpoint-500``).
    """
    model, mark, revision = name.rpartition("@")
    if not mark:
        folder = _FOLDER.fullmatch(name)
        return Revision(folder[1], int(folder[2])) if folder else None
    numbers = _STEP.findall(revision) or re.findall(r"\d+", revision)
    return Revision(model, int(numbers[0])) if len(numbers) == 1 else None


def steps(group: Group) -> Grid:
    """Headline test scores by layer and step, with a panel for each task.

    Raises:
        UserError: the revisions are of several models, or two of one step.
    """
    columns: dict[int, str] = {}
    missing: dict[str, str] = {}
    models = set()
    for label, results in group.paths.items():
        first = next(iter(results.values())).model
        found = None if first.random_seed is not None else revision_of(first.name)
        if found is None:
            missing[label] = "its name has no training step"
            continue
        models.add(found.model)
        if (other := columns.setdefault(found.step, label)) != label:
            raise UserError(f"{other} and {label} are both of step {found.step}; name one of them.")
    if len(models) > 1:
        names = ", ".join(sorted(models))
        raise UserError(f"These are steps of several models ({names}); name the folders of one.")
    ordered = sorted(columns)
    panels = {}
    for unit in group.units:
        by_step = [unit.results.get(columns[step]) for step in ordered]
        if any(by_step):
            panels[group.short_title(unit)] = _panel(by_step, tuple(map(str, ordered)))
    return Grid(
        "steps",
        " · ".join(filter(None, (*models, group.corpus, f"{group.probe} probe"))),
        "Headline scores on test.",
        "layer",
        "training step",
        panels,
        missing=missing,
    )


def _panel(by_step: list[Result | None], columns: tuple[str, ...]) -> Panel:
    """One task; a step without a result has an empty column."""
    scores = [result.headline if result else {} for result in by_step]
    layers = sorted({layer for each in scores for layer in each})
    values = tuple(tuple(each.get(layer) for each in scores) for layer in layers)
    return Panel(tuple(map(str, layers)), columns, values)
