"""Predicates on numbers with intervals: geometry, trees against neighbours, change of attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probes.boards.claims.bands import higher, lower, within
from probes.boards.claims.claim import (
    ZERO,
    Ends,
    MissingError,
    Outcome,
    Predicate,
    ordered,
)
from probes.boards.claims.layers import STRUCTURE
from probes.boards.claims.model_rows import ModelRows, listed
from probes.records.row import Row
from probes.statistics.metrics import label_of

GEOMETRY = "geometry"
CHANGE = "attention_change"

_FINAL = 2
"""Layers that count as final, as in Kovaleva et al. (2019)."""


def lies_above(metric: str, limit: float) -> Predicate:
    """The predicate that a number of `geometry` is above a limit in all layers but layer 0.

    Supported if every interval lies above it, contradicted if one lies below.
    """
    return _beyond(metric, limit, 1)


def lies_below(metric: str, limit: float) -> Predicate:
    """The same of a number that is below a limit."""
    return _beyond(metric, limit, -1)


def _beyond(metric: str, limit: float, sign: int) -> Predicate:
    def predicate(model: ModelRows) -> Outcome:
        found = _geometry(model, metric)
        above_0 = {layer: row for layer, row in found.items() if layer > 0}
        border = (sign * limit, sign * limit)
        return ordered(
            [(border, _ends(row, sign)) for row in above_0.values()],
            f"{label_of(metric)} at {_span(above_0)}; limit: {limit:g}",
            _numbers(above_0),
        )

    return predicate


def greater_above(metric: str, labels: str = "") -> Predicate:
    """The predicate that a number of `geometry` is greater in higher layers than in lower ones.

    Supported if the interval of every higher layer lies above those of all lower ones; contradicted
    if one lies below that of a lower one.

    Args:
        labels: those whose clusters it is a number of.
    """
    return _changes(metric, labels, 1)


def less_above(metric: str, labels: str = "") -> Predicate:
    """The same of a number that is less in higher layers."""
    return _changes(metric, labels, -1)


def _changes(metric: str, labels: str, sign: int) -> Predicate:
    def predicate(model: ModelRows) -> Outcome:
        found = _geometry(model, metric, labels)
        below, above = (
            {layer: found[layer] for layer in sorted(within(len(found) - 1, band))}
            for band in (lower, higher)
        )
        return ordered(
            [
                (_ends(early, sign), _ends(late, sign))
                for early in below.values()
                for late in above.values()
            ],
            f"{label_of(metric)}{f' of {labels}' * bool(labels)} at {_span(below)}; "
            f"at {_span(above)}",
            _numbers({**below, **above}),
        )

    return predicate


def clusters_at_last_layer(model: ModelRows) -> Outcome:
    """Whether clusters of the last layer agree with senses better than random ones do.

    Supported if the interval of the adjusted mutual information lies above 0; contradicted if it
    lies below.
    """
    found = _geometry(model, "ami", "senses")
    last = {max(found): found[max(found)]}
    pairs = [(ZERO, _ends(row)) for row in last.values()]
    return ordered(pairs, f"{label_of('ami')} at {_span(last)}", _numbers(last))


def trees_above_chain(model: ModelRows) -> Outcome:
    """Whether structural probes find more edges than linking neighbouring words does.

    At the layer that is best on dev. Supported if the interval of UUAS lies above that of the chain
    of neighbours, contradicted if it lies below.
    """
    rank = model.record_of_all_layers(STRUCTURE).facts["rank"]
    dev = model.by_layer(STRUCTURE, "uuas", split="dev", rank=rank)
    layer = max(dev, key=lambda x: dev[x].value or 0.0)
    probe = model.by_layer(STRUCTURE, "uuas", rank=rank)[layer]
    (chain,) = model.rows(STRUCTURE, "chain_uuas")
    if probe.interval is None or chain.interval is None:
        raise MissingError("uuas has no interval")
    return ordered(
        [(chain.interval, probe.interval)],
        f"UUAS at layer {layer} and rank {rank}: {with_ends(probe)}; "
        f"neighbours: {with_ends(chain)}",
        [
            {"layer": layer, "uuas": probe.value, "interval": probe.interval},
            {"baseline": "neighbours", "uuas": chain.value, "interval": chain.interval},
        ],
    )


def final_layers_change_most(model: ModelRows) -> Outcome:
    """Whether attention changes most in one of the last two layers.

    By Jensen–Shannon divergence of a pair of models. Supported if the interval of the greatest of
    them lies above those of all layers below, contradicted if it lies below that of one.
    """
    if CHANGE not in model.corpus:
        raise MissingError(
            "there are no two trained models compared by attention_change (--model BASE TUNED "
            "--measurements attention)"
        )
    record = model.record(CHANGE)
    found = dict(sorted(model.by_layer(CHANGE, "divergence", base=...).items()))
    n = record.model.n_layers
    if n <= _FINAL:
        raise MissingError(f"a model of {n} layers has none below the last {_FINAL}")
    if absent := set(range(1, n + 1)) - set(found):
        raise MissingError(f"layer {listed(absent)} was not compared")
    if any(row.interval is None for row in found.values()):
        raise MissingError("divergences have no intervals")
    below = range(1, n - _FINAL + 1)
    most, rival = (
        max(layers, key=lambda layer: found[layer].value or 0.0)
        for layers in (range(n - _FINAL + 1, n + 1), below)
    )
    return ordered(
        [(_ends(found[layer]), _ends(found[most])) for layer in below],
        f"divergence from {record.base.name if record.base else ''} at layer {most}: "
        f"{with_ends(found[most])}; greatest below the last two, at layer {rival}: "
        f"{with_ends(found[rival])}",
        [
            {"layer": layer, "divergence": row.value, "interval": row.interval}
            for layer, row in found.items()
        ],
    )


def with_ends(row: Row) -> str:
    """``0.451 [0.440, 0.462]``."""
    return f"{row.value:.3f} [{row.low:.3f}, {row.high:.3f}]"


def _geometry(model: ModelRows, metric: str, labels: str = "") -> dict[int, Row]:
    """What `geometry` found by layer, also where it is of all splits together.

    Raises:
        MissingError: there is no record, or a layer has no such number, or no interval of it.
    """
    record = model.record(GEOMETRY)
    axes = {"labels": labels} if labels else {}
    found = model.by_layer(GEOMETRY, metric, split=("test", "all"), **axes)
    what = " ".join(filter(None, [metric, labels]))
    for layer in range(record.model.n_layers + 1):
        if layer not in found:
            raise MissingError(f"{GEOMETRY} has no {what} of layer {layer}")
        if found[layer].value is None or found[layer].interval is None:
            raise MissingError(f"{what} of layer {layer} has no interval")
    return found


def _ends(row: Row, sign: int = 1) -> Ends:
    """The ends of an interval, of the number itself or of its negative."""
    assert row.low is not None
    assert row.high is not None
    return (row.low, row.high) if sign > 0 else (-row.high, -row.low)


def _span(found: Mapping[int, Row]) -> str:
    """``layers 0–2: 0.061 to 0.183 [0.059, 0.185]``: the least and greatest value and bound."""
    values = [row.value for row in found.values() if row.value is not None]
    lows, highs = zip(*map(_ends, found.values()), strict=True)
    first, last = min(found), max(found)
    layers = f"layers {first}–{last}" if first != last else f"layer {first}"
    text = f"{min(values):.3f}" + f" to {max(values):.3f}" * (len(values) > 1)
    return f"{layers}: {text} [{min(lows):.3f}, {max(highs):.3f}]".replace("-", "−")


def _numbers(found: Mapping[int, Row]) -> list[dict[str, Any]]:
    return [
        {"metric": row.metric, "layer": layer, "value": row.value, "interval": [row.low, row.high]}
        for layer, row in found.items()
    ]
