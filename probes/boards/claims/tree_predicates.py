"""Predicates on structural probes at their reported rank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

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
from probes.measurements.choosing import BestOnDev, PlacesOf, chosen
from probes.measurements.frame import long_frame
from probes.statistics.significance import ALPHA

if TYPE_CHECKING:
    import pandas as pd

STRUCTURE = "structure"

AT_REPORTED = {"rank": PlacesOf("uuas_p_best")}
"""Tests between layers are of the reported rank."""


def trees_peak_in(band: Band, metrics: Sequence[str]) -> Predicate:
    """The predicate that structural probes are best somewhere in a band, by each of the metrics.

    Supported if every layer that may be the best is in the band, by all of them; contradicted if
    none is, by one.
    """

    def predicate(model: ModelScores) -> Outcome:
        frame = _frame(model)
        inside = within(model.records[STRUCTURE], band)
        tests = {metric: _p_best(frame, metric) for metric in metrics}
        peaks = {
            metric: {layer for layer, p in each.items() if p is not None and p >= ALPHA}
            for metric, each in tests.items()
        }
        if untested := [metric for metric, layers in peaks.items() if not layers]:
            raise MissingError(f"{' and '.join(untested)}: layers could not be tested")
        rank = _rank(frame)
        why = "; ".join(
            f"{metric} at rank {rank} may be best at {listed(layers)}"
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
    frame = _frame(model)
    at_best = {**AT_REPORTED, "layer": BestOnDev("uuas", AT_REPORTED)}
    found = [chosen(frame, ["uuas"], at_best), chosen(frame, ["chain_uuas"], {})]
    if any(rows["low"].isna().all() for rows in found):
        raise MissingError("uuas has no interval")
    probe, chain = (rows.iloc[0] for rows in found)
    ends, chain_ends = ((float(x["low"]), float(x["high"])) for x in (probe, chain))
    layer, uuas, chain_uuas = int(probe["layer"]), float(probe["value"]), float(chain["value"])
    why = (
        f"UUAS at layer {layer} and rank {_rank(frame)}: {uuas:.3f} [{ends[0]:.3f}, "
        f"{ends[1]:.3f}]; neighbours: {chain_uuas:.3f} [{chain_ends[0]:.3f}, {chain_ends[1]:.3f}]"
    )
    numbers = [
        {"layer": layer, "uuas": uuas, "interval": ends},
        {"baseline": "neighbours", "uuas": chain_uuas, "interval": chain_ends},
    ]
    return decided(p_above(chain_ends, ends), p_above(ends, chain_ends), why, numbers)


def _frame(model: ModelScores) -> pd.DataFrame:
    """The rows of structural probes, which were measured at all layers.

    Raises:
        MissingError: there is no record, or not of all layers.
    """
    record = model.record(STRUCTURE)
    if absent := sorted(set(range(record.model.n_layers + 1)) - set(record.extent)):
        raise MissingError(f"{STRUCTURE} was not measured at layer {listed(absent)}")
    return long_frame([record])


def _rank(frame: pd.DataFrame) -> int:
    """The reported rank."""
    return int(PlacesOf("uuas_p_best").rows(frame)["rank"].iloc[0])


def _p_best(frame: pd.DataFrame, metric: str) -> dict[int, float | None]:
    """By layer, the p-value of its test; None where nothing could be tested."""
    tests = PlacesOf(f"{metric}_p_best").rows(frame)
    pairs = zip(tests["layer"].tolist(), tests["value"].tolist(), strict=True)
    return {layer: None if math.isnan(p) else p for layer, p in pairs}
