"""Predicates on structural probes at their reported rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from probes.boards.claims.bands import Band
from probes.boards.claims.claim import Predicate
from probes.boards.claims.model_scores import ModelScores, within
from probes.boards.claims.outcome import (
    MissingError,
    Outcome,
    all_of,
    any_of,
    decided,
    listed,
    p_above,
    split_by,
)

STRUCTURE = "structure"


def trees_peak_in(band: Band, metrics: Sequence[str]) -> Predicate:
    """The predicate that structural probes are best somewhere in a band, by each of the metrics.

    Supported if every layer that may be the best is in the band, by all of them; contradicted if
    none is, by one.
    """

    def predicate(model: ModelScores) -> Outcome:
        found = _found(model)
        inside = within(model.records[STRUCTURE], band)
        peaks = {metric: found.may_be_best(metric) for metric in metrics}
        if untested := [metric for metric, layers in peaks.items() if not layers]:
            raise MissingError(f"{' and '.join(untested)}: layers could not be tested")
        why = "; ".join(
            f"{metric} at rank {found.reported} may be best at {listed(layers)}"
            for metric, layers in peaks.items()
        )
        numbers = [
            {"metric": metric, "peak_layers": sorted(layers), "p_best": found.p_best[metric]}
            for metric, layers in peaks.items()
        ]
        p_values = [split_by(found.p_best[metric], inside) for metric in metrics]
        return decided(
            all_of(outside for _, outside in p_values),
            any_of(inside_it for inside_it, _ in p_values),
            f"{why}; {band.__name__}: {listed(inside)}",
            numbers,
        )

    return predicate


def trees_above_chain(model: ModelScores) -> Outcome:
    """Whether more edges are found than by linking neighbouring words.

    At the layer that is best on dev. Supported if the interval of UUAS lies above that of the chain
    of neighbours, contradicted if it lies below.
    """
    found = _found(model)
    layer = found.best["uuas"]
    probe = found.cell(layer, found.reported).scores["test"]["uuas"]
    chain = found.chain["test"]
    if probe.interval is None or chain.interval is None:
        raise MissingError("uuas has no interval")
    (low, high), (chain_low, chain_high) = probe.interval, chain.interval
    p_for, p_against = (
        p_above(chain.interval, probe.interval),
        p_above(probe.interval, chain.interval),
    )
    why = (
        f"UUAS at layer {layer} and rank {found.reported}: {probe.value:.3f} [{low:.3f}, "
        f"{high:.3f}]; neighbours: {chain.value:.3f} [{chain_low:.3f}, {chain_high:.3f}]"
    )
    numbers = [
        {"layer": layer, "uuas": probe.value, "interval": probe.interval},
        {"baseline": "neighbours", "uuas": chain.value, "interval": chain.interval},
    ]
    return decided(p_for, p_against, why, numbers)


def _found(model: ModelScores) -> Any:
    """What structural probes found at all layers.

    Raises:
        MissingError: there is no record, or not of all layers.
    """
    record = model.record(STRUCTURE)
    if absent := sorted(set(range(record.model.n_layers + 1)) - set(record.payload.layers)):
        raise MissingError(f"{STRUCTURE} was not measured at layer {listed(absent)}")
    return record.payload
