"""Results as pages and figures show them: a group shares its scales, a unit is one chart.

Records of measurements of a corpus are grouped likewise; a group shares tables and charts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from probes.boards.comparable import (
    SAME_CHART,
    SAME_CURVE,
    SAME_MEASUREMENT,
    column_name,
    columns_apart,
    groups_by,
    printed_value,
)
from probes.boards.floors import with_floor
from probes.common.errors import counted
from probes.common.terminal import progress
from probes.extraction.models.model_names import pretrained_name
from probes.frames.header_columns import values
from probes.measurements.measurement import Measurement, get_measurement, measurements
from probes.measurements.plugin_keys import plug_ins_text
from probes.measurements.table_cells import metric_name, n_of, ranking_name
from probes.records.record import Record, corpus_title, model_title
from probes.records.result import Result
from probes.tasks.builtin import table_order


@dataclass(frozen=True)
class TaskResults:
    """One task in one setting: the results of all models that share a chart.

    Attributes:
        name: of the task.
        about: its metric, and what sets the results apart from others of this task.
        results: by model, as `model_labels` names it.
    """

    name: str
    about: str
    results: dict[str, Result]

    @property
    def title(self) -> str:
        """The task with what is said about it: ``pos (accuracy)``."""
        return f"{self.name} ({self.about})"

    @property
    def first(self) -> Result:
        """Any of the results: they agree in everything but the model."""
        return next(iter(self.results.values()))

    @property
    def n(self) -> str:
        """Number of test examples."""
        return n_of(self.results.values())

    @cached_property
    def floored(self) -> dict[str, Result]:
        """The results beside their random twins, tested against their floors."""
        return {
            model: with_floor(result, self.results.values())
            for model, result in self.results.items()
        }


@dataclass(frozen=True)
class Group:
    """Results on the same text with the same probe.

    Attributes:
        paths: the results by model and path.
    """

    title: str
    corpus: str
    probe: str
    units: list[TaskResults] = field(default_factory=list)
    paths: dict[str, dict[Path, Result]] = field(default_factory=dict)

    def short_title(self, unit: TaskResults) -> str:
        """The unit's task; its whole title where another unit is of the same task."""
        same = [other for other in self.units if other.name == unit.name]
        return unit.name if len(same) == 1 else unit.title

    @property
    def models(self) -> list[str]:
        """Models with a result on any of its tasks."""
        return list(self.paths)


def model_labels(records: Mapping[Any, Record]) -> dict[tuple[str, str, str], str]:
    """Labels of models: the title, with the digest if two models share it."""
    titles = {model_key(record): model_title(record) for record in records.values()}
    shared = Counter(titles.values())
    return {
        key: title if shared[title] == 1 else f"{key[0]} ({key[1][:8]}, {key[2]})"
        for key, title in titles.items()
    }


def all_groups(
    all_results: Mapping[Path, Result], other_records: Mapping[Path, Record] = MappingProxyType({})
) -> tuple[list[Group], list[str]]:
    """Group results by corpus and probe.

    Args:
        other_records: their models are shown with these and are labelled together.

    Returns:
        the groups, and what was left out, with the reason.
    """
    labels = model_labels({**other_records, **all_results})
    settings = groups_by(all_results, SAME_CHART)
    titles = [_group_title(next(iter(results.values()))) for results in settings]
    groups, left_out = [], []
    for results, title in zip(settings, titles, strict=True):
        first = next(iter(results.values()))
        if titles.count(title) > 1:
            probe = first.probe.digest[:6]
            title += f" · text {first.corpus.fingerprint[:8]}, probe {probe}"
        corpus = f"{first.corpus.name} {first.corpus.version}"
        group = Group(title, corpus, first.probe.family)
        left_out += _fill(group, results, labels)
        groups.append(group)
    return sorted(groups, key=lambda g: (g.corpus, g.probe, g.title)), left_out


def _fill(
    group: Group, all_results: Mapping[Path, Result], labels: Mapping[tuple[str, str, str], str]
) -> list[str]:
    """Fill a group with its results, task by task; returns what was left out."""
    units = groups_by(all_results, SAME_CURVE)
    left_out: list[str] = []
    paths: dict[str, dict[Path, Result]] = defaultdict(dict)
    for unit in units:
        by_label, twice = by_model(unit, labels)
        left_out += twice
        results = {label: unit[path] for label, path in by_label.items()}
        for label, path in by_label.items():
            paths[label][path] = unit[path]
        first = next(iter(results.values()))
        about = _about(first, [x for x in all_results.values() if x.task.name == first.task.name])
        group.units.append(TaskResults(first.task.name, about, results))
    group.units.sort(key=lambda unit: (table_order(unit.name), unit.title))
    group.paths.update({label: paths[label] for label in sorted(paths, key=model_order)})
    return left_out


