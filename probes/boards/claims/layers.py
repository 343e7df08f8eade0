"""Predicates on the scores of single layers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain
from typing import Any

import numpy as np

from probes.boards import separability
from probes.boards.claims.bands import Band, around_layer_4, middle
from probes.boards.claims.claim import Predicate
from probes.boards.claims.model_scores import ModelScores, within
from probes.boards.claims.outcome import Outcome, verdict
from probes.boards.transferability import layer_ranks
from probes.common.arrays import Floats
from probes.statistics.bootstrap import Draws, blocks, bounds, interval
from probes.statistics.replicates import p_values_of
from probes.statistics.significance import ALPHA, all_pairs, borderline, max_t, p_best

FEWEST_TASKS = 3
"""A layer that is best on two tasks does not transfer across tasks."""


def peaks_in(bands: Mapping[str, Band]) -> Predicate:
    """The predicate that every task is best somewhere in its band.

    Supported if every layer that may be the best is in the band, for all tasks; contradicted if
    none is, for some task.
    """

    def predicate(model: ModelScores) -> Outcome:
        peaks = {task: model.peaks(task) for task in bands}
        inside = {task: within(model.result(task), band) for task, band in bands.items()}
        why = "; ".join(
            f"{_peak(model, task)}; {band.__name__.replace('_', '-')}: {_listed(inside[task])}"
            for task, band in bands.items()
        )
        found = verdict(
            for_it=all(peaks[task] <= inside[task] for task in bands),
            against=any(not peaks[task] & inside[task] for task in bands),
        )
        return Outcome(found, why, [_peak_numbers(model, task) for task in bands])

    return predicate


def peaks_before(early: str, late: str) -> Predicate:
    """The predicate that one task is best at lower layers than another.

    Supported if all layers that may be the best for `early` lie below all of `late`; contradicted
    if none lies below any.
    """

    def predicate(model: ModelScores) -> Outcome:
        first, second = model.peaks(early), model.peaks(late)
        found = verdict(
            for_it=max(first) < min(second),
            against=min(first) >= max(second),
        )
        tasks = (early, late)
        why = "; ".join(_peak(model, task) for task in tasks)
        return Outcome(found, why, [_peak_numbers(model, task) for task in tasks])

    return predicate


def falls(*tasks: str) -> Predicate:
    """The predicate that every task's score falls around layer 4 of 12."""
    return _step(tasks, -1)


def rises(*tasks: str) -> Predicate:
    """The predicate that every task's score rises around layer 4 of 12."""
    return _step(tasks, 1)


def _step(tasks: Collection[str], sign: int) -> Predicate:
    """Supported if every score changes in the direction of `sign`; contradicted if one does in the
    other. Changes are tested at .05, corrected over all of them.
    """

    def predicate(model: ModelScores) -> Outcome:
        values = [model.tested(task) for task in tasks]
        before, after = around_layer_4(len(values[0].scores) - 1)
        ends = [each.row(layer) for each in values for layer in (before, after)]
        p_values = p_values_of(ends, [(2 * i, 2 * i + 1) for i in range(len(values))])
        parts, numbers, directions = [], [], []
        for task, each, p in zip(tasks, values, p_values, strict=True):
            change = float(each.scores[after] - each.scores[before])
            between = bounds(interval(each.resampled[after] - each.resampled[before]))
            directions.append(sign * np.sign(change) if p < ALPHA else 0)
            parts.append(f"{task} {_change(change, between, p)}")
            numbers.append({"task": task, "change": change, "interval": between, "p": p})
        found = verdict(
            for_it=all(each > 0 for each in directions),
            against=any(each < 0 for each in directions),
        )
        why = f"change from layer {before} to {after}: {', '.join(parts)}"
        return Outcome(found, why, [{"layers": [before, after]}, *numbers])

    return predicate


def _change(change: float, between: tuple[float, float] | None, p: float) -> str:
    text = f"{change:+.3f}"
    if between is not None:
        unclear = ", borderline" if borderline(p) else ""
        text += f" [{between[0]:+.3f}, {between[1]:+.3f}] (p = {p:.2g}{unclear})"
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
        f"mean rank over {', '.join(values)} may be best at {_listed(best)}; middle: "
        f"{_listed(inside)}; best: layer {ranks.argmin()} with {ranks.min():.1f}"
    )
    numbers = [
        {"layer": layer, "mean_rank": float(rank), "interval": bound, "p_best": float(p)}
        for layer, (rank, bound, p) in enumerate(
            zip(ranks, interval(first).round(2).tolist(), p_values, strict=True)
        )
    ]
    found = verdict(for_it=best <= inside, against=not best & inside)
    return Outcome(found, why + left_out, [{"tasks": list(values)}, *numbers])


def _peak(model: ModelScores, task: str) -> str:
    """``depth may be best at 2, 3 of 6; best on dev: 3, 0.840 [0.829, 0.850]``."""
    result = model.result(task)
    best = result.best_layer
    low, high = best.intervals[result.task.metric] or (np.nan, np.nan)
    return (
        f"{task} may be best at {_listed(model.peaks(task))} of {result.model.n_layers}; "
        f"best on dev: {best.layer}, {result.score(best):.3f} [{low:.3f}, {high:.3f}]"
    )


def _peak_numbers(model: ModelScores, task: str) -> dict[str, Any]:
    """The numbers behind a statement about where a task peaks."""
    result = model.result(task)
    best = result.best_layer
    return {
        "task": task,
        "view": result.view,
        "best_layer": best.layer,
        "score": result.score(best),
        "interval": best.intervals[result.task.metric],
        "peak_layers": sorted(model.peaks(task)),
        "p_best": separability.p_best(result),
        "layers": result.model.n_layers,
    }


def _listed(layers: set[int]) -> str:
    return ", ".join(map(str, sorted(layers)))
