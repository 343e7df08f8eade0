"""Charts of scores by layer, from one frame: heat maps (Liu et al. 2019a), curves, expected layers
(Tenney et al. 2019a), steps of training, compression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from probes.boards.compression import KEPT, kept_gains
from probes.boards.overview import layer_lines
from probes.boards.recipes import recipe_and_seed
from probes.boards.shown_together import Group
from probes.common.errors import UserError
from probes.frames.long_frame import RecordsByModel
from probes.measurements.measurement import LOCALISATION, get_measurement
from probes.measurements.pivots import ChartView
from probes.measurements.table_cells import metric_name
from probes.records.record import corpus_name, model_title
from probes.records.result import Result
from probes.records.values import ends
from probes.statistics.metrics import POINTS, axis_of, heading_with_unit, printed_score, scale_of
from probes.tables import charts
from probes.tables.charts import Chart, Style


class Plot(NamedTuple):
    """A chart, None if there is nothing to draw, and why models are not in it."""

    chart: Chart | None
    missing: Mapping[str, str] = MappingProxyType({})


def view_plot(view: ChartView, records: RecordsByModel, style: Style) -> Plot:
    """The chart of a view of the models that have a part in it."""
    missing = view.missing(records)
    is_empty = records.records.keys() <= missing.keys()
    return Plot(None if is_empty else view.chart(records, style), missing)


LabelledResult = tuple[str, str, Result]
"""A model's label, what the task is called, and a result that was compared with its floor."""


def results_of_group(group: Group) -> list[LabelledResult]:
    """The results of a group beside their random twins, task by task."""
    return [
        (model, _in_two_lines(unit.first, unit.about), unit.floored[model])
        for unit in group.units
        for model in unit.results
    ]


def _in_two_lines(result: Result, about: str) -> str:
    """The task and, below it, what is said about it, and the unit."""
    return heading_with_unit(f"{result.task.name}\n{about}", result.task.metric)


def scores_frame(results: Iterable[LabelledResult]) -> pd.DataFrame:
    """Headline test scores: a row for each model, task, probe family and layer.

    Columns: model, name, random, task, metric, layer, value, low, high, floor, whether the layer is
    `best` on dev, whether the score is `floored` (not above the floor), and `tied`, `beaten` and
    `borderline`, as the tests of layers say. Numbers are as in records.
    """
    return pd.DataFrame(
        [row for model, task, result in results for row in _score_rows(model, task, result)],
        columns=[*_COLUMNS, "best", "tied", "beaten", "floored", "borderline"],
    )


_COLUMNS = (
    *("model", "name", "random", "task", "metric", "layer", "value", "low", "high", "floor"),
)


def _score_rows(model: str, task: str, result: Result) -> Iterable[dict[str, Any]]:
    _, floor = result.floor or ("", np.nan)
    about = (model, result.model.name, result.model.random_seed is not None, task)
    for x in layer_lines(result):
        values = (*about, result.task.metric, x.layer, x.value, *ends(x.interval), floor)
        yield {**dict(zip(_COLUMNS, values, strict=True)), **x.marks}


