"""Comparisons of models by what they get right of the same items, and the CSV file of answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probes.boards.paired import Difference
from probes.boards.ranking_tables import places
from probes.boards.shown_together import CorpusGroup, corpus_groups, model_labels, of_corpora
from probes.common.arrays import Floats, Ints
from probes.frames.frame import RecordFrame, axes_by_text
from probes.measurements.table_cells import score_cell
from probes.records.record import Record
from probes.records.record_files import Arrays, if_readable, read_arrays
from probes.records.row import Row
from probes.statistics.bootstrap import bounds, informative, interval
from probes.statistics.metrics import label_of
from probes.statistics.of_families.strata import Strata
from probes.statistics.significance import Pair, all_pairs
from probes.tables.table import NOTHING, Cell, Table, TableRow

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

CSV_NAME = "behaviour.csv"

CSV_COLUMNS = (
    "model", "revision", "random", "corpus", "limit", "measurement", "metric", "phenomenon",
    "scoring", "per", "likeliest", "threshold", "rival", "value", "low", "high", "n", "key",
)  # fmt: skip
"""Columns of the CSV file: answers to items, overall and by phenomenon."""

_ARRAYS = "values", "cluster", "stratum", "phenomenon"


@dataclass(frozen=True)
class ItemScores:
    """Scores of models, item by item, on the items that count for all of them.

    Attributes:
        values: shape (items, models).
        groups: items by phenomenon; all of them, under "", first, where these are pooled.
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


def answers_of_models(group: CorpusGroup, metric: str, models: Sequence[str]) -> ItemScores | None:
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
    groups = {"": np.arange(len(phenomenon))} if "" in _wholes(group) else {}
    for name in dict.fromkeys(phenomenon.tolist()):
        groups[name] = np.flatnonzero(phenomenon == name)
    strata = Strata(arrays["cluster"][known], arrays["stratum"][known])
    return ItemScores(metric, tuple(columns), values[known], strata, groups) if groups else None


def _wholes(group: CorpusGroup) -> list[str]:
    """Groups to rank models by: all items, under "", or each phenomenon if those are not alike."""
    records, metrics = group.records.values(), HEADLINES[group.measurement.name]
    if any(x.rows.at(metric, **places_of(x, metric)) for x in records for metric in metrics):
        return [""]
    rows = [row for x in records for row in x.rows.along("phenomenon") if row.metric in metrics]
    return list(dict.fromkeys(str(row.axes["phenomenon"]) for row in rows)) or [""]


def compared(records: Mapping[Path, Record]) -> dict[Path, Record]:
    """The records of answers to items that can be read."""
    return of_corpora({path: x for path, x in records.items() if x.measurement in HEADLINES})


def places_of(record: Record, metric: str) -> Mapping[str, Any]:
    """Values of the axes at which a model is compared with others."""
    options = HEADLINES[record.measurement][metric]
    return next((x for x in options if record.rows.at(metric, **x)), options[0])


_PAIRED = (
    "Of the items that count for all models. Differences have a 95 % interval over items, or "
    "groups of them, drawn within paradigms; p is corrected by max-T over this table, and is not "
    "given where two models differ on fewer than 20."
)

_RANKED = (
    "± half the width of a 95 % interval over items, or groups of them, drawn within "
    "paradigms. Ranks: best and "
    "worst rank that the data allow, by paired tests of {} on the same items (max-T over all "
    "pairs, .05); random twins have none: they are the floor."
)


def paired_tables(found: Mapping[Path, Record]) -> Iterator[Table]:
    """All models beside the first of them, overall, if phenomena are alike, and by phenomenon.

    Args:
        found: as chosen by `compared`.
    """
    order = list(found)
    for group in corpus_groups(found, model_labels(found))[0]:
        models = sorted(group.paths, key=lambda label: order.index(group.paths[label]))
        for metric in HEADLINES[group.measurement.name]:
            if scores := answers_of_models(group, metric, models):
                yield _paired(group, scores)


