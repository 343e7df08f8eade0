"""The tests behind the claims: predicates over one model's scores.

A claim is *supported* only if the test data separate it from its contrary, *contradicted* only if
they separate the contrary from it, and else *undecided* at this sample size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from probes.boards.claims.model_scores import (
    Band,
    MissingError,
    ModelScores,
    last_drop,
    located,
    middle,
    peak_numbers,
    peaks,
    relative,
    scores,
    within,
)
from probes.boards.transferability import layer_ranks
from probes.records.result import Result
from probes.statistics.bootstrap import interval
from probes.statistics.significance import ALPHA, max_t

FEWEST_TASKS = 3
"""A layer that is best on two tasks does not transfer across tasks."""

T = TypeVar("T")

Verdict = Literal["supported", "contradicted", "undecided", "not tested"]


class Outcome(NamedTuple):
    """What the data say about a claim: a verdict, a line of reasons, and the numbers."""

    verdict: Verdict
    why: str
    numbers: list[dict[str, Any]]


def _verdict(*, for_it: bool, against: bool) -> Verdict:
    return "supported" if for_it else "contradicted" if against else "undecided"


def peaks_in(task: str, band: Band) -> Callable[[ModelScores], Outcome]:
    """The predicate that `task` is best somewhere in `band`."""

    def predicate(model: ModelScores) -> Outcome:
        """Supported if every layer that may be the best is in the band; contradicted if none is."""
        result = model.result(task)
        found, inside = peaks(result), within(result, band)
        verdict = _verdict(for_it=found <= inside, against=not found & inside)
        why = f"{_peak(result)}; {band.__name__.replace('_', '-')}: {_listed(inside)}"
        return Outcome(verdict, why, [peak_numbers(result)])

    return predicate


def pipeline(model: ModelScores) -> Outcome:
    """By expected layers if all three tasks have one, else by the layers that may be the best.

    Supported if each range ends before the next begins; contradicted if a range begins after a
    later one has ended.
    """
    names = ("pos", "depth", "srl")
    results = [model.result(name) for name in names]
    ranges = [located(result, "expected_layer") for result in results]
    measure = "expected layer"
    if None in ranges:
        measure = "layers that may be the best"
        ranges = [(min(peaks(r)), max(peaks(r))) for r in results]
    known = [r for r in ranges if r is not None]
    pairs = [(known[0], known[1]), (known[1], known[2]), (known[0], known[2])]
    verdict = _verdict(
        for_it=all(early[1] < late[0] for early, late in pairs),
        against=any(early[0] > late[1] for early, late in pairs),
    )
    said = ", ".join(
        f"{name} {low:.3g}" + f"–{high:.3g}" * (high > low)
        for name, (low, high) in zip(names, known, strict=True)
    )
    numbers = [
        {"measure": measure, "range": list(r), **peak_numbers(x)}
        for x, r in zip(results, known, strict=True)
    ]
    return Outcome(verdict, f"{measure}: {said}", numbers)


def middle_transfers(model: ModelScores) -> Outcome:
    """Compares the best mean rank of a middle layer with that of any other layer, in resamples."""
    values, left_out = _of_all(model, model.replicates)
    if len(values) < FEWEST_TASKS:
        raise MissingError("; ".join([f"fewer than {FEWEST_TASKS} complete tasks", *left_out]))
    ranks = layer_ranks(np.array([scores(model.results[task]) for task in values])).mean(0)
    resampled = np.mean([layer_ranks(v.T) for v in values.values()], axis=0)
    result = model.results[next(iter(values))]
    inside = within(result, middle)
    is_inside = np.array([x.layer in inside for x in result.layers])
    ours, theirs = ranks[is_inside].min(), ranks[~is_inside].min()
    both = np.stack([resampled[:, is_inside].min(1), resampled[:, ~is_inside].min(1)])
    p = float(max_t(np.array([ours, theirs]), both, [(0, 1)])[0])
    best = result.layers[int(ranks.argmin())].layer
    verdict = _verdict(for_it=p < ALPHA and ours < theirs, against=p < ALPHA and ours > theirs)
    bounds = interval(resampled.T).round(2).tolist()
    why = (
        f"mean rank over {len(values)} tasks: best middle layer {ours:.1f}, best other layer "
        f"{theirs:.1f} (p = {p:.2g}); best of all: layer {best}" + _left_out(left_out)
    )
    numbers = [
        {"layer": x.layer, "mean_rank": float(rank), "interval": bound, "middle": bool(is_in)}
        for x, rank, bound, is_in in zip(result.layers, ranks, bounds, is_inside, strict=True)
    ]
    return Outcome(verdict, why, [{"tasks": list(values), "p": p}, *numbers])


def last_layer_drops(model: ModelScores) -> Outcome:
    """Supported if it holds for every task; contradicted if one task is best at the last layer."""
    results, left_out = _of_all(model, model.result)
    if not results:
        raise MissingError("; ".join(left_out) or "no task was run")
    found, numbers = {}, []
    for task, result in results.items():
        drop, p = last_drop(result)
        last = result.model.n_layers
        rises = peaks(result) == {last}
        falls = p is not None and p < ALPHA and drop > 0
        found[task] = "rises" if rises else "falls" if falls else "open"
        numbers.append({"drop": drop, "p": p, "last": found[task], **peak_numbers(result)})
    kinds = set(found.values())
    verdict = _verdict(for_it=kinds == {"falls"}, against="rises" in kinds)
    words = {"falls": "below the best", "rises": "best of all", "open": "not separated"}
    parts = [
        f"{words[kind]}: {', '.join(t for t, k in found.items() if k == kind)}"
        for kind in words
        if kind in kinds
    ]
    return Outcome(verdict, "last layer " + "; ".join(parts) + _left_out(left_out), numbers)


def semantics_spread(model: ModelScores) -> Outcome:
    """Compares how far the mix weights of `srl`, `pos` and `depth` are from uniform ones.

    Supported if the interval of the divergence of `srl` lies below both others; contradicted if it
    lies above one of them.
    """
    names = ("srl", "pos", "depth")
    ranges = {name: located(model.result(name), "kl") for name in names}
    absent = [name for name, found in ranges.items() if found is None]
    if absent:
        raise MissingError(f"no layer mix is located for {', '.join(absent)}")
    known = {name: found for name, found in ranges.items() if found is not None}
    ours, others = known["srl"], (known["pos"], known["depth"])
    verdict = _verdict(
        for_it=all(ours[1] < other[0] for other in others),
        against=any(ours[0] > other[1] for other in others),
    )
    said = ", ".join(f"{name} [{a:.2f}, {b:.2f}]" for name, (a, b) in known.items())
    numbers = [{"task": name, "kl_bits": list(found)} for name, found in known.items()]
    return Outcome(verdict, f"divergence of mix weights from uniform, bits: {said}", numbers)


def _peak(result: Result) -> str:
    """``best layer 3 of 6 (0.50), 0.840 [0.829, 0.850], no other may be the best``."""
    best, n = result.best_layer, result.model.n_layers
    others = peaks(result) - {best.layer}
    bounds = best.intervals.get(result.task.metric)
    between = f" [{bounds[0]:.3f}, {bounds[1]:.3f}]" if bounds else ""
    return (
        f"best layer {best.layer} of {n} ({relative(result, best.layer):.2f}), "
        f"{result.score(best):.3f}{between}, "
        + (f"{_listed(others)} may be the best too" if others else "no other may be the best")
    )


def _listed(layers: set[int]) -> str:
    return ", ".join(map(str, sorted(layers)))


def _of_all(model: ModelScores, read: Callable[[str], T]) -> tuple[dict[str, T], list[str]]:
    """What `read` returns for each task, and why it returns nothing for some."""
    found, left_out = {}, []
    for task in model.results:
        try:
            found[task] = read(task)
        except MissingError as missing:
            left_out.append(str(missing))
    return found, left_out


def _left_out(reasons: list[str]) -> str:
    return "".join(f"; left out: {reason}" for reason in reasons)
