"""Predicates on scalar mixes of layers (Tenney et al. 2019a)."""

from __future__ import annotations

from probes.boards.claims.bands import middle, within
from probes.boards.claims.claim import MissingError, Outcome, decided, ordered, p_if
from probes.boards.claims.layers import FEWEST_TASKS
from probes.boards.claims.model_rows import ModelRows
from probes.measurements.expected_layer import gain_deviation
from probes.records.values import Interval
from probes.statistics.bootstrap import bounds, interval
from probes.statistics.replicates import p_values_of
from probes.statistics.significance import ALPHA

PIPELINE = ("pos", "deprel", "srl")
"""Part of speech, parsing, semantic roles: the first two are syntax, the third is semantics."""

Ranges = dict[str, tuple[float, float]]
"""Intervals by task."""


def pipeline(model: ModelRows) -> Outcome:
    """Supported if the interval of each expected layer ends before the next begins.

    Contradicted if one begins after a later one has ended.
    """
    ranges = _known({task: model.located(task, "expected_layer").interval for task in PIPELINE})
    pos, deprel, srl = ranges.values()
    pairs = ((pos, deprel), (deprel, srl), (pos, srl))
    return ordered(
        pairs,
        f"expected layer: {_said(ranges)}",
        [{"task": task, "expected_layer": list(each)} for task, each in ranges.items()],
    )


def semantics_spread(model: ModelRows) -> Outcome:
    """Compares `srl` with `pos` and `deprel` in how far its weights and its gains are spread.

    Weights by their divergence from uniform ones, gains by the standard deviation of their layers.
    Supported if the intervals of `srl` show more spread than both others, in weights and in gains;
    contradicted if one shows less.
    """
    weights = _known({task: model.located(task, "kl").interval for task in PIPELINE})
    gains = _known({t: bounds(interval(gain_deviation(model.mixes(t).values))) for t in PIPELINE})
    # The farther from uniform, the less spread.
    near_uniform = {task: (-high, -low) for task, (low, high) in weights.items()}
    pairs = [
        (spread[task], spread["srl"]) for spread in (near_uniform, gains) for task in PIPELINE[:2]
    ]
    why = (
        f"divergence of weights from uniform, bits: {_said(weights)}; "
        f"standard deviation of gains, layers: {_said(gains)}"
    )
    numbers = [
        {"task": t, "kl_bits": list(weights[t]), "gain_deviation": list(gains[t])} for t in PIPELINE
    ]
    return ordered(pairs, why, numbers)


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
