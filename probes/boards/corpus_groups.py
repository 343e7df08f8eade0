"""Records of measurements of a corpus, in groups that share tables and charts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from probes.boards.groups import model_key, model_order
from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.common.wording import counted
from probes.measurements.current import is_current
from probes.measurements.measurement import CorpusMeasurement, get_measurement, measurements
from probes.measurements.plugin_keys import in_words
from probes.measurements.results import typed
from probes.records.charts import Chart
from probes.records.curves import Curves
from probes.records.record import AnyRecord
from probes.records.titles import corpus_title


@dataclass(frozen=True)
class CorpusGroup:
    """Records of one measurement that agree in everything but the model.

    Attributes:
        title: the corpus, and what sets the group apart from others of the measurement.
        records: by model, as `model_labels` names it.
        paths: their files, by model.
    """

    measurement: CorpusMeasurement[Any]
    title: str
    records: dict[str, AnyRecord] = field(default_factory=dict)
    paths: dict[str, Path] = field(default_factory=dict)

    @property
    def first(self) -> AnyRecord:
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


def corpus_measurements() -> list[CorpusMeasurement[Any]]:
    """All measurements of a corpus as a whole that are loaded."""
    every = [get_measurement(name) for name in measurements]
    return [each for each in every if isinstance(each, CorpusMeasurement)]


def of_corpora(records: Mapping[Path, AnyRecord]) -> dict[Path, AnyRecord]:
    """The records of measurements of a corpus, each payload in the measurement's own type.

    Those of a plug-in that is not loaded are counted in a message, and one that cannot be read is
    named.
    """
    found: dict[Path, AnyRecord] = {}
    unknown: dict[str, int] = defaultdict(int)
    for path, record in records.items():
        if record.probe is not None:
            continue
        if record.measurement not in measurements:
            unknown[record.measurement] += 1
            continue
        try:
            found[path] = typed(record, path)
        except UserError as error:
            progress.say(f"left out {error}")
    for name, n in unknown.items():
        progress.say(
            f"left out {counted(n, 'record')} of {name}: --include the file that it comes from"
        )
    return found


def corpus_groups(
    found: Mapping[Path, AnyRecord], labels: Mapping[tuple[str, str, str], str]
) -> tuple[list[CorpusGroup], list[str]]:
    """Group records by measurement, corpus and settings.

    Args:
        found: see `of_corpora`.
        labels: see `probes.boards.groups.model_labels`.

    Returns:
        the groups, in order of their measurements' registration; and what was left out, with the
        reason.
    """
    alike: dict[str, dict[tuple[str, ...], dict[Path, AnyRecord]]] = {x: {} for x in measurements}
    for path, record in found.items():
        settings = tuple(_settings(record).values())
        alike[record.measurement].setdefault(settings, {})[path] = record
    groups, left_out = [], []
    for name, by_settings in alike.items():
        titles = _titles([next(iter(records.values())) for records in by_settings.values()])
        for title, records in sorted(zip(titles, by_settings.values(), strict=True), key=_title_of):
            its = get_measurement(name)
            assert isinstance(its, CorpusMeasurement)
            made = CorpusGroup(its, title)
            left_out += _fill(made, records, labels)
            groups.append(made)
    return groups, left_out


def _fill(
    made: CorpusGroup,
    records: Mapping[Path, AnyRecord],
    labels: Mapping[tuple[str, str, str], str],
) -> list[str]:
    left_out = []
    labelled = [(labels[model_key(record)], path, record) for path, record in records.items()]
    for label, path, record in sorted(labelled, key=lambda x: model_order(x[0])):
        if label in made.records:
            left_out.append(f"{path.name}: a second record of {label}")
        else:
            made.records[label] = record
            made.paths[label] = path
    return left_out


def _settings(record: AnyRecord) -> dict[str, str]:
    """What records that share charts have in common, as text."""
    return {
        "corpus": corpus_title(record),
        "text": record.corpus.fingerprint[:8],
        "base": record.base.name if record.base else "",
        "pooling": record.pooling,
        "version": str(record.measurement_version),
        "source": in_words(record.plug_ins) or "of the suite",
        "numerics": "of this version" if is_current(record) else "of another version",
        **{
            f"--{record.measurement}-{name}".replace("_", "-"): str(value)
            for name, value in sorted(record.settings.items())
        },
    }


def _titles(firsts: list[AnyRecord]) -> list[str]:
    """The corpus of each group, and every setting in which groups of this corpus differ."""
    settings = [_settings(record) for record in firsts]
    titles = []
    for own in settings:
        others = [other for other in settings if other["corpus"] == own["corpus"]]
        differing = [
            f"{name} {value}"
            for name, value in own.items()
            if any(other.get(name) != value for other in others)
        ]
        titles.append(" · ".join([own["corpus"], *differing]))
    return titles


def _title_of(group: tuple[str, object]) -> str:
    return group[0]
