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
from probes.boards.ranking_tables import ranks_of
from probes.boards.shown_together import CorpusGroup, corpus_groups, corpus_records_of, model_labels
from probes.common.arrays import Floats, Ints
from probes.frames.frame import RecordFrame, axes_by_text
from probes.measurements.table_cells import score_cell
from probes.records.record import Record
from probes.records.record_files import Arrays, if_readable, read_arrays
from probes.records.row import Row
from probes.statistics.bootstrap import bounds, informative, interval
from probes.statistics.metrics import label_of, printed_score
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
        first, second = np.array(pairs).T
        change, groups = self.values[:, second] - self.values[:, first], list(self.groups.values())
        by_group = zip(
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
                for value, pair, p in zip(means.tolist(), interval(resamples.T), tests, strict=True)
            ]
            for name, (means, resamples), tests in by_group
        }


def answers_of_models(group: CorpusGroup, metric: str, models: Sequence[str]) -> ItemScores | None:
    """The models' answers; None without two models that have them."""
    columns: dict[str, Floats] = {}
    arrays: Arrays = {}
    for label in models:
        record, path = group.records[label], group.paths[label]
        places = (f"{axis} {value}" for axis, value in places_of(record, metric).items())
        scale = ", ".join((metric, *places))
        of = {fact: name for name, fact in record.facts.items()}
        if scale in of and (item_arrays := if_readable(partial(read_arrays, path, _ARRAYS))):
            columns[label] = item_arrays["values"][int(of[scale].split()[1]) - 1].astype(float)
            arrays = item_arrays
    if len(columns) < 2:
        return None
    values = np.stack(list(columns.values()), axis=1)
    is_common = ~np.isnan(values).any(1)
    phenomenon = arrays["phenomenon"][is_common]
    groups = {"": np.arange(len(phenomenon))} if "" in _ranked_groups(group) else {}
    for name in dict.fromkeys(phenomenon.tolist()):
        groups[name] = np.flatnonzero(phenomenon == name)
    strata = Strata(arrays["cluster"][is_common], arrays["stratum"][is_common])
    return ItemScores(metric, tuple(columns), values[is_common], strata, groups) if groups else None


def _ranked_groups(group: CorpusGroup) -> list[str]:
    """Groups to rank models by: all items, under "", or each phenomenon if those are not alike."""
    records, metrics = group.records.values(), HEADLINES[group.measurement.name]
    if any(x.rows.at(metric, **places_of(x, metric)) for x in records for metric in metrics):
        return [""]
    rows = [row for x in records for row in x.rows.along("phenomenon") if row.metric in metrics]
    return list(dict.fromkeys(str(row.axes["phenomenon"]) for row in rows)) or [""]


def compared(records: Mapping[Path, Record]) -> dict[Path, Record]:
    """The records of answers to items that can be read."""
    return corpus_records_of({path: x for path, x in records.items() if x.measurement in HEADLINES})


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


def paired_tables(records: Mapping[Path, Record]) -> Iterator[Table]:
    """All models beside the first of them, overall, if phenomena are alike, and by phenomenon."""
    order = list(records)
    for group in corpus_groups(records, model_labels(records))[0]:
        models = sorted(group.paths, key=lambda label: order.index(group.paths[label]))
        for metric in HEADLINES[group.measurement.name]:
            if scores := answers_of_models(group, metric, models):
                yield _comparison_table(group, scores)


def _comparison_table(group: CorpusGroup, answers: ItemScores) -> Table:
    differences = answers.differences([(0, i) for i in range(1, len(answers.models))])
    rows = []
    for name, indices in answers.groups.items():
        scores = [score_cell(x, None, answers.metric) for x in answers.values[indices].mean(0)]
        cells: list[str | Cell] = [name or "all", f"{len(indices):,}", scores[0]]
        for score, difference in zip(scores[1:], differences[name], strict=True):
            cells += [score, *difference.cells]
        rows.append(TableRow.of(*cells, ends_section=not name))
    heads = ["phenomenon", "n", answers.models[0]]
    for model in answers.models[1:]:
        heads += [model, "difference from the first model", "p"]
    metric = label_of(answers.metric)
    title = f"{group.title} · {group.measurement.title} · {metric}, models compared"
    return Table(title, tuple(heads), tuple(rows), notes=(_PAIRED,))


def ranked_tables(records: Mapping[Path, Record]) -> Iterator[Table]:
    """Models ranked by what they get right, a table for each measurement and corpus.

    Phenomena that are not alike have a table each.
    """
    for group in corpus_groups(records, model_labels(records))[0]:
        for phenomenon in _ranked_groups(group):
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
    # Random twins are the floor: they come last, without ranks.
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
    # The models answer the same items, so the first note on guesses holds for all.
    guesses = [
        f"Guesses are right in {printed_score(row.value, row.metric)} %."
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
    answers = answers_of_models(group, metric, models)
    if answers is None or phenomenon not in answers.groups:
        return dict.fromkeys(models, "1") if len(models) == 1 else {}
    differences = answers.differences(all_pairs(len(answers.models)))[phenomenon]
    scores = answers.values[answers.groups[phenomenon]].mean(0)
    ranks = ranks_of(scores, [difference.p for difference in differences])
    return dict(zip(answers.models, map(str, ranks), strict=True))


def csv_table(frame: RecordFrame) -> pd.DataFrame:
    """The answers to items, overall and by phenomenon, of texts as they are."""
    answers = frame.headers["measurement"].isin([*HEADLINES])
    rows = frame.long(answers, [name for name in CSV_COLUMNS if name in frame.headers])
    columns = {*CSV_COLUMNS, *Row._fields}
    places = {text: axes for text, axes in axes_by_text(rows).items() if axes.keys() <= columns}
    rows = rows[rows["axes"].isin([*places])]
    for name in CSV_COLUMNS:
        if name not in rows:
            column = [places[text].get(name) for text in rows["axes"]]
            rows = rows.assign(**{name: pd.Series(column, rows.index, dtype=object)})
    return rows
