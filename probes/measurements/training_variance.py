"""Training variance: how much scores change with the seed and with the training sample.

A probe that is fitted again from another seed, or on another sample of the same size, scores
otherwise; what a test between layers does not know of this, it takes for a difference of layers.
Other seeds train on the whole training split. Samples of the training data are bootstrap samples of
its sentences, all fitted from seed 0. A convex probe does not depend on its seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import variance
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from probes.measurements.cells import rows_by_layer
from probes.measurements.measurement import Found, Level, Number, ProbeMeasurement, Request
from probes.records.base import Frozen
from probes.records.probe_spec import ProbeSpec
from probes.records.record import Extent, Record
from probes.records.result import Result
from probes.records.table import NOTHING, Cell, Row, Table
from probes.records.titles import task_head
from probes.statistics.bootstrap import MIN_SENTENCES, replicates, resample
from probes.statistics.formatting import shown_sd
from probes.statistics.metrics import metrics
from probes.statistics.significance import holm, paired_p
from probes.statistics.training_noise import with_training_noise
from probes.training.families import is_convex

if TYPE_CHECKING:
    from probes.measurements.probe_context import ProbeContext


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
    """On bootstrap samples of training sentences, from seed 0."""


class Variances(Frozen):
    """What `TrainingVariance` finds."""

    layers: tuple[LayerVariance, ...]
    seeds: Spread | None
    """Over seeds, seed 0 among them; None for convex probes."""
    samples: Spread | None
    """Over bootstrap samples; None if no score is defined."""
    p_best: dict[int, float | None]
    """By layer, the corrected p-value of the difference from the best layer on dev; None where
    nothing could be tested, and without that layer itself."""


class TrainingVariance(ProbeMeasurement[Variances]):
    """Refits from other seeds and on bootstrap samples, and tests between layers that know of it.

    Of convex probes every layer is fitted to five bootstrap samples. Others are fitted from two
    further seeds and to two bootstrap samples at three layers (lowest, best on dev, highest); with
    full evidence at every layer.
    """

    name = "training_variance"
    summary = "variance of scores over seeds and training samples; tests between layers"
    payload: ClassVar[type[Variances]] = Variances

    CONVEX_SAMPLES = 5
    CONVEX_EPOCHS = 8
    """Fewer than for the scores: the spread is that of longer fits, at less than half the time."""

    FURTHER = 2
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
        return dict.fromkeys(layers, 2 * self.FURTHER)

    def compute(self, context: ProbeContext) -> Found[Variances]:
        """Fit, score and test; see `probes.statistics.training_noise` for the tests."""
        from probes.training.fit import Draw

        result, layers = context.result, context.layers
        convex = is_convex(context.spec)
        seeds = [] if convex else [Draw(seed=i) for i in range(1, self.FURTHER + 1)]
        n_samples = self.CONVEX_SAMPLES if convex else self.FURTHER
        samples = [Draw(sample=i) for i in range(1, n_samples + 1)]
        if convex:
            shorter = context.spec.model_copy(update={"epochs": self.CONVEX_EPOCHS})
            context = replace(context, spec=shorter)
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
        over_samples = pooled([x.resampled for x in found])
        return Found(
            Variances(
                layers=tuple(found),
                seeds=over_seeds,
                samples=over_samples,
                p_best=_tested(context, [x for x in (over_seeds, over_samples) if x]),
            )
        )

    def numbers(self, record: Record[Variances]) -> Iterator[Number]:
        """The pooled standard deviations, and the p-value of every layer."""
        found = record.payload
        yield Number("retraining_sd", found.seeds.sd if found.seeds else None)
        yield Number("sampling_sd", found.samples.sd if found.samples else None)
        for layer, p in found.p_best.items():
            yield Number("p_best", p, layer)

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Standard deviations over samples by layer, and both pooled."""

        def cell(result: Result, layer: int) -> Cell | None:
            of_layer = {x.layer: x for x in result.found(self.name).layers}
            if layer not in of_layer:
                return None
            spread = pooled([of_layer[layer].resampled])
            return Cell(shown_sd(spread.sd, result.task.metric)) if spread else None

        def pooled_row(name: str, which: str) -> list[str]:
            spreads = [(getattr(r.found(self.name), which), r.task.metric) for r in results]
            return [
                name,
                *(
                    f"{shown_sd(spread.sd, metric)} (df {spread.df})" if spread else NOTHING
                    for spread, metric in spreads
                ),
            ]

        rows = rows_by_layer(results, cell)
        return [
            Table(
                "training variance: standard deviation of test scores over training samples",
                ("layer", *(task_head(r, r.task.metric) for r in results)),
                (
                    *rows,
                    Row.of(*pooled_row("samples, pooled", "samples")),
                    Row.of(*pooled_row("seeds, pooled", "seeds")),
                ),
                notes=(
                    "Samples: bootstrap samples of training sentences. Seeds: other initial "
                    "parameters and orders of batches on the whole training split; a convex probe "
                    "does not depend on them.",
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


def _tested(context: ProbeContext, spreads: Sequence[Spread]) -> dict[int, float | None]:
    """P-values of every layer's difference from the best one on dev.

    Paired bootstrap over test sentences, each layer's replicates with noise of training added;
    corrected by Holm's method.
    """
    result, gold = context.result, context.scorers["test"].gold
    layers = [layer.layer for layer in result.layers]
    best = result.best_layer.layer
    others = [layer for layer in layers if layer != best]
    if gold.n_sentences < MIN_SENTENCES or not others:
        return dict.fromkeys(others)
    values = replicates(
        metrics.get(context.task.metric),
        gold,
        context.predicted(layers),
        resample(gold.n_sentences),
    )
    values = with_training_noise(values, [(spread.sd, spread.df) for spread in spreads])
    at = dict(zip(layers, values, strict=True))
    p_values = holm(paired_p(np.stack([at[layer] for layer in others]), at[best]))
    return {
        layer: None if np.isnan(p) else float(p) for layer, p in zip(others, p_values, strict=True)
    }
