"""Best layers and significant differences between layers, in numbers and in words.

This is known once training variance is measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from probes.common.errors import layer_ranges
from probes.measurements.table_cells import layer_marks, task_head
from probes.records.result import Result
from probes.records.values import Interval
from probes.statistics.metrics import is_percent, label_of, printed_score
from probes.statistics.significance import ALPHA


def p_best_of_result(result: Result) -> dict[int, float | None] | None:
    """Least p-value of a difference from a layer that scores higher on test, by layer.

    None without training variance.
    """
    record = result.evidence_rows("training_variance")
    if record is None:
        return None
    layer_rows = ((layer, record.at("p_best", layer)) for layer in result.layers)
    return {layer: row.value for layer, row in layer_rows if row}


def confidence_set(result: Result) -> set[int] | None:
    """The layers not significantly worse than any other, at .05 over all pairs of layers.

    It says nothing of the layer that is best on dev, which may be outside. None where nothing was
    tested: without training variance, since scores alone cannot tell layers apart, or with too few
    test documents or sentences.
    """
    p_best = p_best_of_result(result)
    if p_best is None or all(p is None for p in p_best.values()):
        return None
    return {layer for layer in result.extent if (p_best.get(layer) or 0.0) >= ALPHA}


def best_layers(result: Result) -> set[int] | None:
    """The layers of the confidence set that are above the floor, if any; None if not tested."""
    tied = confidence_set(result)
    # What is not above the floor cannot be decoded best, unless nothing else is left.
    return tied and ({layer for layer in tied if not result.is_floored(layer)} or tied)


class LayerLine(NamedTuple):
    """A layer of a result as tables, charts and sentences show it.

    Attributes:
        value: the headline score on test, `interval` with its 95 % interval.
        marks: see `layer_marks`.
    """

    layer: int
    value: float | None
    interval: Interval
    marks: Mapping[str, bool]


def layer_lines(result: Result) -> list[LayerLine]:
    """The layers of a result that was compared with its floor, ascending."""
    tests, best = p_best_of_result(result) or {}, result.best_number
    return [
        LayerLine(
            layer,
            result.score(layer),
            result.interval(layer),
            layer_marks(tests.get(layer), best=layer == best, floored=result.is_floored(layer)),
        )
        for layer in result.layers
    ]


NOTE = (
    "The best layers are those above the floor that are not significantly worse than any other on "
    "test (.05, corrected over all pairs of layers); “on dev” says that layers were not tested "
    "against each other. Scores belong to the layer chosen on dev, with 95 % intervals. The floor "
    "is the highest score of the baselines, layer 0 and the random twin. A reference is a rule "
    "that knows what the probe is not shown; it is not part of the floor. Differences are of "
    "unrounded scores."
)


def sentence(result: Result) -> str:
    """The finding with its task: ``pos is decoded best at layer 3 of 6: …``."""
    return f"{task_head(result)} {finding(result)}"


def finding(result: Result) -> str:
    """The best layers, the score with its interval, and its distance from the floor.

    It continues the name of the task. Random twins count to the floor if they were added to the
    result (`Result.with_baselines`).
    """
    best, n_layers = result.best_number, result.model.n_layers
    if best is None:
        return "has no best layer: no score on dev is defined."
    score = _score_text(result, best)
    if result.is_floored(best):
        return (
            f"is not significantly above {_floor(result)}: {score} at layer {best} of {n_layers}, "
            "the best on dev."
        )
    tied = best_layers(result)
    if tied is None:
        layers = f"layer {best} of {n_layers} on dev: {score}"
    elif tied == {best}:
        layers = f"layer {best} of {n_layers}: {score}"
    elif best in tied:
        layers = f"{layer_ranges(tied)} of {n_layers}: {score} at layer {best}"
    else:
        layers = (
            f"{layer_ranges(tied)} of {n_layers}; layer {best}, chosen on dev, is significantly "
            f"worse: {score}"
        )
    return f"is decoded best at {layers}, {_margin(result, best)}."


def _score_text(result: Result, layer: int) -> str:
    metric = result.task.metric
    interval = result.interval(layer)
    text = f"{label_of(metric)} {printed_score(result.score(layer), metric)}"
    if interval is None:
        return f"{text} (no interval)"
    return f"{text} [{', '.join(printed_score(end, metric) for end in interval)}]"


def _margin(result: Result, layer: int) -> str:
    score, floor = result.score(layer), result.floor
    if score is None or floor is None:
        return "with no floor to compare it with"
    metric = result.task.metric
    points = " points" if is_percent(metric) else ""
    side = "below" if score < floor[1] else "above"
    return f"{printed_score(abs(score - floor[1]), metric)}{points} {side} {_floor(result)}"


def _floor(result: Result) -> str:
    name, value = result.floor or ("none", None)
    return f"the floor of {printed_score(value, result.task.metric)} ({name})"
