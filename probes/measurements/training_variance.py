"""Training variance: how much scores change with the seed and with the training sample.

A probe that is fitted again from another seed, or on another sample of the same size, scores
otherwise; what a test between layers does not know of this, it takes for a difference of layers.
Retraining is a fit on the whole training split from another seed, on which a convex probe does not
depend. Samples are bootstrap samples of training documents, or sentences where the corpus names no
documents, each fitted from a seed of its own: they vary with both, as a new study of the same size
would. Tests carry this variance; what samples alone contribute is the difference of the two.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import variance
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from probes.measurements.cells import rows_by_layer, task_head
from probes.measurements.measurement import Found, Level, Measurement, Request
from probes.records.base import Frozen
from probes.records.probe_spec import ProbeSpec
from probes.records.record import Extent, Record
from probes.records.result import Result
from probes.records.row import Row
from probes.records.table import NOTHING, Cell, Table, TableRow
from probes.statistics.bootstrap import cluster_sums, draws_of
from probes.statistics.formatting import shown_sd
from probes.statistics.metrics import metrics
from probes.statistics.partition import Cluster
from probes.statistics.replicates import Replicates, p_values_of
from probes.statistics.significance import all_pairs, p_best
from probes.training.families import is_convex

if TYPE_CHECKING:
    from probes.measurements.context import Context


class Spread(Frozen):
    """A standard deviation of scores, pooled over layers."""

    sd: float
    df: int
    """Degrees of freedom, summed over layers."""


class LayerVariance(Frozen):
    """Headline test scores of one layer's further fits; None where the metric is undefined."""

    layer: int
    reseeded: tuple[float | None, ...]
    """On the whole training split, from seeds 1, 2, …; the scores reported are of seed 0."""
    resampled: tuple[float | None, ...]
    """On bootstrap samples 1, 2, … of the training split, from seeds 1, 2, …"""


class Variances(Frozen):
    """What `TrainingVariance` finds."""

    layers: tuple[LayerVariance, ...]
    resampled: Cluster
    """What training samples are drawn from."""
    seeds: Spread | None
    """Over seeds, seed 0 among them; None for convex probes."""
    both: Spread | None
    """Over bootstrap samples and seeds; None if no score is defined."""
    p_best: dict[int, float | None]
    """By layer, the least corrected p-value of a difference from a layer that scores higher on
    test, 1 without any; None where nothing could be tested."""

    @property
    def sampling_sd(self) -> float | None:
        """Standard deviation over training samples alone: what both have beyond the seeds."""
        if self.both is None:
            return None
        of_seeds = self.seeds.sd if self.seeds else 0.0
        return math.sqrt(max(0.0, self.both.sd**2 - of_seeds**2))


