"""Principal angles: whether the directions that carry a label move from layer to layer.

The weights of a linear probe span a subspace: of C classes C − 1 directions, since a vector added
to the weights of all of them changes nothing; of regressions and multi-label tasks one for each
output. Weights are filters, which change with how features vary together even if a label stays
where it is. *Patterns*, the covariances of vectors with the outputs of a probe, say where it is
(Haufe et al. 2014). Both are compared:

- patterns in the coordinates of vectors;
- weights in those of standardised features. In the coordinates of vectors a weight has the inverse
  unit of its dimension, and one dimension that hardly varies makes up a direction by itself.

Probes trained on the same text share its chance. So the reported probe of one layer is compared
with that of the other layer trained on a bootstrap sample, and both ways are averaged. A layer
compared with itself in this way says how much overlap to expect of directions that do not move.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np

from probes.common.arrays import Floats
from probes.examples.examples import NotServedError
from probes.measurements.cells import task_head
from probes.measurements.measurement import Found, Level, ProbeMeasurement, Request
from probes.records.base import Frozen
from probes.records.charts import UNMEASURED
from probes.records.curves import Curves, Point
from probes.records.parameters import of_layer
from probes.records.probe_spec import ProbeSpec
from probes.records.record import Extent, Record
from probes.records.result import Result
from probes.records.row import Row
from probes.records.table import NOTHING, Table, TableRow
from probes.tasks.task import Task
from probes.training.families import is_convex

if TYPE_CHECKING:
    from probes.measurements.probe_context import ProbeContext

Kind = Literal["patterns", "weights"]

NOTES: dict[Kind, str] = {
    "patterns": "Mean squared cosine of the principal angles between the subspaces of two layers; "
    "patterns are the covariances of vectors with the outputs of a linear probe. In brackets: the "
    "overlap with patterns of random weights, and of a layer with itself. One of the two probes is "
    "trained on a bootstrap sample.",
    "weights": "The same of the weights of standardised features, which change with the covariance "
    "of features even where a label stays; in brackets the expectation of random subspaces, and "
    "the overlap of a layer with itself.",
}

RANDOM = 64
"""Random weights, at least, from whose patterns chance is estimated."""

Matrix = tuple[tuple[float | None, ...], ...]


class Overlaps(Frozen):
    """Mean squared cosines of the principal angles between layers; (L, L), symmetric.

    None where a probe has no direction, its weights being 0.
    """

    overlap: Matrix
    """Across training samples, also of each layer with itself."""
    chance: Matrix
    """Of one layer with random weights at the other."""


class Subspaces(Frozen):
    """What `PrincipalAngles` finds."""

    layers: tuple[int, ...]
    dimensions: tuple[int, ...]
    """Of the subspace of weights, by layer."""
    patterns: Overlaps
    weights: Overlaps

    def of(self, kind: Kind) -> Overlaps:
        """The overlaps of patterns or weights."""
        return self.patterns if kind == "patterns" else self.weights


class PrincipalAngles(ProbeMeasurement[Subspaces]):
    """Principal angles between the subspaces that linear probes find at different layers."""

    name = "principal_angles"
    summary = "overlap of the directions that linear probes find at different layers"
    payload: ClassVar[type[Subspaces]] = Subspaces

    def missing(self, task: Task, probe: ProbeSpec, level: Level) -> str:
        """Only linear probes have directions."""
        return "" if is_convex(probe) else "only linear probes have directions"

    def extent(self, request: Request) -> Extent:
        """Every layer that has scores, if there are two or more."""
        return dict.fromkeys(request.layers, 1) if len(request.layers) > 1 else {}

    def compute(self, context: ProbeContext) -> Found[Subspaces]:
        """Fit the probes on a bootstrap sample, and compare them with the reported ones.

        The arrays `patterns` and `weights` are the principal angles in degrees, ascending, between
        the reported probe of the first layer and the other one of the second: (L, L, k), NaN where
        there are fewer than k.

        Raises:
            NotServedError: features are projected.
        """
        from probes.measurements.patterns import patterns
        from probes.statistics.subspaces import all_angles, mean_overlaps, row_basis
        from probes.training.fit import Draw

        reported = context.parameters(context.layers)
        if "projection" in reported:
            raise NotServedError(
                "with --project there are no directions of the model's own vectors"
            )
        sample = context.fits(context.layers, [Draw(sample=1)]).parameters
        weights = {
            layer: np.stack([given[of_layer(layer, "weight")] for given in (reported, sample)])
            for layer in context.layers
        }
        n_outputs, width = weights[context.layers[0]].shape[1:]
        with_random = {
            layer: np.concatenate([both, _random(layer, n_outputs, width)]).reshape(-1, width)
            for layer, both in weights.items()
        }
        of_vectors = patterns(context, with_random)

        def basis(rows: Floats) -> Floats:
            shared = context.task.kind == "classification"
            return row_basis(rows - rows.mean(0) if shared else rows)

        of_weights = [[basis(rows) for rows in both] for both in weights.values()]
        of_patterns = [
            [basis(rows) for rows in every.reshape(-1, n_outputs, width)]
            for every in of_vectors.values()
        ]
        sizes = tuple(len(of_reported) for of_reported, _ in of_weights)
        found = Subspaces(
            layers=context.layers,
            dimensions=sizes,
            patterns=Overlaps(
                overlap=mean_overlaps(of_patterns, [1]),
                chance=mean_overlaps(of_patterns, range(2, len(of_patterns[0]))),
            ),
            weights=Overlaps(overlap=mean_overlaps(of_weights, [1]), chance=_chance(sizes, width)),
        )
        return Found(
            payload=found,
            arrays={"patterns": all_angles(of_patterns), "weights": all_angles(of_weights)},
        )

    def numbers(self, record: Record[Subspaces]) -> Iterator[Row]:
        """Overlap and chance of every layer with itself and those below, patterns and weights."""
        found = record.payload
        for kind in NOTES:
            for i, layer in enumerate(found.layers):
                for j, other in enumerate(found.layers[: i + 1]):
                    axes = {"of": kind, "with": other}
                    for metric in ("overlap", "chance"):
                        value = getattr(found.of(kind), metric)[i][j]
                        yield Row(metric, value, layer, split="train", axes=axes)

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Two layers × task: overlaps of neighbours, then of others with the lowest layer."""
        every: list[Subspaces] = [result.found(self.name) for result in results]
        heads = ("layers", *(task_head(result) for result in results))
        tables = []
        for kind, note in NOTES.items():
            of_tasks = [_cells(found, kind) for found in every]
            pairs = sorted({pair for cells in of_tasks for pair in cells})
            rows = [
                TableRow.of(f"{x.low} and {x.high}", *(cells.get(x, NOTHING) for cells in of_tasks))
                for x in pairs
            ]
            tables.append(Table(f"overlap of {kind}, %", heads, tuple(rows), notes=(note,)))
        return tables

    def curves(self, results: Mapping[str, Result]) -> list[Curves]:
        """Overlap with the layer below, of each layer with itself, and chance."""
        return [self._curves(results, kind) for kind in NOTES]

    def _curves(self, results: Mapping[str, Result], kind: Kind) -> Curves:
        title = f"Overlap of {kind} with the layer below"
        curves = Curves(f"overlap_of_{kind}", title, NOTES[kind], "overlap, %", percent=True)
        for model, result in results.items():
            found: Subspaces | None = result.found(self.name)
            if found is None:
                curves.missing[model] = UNMEASURED
                continue
            its = found.of(kind)
            points = curves.models[model] = []
            for i, layer in enumerate(found.layers):
                if i:
                    points.append(Point(layer, its.overlap[i][i - 1], line="layer below"))
                    points.append(Point(layer, its.chance[i][i - 1], line="chance"))
                points.append(Point(layer, its.overlap[i][i], line="itself"))
        return curves