def _paired(group: CorpusGroup, given: ItemScores) -> Table:
    differences = given.differences([(0, other) for other in range(1, len(given.models))])
    rows = []
    for name, own in given.groups.items():
        scores = [score_cell(x, None, given.metric) for x in given.values[own].mean(0)]
        cells: list[str | Cell] = [name or "all", f"{len(own):,}", scores[0]]
        for score, difference in zip(scores[1:], differences[name], strict=True):
            cells += [score, *difference.cells]
        rows.append(TableRow.of(*cells, ends_section=not name))
    heads = ["phenomenon", "n", given.models[0]]
    for model in given.models[1:]:
        heads += [model, "difference from the first model", "p"]
    title = f"{group.title} · {group.measurement.title} · {label_of(given.metric)}, models compared"
    return Table(title, tuple(heads), tuple(rows), notes=(_PAIRED,))


def ranked_tables(found: Mapping[Path, Record]) -> Iterator[Table]:
    """Models ranked by what they get right, a table for each measurement and corpus.

    Phenomena that are not alike have a table each.

    Args:
        found: as chosen by `compared`.
    """
    for group in corpus_groups(found, model_labels(found))[0]:
        for phenomenon in _wholes(group):
            yield _ranking_table(group, phenomenon)


def _ranking_table(group: CorpusGroup, phenomenon: str) -> Table:
    metrics = list(HEADLINES[group.measurement.name])
    axes: dict[str, Any] = {"phenomenon": phenomenon} if phenomenon else {}
    scores = {
        label: [
            record.rows.at(metric, **places_of(record, metric), **axes) or Row(metric, None)
            for metric in metrics
        ]
        for label, record in group.records.items()
    }
    twins = {x for x, record in group.records.items() if record.model.random_seed is not None}
    models = sorted(scores, key=lambda x: (x in twins, -(scores[x][-1].value or 0.0)))
    ranks = _ranks_of_models(group, metrics[-1], phenomenon, [x for x in models if x not in twins])
    rows = [
        TableRow.of(
            ranks.get(label, NOTHING),
            label,
            *(score_cell(row.value, row.interval, row.metric) for row in scores[label]),
            faint=label in twins,
        )
        for label in models
    ]
    whys = [f"{x}, {label_of(y.metric)}: {y.why}." for x in models for y in scores[x] if y.why]
    guesses = [
        f"Guesses are right in {100 * row.value:.1f} %."
        for x in group.records.values()
        if (row := x.rows.at("sensitivity_chance", threshold=0.0, **axes)) and row.value is not None
    ]
    notes = (_RANKED.format(label_of(metrics[-1])), *guesses[:1], *whys)
    heads = ("rank", "model", *map(label_of, metrics))
    title = " · ".join(filter(None, [group.title, group.measurement.title, phenomenon]))
    return Table(title, heads, tuple(rows), notes=notes, left=2, repeated=2)


def _ranks_of_models(
    group: CorpusGroup, metric: str, phenomenon: str, models: Sequence[str]
) -> dict[str, str]:
    """The places that models may have; of those without arrays none."""
    given = answers_of_models(group, metric, models)
    if given is None or phenomenon not in given.groups:
        return dict.fromkeys(models, "1") if len(models) == 1 else {}
    differences = given.differences(all_pairs(len(given.models)))[phenomenon]
    scores = given.values[given.groups[phenomenon]].mean(0)
    found = places(scores, [difference.p for difference in differences])
    return dict(zip(given.models, map(str, found), strict=True))


def csv_table(frame: RecordFrame) -> pd.DataFrame:
    """The answers to items, overall and by phenomenon, of texts as they are."""
    answers = frame.headers["measurement"].isin([*HEADLINES])
    rows = frame.long(answers, [name for name in CSV_COLUMNS if name in frame.headers])
    known = {*CSV_COLUMNS, *Row._fields}
    places = {text: given for text, given in axes_by_text(rows).items() if given.keys() <= known}
    rows = rows[rows["axes"].isin([*places])]
    for name in CSV_COLUMNS:
        if name not in rows:
            column = [places[text].get(name) for text in rows["axes"]]
            rows = rows.assign(**{name: pd.Series(column, rows.index, dtype=object)})
    return rows
