"""Predicates on scalar mixes of layers (Tenney et al. 2019a)."""

from __future__ import annotations

from itertools import combinations

from probes.boards.claims.bands import middle, within
from probes.boards.claims.claim import MissingError, Outcome, Predicate, decided, ordered, p_if
from probes.boards.claims.layers import FEWEST_TASKS
from probes.boards.claims.model_rows import ModelRows
from probes.measurements.expected_layer import gain_deviation
from probes.records.values import Interval
from probes.statistics.bootstrap import bounds, interval
from probes.statistics.replicates import p_values_of
from probes.statistics.significance import ALPHA

SYNTAX = ("pos", "deprel")
"""Part of speech and parsing."""

Ranges = dict[str, tuple[float, float]]
"""Intervals by task."""


def in_order(*tasks: str) -> Predicate:
    """The predicate that the expected layers of tasks lie in this order.

    Supported if the interval of each ends before the next begins; contradicted if one begins after
    a later one has ended.
    """

    def predicate(model: ModelRows) -> Outcome:
        ranges = _known({task: model.located(task, "expected_layer").interval for task in tasks})
        return ordered(
            combinations(ranges.values(), 2),
            f"expected layer: {_said(ranges)}",
            [{"task": task, "expected_layer": list(each)} for task, each in ranges.items()],
        )

    return predicate


def more_spread(semantic: str) -> Predicate:
    """The predicate that a task's weights and its gains are spread farther than those of syntax.

    Weights by their divergence from uniform ones, gains by the standard deviation of their layers.
    Supported if the intervals show more spread than both `pos` and `deprel`, in weights and in
    gains; contradicted if one shows less.
    """

    def predicate(model: ModelRows) -> Outcome:
        tasks = (*SYNTAX, semantic)
        weights = _known({task: model.located(task, "kl").interval for task in tasks})
        gains = _known({t: bounds(interval(gain_deviation(model.mixes(t).values))) for t in tasks})
        # The farther from uniform, the less spread.
        near_uniform = {task: (-high, -low) for task, (low, high) in weights.items()}
        pairs = [
            (spread[task], spread[semantic]) for spread in (near_uniform, gains) for task in SYNTAX
        ]
        why = (
            f"divergence of weights from uniform, bits: {_said(weights)}; "
            f"standard deviation of gains, layers: {_said(gains)}"
        )
        numbers = [
            {"task": t, "kl_bits": list(weights[t]), "gain_deviation": list(gains[t])}
            for t in tasks
        ]
        return ordered(pairs, why, numbers)

    return predicate


def final_layers_lower(model: ModelRows) -> Outcome:
    """Tests what each layer above the middle adds to the mix of those below it.

    Supported if in more than half of the tasks one of them lowers the score; contradicted if in at
    least half all of them raise it. Steps are tested at .05, corrected over all of them.
    """
    values, left_out = model.of_all(model.tested_mixes, FEWEST_TASKS)
    last = len(next(iter(values.values())).scores) - 1
    border = max(within(last, middle))
    final = range(border + 1, last + 1)
    steps = [
        (i * (last + 1) + k - 1, i * (last + 1) + k) for i in range(len(values)) for k in final
    ]
    p_values = iter(p_values_of(list(values.values()), steps))
    numbers, lowers, raises = [], {}, {}
    for task, each in values.items():
        mixed, resampled, down, up = each.scores, each.resampled, [], []
        for k in final:
            step, p = float(mixed[k] - mixed[k - 1]), next(p_values)
            down.append(p_if(step < 0, p))
            up.append(p_if(step > 0, p))
            between = bounds(interval(resampled[k] - resampled[k - 1]))
            numbers.append({"task": task, "layer": k, "gain": step, "interval": between, "p": p})
        lowers[task], raises[task] = min(down), max(up)
    lowered, raised = ([task for task, p in x.items() if p < ALPHA] for x in (lowers, raises))
    n = len(values)
    return decided(
        sorted(lowers.values())[n // 2],  # of more than half
        sorted(raises.values())[(n - 1) // 2],  # of half or more
        f"cumulative scores of {n} tasks at layers {border + 1}–{last}: one layer lowers "
        f"{', '.join(lowered) or 'none'}; all raise {', '.join(raised) or 'none'}{left_out}",
        numbers,
    )


def _known(given: dict[str, Interval]) -> Ranges:
    found = {task: each for task, each in given.items() if each is not None}
    if absent := given.keys() - found.keys():
        raise MissingError(f"no interval can be given for {', '.join(sorted(absent))}")
    return found


def _said(ranges: Ranges) -> str:
    return ", ".join(f"{task} [{low:.2f}, {high:.2f}]" for task, (low, high) in ranges.items())
