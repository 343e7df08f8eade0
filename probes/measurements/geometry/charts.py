"""Charts of geometry: curves over layers, and similarity of layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from probes.measurements.geometry.payload import SIMILARITIES, Findings, LayerGeometry
from probes.measurements.geometry.tables import KINDS
from probes.records.charts import Chart, Grid, Panel
from probes.records.curves import Curves, Point
from probes.records.record import Record
from probes.records.values import Estimate

FIGURES = ("isotropy", "context", "dimensionality", "clusters", "position", "cka")

Lines = Callable[[LayerGeometry], Iterable[tuple[str, Estimate]]]
"""The points of a layer, by the name of their line."""


def charts(records: Mapping[str, Record[Findings]]) -> list[Chart]:
    """All charts, in the order of `FIGURES`."""
    found = {label: record.payload for label, record in records.items()}
    return [
        _curves(
            found,
            "isotropy",
            "Anisotropy",
            "Expected cosine of two random words, over all pairs.",
            "expected cosine",
            lambda each: [("", each.anisotropy)],
        ),
        _curves(
            found,
            "context",
            "Contextuality",
            "Less what is expected of random words (Ethayarajh 2019).",
            "difference",
            lambda each: [(name, each.similarity(x).adjusted) for x, name in SIMILARITIES.items()],
        ),
        _curves(
            found,
            "dimensionality",
            "Intrinsic dimension",
            "Participation ratio of the covariance's eigenvalues.",
            "dimensions",
            lambda each: [("", _plain(each.participation_ratio))],
        ),
        _curves(
            found,
            "clusters",
            "Clusters",
            "k-means clusters against labels; senses: mean over lemmas.",
            "adjusted mutual information",
            lambda each: [(KINDS[name], x.ami) for name, x in each.clusters.items()],
        ),
        _curves(
            found,
            "position",
            "Position",
            "Share of the variance that the place in the sentence explains, adjusted for chance.",
            "explained variance, %",
            lambda each: [
                ("all words", _plain(each.position_share)),
                ("within word types", _plain(each.position_share_within_types)),
            ],
            percent=True,
        ),
        Grid(
            "cka",
            "Similarity of layers",
            "Linear CKA over test words.",
            "layer",
            "layer",
            {label: _panel(each) for label, each in found.items()},
            low=0.0,
            high=1.0,
        ),
    ]


def _curves(
    found: Mapping[str, Findings],
    name: str,
    title: str,
    note: str,
    axis: str,
    lines: Lines,
    percent: bool = False,
) -> Curves:
    curves = Curves(name, title, note, axis, percent=percent)
    for label, payload in found.items():
        points = [
            Point(each.layer, estimate.value, estimate.interval, line)
            for each in payload.layers
            for line, estimate in lines(each)
        ]
        if any(point.value is not None for point in points):
            curves.models[label] = points
        else:
            curves.missing[label] = "there are no numbers"
    return curves


def _panel(found: Findings) -> Panel:
    layers = tuple(str(each.layer) for each in found.layers)
    return Panel(layers, layers, found.cka)


def _plain(value: float | None) -> Estimate:
    """A number without interval."""
    return Estimate(value=value, interval=None)
