"""Predicates on the scores of single layers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from probes.boards.claims.bands import Band, around_layer_4, middle
from probes.boards.claims.model_scores import ModelScores, scores, within
from probes.boards.claims.outcome import Outcome, verdict
from probes.boards.separability import p_best
from probes.boards.transferability import layer_ranks
from probes.statistics.bootstrap import bounds, interval
from probes.statistics.significance import ALPHA, max_t

FEWEST_TASKS = 3
"""A layer that is best on two tasks does not transfer across tasks."""

Predicate = Callable[[ModelScores], Outcome]


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
        values = [model.replicates(task) for task in tasks]
        before, after = around_layer_4(len(values[0]) - 1)
        known = [scores(model.result(task)) for task in tasks]
        ends = [before, after]
        p_values = max_t(
            np.concatenate([each[ends] for each in known]),
            np.concatenate([each[ends] for each in values]),
            [(2 * i, 2 * i + 1) for i in range(len(values))],
        ).tolist()
        parts, numbers, directions = [], [], []
        for task, score, resampled, p in zip(tasks, known, values, p_values, strict=True):
            change = float(score[after] - score[before])
            between = bounds(interval(resampled[after] - resampled[before]))
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
        text += f" [{between[0]:+.3f}, {between[1]:+.3f}] (p = {p:.2g})"
    return text.replace("-", "−")


def middle_transfers(model: ModelScores) -> Outcome:
    """Compares the best mean rank of a middle layer with that of any other layer, in resamples."""
    values, left_out = model.of_all(model.replicates, FEWEST_TASKS)
    ranks = layer_ranks(np.array([scores(model.result(task)) for task in values])).mean(0)
    resampled = np.mean([layer_ranks(each.T) for each in values.values()], axis=0)
    inside = within(model.result(next(iter(values))), middle)
    is_inside = np.array([layer in inside for layer in range(len(ranks))])
    ours, theirs = ranks[is_inside].min(), ranks[~is_inside].min()
    both = np.stack([resampled[:, is_inside].min(1), resampled[:, ~is_inside].min(1)])
    p = float(max_t(np.array([ours, theirs]), both, [(0, 1)])[0])
    found = verdict(for_it=p < ALPHA and ours < theirs, against=p < ALPHA and ours > theirs)
    bounds = interval(resampled.T).round(2).tolist()
    why = (
        f"mean rank over {', '.join(values)}: best middle layer ({_listed(inside)}) {ours:.1f}, "
        f"best other layer {theirs:.1f} (p = {p:.2g}); best of all: layer {ranks.argmin()}"
    )
    numbers = [
        {"layer": layer, "mean_rank": float(rank), "interval": bound, "middle": bool(is_in)}
        for layer, (rank, bound, is_in) in enumerate(zip(ranks, bounds, is_inside, strict=True))
    ]
    return Outcome(found, why + left_out, [{"tasks": list(values), "p": p}, *numbers])


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
        "p_best": p_best(result),
        "layers": result.model.n_layers,
    }


def _listed(layers: set[int]) -> str:
    return ", ".join(map(str, sorted(layers)))
