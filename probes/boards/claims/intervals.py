"""Predicates on numbers that have an interval at every layer, of measurements without probes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from probes.boards.claims.bands import higher, lower
from probes.boards.claims.claim import Predicate
from probes.boards.claims.model_scores import ModelScores, within
from probes.boards.claims.outcome import ZERO, Ends, Outcome, all_of, any_of, decided, p_above
from probes.records.row import Row
from probes.statistics.metrics import label_of

GEOMETRY = "geometry"


def lies_above(metric: str, limit: float) -> Predicate:
    """The predicate that a number of `geometry` is above a limit in all layers but layer 0.

    Supported if every interval lies above it, contradicted if one lies below.
    """
    return _beyond(metric, limit, 1)


def lies_below(metric: str, limit: float) -> Predicate:
    """The predicate that a number of `geometry` is below a limit in all layers but layer 0.

    Supported if every interval lies below it, contradicted if one lies above.
    """
    return _beyond(metric, limit, -1)


def _beyond(metric: str, limit: float, sign: int) -> Predicate:
    def predicate(model: ModelScores) -> Outcome:
        found = model.numbers(GEOMETRY, metric)
        chosen = {layer: found[layer] for layer in found if layer > 0}
        ends, border = [_ends(each, sign) for each in chosen.values()], (sign * limit, sign * limit)
        return decided(
            all_of(p_above(border, each) for each in ends),
            any_of(p_above(each, border) for each in ends),
            f"{_name(metric)} at {_span(chosen)}; limit: {limit:g}",
            _listed(chosen, metric),
        )

    return predicate


def greater_above(metric: str, **axes: object) -> Predicate:
    """The predicate that a number of `geometry` is greater in higher layers than in lower ones.

    Supported if the interval of every higher layer lies above those of all lower ones; contradicted
    if one lies below that of a lower one.
    """
    return _changes(metric, 1, axes)


def less_above(metric: str, **axes: object) -> Predicate:
    """The same of a number that is less in higher layers."""
    return _changes(metric, -1, axes)


def _changes(metric: str, sign: int, axes: Mapping[str, object]) -> Predicate:
    def predicate(model: ModelScores) -> Outcome:
        found = model.numbers(GEOMETRY, metric, **axes)
        record = model.records[GEOMETRY]
        below, above = (
            {layer: found[layer] for layer in sorted(within(record, band))}
            for band in (lower, higher)
        )
        pairs = [
            (_ends(one, sign), _ends(other, sign))
            for one in below.values()
            for other in above.values()
        ]
        return decided(
            all_of(p_above(early, late) for early, late in pairs),
            any_of(p_above(late, early) for early, late in pairs),
            f"{_name(metric, axes)} at {_span(below)}; at {_span(above)}",
            _listed({**below, **above}, metric),
        )

    return predicate


def clusters_at_last_layer(model: ModelScores) -> Outcome:
    """Whether clusters of the last layer agree with senses better than random ones do.

    Supported if the interval of the adjusted mutual information lies above 0; contradicted if it
    lies below.
    """
    found = model.numbers(GEOMETRY, "ami", labels="senses")
    last = max(found)
    ends = _ends(found[last], 1)
    why = f"{_name('ami')} at {_span({last: found[last]})}"
    numbers = _listed({last: found[last]}, "ami")
    return decided(p_above(ZERO, ends), p_above(ends, ZERO), why, numbers)


def _ends(number: Row, sign: int) -> Ends:
    """The ends of an interval, of the number itself or of its negative."""
    assert number.low is not None
    assert number.high is not None
    return (number.low, number.high) if sign > 0 else (-number.high, -number.low)


def _name(metric: str, axes: Mapping[str, object] = MappingProxyType({})) -> str:
    return " ".join([label_of(metric), *(f"of {value}" for value in axes.values())])


def _span(found: Mapping[int, Row]) -> str:
    """``layers 0–2: 0.061 to 0.183 [0.059, 0.185]``: the least and greatest value and bound."""
    values = [x.value for x in found.values() if x.value is not None]
    ends = [_ends(x, 1) for x in found.values()]
    low, high = min(x for x, _ in ends), max(x for _, x in ends)
    text = f"{min(values):.3f}" + f" to {max(values):.3f}" * (len(values) > 1)
    return f"{_layers(found)}: {text} [{low:.3f}, {high:.3f}]".replace("-", "−")


def _layers(layers: Iterable[int]) -> str:
    first, *_, last = (*layers, max(layers))
    return f"layers {first}–{last}" if first != last else f"layer {first}"


def _listed(found: Mapping[int, Row], metric: str) -> list[dict[str, Any]]:
    return [
        {"metric": metric, "layer": layer, "value": x.value, "interval": [x.low, x.high]}
        for layer, x in found.items()
    ]