class _Pair(NamedTuple):
    """Two layers, neighbours before others."""

    apart: bool
    low: int
    high: int


def _cells(found: Subspaces, kind: Kind) -> dict[_Pair, str]:
    """The overlaps of neighbours and with the lowest layer, between chance and a layer's own."""
    layers, its = found.layers, found.of(kind)
    n = len(layers)
    places = [*pairwise(range(n)), *((0, j) for j in range(2, n))]
    cells = {}
    for i, j in places:
        own, other = its.overlap[i][i], its.overlap[j][j]
        highest = None if own is None or other is None else (own + other) / 2
        bounds = f"[{_percent(its.chance[i][j])}, {_percent(highest)}]"
        pair = _Pair(j > i + 1, layers[i], layers[j])
        cells[pair] = f"{_percent(its.overlap[i][j])} {bounds}"
    return cells


def _percent(share: float | None) -> str:
    return NOTHING if share is None else f"{100 * share:.0f}"


def _random(layer: int, n_outputs: int, n_features: int) -> Floats:
    """Weights of random probes, `RANDOM` outputs or a few more. Shape (probes, C, H)."""
    n_probes = -(-RANDOM // n_outputs)
    return np.random.default_rng(layer).normal(size=(n_probes, n_outputs, n_features))


def _chance(sizes: Sequence[int], width: int) -> Matrix:
    """The expected overlap of random subspaces of `width` dimensions."""
    return tuple(tuple(max(k, m) / width if min(k, m) else None for m in sizes) for k in sizes)
