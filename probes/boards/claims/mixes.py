"""Predicates on scalar mixes of layers (Tenney et al. 2019a)."""

from __future__ import annotations

from probes.boards.claims.bands import middle
from probes.boards.claims.layers import FEWEST_TASKS
from probes.boards.claims.model_scores import ModelScores, within
from probes.boards.claims.outcome import (
    MissingError,
    Outcome,
    all_of,
    any_of,
    decided,
    p_above,
    p_if,
)
from probes.measurements.expected_layer import gain_deviation
from probes.records.row import Rows
from probes.records.values import Interval
from probes.statistics.bootstrap import bounds, interval
from probes.statistics.replicates import p_values_of
from probes.statistics.significance import ALPHA

PIPELINE = ("pos", "deprel", "srl")
"""Part of speech, parsing, semantic roles: the first two are syntax, the third is semantics."""

Ranges = dict[str, tuple[float, float]]
"""Intervals by task."""


def pipeline(model: ModelScores) -> Outcome:
    """Supported if the interval of each expected layer ends before the next begins.

    Contradicted if one begins after a later one has ended.
    """
    ranges = _known({task: _interval(model.located(task), "expected_layer") for task in PIPELINE})
    pos, deprel, srl = ranges.values()
    pairs = ((pos, deprel), (deprel, srl), (pos, srl))
    return decided(
        all_of(p_above(early, late) for early, late in pairs),
        any_of(p_above(late, early) for early, late in pairs),
        f"expected layer: {_said(ranges)}",
        [{"task": task, "expected_layer": list(each)} for task, each in ranges.items()],
    )


def semantics_spread(model: ModelScores) -> Outcome:
    """Compares `srl` with `pos` and `deprel` in how far its weights and its gains are spread.

    Weights by their divergence from uniform ones, gains by the standard deviation of their layers.
    Supported if the intervals of `srl` show more spread than both others, in weights and in gains;
    contradicted if one shows less.
    """
    weights = _known({task: _interval(model.located(task), "kl") for task in PIPELINE})
    gains = _known(
        {t: bounds(interval(gain_deviation(model.mix_replicates(t).values))) for t in PIPELINE}
    )
    # The farther from uniform, the less spread.
    near_uniform = {task: (-high, -low) for task, (low, high) in weights.items()}
    pairs = [
        (spread["srl"], spread[task]) for spread in (near_uniform, gains) for task in PIPELINE[:2]
    ]
    why = (
        f"divergence of weights from uniform, bits: {_said(weights)}; "
        f"standard deviation of gains, layers: {_said(gains)}"
    )
    numbers = [
        {"task": t, "kl_bits": list(weights[t]), "gain_deviation": list(gains[t])} for t in PIPELINE
    ]
    return decided(
        all_of(p_above(other, ours) for ours, other in pairs),
        any_of(p_above(ours, other) for ours, other in pairs),
        why,
        numbers,
    )


def final_layers_lower(model: ModelScores) -> Outcome:
    """Tests what each layer above the middle adds to the mix of those below it.

    Supported if in more than half of the tasks one of them lowers the score; contradicted if in at
    least half all of them raise it. Steps are tested at .05, corrected over all of them.
    """
    values, left_out = model.of_all(model.tested_mixes, FEWEST_TASKS)
    first = model.result(next(iter(values)))
    border, last = max(within(first, middle)), first.model.n_layers
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


def _interval(rows: Rows, metric: str) -> Interval:
    row = rows.at(metric)
    return row.interval if row else None


def _known(given: dict[str, Interval]) -> Ranges:
    found = {task: each for task, each in given.items() if each is not None}
    if absent := given.keys() - found.keys():
        raise MissingError(f"no interval can be given for {', '.join(sorted(absent))}")
    return found


def _said(ranges: Ranges) -> str:
    return ", ".join(f"{task} [{low:.2f}, {high:.2f}]" for task, (low, high) in ranges.items())
