"""Figures by name, from one group of results or from the records of one measurement."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from probes.boards.floors import with_floor
from probes.boards.shown_together import (
    Group,
    all_groups,
    corpus_groups,
    corpus_records_of,
    model_key,
    model_labels,
)
from probes.common.errors import UserError, listed
from probes.common.registry import did_you_mean
from probes.common.terminal import progress
from probes.frames.measurement_tables import findings_of
from probes.measurements.catalogue import registered_commands
from probes.measurements.measurement import (
    BY_FLAG,
    Measurement,
    corpus_measurements,
    probe_measurements,
)
from probes.measurements.plugin_keys import plugin_failure
from probes.records.record import Record, model_title
from probes.records.result import Result
from probes.statistics.metrics import label_of
from probes.tables.table import Table, TableRow

if TYPE_CHECKING:
    from probes.boards.score_charts import Plot
    from probes.frames.long_frame import RecordsByModel
    from probes.tables.charts import Chart, Style


FIGURES = {
    "heatmap": "score_heat_map",
    "expected-layers": "expected_layers",
    "curves": "curves_of_group",
    "steps": "steps",
    "kept-gain": "kept_gain",
}
"""Functions of `probes.boards.score_charts` by figure of all tasks, with their evidence."""


USE = "use"
"""Name of the figure of scores beside what the model uses, which may be of several corpora."""


def figure_names() -> list[str]:
    """The names of all figures."""
    definitions = (*corpus_measurements(), *probe_measurements())
    return [*FIGURES, USE, *dict.fromkeys(name for x in definitions for name in x.figure_names)]


def figures_table() -> Table:
    """All figures: what each shows, and the measurement that it needs."""
    from probes.boards import score_charts

    rows = [(USE, "Scores by layer, and what the model uses", "scores")]
    for name, of in FIGURES.items():
        rows.append((name, re.split(r"\.|;| \(", getattr(score_charts, of).__doc__)[0], "scores"))
    for definition in (*corpus_measurements(), *probe_measurements()):
        for view in definition.charts:
            title = getattr(view, "title", "") or label_of(getattr(view, "metric", view.name))
            rows.append((view.name, re.sub("[{}]", "", title), definition.name))
    for name, command in registered_commands("figures").items():
        rows.append((name, command.summary, command.measurement))
    heads = "figure", "what it shows", "measurement"
    return Table("figures", heads, tuple(TableRow.of(*row) for row in rows), left=3)


def figure(
    kind: str,
    records: Mapping[Path, Record],
    where: str,
    style: Style,
    probe: str = "linear",
    measurement: str = "",
    *,
    by_task: bool = False,
    depth: bool = False,
    among: Collection[Record] = (),
) -> Chart:
    """The figure called `kind`. Messages name the models that are left out.

    Args:
        records: results, and records of corpus measurements, by path.
        where: name of these in error messages.
        probe: probe family, for a figure of scores.
        measurement: measurement of the figure; may be empty if only one was made.
        by_task: whether the results are those of tasks that the user has named.
        depth: whether curves are by relative depth.
        among: records of all models, which have colours, and may be random twins, though they are
            not drawn.

    Raises:
        UserError: there is no such figure, nothing to draw, or more than fits in one figure.
    """
    if kind not in (kinds := figure_names()):
        hint = f"{did_you_mean(kind, kinds)} Figures of a plug-in need its file with --include."
        raise UserError(f"No figure is called {kind!r}. {hint}")
    definitions = (*corpus_measurements(), *probe_measurements())
    views = [view for x in definitions for view in x.charts if view.name == kind]
    if (
        depth
        and kind not in ("curves", USE)
        and "layer" not in (getattr(x, "x", "") for x in views)
    ):
        raise UserError(f"--x depth: {kind} has no curves by layer; omit it.")
    labels = model_labels(dict(enumerate(among or records.values())))
    n_layers = {
        name: x.model.n_layers
        for x in records.values()
        for name in (model_title(x), labels[model_key(x)])
    }
    style = replace(style, models=tuple(labels.values()), n_layers=n_layers if depth else {})
    results = {path: x for path, x in records.items() if isinstance(x, Result)}
    corpus_records = {path: x for path, x in records.items() if path not in results}
    # --model may have left out the random twins, which floors of the other models come from.
    if kind in (*FIGURES, USE) and len(among) > len(records):
        all_results = [x for x in among if isinstance(x, Result)]
        results = {path: with_floor(x, all_results) for path, x in results.items()}
    if kind in FIGURES:
        if measurement:
            raise UserError(f"--measurement: does not apply to {kind}; omit it.")
        from probes.boards import score_charts

        drawing = getattr(score_charts, FIGURES[kind])(_one_group(results, where, probe), style)
    elif kind == USE:
        from probes.boards.decodable_and_used import use_chart

        drawing = use_chart(results, corpus_records, probe, style)
    else:
        evidence = next((x for x in probe_measurements() if kind in x.figure_names), None)
        if evidence:
            by_model = _evidence_of_task(evidence, kind, results, where, probe)
        elif by_task:
            raise UserError(f"--task: does not apply to {kind}; omit it.")
        else:
            evidence, by_model = _of_corpus(results, corpus_records, where, kind, measurement)
        drawing = _chart_of_view(evidence, kind, by_model, style)
    if drawing.chart is None:
        notes = "; ".join(f"{model}: {reason}" for model, reason in drawing.missing.items())
        raise UserError(f"{where}: nothing to draw as {kind} ({notes or 'there are no numbers'}).")
    for model, reason in drawing.missing.items():
        progress.say(f"not drawn: {model} ({reason})")
    return drawing.chart


def _chart_of_view(
    definition: Measurement, name: str, by_model: RecordsByModel, style: Style
) -> Plot:
    """The chart of a view; errors of plug-ins become messages for the user."""
    from probes.boards.score_charts import view_plot

    view = next(x for x in definition.charts if x.name == name)
    try:
        return view_plot(view, by_model, style)
    except Exception as error:
        if reason := plugin_failure(error, definition.name, None, ""):
            raise UserError(f"{definition.name}: {reason}") from error
        raise


def _evidence_of_task(
    evidence: Measurement, name: str, results: Mapping[Path, Result], where: str, family: str
) -> RecordsByModel:
    """The evidence behind the scores of one task, on one corpus."""
    measured_results = {
        path: r
        for path, r in results.items()
        if r.probe.family == family and r.evidence_rows(evidence.name)
    }
    if not measured_results:
        flags = {name: f"--{flag}" for flag, name in BY_FLAG.items()}
        flag = flags.get(evidence.name, f"--evidence {evidence.name}")
        raise UserError(f"{where}: no {evidence.name} of these results; measure it with {flag}.")
    tasks = list(dict.fromkeys(r.task.name for r in measured_results.values()))
    if len(tasks) > 1:
        raise UserError(f"{name} shows one task: give --task {' or '.join(tasks)}.")
    _one_group(measured_results, where, family)  # refuse results that cannot be compared
    labels = model_labels(measured_results)
    return findings_of(evidence, {labels[model_key(r)]: r for r in measured_results.values()}, {})


def _of_corpus(
    results: Mapping[Path, Result],
    corpus_records: Mapping[Path, Record],
    where: str,
    name: str,
    measurement: str,
) -> tuple[Measurement, RecordsByModel]:
    """The measurement that has a figure, and its records of one corpus."""
    names = [x.name for x in corpus_measurements() if name in x.figure_names]
    if measurement and measurement not in names:
        raise UserError(
            f"--measurement {measurement}: the figure {name} is one of {listed(names)}."
        )
    names = [measurement] if measurement else names
    figure_records = {path: x for path, x in corpus_records.items() if x.measurement in names}
    measured = sorted({record.measurement for record in figure_records.values()}, key=names.index)
    if len(measured) > 1:
        raise UserError(
            f"{name} is a figure of {listed(measured, 'and')}: choose one, such as --measurement "
            f"{measured[0]}."
        )
    labels = model_labels({**results, **corpus_records})
    groups, left_out = corpus_groups(corpus_records_of(figure_records), labels)
    for omission in left_out:
        progress.say(f"left out {omission}")
    if not groups:
        raise UserError(
            f"{where}: no records of {listed(names)}; measure it with --measurements {names[0]}."
        )
    _refuse_several("records", where, [f"{x.measurement.name}: {x.title}" for x in groups])
    (group,) = groups
    return group.measurement, findings_of(group.measurement, group.records, group.paths)


def _one_group(results: Mapping[Path, Result], where: str, family: str) -> Group:
    groups, _ = all_groups({path: r for path, r in results.items() if r.probe.family == family})
    if not groups:
        raise UserError(f"{where}: no results of {family} probes; run them first.")
    _refuse_several("results", where, [x.title for x in groups])
    return groups[0]


def _refuse_several(noun: str, where: str, titles: Sequence[str]) -> None:
    if len(titles) > 1:
        raise UserError(
            f"{where}: these {noun} cannot be compared in one figure ({'; '.join(titles)}); name "
            "the folders of one corpus, such as results/*/ewt."
        )
