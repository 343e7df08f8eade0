"""Predicates on the scores of single layers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np

from probes.boards import separability
from probes.boards.claims.bands import Band, around_layer_4, middle
from probes.boards.claims.claim import Predicate
from probes.boards.claims.model_scores import ModelScores, within
from probes.boards.claims.outcome import (
    MissingError,
    Outcome,
    all_of,
    any_of,
    decided,
    listed,
    p_if,
    split_by,
)
from probes.boards.transferability import layer_ranks
from probes.common.arrays import Floats
from probes.statistics.bootstrap import Draws, blocks, bounds, interval
from probes.statistics.replicates import p_values_of
from probes.statistics.significance import ALPHA, all_pairs, max_t, p_best

FEWEST_TASKS = 3
"""A layer that is best on two tasks does not transfer across tasks."""


def peaks_in(bands: Mapping[str, Band]) -> Predicate:
    """The predicate that every task is best somewhere in its band.

    Supported if every layer that may be the best is in the band, for all tasks; contradicted if
    none is, for some task.
    """

    def predicate(model: ModelScores) -> Outcome:
        inside = {task: within(model.result(task), band) for task, band in bands.items()}
        why = "; ".join(
            f"{_peak(model, task)}; {band.__name__.replace('_', '-')}: {listed(inside[task])}"
            for task, band in bands.items()
        )
        p_values = [split_by(_p_best(model, task), inside[task]) for task in bands]
        return decided(
            all_of(outside for _, outside in p_values),
            any_of(in_band for in_band, _ in p_values),
            why,
            [_peak_numbers(model, task) for task in bands],
        )

    return predicate


def peaks_before(early: str, late: str) -> Predicate:
    """The predicate that one task is best at lower layers than another.

    Supported if all layers that may be the best for `early` lie below all of `late`; contradicted
    if none lies below any.
    """

    def predicate(model: ModelScores) -> Outcome:
        first, second = _p_best(model, early), _p_best(model, late)
        # Two layers are the best of both tasks with the lesser p; either may be wrongly excluded.
        both = {(i, j): min(p, q) for i, p in first.items() for j, q in second.items()}
        tasks = (early, late)
        return decided(
            min(1.0, 2 * all_of(p for (i, j), p in both.items() if i >= j)),
            min(1.0, 2 * all_of(p for (i, j), p in both.items() if i < j)),
            "; ".join(_peak(model, task) for task in tasks),
            [_peak_numbers(model, task) for task in tasks],
        )

    return predicate


def falls_there(task: str) -> Predicate:
    """The predicate that a task's score falls around layer 4 of 12, and there more than elsewhere.

    By changes per layer before, around and after it. Supported if the score falls around it, and
    more steeply than before; contradicted if it rises there, or falls more steeply before or after.
    All three comparisons are tested together, by max-T.
    """

    def predicate(model: ModelScores) -> Outcome:
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

    def predicate(model: ModelScores) -> Outcome:
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


def middle_transfers(model: ModelScores) -> Outcome:
    """Where the mean rank over tasks may be best: at layers that none is separated above.

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
    inside = within(model.result(next(iter(values))), middle)
    best = {layer for layer, p in enumerate(p_values) if p >= ALPHA}
    why = (
        f"mean rank over {', '.join(values)} may be best at {listed(best)}; middle: "
        f"{listed(inside)}; best: layer {ranks.argmin()} with {ranks.min():.1f}"
    )
    numbers = [
        {"layer": layer, "mean_rank": float(rank), "interval": bound, "p_best": float(p)}
        for layer, (rank, bound, p) in enumerate(
            zip(ranks, interval(first).round(2).tolist(), p_values, strict=True)
        )
    ]
    in_band, outside = split_by(dict(enumerate(p_values.tolist())), inside)
    return decided(outside, in_band, why + left_out, [{"tasks": list(values)}, *numbers])


def _p_best(model: ModelScores, task: str) -> dict[int, float]:
    """By layer, the p-value of its being the best."""
    model.peaks(task)
    found = separability.p_best(model.result(task)) or {}
    return {layer: p or 0.0 for layer, p in found.items()}


def _peak(model: ModelScores, task: str) -> str:
    """``depth may be best at 2, 3 of 6; best on dev: 3, 0.840 [0.829, 0.850]``."""
    result = model.result(task)
    best = result.best_layer
    low, high = result.interval(best) or (np.nan, np.nan)
    return (
        f"{task} may be best at {listed(model.peaks(task))} of {result.model.n_layers}; "
        f"best on dev: {best}, {result.score(best):.3f} [{low:.3f}, {high:.3f}]"
    )


def _peak_numbers(model: ModelScores, task: str) -> dict[str, Any]:
    """The numbers behind a statement about where a task peaks."""
    result = model.result(task)
    best = result.best_layer
    return {
        "task": task,
        "view": result.view,
        "best_layer": best,
        "score": result.score(best),
        "interval": result.interval(best),
        "peak_layers": sorted(model.peaks(task)),
        "p_best": separability.p_best(result),
        "layers": result.model.n_layers,
    }
