"""Records of measurements of a corpus, in groups that share tables and charts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from probes.boards.comparable import (
    CORPUS_TITLE,
    MEASUREMENT,
    OPTIONS,
    SAME_MEASUREMENT,
    alike,
    differences,
    options_of,
)
from probes.boards.groups import by_model
from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.common.wording import counted
from probes.measurements.joined_results import require_possible
from probes.measurements.measurement import Measurement, get_measurement, measurements
from probes.records.charts import Chart, Curves
from probes.records.record import Record, corpus_title


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
    records: dict[str, Record] = field(default_factory=dict)
    paths: dict[str, Path] = field(default_factory=dict)

    @property
    def first(self) -> Record:
        """Any of the records."""
        return next(iter(self.records.values()))

    def charts(self) -> list[Chart]:
        """The charts that the measurement describes.

        Raises:
            ValueError: a curve is of none of the models, or the parts of a chart do not fit.
        """
        found = list(self.measurement.charts(self.records, self.paths))
        for chart in found:
            if fault := self._fault(chart):
                raise ValueError(f"the chart {chart.name!r} has {fault}")
        return found

    def _fault(self, chart: Chart) -> str:
        if not isinstance(chart, Curves):
            return chart.fault
        strange = chart.models.keys() - self.records.keys()
        return f"curves of {', '.join(strange)}" if strange else ""


def of_corpora(records: Mapping[Path, Record]) -> dict[Path, Record]:
    """The records of measurements of a corpus.

    Those of a plug-in that is not loaded are counted in a message, and one that cannot be read is
    named.
    """
    found: dict[Path, Record] = {}
    unknown: dict[str, int] = defaultdict(int)
    for path, record in records.items():
        if record.probe is not None:
            continue
        if record.measurement not in measurements:
            unknown[record.measurement] += 1
            continue
        try:
            require_possible(record, path)
            found[path] = record
        except UserError as error:
            progress.say(f"left out {error}")
    for name, n in unknown.items():
        progress.say(
            f"left out {counted(n, 'record')} of {name}: --include the file that it comes from"
        )
    return found


def corpus_groups(
    found: Mapping[Path, Record], labels: Mapping[tuple[str, str, str], str]
) -> tuple[list[CorpusGroup], list[str]]:
    """Group records by measurement, corpus and settings.

    Args:
        found: see `of_corpora`.
        labels: see `probes.boards.groups.model_labels`.

    Returns:
        the groups, in order of their measurements' registration; and what was left out, with the
        reason.
    """
    by_settings = alike(found, SAME_MEASUREMENT)
    firsts = [next(iter(records.values())) for records in by_settings]
    order = list(measurements)
    groups, left_out = [], []
    for first, records in zip(firsts, by_settings, strict=True):
        its = get_measurement(first.measurement)
        made = CorpusGroup(its, _title(first, firsts))
        by_label, twice = by_model(records, labels)
        for label, path in by_label.items():
            made.records[label], made.paths[label] = records[path], path
        left_out += twice
        groups.append(made)
    groups.sort(key=lambda group: (order.index(group.measurement.name), group.title))
    return groups, left_out


def _title(first: Record, firsts: Sequence[Record]) -> str:
    """The corpus of a group, and every aspect in which others of this corpus differ."""
    others = [
        other for other in firsts if not differences(first, other, (MEASUREMENT, CORPUS_TITLE))
    ]
    aspects = [x for x in SAME_MEASUREMENT if x is not OPTIONS] + options_of(first)
    differing = [
        f"{aspect.name} {aspect.in_words(first)}"
        for aspect in aspects
        if any(aspect.value(other) != aspect.value(first) for other in others)
    ]
    return " · ".join([corpus_title(first), *differing])