def _chart_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Scores as charts show them: shares in percent, and the mark in words."""
    scale = scores["metric"].map(scale_of)
    columns = ["value", "low", "high", "floor"]
    frame = scores.assign(**{x: (scores[x].astype(float) * scale).round(4) for x in columns})
    frame["mark"] = "none"
    # The last mark replaces the others: a layer that is best may be tied as well.
    for column, mark in _MARKS.items():
        frame.loc[frame[column].astype(bool), "mark"] = mark
    return frame


_MARKS = {
    "tied": "not significantly worse",
    "best": "best on dev",
    "beaten": "worse than another",
    "floored": "not significantly above the floor",
}


# Figures.


def score_matrix(scores: pd.DataFrame, style: Style, title: str = "") -> Chart:
    """Scores of layers and tasks, coloured by points above the floor, which is the lowest row."""
    cells = _chart_scores(scores).assign(
        panel=scores["model"],
        row=scores["layer"],
        column=scores["task"],
        value=POINTS * (scores["value"].astype(float) - scores["floor"].astype(float)).round(5),
        text=[*map(printed_score, scores["value"], scores["metric"])],
    )
    floors = scores.drop_duplicates(["model", "task"])
    lowest = pd.DataFrame(
        {
            "panel": floors["model"],
            "model": floors["model"],
            "row": "floor",
            "column": floors["task"],
            "text": [*map(printed_score, floors["floor"].replace(np.nan, None), floors["metric"])],
            "mark": "none",
        }
    )
    columns = ["panel", "model", "row", "column", "value", "text", "mark"]
    return charts.heat_map(
        pd.concat([lowest, cells[columns]]),
        style,
        down="layer",
        across="",
        legend_title="points above the floor",
        title=title,
        diverging=True,
    )


def score_heat_map(group: Group, style: Style) -> Plot:
    """Scores by layer and task, a panel for each model."""
    return Plot(score_matrix(scores_frame(results_of_group(group)), style))


def chart_of_results(results: Sequence[Result], style: Style) -> Chart:
    """One model's heat maps, one for each probe family: the picture in a run's folder."""
    first = results[0]
    triples = ((f"{x.probe.family} probe", _in_two_lines(x, metric_name(x)), x) for x in results)
    scores = scores_frame(triples)
    title = f"{model_title(first)} on {corpus_name(first)}: test scores by layer"
    return score_matrix(scores, style, title=title)


def curves_of_group(group: Group, style: Style) -> Plot:
    """Scores by layer: a panel for each task; dashed lines are floors of trained models."""
    scores = _chart_scores(scores_frame(results_of_group(group)))
    # A page says the task above the chart.
    alone = len(group.units) == 1 and not style.titled
    axis = axis_of(group.units[0].first.task.metric) if alone else ""
    scores = scores.assign(panel="" if alone else scores["task"], line="", x=scores["layer"])
    scores.loc[scores["random"], "mark"] = "none"  # a floor of others
    floors = scores[~scores["random"]].drop_duplicates(["panel", "model"])
    dashed = floors[["panel", "model", "line", "floor"]].rename(columns={"floor": "level"})
    columns = ["panel", "model", "line", "x", "value", "low", "high", "mark"]
    rows = pd.concat([scores[columns], dashed.assign(mark="none")])
    return Plot(charts.lines(rows, style, y=axis, fit_trained=True))


def expected_layers(group: Group, style: Style) -> Plot:
    """Expected layers with their intervals, and centres of gravity."""
    rows = []
    missing = {}
    for unit in group.units:
        for model, result in unit.results.items():
            for kind, metric in _KINDS.items():
                row = result.row(LOCALISATION, metric)
                if row is None:
                    missing[model] = get_measurement(LOCALISATION).reason_missing(result)
                    continue
                low, high = row.interval or (None, None)
                text = "undefined" if kind == EXPECTED and row.value is None else ""
                name = group.short_title(unit)
                rows.append((name, model, kind, row.value, low, high, text))
    frame = pd.DataFrame(rows, columns=["name", "model", "kind", "value", "low", "high", "text"])
    missing = {model: note for model, note in missing.items() if model not in set(frame["model"])}
    if frame.empty:
        return Plot(None, missing)
    models = {*frame["model"]}
    deepest = max(
        x.model.n_layers for unit in group.units for m, x in unit.results.items() if m in models
    )
    title = "Expected layers with 95 % intervals, and centres of gravity"
    return Plot(charts.points(frame, style, across="layer", title=title, longest=deepest), missing)


def kept_gain(group: Group, style: Style) -> Plot:
    """Shares of the largest model's gains that other models keep, by size (see `kept_gains`)."""
    sizes = {
        model: max(x.model.parameters for x in results.values())
        for model, results in group.paths.items()
        if not any(x.model.random_seed is not None for x in results.values())
    }
    teacher, rows = max(sizes, key=sizes.__getitem__, default=""), []
    missing = {} if len(sizes) > 1 else dict.fromkeys(sizes, "there is no other model")
    for unit in group.units if len(sizes) > 1 else ():
        name, results = group.short_title(unit), unit.results.values()
        students = {x: result for x, result in unit.results.items() if x in sizes and x != teacher}
        if teacher not in unit.results or not students:
            missing[unit.title] = f"no results of {teacher} and another model"
            continue
        shares = kept_gains(unit.results[teacher], students, results)
        for model, share in shares.items():
            if share.value is None:
                missing[f"{model} on {name}"] = str(share.missing)
                continue
            numbers = (scale_of(KEPT) * x for x in (share.value, *(share.interval or ())))
            rows.append((name, model, "", sizes[model], *numbers))
    if not rows:
        return Plot(None, missing)
    frame = pd.DataFrame(rows, columns=["panel", "model", "line", "x", "value", "low", "high"])
    # A dashed line at the whole gain; it has no name, since the title says whose it is.
    teachers = frame[["panel"]].drop_duplicates().assign(name="", level=scale_of(KEPT))
    frame = pd.concat([frame, teachers])
    title = f"Share of {teacher}'s gain over its floor"
    return Plot(
        charts.lines(frame, style, x="parameters", y="kept, %", title=title, log=True), missing
    )


