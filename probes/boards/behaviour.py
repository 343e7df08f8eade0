"""What models get right of the same items, and how they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from probes.boards.corpus_groups import CorpusGroup, of_corpora
from probes.boards.paired import Difference
from probes.common.arrays import Floats, Ints
from probes.records.files import Arrays, if_readable, read_arrays
from probes.records.record import Record
from probes.records.row import Row
from probes.statistics.bootstrap import bounds, informative, interval
from probes.statistics.significance import Pair
from probes.statistics.strata import Strata

_HEADLINE = (
    {"scoring": "within-word l2r", "per": "text"},
    {"scoring": "left to right", "per": "text"},
)

HEADLINES: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]] = {
    "pairs": {"mean_of_paradigms": _HEADLINE, "pair_accuracy": _HEADLINE},
    "completion": {
        "completion_accuracy": ({"likeliest": 1},),
        "sensitivity": ({"threshold": 0.0},),
    },
}
"""By measurement and metric: where models are compared, the first place that a model has. They are
ranked by the last metric."""

_ARRAYS = "values", "cluster", "stratum", "phenomenon"


@dataclass(frozen=True)
class Answers:
    """What models get right, item by item, of the items that count for all of them.

    Attributes:
        values: shape (items, models).
        groups: items by phenomenon; all of them, under "", first.
    """

    metric: str
    models: tuple[str, ...]
    values: Floats
    strata: Strata
    groups: Mapping[str, Ints]

    def differences(self, pairs: Sequence[Pair]) -> dict[str, list[Difference]]:
        """By group, the score of the second of each pair of models minus that of the first."""
        one, other = np.array(pairs).T
        change, groups = self.values[:, other] - self.values[:, one], list(self.groups.values())
        found = zip(
            self.groups,
            self.strata.means(change, groups),
            self.strata.p_values(change, groups).tolist(),
            strict=True,
        )
        return {
            name: [
                Difference(
                    self.metric, value, informative(bounds(pair)), None if np.isnan(p) else p
                )
                for value, pair, p in zip(means.tolist(), interval(drawn.T), tests, strict=True)
            ]
            for name, (means, drawn), tests in found
        }


def answers(group: CorpusGroup, metric: str, models: Sequence[str]) -> Answers | None:
    """The models' answers; None without two models that have them."""
    columns: dict[str, Floats] = {}
    arrays: Arrays = {}
    for label in models:
        record, path = group.records[label], group.paths[label]
        places = (f"{axis} {place}" for axis, place in places_of(record, metric).items())
        scale = ", ".join((metric, *places))
        of = {fact: name for name, fact in record.facts.items()}
        if scale in of and (found := if_readable(partial(read_arrays, path, _ARRAYS))):
            columns[label] = found["values"][int(of[scale].split()[1]) - 1].astype(float)
            arrays = found
    if len(columns) < 2:
        return None
    values = np.stack(list(columns.values()), axis=1)
    known = ~np.isnan(values).any(1)
    phenomenon = arrays["phenomenon"][known]
    groups = {"": np.arange(len(phenomenon))}
    for name in dict.fromkeys(phenomenon.tolist()):
        groups[name] = np.flatnonzero(phenomenon == name)
    strata = Strata(arrays["cluster"][known], arrays["stratum"][known])
    return Answers(metric, tuple(columns), values[known], strata, groups)


def of_items(records: Mapping[Path, Record]) -> dict[Path, Record]:
    """The records of answers to items that can be read."""
    those = {path: x for path, x in records.items() if x.measurement in HEADLINES}
    return of_corpora(those)


def places_of(record: Record, metric: str) -> Mapping[str, Any]:
    """Where a model's number of a metric is compared with those of others."""
    options = HEADLINES[record.measurement][metric]
    return next((x for x in options if record.rows.at(metric, **x)), options[0])


def overall_of(record: Record, metric: str) -> Row:
    """A number over all items."""
    return record.rows.at(metric, **places_of(record, metric)) or Row(metric, None)
