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
from typing import TYPE_CHECKING, Literal

import numpy as np

from probes.common.arrays import Floats
from probes.examples.examples import NotServedError
from probes.measurements.measurement import Found, Level, Measurement, Request
from probes.measurements.pivots import Pivot, Section
from probes.records.curves import Curves, Point
from probes.records.parameters import of_layer
from probes.records.probe_spec import ProbeSpec
from probes.records.record import Extent
from probes.records.result import Result
from probes.records.row import Row, Rows
from probes.tasks.task import Task
from probes.training.families import is_convex

if TYPE_CHECKING:
    from probes.measurements.context import Context

Kind = Literal["patterns", "weights"]

NOTES: dict[Kind, str] = {
    "patterns": "Mean squared cosine of the principal angles between the subspaces of two layers; "
    "patterns are the covariances of vectors with the outputs of a linear probe. Chance: the "
    "overlap with patterns of random weights. With itself a layer overlaps less than wholly, since "
    "one of the two probes is trained on a bootstrap sample.",
    "weights": "The same of the weights of standardised features, which change with the covariance "
    "of features even where a label stays. Chance: the expectation of random subspaces.",
}

RANDOM = 64
"""Random weights, at least, from whose patterns chance is estimated."""


class PrincipalAngles(Measurement):
    """Principal angles between the subspaces that linear probes find at different layers."""

    name = "principal_angles"
    asks = ("scores",)
    summary = "overlap of the directions that linear probes find at different layers"
    views = tuple(
        Pivot(
            f"overlap of {kind} with lower layers, %",
            ("overlap",),
            columns=("with",),
            where={"split": "train", "of": kind},
            apart="task",
            sections=(Section("chance", {"chance": "overlap"}, {"split": "train", "of": kind}),),
            note=note,
        )
        for kind, note in NOTES.items()
    )

    def missing(self, task: Task, probe: ProbeSpec, level: Level) -> str:
        """Only linear probes have directions."""
        return "" if is_convex(probe) else "only linear probes have directions"

    def extent(self, request: Request) -> Extent:
        """Every layer that has scores, if there are two or more."""
        return dict.fromkeys(request.layers, 1) if len(request.layers) > 1 else {}

    def compute(self, context: Context) -> Found:
        """Fit the probes on a bootstrap sample, and compare them with the reported ones.

        The arrays `patterns` and `weights` are the principal angles in degrees, ascending, between
        the reported probe of the first layer and the other one of the second: (L, L, k), NaN where
        there are fewer than k.

        Rows: the overlap of every layer with itself and those below, as the axis `with`, that of
        chance, each of patterns and of weights; and the dimension of the subspace of weights.

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
        sizes = [len(of_reported) for of_reported, _ in of_weights]
        found = {
            "patterns": (
                mean_overlaps(of_patterns, [1]),
                mean_overlaps(of_patterns, range(2, len(of_patterns[0]))),
            ),
            "weights": (mean_overlaps(of_weights, [1]), _chance(sizes, width)),
        }
        rows = [
            Row(metric, matrix[i][j], layer, split="train", axes={"of": kind, "with": other})
            for kind, both in found.items()
            for i, layer in enumerate(context.layers)
            for j, other in enumerate(context.layers[: i + 1])
            for metric, matrix in zip(("overlap", "chance"), both, strict=True)
        ]
        rows += [
            Row("directions", size, layer, split="train")
            for layer, size in zip(context.layers, sizes, strict=True)
        ]
        arrays = {"patterns": all_angles(of_patterns), "weights": all_angles(of_weights)}
        return Found(rows, arrays)

    def charts(self, records: Mapping[str, Result], paths: object = None) -> list[Curves]:
        """Overlap with the layer below, of each layer with itself, and chance."""
        return [self._curves(records, kind) for kind in NOTES]

    def _curves(self, results: Mapping[str, Result], kind: Kind) -> Curves:
        title = f"Overlap of {kind} with the layer below"
        curves = Curves(f"overlap_of_{kind}", title, NOTES[kind], "overlap, %", percent=True)
        for model, result in results.items():
            found = result.found(self.name)
            if found is None:
                curves.missing[model] = self.missing_of(result)
                continue
            curves.models[model] = list(_points(found, kind))
        return curves


def _points(found: Rows, kind: Kind) -> Iterator[Point]:
    """The overlap of each layer with the one below that was measured, and with itself."""
    layers = sorted({row.layer for row in found if row.layer is not None})
    below = dict(zip(layers[1:], layers, strict=False))
    for row in found:
        if row.axes.get("of") != kind or row.layer is None:
            continue
        other = row.axes["with"]
        if other == below.get(row.layer):
            line = "layer below" if row.metric == "overlap" else row.metric
            yield Point(row.layer, row.value, line=line)
        elif other == row.layer and row.metric == "overlap":
            yield Point(row.layer, row.value, line="itself")


def _random(layer: int, n_outputs: int, n_features: int) -> Floats:
    """Weights of random probes, `RANDOM` outputs or a few more. Shape (probes, C, H)."""
    n_probes = -(-RANDOM // n_outputs)
    return np.random.default_rng(layer).normal(size=(n_probes, n_outputs, n_features))


def _chance(sizes: Sequence[int], width: int) -> list[list[float | None]]:
    """The expected overlap of random subspaces of `width` dimensions."""
    return [[max(k, m) / width if min(k, m) else None for m in sizes] for k in sizes]