class TrainingVariance(Measurement[Variances]):
    """Refits from other seeds and on bootstrap samples, and tests between layers that know of it.

    Of convex probes every layer is fitted to five bootstrap samples. Others are fitted from one
    further seed and to three bootstrap samples at three layers (lowest, best on dev, highest); with
    full evidence at every layer.
    """

    name = "training_variance"
    asks = ("scores",)
    version = 3
    summary = "variance of scores over seeds and training samples; tests between layers"
    payload: ClassVar[type[Variances]] = Variances
    of_twins = True

    CONVEX_SAMPLES = 5
    CONVEX_EPOCHS = 8
    """Fewer than for the scores: the spread is that of longer fits, at less than half the time."""

    SEEDS, SAMPLES = 1, 3
    """Further seeds, and bootstrap samples, of probes that are not convex."""

    def fits_at_once(self, probe: ProbeSpec, level: Level) -> int:
        """All samples of a convex probe."""
        return self.CONVEX_SAMPLES if is_convex(probe) else 1

    def cost(self, probe: ProbeSpec) -> float:
        """Convex probes are fitted together and for fewer epochs."""
        return 0.25 if is_convex(probe) else 1.0

    def extent(self, request: Request) -> Extent:
        """The number of further fits by layer."""
        if is_convex(request.scores.probe):
            return dict.fromkeys(request.layers, self.CONVEX_SAMPLES)
        layers = request.layers if request.level == "full" else request.scores.three_layers
        return dict.fromkeys(layers, self.SEEDS + self.SAMPLES)

    def compute(self, context: Context) -> Found[Variances]:
        """Fit, score and test; see `probes.statistics.significance` for the tests."""
        from probes.training.fit import Draw

        result, layers = context.result, context.layers
        convex = is_convex(context.spec)
        seeds = [] if convex else [Draw(seed=i) for i in range(1, self.SEEDS + 1)]
        n_samples = self.CONVEX_SAMPLES if convex else self.SAMPLES
        samples = [Draw(0 if convex else i, sample=i) for i in range(1, n_samples + 1)]
        if convex:
            shorter = context.spec.model_copy(update={"epochs": self.CONVEX_EPOCHS})
            context = context.with_spec(shorter)
        fits = context.fits(layers, [*seeds, *samples])
        metric = context.task.metric
        found = []
        for layer, predicted in zip(layers, fits.predicted["test"], strict=True):
            scores = [x[metric] for x in context.scorers["test"].scores(predicted)]
            found.append(
                LayerVariance(
                    layer=layer,
                    reseeded=tuple(scores[: len(seeds)]),
                    resampled=tuple(scores[len(seeds) :]),
                )
            )
        over_seeds = None
        if not convex:
            first = {x.layer: result.score(x) for x in result.layers}
            over_seeds = pooled([[first[x.layer], *x.reseeded] for x in found])
        both = pooled([x.resampled for x in found])
        tests = _tested(context, both)
        drawn = context.examples.splits["train"].partition.clusters
        return Found(
            payload=Variances(
                layers=tuple(found), resampled=drawn, seeds=over_seeds, both=both, p_best=tests
            )
        )

    def numbers(self, record: Record[Variances]) -> Iterator[Row]:
        """The pooled standard deviations, and the p-value of every layer."""
        found = record.payload
        yield Row("retraining_sd", found.seeds.sd if found.seeds else None)
        yield Row("sampling_sd", found.sampling_sd)
        yield Row("training_sd", found.both.sd if found.both else None)
        for layer, p in found.p_best.items():
            yield Row("p_best", p, layer)

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Standard deviations over samples and seeds by layer, and pooled."""

        def cell(result: Result, layer: int) -> Cell | None:
            of_layer = {x.layer: x for x in result.found(self.name).layers}
            if layer not in of_layer:
                return None
            spread = pooled([of_layer[layer].resampled])
            return Cell(shown_sd(spread.sd, result.task.metric)) if spread else None

        every: list[Variances] = [result.found(self.name) for result in results]
        metrics_of = [result.task.metric for result in results]

        def pooled_row(name: str, spreads: Sequence[Spread | None]) -> TableRow:
            texts = (
                f"{shown_sd(spread.sd, metric)} (df {spread.df})" if spread else NOTHING
                for spread, metric in zip(spreads, metrics_of, strict=True)
            )
            return TableRow.of(name, *texts)

        alone = (
            NOTHING if x.sampling_sd is None else shown_sd(x.sampling_sd, metric)
            for x, metric in zip(every, metrics_of, strict=True)
        )
        rows = rows_by_layer(results, cell)
        drawn = " or ".join(dict.fromkeys(x.resampled for x in every))
        return [
            Table(
                "training variance: standard deviation of test scores over trainings",
                ("layer", *(task_head(r, r.task.metric) for r in results)),
                (
                    *rows,
                    pooled_row("pooled", [x.both for x in every]),
                    pooled_row("seeds alone", [x.seeds for x in every]),
                    TableRow.of("samples alone", *alone),
                ),
                notes=(
                    f"Over bootstrap samples of training {drawn}, each fitted from another seed. "
                    "Seeds alone: other initial parameters and orders of batches on the whole "
                    "training split; a convex probe does not depend on them. Samples alone: the "
                    "difference of both variances. Tests carry the pooled deviation at every "
                    "layer, though layers may differ.",
                ),
            )
        ]


def pooled(groups: Sequence[Sequence[float | None]]) -> Spread | None:
    """The standard deviation within groups: √(Σ squared deviations / Σ degrees of freedom)."""
    squares, df = 0.0, 0
    for group in groups:
        known = [value for value in group if value is not None]
        if len(known) > 1:
            # Exact: equal scores have no variance, which would break ties between layers.
            squares += variance(known) * (len(known) - 1)
            df += len(known) - 1
    return Spread(sd=(squares / df) ** 0.5, df=df) if df else None


def training_spread(result: Result) -> Spread | None:
    """The spread of scores over trainings that tests carry; None without training variance."""
    found: Variances | None = result.found(TrainingVariance.name)
    return None if found is None else found.both


def _tested(context: Context, spread: Spread | None) -> dict[int, float | None]:
    """The test behind the confidence set of layers, by layer; see `Variances.p_best`."""
    result, gold = context.result, context.scorers["test"].gold
    layers = [layer.layer for layer in result.layers]
    if spread is None or draws_of(gold) is None:
        return dict.fromkeys(layers)
    metric, predicted = metrics.get(context.task.metric), context.predicted(layers)
    sums = [cluster_sums(metric.parts(gold, row), gold) for row in predicted]
    scores = np.array([result.headline[layer] for layer in layers], dtype=np.float64)
    return p_best_of(Replicates(scores, metric, sums, layers, result.key, spread.sd, spread.df))


def p_best_of(found: Replicates) -> dict[int, float | None]:
    """By layer, what `probes.statistics.significance.p_best` says; None where it is undefined."""
    pairs = all_pairs(len(found.layers))
    tests = p_best(found.scores, pairs, np.array(p_values_of([found], pairs))).tolist()
    return {layer: None if np.isnan(p) else p for layer, p in zip(found.layers, tests, strict=True)}