def by_model(
    records: Mapping[Path, Record], labels: Mapping[tuple[str, str, str], str]
) -> tuple[dict[str, Path], list[str]]:
    """One record of each model, by its label and in order; and what was left out, and why."""
    paths: dict[str, Path] = {}
    left_out = []
    for path, record in records.items():
        label = labels[model_key(record)]
        if paths.setdefault(label, path) != path:
            task = f" on {record.task.name}" if record.task else ""
            kind = "result" if record.task else "record"
            left_out.append(f"{path.name}: a second {kind} of {label}{task}")
    return {label: paths[label] for label in sorted(paths, key=model_order)}, left_out


def _about(result: Result, same_task: Sequence[Result]) -> str:
    """The metric, and what sets the result apart from others of this task."""
    versions = {x.task.version for x in same_task}
    sources = {plug_ins_text(x.plug_ins) for x in same_task}
    marks = f", version {result.task.version}" if len(versions) > 1 else ""
    if len(sources) > 1 and result.plug_ins:
        marks += f", {plug_ins_text(result.plug_ins)}"
    rates = {x.task.fpr for x in same_task}
    return (ranking_name(result) if len(rates) > 1 else metric_name(result)) + marks


def model_order(label: str) -> tuple[str, bool, str]:
    """Sorts models by name, each before its random twins."""
    name = pretrained_name(label)
    return name.lower(), label != name, label


def model_key(record: Record) -> tuple[str, str, str]:
    """Name, digest and precision, which records of one model share."""
    return record.model.name, record.model.digest, record.dtype


def _group_title(result: Result) -> str:
    parts = [
        corpus_title(result),
        f"{result.probe.family} probe",
        f"{result.pooling} pooling" if result.pooling != "mean" else "",
        f"projected to {result.project} dimensions" if result.project is not None else "",
    ]
    return " · ".join(filter(None, parts))


@dataclass(frozen=True)
class CorpusGroup:
    """Records of one measurement that agree in everything but the model.

    Attributes:
        title: the corpus, and what sets the group apart from others of the measurement.
        records: by model, as `model_labels` names it.
        paths: their files, by model.
    """

    measurement: Measurement
    title: str
    records: dict[str, Record]
    paths: dict[str, Path]

    @property
    def first(self) -> Record:
        """Any of the records."""
        return next(iter(self.records.values()))


def corpus_records_of(records: Mapping[Path, Record]) -> dict[Path, Record]:
    """The records of measurements of a corpus; a message counts those of plug-ins not loaded."""
    corpus_records: dict[Path, Record] = {}
    unknown: dict[str, int] = defaultdict(int)
    for path, record in records.items():
        if record.probe is None and record.measurement in measurements:
            corpus_records[path] = record
        elif record.probe is None:
            unknown[record.measurement] += 1
    for name, n in unknown.items():
        progress.say(
            f"left out {counted(n, 'record')} of {name}: --include the file that it comes from"
        )
    return corpus_records


def corpus_groups(
    all_records: Mapping[Path, Record], labels: Mapping[tuple[str, str, str], str]
) -> tuple[list[CorpusGroup], list[str]]:
    """Group records by measurement, corpus and settings.

    Args:
        all_records: see `corpus_records_of`.
        labels: see `probes.boards.shown_together.model_labels`.

    Returns:
        the groups, in order of their measurements' registration; and what was left out, with the
        reason.
    """
    by_settings = groups_by(all_records, SAME_MEASUREMENT)
    firsts = [next(iter(records.values())) for records in by_settings]
    order = list(measurements)
    groups, left_out = [], []
    for first, records in zip(firsts, by_settings, strict=True):
        measurement = get_measurement(first.measurement)
        paths, twice = by_model(records, labels)
        by_label = {label: records[path] for label, path in paths.items()}
        groups.append(CorpusGroup(measurement, _settings_title(first, firsts), by_label, paths))
        left_out += twice
    groups.sort(key=lambda group: (order.index(group.measurement.name), group.title))
    return groups, left_out


def _settings_title(first: Record, firsts: Sequence[Record]) -> str:
    """The corpus of a group, and every column in which others of this corpus differ."""
    corpus = corpus_title(first)
    peers = [x for x in firsts if x.measurement == first.measurement and corpus_title(x) == corpus]
    different = {column for x in peers for column in columns_apart(first, x, SAME_MEASUREMENT)}
    columns = [column for column in SAME_MEASUREMENT if column in different]
    parts = [
        f"{column_name(column)} {printed_value(value)}"
        for column, value in zip(columns, values(first, columns), strict=True)
        if column != "options"  # They are named one by one below.
    ]
    options = {name for x in peers for name in {*first.settings, *x.settings}}
    parts += [
        f"--{first.measurement}-{name}".replace("_", "-") + f" {first.settings.get(name)}"
        for name in sorted(options)
        if any(x.settings.get(name) != first.settings.get(name) for x in peers)
    ]
    return " · ".join([corpus, *parts])
