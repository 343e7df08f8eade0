"""All numbers of geometry, for CSV files."""

from __future__ import annotations

from collections.abc import Iterator

from probes.measurements.geometry.payload import SIMILARITIES, Findings, LayerGeometry
from probes.records.row import Row
from probes.records.values import Estimate

SPLITS = {"senses": "all"}
"""Where clustered items are from, if not from test."""


def numbers(found: Findings) -> Iterator[Row]:
    """Every number, layer by layer; similarity of layers once for every two."""
    for each in found.layers:
        yield from _of_layer(each)
    for row, one in zip(found.cka, found.layers, strict=True):
        for value, other in zip(row, found.layers, strict=True):
            if other.layer < one.layer:
                yield Row("cka", value, one.layer, axes={"other_layer": other.layer})


def _of_layer(found: LayerGeometry) -> Iterator[Row]:
    layer = found.layer
    yield _number("anisotropy", found.anisotropy, layer)
    yield Row("standardised_anisotropy", found.standardised_anisotropy, layer)
    for rank, each in enumerate(found.dominant, start=1):
        axes = {"rank": rank, "dimension": each.dimension}
        yield Row("contribution", each.contribution, layer, axes=axes)
        yield Row("share_of_anisotropy", each.share, layer, axes=axes)
    for name in SIMILARITIES:
        similarity = found.similarity(name)
        yield _number(name, similarity.raw, layer)
        yield _number(f"{name}_baseline", similarity.baseline, layer)
        yield _number(f"{name}_adjusted", similarity.adjusted, layer)
    for name in (
        "participation_ratio",
        "norm_mean",
        "norm_sd",
        "zero_vectors",
        "position_share",
        "position_share_within_types",
    ):
        yield Row(name, getattr(found, name), layer)
    for name, both in found.clusters.items():
        for metric, value in (("nmi", both.nmi), ("ami", both.ami)):
            split = SPLITS.get(name, "test")
            yield _number(metric, value, layer)._replace(split=split, axes={"labels": name})


def _number(metric: str, found: Estimate, layer: int) -> Row:
    low, high = found.interval or (None, None)
    return Row(metric, found.value, layer, low, high)
