"""Figures by name, from one group of results or from the records of one measurement."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from probes.boards.floors import with_floor
from probes.boards.shown_together import (
    Group,
    corpus_groups,
    group,
    model_key,
    model_labels,
    of_corpora,
)
from probes.common.errors import UserError, listed
from probes.common.registry import did_you_mean
from probes.common.terminal import progress
from probes.frames.measurement_tables import findings_of
from probes.measurements.measurement import Measurement, corpus_measurements, probe_measurements
from probes.measurements.pivots import Pivot
from probes.measurements.plugin_keys import plugin_failure
from probes.records.record import Record
from probes.records.result import Result

if TYPE_CHECKING:
    from probes.boards.score_charts import Drawn
    from probes.frames.long_frame import RecordsByModel
    from probes.tables.charts import Chart, Style


FIGURES = {
    "heatmap": "score_heat_map",
    "expected-layers": "expected_layers",
    "curves": "curves_of_group",
    "steps": "steps",
    "compression": "compression",
}
"""Functions of `probes.boards.score_charts` by figure. They see all tasks and their evidence."""


USE = "use"
"""The figure of scores beside what the model uses, which may be of several corpora."""


def figure_names() -> list[str]:
    """The names of all figures."""
    every = (*corpus_measurements(), *probe_measurements())
    return [*FIGURES, USE, *dict.fromkeys(name for each in every for name in each.figure_names)]


def figure(
    kind: str,
    found: Mapping[Path, Record],
    where: str,
    style: Style,
    probe: str = "linear",
    measurement: str = "",
    *,
    by_task: bool = False,
    among: Collection[Record] = (),
) -> Chart:
    """The figure called `kind`. Messages name the models that are left out.

    Args:
        found: results, and records of corpus measurements, by path.
        where: name of these in error messages.
        probe: probe family, for a figure of scores.
        measurement: measurement of the figure; may be empty if only one was made.
        by_task: whether the results are those of tasks that the user has named.
        among: records that may be of random twins, though they are not drawn.

    Raises:
        UserError: there is no such figure, nothing to draw, or more than fits in one figure.
    """
    if kind not in (known := figure_names()):
        raise UserError(f"No figure is called {kind!r}. {did_you_mean(kind, known)}")
    results = {path: x for path, x in found.items() if isinstance(x, Result)}
    others = {path: x for path, x in found.items() if path not in results}
    if kind in (*FIGURES, USE) and len(among) > len(found):
        every = [x for x in among if isinstance(x, Result)]
        results = {path: with_floor(x, every) for path, x in results.items()}
    if kind in FIGURES:
        if measurement:
            raise UserError(f"--measurement: does not apply to {kind}; omit it.")
        from probes.boards import score_charts

        drawn = getattr(score_charts, FIGURES[kind])(_one_group(results, where, probe), style)
    elif kind == USE:
        from probes.boards.decodable_and_used import use_chart

        drawn = use_chart(results, others, probe, style)
    else:
        evidence = next((x for x in probe_measurements() if kind in x.figure_names), None)
        if evidence:
            shown = _evidence_of_task(evidence, kind, results, where, probe)
        elif by_task:
            raise UserError(f"--task: does not apply to {kind}; omit it.")
        else:
            evidence, shown = _of_corpus(results, others, where, kind, measurement)
        drawn = _chart_of_view(evidence, kind, shown, style)
    if drawn.chart is None:
        why = "; ".join(f"{model}: {reason}" for model, reason in drawn.missing.items())
        raise UserError(f"{where}: nothing to draw as {kind} ({why or 'there are no numbers'}).")
    for model, reason in drawn.missing.items():
        progress.say(f"not drawn: {model} ({reason})")
    return drawn.chart


def _chart_of_view(given: Measurement, name: str, found: RecordsByModel, style: Style) -> Drawn:
    """The chart of a view; errors of plug-ins become messages for the user."""
    from probes.boards.score_charts import Drawn

    view = next(x for x in given.shows if not isinstance(x, Pivot) and x.name == name)
    try:
        missing = view.missing(found)
        empty = found.records.keys() <= missing.keys()
        return Drawn(None if empty else view.chart(found, style), missing)
    except Exception as error:
        if why := plugin_failure(error, given.name, None, ""):
            raise UserError(f"{given.name}: {why}") from error
        raise


def _evidence_of_task(
    evidence: Measurement,
    name: str,
    results: Mapping[Path, Result],
    where: str,
    family: str,
) -> RecordsByModel:
    """The evidence behind the scores of one task, on one corpus."""
    having = {
        path: r
        for path, r in results.items()
        if r.probe.family == family and r.found(evidence.name)
    }
    if not having:
        raise UserError(
            f"{where}: no {evidence.name} of these results; measure it with --evidence "
            f"{evidence.name}."
        )
    tasks = list(dict.fromkeys(r.task.name for r in having.values()))
    if len(tasks) > 1:
        raise UserError(f"{name} shows one task: give --task {' or '.join(tasks)}.")
    _one_group(having, where, family)  # refuse results that cannot be compared
    labels = model_labels(having)
    return findings_of(evidence, {labels[model_key(r)]: r for r in having.values()}, {})


def _of_corpus(
    results: Mapping[Path, Result],
    others: Mapping[Path, Record],
    where: str,
    name: str,
    measurement: str,
) -> tuple[Measurement, RecordsByModel]:
    """The measurement that has a figure, and its records of one corpus."""
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
            f"{name} is a figure of {listed(measured, 'and')}: choose one, such as --measurement "
            f"{measured[0]}."
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
            f"{where}: these records cannot be compared in one figure ({titles}); name the folders "
            "of one corpus, such as results/*/ewt."
        )
    (found,) = groups
    return found.measurement, findings_of(found.measurement, found.records, found.paths)


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
