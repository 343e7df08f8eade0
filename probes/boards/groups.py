"""Which results may stand in one table, and which in one chart."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from probes.extraction.model_files import pretrained_name
from probes.measurements.current import is_current
from probes.measurements.plugin_keys import in_words
from probes.records.result import Result
from probes.records.titles import corpus_title, metric_name
from probes.tasks.builtin import tasks


@dataclass(frozen=True)
class Unit:
    """One task in one setting: what models are compared on.

    Attributes:
        title: task, metric, and what sets it apart.
        results: by model, as `model_labels` names it.
    """

    name: str
    title: str
    results: dict[str, Result]

    @property
    def first(self) -> Result:
        """Any of them: what a unit is made of is the same in all."""
        return next(iter(self.results.values()))


@dataclass(frozen=True)
class Group:
    """Results on the same text with the same probe; other ones are never mixed with them.

    Attributes:
        paths: of the results, by model.
    """

    title: str
    corpus: str
    probe: str
    units: list[Unit] = field(default_factory=list)
    paths: dict[str, dict[Path, Result]] = field(default_factory=dict)

    def short_title(self, unit: Unit) -> str:
        """The unit's task; all of its title where others are of the same task."""
        same = [other for other in self.units if other.name == unit.name]
        return unit.name if len(same) == 1 else unit.title

    @property
    def models(self) -> list[str]:
        """Models with a result on any of its tasks."""
        return list(self.paths)


def model_labels(found: Mapping[Path, Result]) -> dict[tuple[str, str, str], str]:
    """What to call each model: its name, and where that is not enough, what sets it apart."""
    keys = dict.fromkeys(map(model_key, found.values()))
    names = [name for name, *_ in keys]
    return {
        key: key[0] if names.count(key[0]) == 1 else f"{key[0]} ({key[1][:8]}, {key[2]})"
        for key in keys
    }


def group(found: Mapping[Path, Result]) -> tuple[list[Group], list[str]]:
    """Results by setting, in order of corpus and probe, and what was left out, with the reason."""
    labels = model_labels(found)
    settings: dict[tuple[str, ...], dict[Path, Result]] = defaultdict(dict)
    for path, result in found.items():
        settings[_setting(result)][path] = result
    titles = [_title(next(iter(results.values()))) for results in settings.values()]
    groups, left_out = [], []
    for (setting, results), title in zip(settings.items(), titles, strict=True):
        apart = f" · text {setting[1][:8]}, probe {setting[2][:6]}" * (titles.count(title) > 1)
        first = next(iter(results.values()))
        corpus = f"{first.corpus.name} {first.corpus.version}"
        made = Group(title + apart, corpus, first.probe.family)
        left_out += _fill(made, results, labels)
        groups.append(made)
    return sorted(groups, key=lambda g: (g.corpus, g.probe, g.title)), left_out


def _fill(
    made: Group, found: Mapping[Path, Result], labels: Mapping[tuple[str, str, str], str]
) -> list[str]:
    units: dict[tuple[str, int, str, str, bool, str, bool], dict[str, Result]] = defaultdict(dict)
    left_out = []
    for path, result in sorted(found.items(), key=lambda x: model_order(labels[model_key(x[1])])):
        label, task = labels[model_key(result)], result.task
        old = not is_current(result)
        source = in_words(result.plug_ins)
        unit = units[
            (task.name, task.version, result.view, task.metric, result.silver, source, old)
        ]
        if label in unit:
            left_out.append(f"{path.name}: a second result of {label} on {task.name}")
            continue
        unit[label] = result
        made.paths.setdefault(label, {})[path] = result
    names = [key[0] for key in units]
    known = list(tasks)
    order = [*known, *sorted(set(names) - set(known))]
    for key in sorted(units, key=lambda key: (order.index(key[0]), key[1:])):
        first = next(iter(units[key].values()))
        several = names.count(key[0]) > 1
        marks = f", version {key[1]}" * several + f", {key[-2]}" * (several and bool(key[-2]))
        marks += ", outdated" * key[-1]
        results = {label: units[key][label] for label in sorted(units[key], key=model_order)}
        made.units.append(Unit(key[0], f"{key[0]} ({metric_name(first)}{marks})", results))
    return left_out


def model_order(label: str) -> tuple[str, bool, str]:
    """Sorts models by name, each before its random twins."""
    name = pretrained_name(label)
    return name.lower(), label != name, label


def model_key(result: Result) -> tuple[str, str, str]:
    """What makes two results ones of the same model."""
    return result.model.name, result.model.digest, result.dtype


def _setting(result: Result) -> tuple[str, ...]:
    probe = hashlib.sha256(result.probe.model_dump_json().encode()).hexdigest()
    corpus = result.corpus
    return corpus.name, corpus.fingerprint, probe, result.pooling, str(result.project)


def _title(result: Result) -> str:
    parts = [
        corpus_title(result),
        f"{result.probe.family} probe",
        f"{result.pooling} pooling" * (result.pooling != "mean"),
        f"projected to {result.project} dimensions" * (result.project is not None),
    ]
    return " · ".join(filter(None, parts))
