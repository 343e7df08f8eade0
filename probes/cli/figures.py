"""What a figure shows: the one group of results, or the one chart of records, of that name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from probes.boards.groups import (
    CorpusGroup,
    Group,
    corpus_groups,
    group,
    model_key,
    model_labels,
    of_corpora,
    steps,
)
from probes.boards.retention import pareto
from probes.boards.separability import separability
from probes.common.errors import UserError
from probes.common.registry import did_you_mean
from probes.common.terminal import progress
from probes.common.wording import listed
from probes.measurements.measurement import Measurement, corpus_measurements, probe_measurements
from probes.measurements.plugin_keys import plugin_failure
from probes.records.charts import Chart, models_of
from probes.records.record import Record
from probes.records.result import Result

KINDS = ("heatmap", "expected-layers", "curves")
"""Figures of scores."""

CHARTS: dict[str, Callable[[Group], Chart]] = {
    "separability": lambda group: separability(group.paths),
    "steps": steps,
    "pareto": pareto,
}
"""Charts of scores: in how many tasks layers differ, training, and scores by size."""


def figure_names() -> list[str]:
    """The names of all figures of results and records."""
    every = (*corpus_measurements(), *probe_measurements())
    charts = dict.fromkeys(name for each in every for name in each.figure_names)
    return [*KINDS, *CHARTS, *charts]


def chosen_figure(
    kind: str,
    results: Mapping[Path, Result],
    others: Mapping[Path, Record],
    where: str,
    probe: str = "linear",
    measurement: str = "",
    task: str = "",
) -> Group | Chart:
    """What the figure of a name shows.

    Args:
        results, others: results, and records of measurements of a corpus, by their paths.
        where: what error messages call these.
        probe: the family of a figure of scores.
        measurement: whose figure it is; may be empty if only one of those that have it was made.
        task: of evidence, whose; may be empty if there is one.

    Raises:
        UserError: there is no such figure, nothing to draw, or more than fits in one figure.
    """
    if kind not in (known := figure_names()):
        raise UserError(f"No figure is called {kind!r}. {did_you_mean(kind, known)}")
    if measurement and kind in (*KINDS, *CHARTS):
        raise UserError(f"--measurement: does not apply to {kind}; omit it.")
    if kind in KINDS:
        return _one_group(results, where, probe)
    if kind in CHARTS:
        return _drawable(CHARTS[kind](_one_group(results, where, probe)), kind, where)
    for evidence in probe_measurements():
        if kind in evidence.figure_names:
            return _of_task(evidence, kind, results, where, probe, task)
    return _one_chart(results, others, where, kind, measurement)


def _of_task(
    evidence: Measurement,
    name: str,
    results: Mapping[Path, Result],
    where: str,
    family: str,
    task: str,
) -> Chart:
    """A chart of the evidence behind the scores of one task, on one corpus."""
    having = {
        path: r
        for path, r in results.items()
        if r.probe.family == family and r.found(evidence.name) and task in ("", r.task.name)
    }
    if not having:
        raise UserError(
            f"{where}: no {evidence.name} of {task or 'any task'}; measure it with --evidence "
            f"{evidence.name}."
        )
    tasks = list(dict.fromkeys(r.task.name for r in having.values()))
    if len(tasks) > 1:
        raise UserError(f"{name} is of one task: give --task {' or '.join(tasks)}.")
    _one_group(having, where, family)  # what cannot stand together is refused
    labels = model_labels(having)
    charts = evidence.charts({labels[model_key(r)]: r for r in having.values()})
    return _drawable({chart.name: chart for chart in charts}.get(name), name, where)


def _one_chart(
    results: Mapping[Path, Result],
    others: Mapping[Path, Record],
    where: str,
    name: str,
    measurement: str,
) -> Chart:
    having = [each.name for each in corpus_measurements() if name in each.figure_names]
    if measurement and measurement not in having:
        raise UserError(
            f"--measurement {measurement}: the figure {name} is one of {listed(having)}."
        )
    having = [measurement] if measurement else having
    of_these = {path: record for path, record in others.items() if record.measurement in having}
    measured = sorted({record.measurement for record in of_these.values()}, key=having.index)
    if len(measured) > 1:
        raise UserError(
            f"{name} is a figure of {listed(measured, 'and')}: say whose with --measurement, such "
            f"as --measurement {measured[0]}."
        )
    labels = model_labels({**results, **others})
    groups, left_out = corpus_groups(of_corpora(of_these), labels)
    for each in left_out:
        progress.say(f"left out {each}")
    if not groups:
        raise UserError(
            f"{where}: no records of {listed(having)}; measure it with --measurements {having[0]}."
        )
    if len(groups) > 1:
        titles = "; ".join(f"{each.measurement.name}: {each.title}" for each in groups)
        raise UserError(
            f"{where}: these records cannot stand in one figure ({titles}); name the folders of "
            "one corpus, such as results/*/ewt."
        )
    return _drawable(_charts(groups[0]).get(name), name, where)


def _charts(group: CorpusGroup) -> dict[str, Chart]:
    """The charts of a measurement by name; what a plug-in raises is an error for the user."""
    try:
        return {chart.name: chart for chart in group.charts()}
    except Exception as error:
        if why := plugin_failure(error, group.measurement.name, None, ""):
            raise UserError(f"{group.measurement.name}: {why}") from error
        raise


def _drawable(chart: Chart | None, name: str, where: str) -> Chart:
    """The chart, if there is something in it; the models that it lacks are named in messages."""
    missing = chart.missing.items() if chart else ()
    if chart is None or not models_of(chart):
        why = "; ".join(f"{model}: {reason}" for model, reason in missing) or "there are no numbers"
        raise UserError(f"{where}: nothing to draw as {name} ({why}).")
    for model, reason in missing:
        progress.say(f"not drawn: {model} ({reason})")
    return chart


def _one_group(results: Mapping[Path, Result], where: str, family: str) -> Group:
    groups, _ = group({path: r for path, r in results.items() if r.probe.family == family})
    if not groups:
        raise UserError(f"{where}: no results of {family} probes; run them first.")
    if len(groups) > 1:
        titles = "; ".join(each.title for each in groups)
        raise UserError(
            f"{where}: these results cannot be compared in one figure ({titles}); "
            "name the folders of one corpus, such as results/*/ewt."
        )
    return groups[0]
