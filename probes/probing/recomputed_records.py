"""Recomputes stored scores, and evidence behind them, from sums over test documents.

Scores, intervals and tests of the headline metric can be checked in this way. Other numbers cannot:
scores on dev (which choose the best layer), baselines, other metrics, breakdowns, and scores of
further fits.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from probes.common.arrays import Floats
from probes.common.errors import UserError
from probes.data.sentence import SPLITS
from probes.data.splits import DROPPED
from probes.measurements.table_cells import why_not_resampled
from probes.probing.localisation import localisation, rows_of_gains, rows_of_scores
from probes.probing.resampled_scores import (
    resampled_scores,
    stored_mix_sums,
    stored_sums,
    wrong_arrays_error,
)
from probes.probing.training_variance import deviation_row, pooled_deviations, training_variance
from probes.records.record import Record
from probes.records.record_files import name_of
from probes.records.result import SCORES, Result
from probes.records.row import AxisValue, Row, Rows
from probes.statistics.bootstrap import resample, resampled_values
from probes.statistics.metrics import metrics
from probes.statistics.replicates import p_best_of, pooled

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NO_SUMS = "no sums are stored beside the record"

TOLERANCE = 1e-6
"""Sums of floats differ by less than this between machines."""

NUMBERS = {
    "value": "",
    "low": ", lower end of the interval",
    "high": ", upper end of the interval",
    "n": ", n",
}
"""Fields of rows to compare, and their names in messages."""


def why_not_recomputed(record: Record, path: Path) -> str:
    """The reason why a record cannot be recomputed; empty if it can."""
    if record.measurement not in (SCORES, *_EVIDENCE_ROWS):
        return "its numbers cannot be checked from what is stored"
    if record.task and record.task.metric not in metrics:
        return f"the metric {record.task.metric} is not loaded"
    needs_arrays = record.measurement != training_variance.name
    return NO_SUMS if needs_arrays and not path.with_suffix(".npz").exists() else ""


def require_recomputed(result: Result, path: Path) -> None:
    """Raise UserError unless the scores at `path`, and evidence behind them, follow from sums."""
    _require_equal(result, path, result, _rows_from_sums(result, path))
    for name, rows_of in _EVIDENCE_ROWS.items():
        if evidence := result.evidence.get(name):
            file = path.with_name(name_of(evidence))
            _require_equal(result, file, evidence, rows_of(result, path))


def _require_equal(result: Result, path: Path, stored: Record, rows: Iterator[Row]) -> None:
    for row in rows:
        stored_row = stored.rows.at(row.metric, row.layer, row.split, **row.axes) or Row("", None)
        for field, words in NUMBERS.items():
            value, recount = getattr(stored_row, field), getattr(row, field)
            if not _is_close(value, recount):
                at = "" if row.layer is None else f", layer {row.layer}"
                raise UserError(
                    f"{path}: {result.task.name}{at}, {row.metric}{words}: {number_text(value)} is "
                    f"stored, but the sums give {number_text(recount)}. Run it again and export "
                    "the new record."
                )


def _is_close(stored: float | None, recount: float | None) -> bool:
    first, second = (math.nan if x is None else x for x in (stored, recount))
    return bool(np.isclose(first, second, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True))


def number_text(value: float | None) -> str:
    """A number as text for messages."""
    return "nothing" if value is None else f"{value:.8g}"


def _rows_from_sums(result: Result, path: Path) -> Iterator[Row]:
    sums = stored_sums(result, path)
    assert sums is not None  # see `why_not_recomputed`
    values, replicates = _values_from_sums(result, sums, path)
    _require_counts(result, path, sums)
    yield from rows_of_scores(result.task.metric, result.layers, values, replicates)


def _require_counts(result: Result, path: Path, sums: Sequence[csr_array]) -> None:
    """Raise UserError unless the sums give the stated counts of examples."""
    for noun, stated, recount in _counts(result, sums):
        if not _is_close(stated, recount):
            raise UserError(
                f"{path}: {result.task.name}: {stated:,} {noun} are stated, but the sums give "
                f"{recount:,.0f}. Export the record that the suite wrote."
            )


def _counts(result: Result, sums: Sequence[csr_array]) -> Iterator[tuple[str, float, float]]:
    """Counts: name, stated number, and number from the sums."""
    examples, corpus, metric = result.examples, result.corpus, result.task.metric
    in_test = {label: counts[2] for label, counts in examples.labels.items() if counts[2]}
    # Sums have columns for the labels that a metric scores: frequent ones, or those of train.
    least = {"macro_f1_20": 20}.get(metric, 1)
    scored = [x for x in examples.classes if in_test.get(x, 0) >= least]
    if metric != "balanced_accuracy":
        scored += sorted(x for x in in_test.keys() - {*examples.classes} if in_test[x] >= least)
    column = metrics.get(metric).counts
    for total in (x.sum(0) for x in sums):
        if isinstance(column, int):
            yield "test examples", examples.n["test"], total[column]
        elif column == "labels":
            counts = [n for n in total[: len(total) // 3] if n]
            yield "labels in test", len(scored), len(counts)
            for label, n in zip(scored, counts, strict=True):
                yield f"test examples of {label}", in_test[label], n
    if examples.labels and result.task.kind == "classification":
        for index, split in enumerate(SPLITS):
            yield (
                f"{split} examples",
                examples.n[split],
                sum(x[index] for x in examples.labels.values()),
            )
    # Other counts do not follow from sums, but have a bound, which is compared in their stead.
    n_test, groups = examples.n["test"], (0, *examples.groups.values())
    unseen = sum(examples.unseen_test_labels.values())
    yield "test examples with labels that are not in train", unseen, min(unseen, n_test)
    yield "test examples of the largest group", max(groups), min(max(groups), n_test)
    # A cluster has at least one sentence, but may have no label that the metric counts.
    n_clusters = sums[0].shape[0]
    seen = int(np.any([abs(x).sum(1) for x in sums], axis=0).sum())
    yield examples.resampled, examples.clusters, int(np.clip(examples.clusters, seen, n_clusters))
    sentences = {split: corpus.sentences.get(split, 0) for split in SPLITS}
    yield "test sentences", sentences["test"], max(sentences["test"], n_clusters)
    for split, n in sentences.items():
        yield f"{split} sentences", n, min(n, corpus.limit or n)
    # Sentences are dropped after --limit, which no split may have reached then.
    if corpus.limited and DROPPED not in corpus.notes:
        yield "sentences of the largest split", max(sentences.values()), corpus.limit or 0


def _values_from_sums(
    result: Result, sums: Sequence[csr_array], path: Path
) -> tuple[Floats, Floats | None]:
    """The headline metric (layers,), and in each resample (layers, n)."""
    metric = metrics.get(result.task.metric)
    try:
        values = np.array([metric.value(x.sum(0)) for x in sums])
        if why_not_resampled(result):
            return values, None
        draws = resample(sums[0].shape[0])
        replicates = [resampled_values(metric, x, draws) for x in sums]
    except (IndexError, TypeError, ValueError) as error:  # of another shape, or no numbers
        raise wrong_arrays_error(path) from error
    return values, np.stack(replicates)


def _training_variance(result: Result, path: Path) -> Iterator[Row]:
    rows = result.evidence[training_variance.name].rows
    samples, seeds = (
        _further_scores(rows, result.task.metric, axis) for axis in ("sample", "seed")
    )
    yield from pooled_deviations(result, pooled(list(samples.values())), seeds)
    for layer, layer_scores in samples.items():
        yield deviation_row("layer_training_sd", pooled([layer_scores]), layer)
    replicates = resampled_scores(result, result.layers)
    testable = replicates is not None and replicates.sd is not None
    tested = p_best_of(replicates) if replicates and testable else dict.fromkeys(result.layers)
    for layer, p in tested.items():
        yield Row("p_best", p, layer)


def _further_scores(rows: Rows, metric: str, axis: str) -> dict[int, list[float | None]]:
    """Scores of further fits, by layer."""
    scores_by_layer: dict[int, list[float | None]] = defaultdict(list)
    for row in rows.along(axis):
        if row.metric == metric and row.layer is not None:
            scores_by_layer[row.layer].append(row.value)
    return scores_by_layer


def _localisation(result: Result, path: Path) -> Iterator[Row]:
    stored, sums = result.evidence[localisation.name], stored_mix_sums(result, path)
    mix_path = path.with_name(name_of(stored))
    if sums is None:
        raise UserError(f"{mix_path}: is not beside the scores {path.name}; export both together.")
    values, replicates = _values_from_sums(result, sums, mix_path)
    of_samples: dict[AxisValue, list[float | None]] = defaultdict(list)
    for row in stored.rows.along("of"):
        if row.layer == len(values) - 1:
            of_samples[row.axes.get("sample") or 0].append(row.value)
    if {*map(len, of_samples.values())} != {len(values)}:
        raise UserError(f"{mix_path}: has no weights of {len(values)} layers; run it again.")
    weights = np.array(list(of_samples.values()), dtype=np.float64)
    yield from rows_of_gains(values, replicates, weights)


_EVIDENCE_ROWS: dict[str, Callable[[Result, Path], Iterator[Row]]] = {
    training_variance.name: _training_variance,
    localisation.name: _localisation,
}
"""Functions that compute rows of evidence from sums, by measurement."""
