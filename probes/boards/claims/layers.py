"""Predicates on where probes are best, and on steps from layer to layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from probes.boards.claims.bands import Band, around_layer_4, middle, name_of, within
from probes.boards.claims.claim import (
    MissingError,
    Outcome,
    Predicate,
    all_of,
    any_of,
    decided,
    p_if,
)
from probes.boards.claims.model_rows import ModelRows, listed
from probes.boards.transferability import layer_ranks
from probes.common.arrays import Floats
from probes.records.result import SCORES
from probes.statistics.bootstrap import Draws, blocks, bounds, interval
from probes.statistics.replicates import p_values_of
from probes.statistics.significance import ALPHA, all_pairs, max_t, p_best

PValues = Mapping[int, float | None]
"""Of every layer, of its being the best; None for one without a score."""

STRUCTURE = "structure"

FEWEST_TASKS = 3
"""A layer that is best on two tasks does not transfer across tasks."""


def peaks_in(bands: Mapping[str, Band]) -> Predicate:
    """The predicate that every task is best somewhere in its band.

    Supported if every layer that is among the best is in the band, for all tasks; contradicted if
    none is, for some task.
    """

    def predicate(model: ModelRows) -> Outcome:
        inside = {task: within(len(model.scores(task)) - 1, band) for task, band in bands.items()}
        why = "; ".join(
            f"{_peak(model, task)}; {name_of(band)}: {listed(inside[task])}"
            for task, band in bands.items()
        )
        tests = [split_by(model.p_best(task), inside[task]) for task in bands]
        return _all_inside(tests, why, [_peak_numbers(model, task) for task in bands])

    return predicate


def trees_peak_in(band: Band, metrics: Sequence[str]) -> Predicate:
    """The same of structural probes at their reported rank, by each of the metrics."""

    def predicate(model: ModelRows) -> Outcome:
        record = model.record_of_all_layers(STRUCTURE)
        inside = within(record.model.n_layers, band)
        tests: dict[str, PValues] = {
            metric: {
                layer: row.value
                for layer, row in model.by_layer(STRUCTURE, f"{metric}_p_best", rank=...).items()
            }
            for metric in metrics
        }
        peaks = {metric: may_be_best(each) for metric, each in tests.items()}
        if untested := [metric for metric, layers in peaks.items() if not layers]:
            raise MissingError(f"{' and '.join(untested)}: layers could not be tested")
        why = "; ".join(
            f"{metric} at rank {record.facts['rank']} is best at {listed(layers)}"
            for metric, layers in peaks.items()
        )
        return _all_inside(
            [split_by(each, inside) for each in tests.values()],
            f"{why}; {name_of(band)}: {listed(inside)}",
            [
                {"metric": metric, "peak_layers": sorted(layers), "p_best": tests[metric]}
                for metric, layers in peaks.items()
            ],
        )

    return predicate


def _all_inside(
    tests: Sequence[tuple[float, float]], why: str, numbers: list[dict[str, Any]]
) -> Outcome:
    """The outcome of a claim that in all tests of `split_by` the best layer is in the band."""
    return decided(
        all_of(outside for _, outside in tests), any_of(inside for inside, _ in tests), why, numbers
    )


def peaks_before(early: str, late: str) -> Predicate:
    """The predicate that one task is best at lower layers than another.

    Supported if all best layers for `early` lie below all of `late`; contradicted
    if none lies below any.
    """

    def predicate(model: ModelRows) -> Outcome:
        first, second = model.p_best(early), model.p_best(late)
        # Two layers are the best of both tasks with the lesser p; either may be wrongly excluded.
        both = {
            (i, j): min(p or 0.0, q or 0.0) for i, p in first.items() for j, q in second.items()
        }
        return decided(
            min(1.0, 2 * all_of(p for (i, j), p in both.items() if i >= j)),
            min(1.0, 2 * all_of(p for (i, j), p in both.items() if i < j)),
            "; ".join(_peak(model, task) for task in (early, late)),
            [_peak_numbers(model, task) for task in (early, late)],
        )

    return predicate


def falls_there(task: str) -> Predicate:
    """The predicate that a task's score falls around layer 4 of 12, and there more than elsewhere.

    By changes per layer before, around and after it. Supported if the score falls around it, and
    more steeply than before; contradicted if it rises there, or falls more steeply before or after.
    All three comparisons are tested together, by max-T.
    """

    def predicate(model: ModelRows) -> Outcome:
        values = model.tested(task)
        last = len(values.scores) - 1
        first, end = around_layer_4(last)
        if not 0 < first < end < last:
            raise MissingError(f"a model of {last} layers has none before or after such a step")
        slopes = np.zeros((3, last + 1))
        for slope, (start, stop) in zip(
            slopes, ((0, first), (first, end), (end, last)), strict=True
        ):
            slope[[start, stop]] = np.array([-1, 1]) / (stop - start)
        before, around, after = slopes
        changes = values.combined(np.stack([0 * around, around, around - before, after - around]))
        there, than_before, afterwards = p_values_of([changes], [(0, 1), (0, 2), (0, 3)])
        less = changes.scores < 0
        elsewhere = (p_if(not less[2], than_before), p_if(less[3], afterwards))
        against = min(p_if(not less[1], there), *elsewhere)
        found = values.combined(slopes)
        ends = [bounds(each) for each in interval(found.resampled)]
        spans = (f"0–{first}", f"{first}–{end}", f"{end}–{last}")
        named = dict(zip(spans, zip(found.scores.tolist(), ends, strict=True), strict=True))
        return decided(
            # It may fall there more than before, and afterwards still more.
            1.0 if against < ALPHA else all_of((p_if(less[1], there), p_if(less[2], than_before))),
            against,
            f"{task} per layer: "
            + "; ".join(f"{span} {_change(*each)}" for span, each in named.items())
            + f"; p = {there:.2g} (change at {first}–{end}), {than_before:.2g} (less that before), "
            f"{afterwards:.2g} (less that afterwards)",
            [
                {"layers": span, "change": change, "interval": between}
                for span, (change, between) in named.items()
            ],
        )

    return predicate


def rises(*tasks: str) -> Predicate:
    """The predicate that every task's score rises around layer 4 of 12.

    Supported if every score rises, contradicted if one falls. Changes are tested at .05, corrected
    over all of them.
    """

    def predicate(model: ModelRows) -> Outcome:
        values = [model.tested(task) for task in tasks]
        before, after = around_layer_4(len(values[0].scores) - 1)
        ends = [each.row(layer) for each in values for layer in (before, after)]
        p_values = p_values_of(ends, [(2 * i, 2 * i + 1) for i in range(len(values))])
        parts, numbers, up, down = [], [], [], []
        for task, each, p in zip(tasks, values, p_values, strict=True):
            change = float(each.scores[after] - each.scores[before])
            between = bounds(interval(each.resampled[after] - each.resampled[before]))
            up.append(p_if(change > 0, p))
            down.append(p_if(change < 0, p))
            parts.append(f"{task} {_change(change, between)} (p = {p:.2g})")
            numbers.append({"task": task, "change": change, "interval": between, "p": p})
        why = f"change from layer {before} to {after}: {', '.join(parts)}"
        return decided(all_of(up), min(down), why, [{"layers": [before, after]}, *numbers])

    return predicate


def _change(change: float, between: tuple[float, float] | None) -> str:
    text = f"{change:+.3f}"
    if between is not None:
        text += f" [{between[0]:+.3f}, {between[1]:+.3f}]"
    return text.replace("-", "−")


def middle_transfers(model: ModelRows) -> Outcome:
    """Where the mean rank over tasks is best: at layers not significantly worse than any other.

    Supported if all of these are middle layers; contradicted if none is. Ranks are made in each
    resample, and all pairs of layers are tested at .05.
    """
    values, left_out = model.of_all(model.tested, FEWEST_TASKS)
    ranks = layer_ranks(np.array([each.scores for each in values.values()])).mean(0)
    n_clusters, pairs = next(iter(values.values())).n_clusters, all_pairs(len(ranks))

    def mean_ranks(block: int, draws: Draws) -> Floats:
        every = [layer_ranks(each.within(block, draws).T) for each in values.values()]
        found: Floats = np.mean(every, axis=0).T
        return found

    drawn = (mean_ranks(block, draws) for block, draws in enumerate(blocks(n_clusters)))
    first = next(drawn)
    tests = max_t(-ranks, ((-each, None) for each in chain([first], drawn)), pairs)
    p_values = p_best(-ranks, pairs, tests)
    inside = within(len(ranks) - 1, middle)
    by_layer = dict(enumerate(p_values.tolist()))
    why = (
        f"mean rank over {', '.join(values)} is best at {listed(may_be_best(by_layer))}; "
        f"middle: {listed(inside)}; lowest: layer {ranks.argmin()} with {ranks.min():.1f}"
    )
    numbers = [
        {"layer": layer, "mean_rank": float(rank), "interval": bound, "p_best": float(p)}
        for layer, (rank, bound, p) in enumerate(
            zip(ranks, interval(first).round(2).tolist(), p_values, strict=True)
        )
    ]
    in_band, outside = split_by(by_layer, inside)
    return decided(outside, in_band, why + left_out, [{"tasks": list(values)}, *numbers])


def split_by(p_values: PValues, band: set[int]) -> tuple[float, float]:
    """The p-values of two hypotheses: that the best layer is in a band, and that it is not."""
    inside, outside = (
        all_of(p or 0.0 for layer, p in p_values.items() if (layer in band) == is_in)
        for is_in in (True, False)
    )
    return inside, outside


def may_be_best(p_values: PValues) -> set[int]:
    """The layers not significantly worse than any other."""
    return {layer for layer, p in p_values.items() if (p or 0.0) >= ALPHA}


def _best(model: ModelRows, task: str) -> int:
    """The layer that is best on dev; of equal ones the lowest."""
    metric = model.results[task].task.metric
    dev = model.by_layer(SCORES, metric, task, split="dev")
    known = {layer: row.value for layer, row in dev.items() if row.value is not None}
    return max(sorted(known), key=known.__getitem__, default=min(dev))


def _peak(model: ModelRows, task: str) -> str:
    """``depth is best at 2, 3 of 6; on dev at 3, 0.840 [0.829, 0.850]``."""
    peaks, scores = may_be_best(model.p_best(task)), model.scores(task)
    best = _best(model, task)
    found = scores[best]
    return (
        f"{task} is best at {listed(peaks)} of {len(scores) - 1}; on dev at {best}, "
        f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"
    )


def _peak_numbers(model: ModelRows, task: str) -> dict[str, Any]:
    """The numbers behind a statement about where a task peaks."""
    p_values, scores, best = model.p_best(task), model.scores(task), _best(model, task)
    return {
        "task": task,
        "view": model.results[task].view,
        "best_layer": best,
        "score": scores[best].value,
        "interval": scores[best].interval,
        "peak_layers": sorted(may_be_best(p_values)),
        "p_best": p_values,
        "layers": len(scores) - 1,
    }
