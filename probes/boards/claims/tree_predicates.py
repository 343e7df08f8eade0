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
from probes.records.record import AnyRecord
from probes.records.row import Place, Row
from probes.statistics.significance import ALPHA

STRUCTURE = "structure"


def trees_peak_in(band: Band, metrics: Sequence[str]) -> Predicate:
    """The predicate that structural probes are best somewhere in a band, by each of the metrics.

    Supported if every layer that may be the best is in the band, by all of them; contradicted if
    none is, by one.
    """

    def predicate(model: ModelScores) -> Outcome:
        record = _record(model)
        inside = within(record, band)
        tests = {
            metric: {layer: row.value for layer, row in _rows(record, f"{metric}_p_best").items()}
            for metric in metrics
        }
        peaks = {
            metric: {layer for layer, p in each.items() if p is not None and p >= ALPHA}
            for metric, each in tests.items()
        }
        if untested := [metric for metric, layers in peaks.items() if not layers]:
            raise MissingError(f"{' and '.join(untested)}: layers could not be tested")
        why = "; ".join(
            f"{metric} at rank {record.facts['rank']} may be best at {listed(layers)}"
            for metric, layers in peaks.items()
        )
        numbers = [
            {"metric": metric, "peak_layers": sorted(layers), "p_best": tests[metric]}
            for metric, layers in peaks.items()
        ]
        p_values = [split_by(each, inside) for each in tests.values()]
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
    record = _record(model)
    rank = record.facts["rank"]
    dev = {layer: row.value or 0.0 for layer, row in _rows(record, "uuas", "dev", rank).items()}
    layer = max(dev, key=dev.__getitem__)
    probe = _rows(record, "uuas", rank=rank)[layer]
    (chain,) = (row for row in record.rows if (row.metric, row.split) == ("chain_uuas", "test"))
    if probe.interval is None or chain.interval is None:
        raise MissingError("uuas has no interval")
    (low, high), (chain_low, chain_high) = probe.interval, chain.interval
    p_for, p_against = (
        p_above(chain.interval, probe.interval),
        p_above(probe.interval, chain.interval),
    )
    why = (
        f"UUAS at layer {layer} and rank {rank}: {probe.value:.3f} [{low:.3f}, {high:.3f}]; "
        f"neighbours: {chain.value:.3f} [{chain_low:.3f}, {chain_high:.3f}]"
    )
    numbers: list[dict[str, Any]] = [
        {"layer": layer, "uuas": probe.value, "interval": probe.interval},
        {"baseline": "neighbours", "uuas": chain.value, "interval": chain.interval},
    ]
    return decided(p_for, p_against, why, numbers)


def _record(model: ModelScores) -> AnyRecord:
    """What structural probes found at all layers.

    Raises:
        MissingError: there is no record, or not of all layers.
    """
    record = model.record(STRUCTURE)
    if absent := sorted(set(range(record.model.n_layers + 1)) - set(record.extent)):
        raise MissingError(f"{STRUCTURE} was not measured at layer {listed(absent)}")
    return record


def _rows(
    record: AnyRecord, metric: str, split: str = "test", rank: Place = None
) -> dict[int, Row]:
    """The rows of a metric by layer, of one rank or of the only one."""
    return {
        row.layer: row
        for row in record.rows
        if (row.metric, row.split) == (metric, split)
        and row.layer is not None
        and rank in (None, row.axes["rank"])
    }