EXPECTED = "expected layer"
_KINDS = {EXPECTED: "expected_layer", "centre of gravity": "centre_of_gravity"}


_STEP = re.compile(r"step[-_]?(\d+)", re.IGNORECASE)

_FOLDER = re.compile(r"(.*?)[-_]?(?:checkpoint|step)[-_]?(\d+)", re.IGNORECASE)


class Revision(NamedTuple):
    """A state of a model in training; the name of what is in folders may be empty."""

    model: str
    step: int


def revision_of(name: str) -> Revision | None:
    """The training step in a model's name; None if it names no step.

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


def steps(group: Group, style: Style) -> Plot:
    """Scores by layer and training step, a panel for each task; of a recipe, means over seeds.

    Raises:
        UserError: the revisions are of several recipes, or two of one model and step.
    """
    scores = scores_frame(results_of_group(group))
    revision_by_label = {
        label: None if random else revision_of(name)
        for label, name, random in zip(
            scores["model"], scores["name"], scores["random"], strict=True
        )
    }
    revisions = {label: revision for label, revision in revision_by_label.items() if revision}
    missing = {x: "its name has no training step" for x in group.models if x not in revisions}
    first: dict[Revision, str] = {}
    for label, revision in revisions.items():
        if (other := first.setdefault(revision, label)) != label:
            raise UserError(
                f"{other} and {label} are both of step {revision.step}; name one of them."
            )
    models = sorted({revision.model for revision in revisions.values()})
    recipes = {(recipe_and_seed(model) or (model, ""))[0] for model in models}
    if len(recipes) > 1:
        raise UserError(
            f"These are steps of several models ({', '.join(models)}); name the folders of one."
        )
    if not revisions:
        return Plot(None, missing)
    step_scores = scores[scores["model"].isin(revisions)].astype({"value": float})
    step_scores = step_scores.assign(step=[revisions[label].step for label in step_scores["model"]])
    # Seeds are other models of one recipe, so that equal steps are averaged.
    cells = ["task", "metric", "layer", "step"]
    means = step_scores.groupby(cells, sort=False)["value"].mean().reset_index()
    frame = pd.DataFrame(
        {
            "panel": means["task"],
            "model": ", ".join(recipes),
            "row": means["layer"],
            "column": means["step"],
            "value": POINTS * means["value"],
            "text": [*map(printed_score, means["value"], means["metric"])],
        }
    )
    seeds = f"mean of {len(models)} seeds" if len(models) > 1 else ""
    title = " · ".join(filter(None, (*recipes, seeds, group.corpus, f"{group.probe} probe")))
    return Plot(
        charts.heat_map(
            frame,
            style,
            down="layer",
            across="training step",
            legend_title=f"score on test, times {POINTS}",
            title=title,
        ),
        missing,
    )
