"""Where in a model a task's labels come to be decodable (Tenney et al. 2019a, section 3).

A scalar mix of layers 0 to k is learnt together with a probe, for every k
(probes/training/scalar_mix.py). Then the suite's ordinary probe is fitted on the fixed mix, so that
its score s_k can be compared with those of single layers; s_0 is the score of layer 0. This is done
with convex probes: MLPs on mixes score below MLPs on single layers, so that their gains would say
little.

Intervals of what is computed from the scores s_k resample test documents or sentences. Mix weights
do not depend on test: intervals of what is computed from them come from mixes learnt on bootstrap
samples of the training split.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field

from probes.measurements.cells import estimate_text, metric_curves, score_cell, task_head
from probes.measurements.expected_layer import (
    centre_of_gravity,
    gain_and_expected_layer,
    kl_from_uniform,
    over_samples,
)
from probes.measurements.measurement import Found, Level, ProbeMeasurement, Request
from probes.records.base import Frozen
from probes.records.charts import UNMEASURED
from probes.records.curves import Curves, Point
from probes.records.probe_spec import ProbeSpec
from probes.records.record import Extent, Record
from probes.records.result import Result
from probes.records.row import Row
from probes.records.table import NOTHING, Cell, Table, TableRow
from probes.records.values import Estimate, Interval, Scores
from probes.statistics.bootstrap import bounds, draws_of, interval, replicates
from probes.statistics.gold import Gold
from probes.statistics.metrics import metrics
from probes.tasks.task import Task
from probes.training.families import is_convex, may_be_convex

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from probes.common.arrays import Floats
    from probes.examples.scoring import Scorer
    from probes.measurements.probe_context import ProbeContext

N_SAMPLES = 2
"""Bootstrap samples of the training split on which the mix of all layers is learnt again."""


class MixResult(Frozen):
    """The probe on the mix of layers 0 to k."""

    k: int
    weights: tuple[float, ...]
    """Weights of layers 0 to k; they sum to 1."""
    l2: float
    """L2 strength."""
    dev: Scores
    test: Scores
    intervals: dict[str, Interval]
    """95 % intervals of the test scores over test documents or sentences."""


class Mixes(Frozen):
    """What `Localisation` finds."""

    mixes: tuple[MixResult, ...] = Field(min_length=1)
    """One for every layer k."""
    total_gain: Estimate
    """Headline test score of the mix of all layers minus that of layer 0; over the test split."""
    expected_layer: Estimate
    """Mean layer of the gains; without a value unless the total gain's interval is above 0."""
    centre_of_gravity: Estimate
    """Mean layer of the weights of the mix of all layers; the training split is resampled."""
    kl: Estimate
    """Divergence of these weights from uniform ones, in bits; resampled likewise."""
    sample_weights: tuple[tuple[float, ...], ...]
    """The weights of the mix of all layers, learnt on the whole training split, then on each
    bootstrap sample of it."""


class Localisation(ProbeMeasurement[Mixes]):
    """Scores of probes on mixes of layers 0 to k, and the layers that follow from them."""

    name = "localisation"
    version = 2
    summary = "scalar mixes of layers, expected layer (Tenney et al. 2019a)"
    payload: ClassVar[type[Mixes]] = Mixes
    reads_all_layers = True

    def missing(self, task: Task, probe: ProbeSpec, level: Level) -> str:
        """Only convex probes are fitted on mixes."""
        return "" if is_convex(probe) else "only convex probes are fitted on mixes"

    def cost(self, probe: ProbeSpec) -> float:
        """The mixes are learnt first."""
        return 2.5

    def extent(self, request: Request) -> Extent:
        """All layers of the model, or none if only some are probed."""
        every = len(request.layers) == request.n_layers + 1
        return dict.fromkeys(request.layers, 1) if every else {}

    def compute(self, context: ProbeContext) -> Found[Mixes]:
        """Learn the mixes and score probes on them; the array is their predictions on test."""
        weights, strengths, predicted = _fit_mixes(context)
        found = mixes_record(weights, strengths, predicted, context.scorers)
        kind = context.task.kind
        stored = np.float64 if kind == "regression" else predicted["test"].dtype
        return Found(payload=found, arrays={"predicted": predicted["test"].astype(stored)})

    def numbers(self, record: Record[Mixes]) -> Iterator[Row]:
        """Scores of the mixes, and the estimates."""
        found = record.payload
        metric = record.task.metric if record.task else ""
        for mix in found.mixes:
            low, high = mix.intervals.get(metric) or (None, None)
            yield Row("mix_score", mix.test[metric], mix.k, low, high)
        for name in ("total_gain", "expected_layer", "centre_of_gravity", "kl"):
            estimate: Estimate = getattr(found, name)
            low, high = estimate.interval or (None, None)
            yield Row(name, estimate.value, None, low, high)

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Scores by mix, and the estimates."""
        found: list[tuple[Result, Mixes]] = [(r, r.found(self.name)) for r in results]
        rows = [
            TableRow.of(
                f"layers 0 to {k}" if k else "layer 0",
                *(_mix(mixes, k, r.task.metric) for r, mixes in found),
            )
            for k in sorted({mix.k for _, mixes in found for mix in mixes.mixes})
        ]
        rows += [
            TableRow.of("expected layer", *(estimate_text(x.expected_layer) for _, x in found)),
            TableRow.of(
                "centre of gravity", *(estimate_text(x.centre_of_gravity) for _, x in found)
            ),
            TableRow.of("KL from uniform, bits", *(estimate_text(x.kl) for _, x in found)),
        ]
        return [
            Table(
                "probes on mixes of layers 0 to k",
                ("layer", *(task_head(r, r.task.metric) for r, _ in found)),
                tuple(rows),
                notes=(
                    "Scalar mixes as in Tenney et al. 2019a; the expected layer follows from their "
                    "gains, centre of gravity and divergence from the weights of the mix of all "
                    "layers. Brackets and ±: 95 % intervals, of scores and expected layers over "
                    "test text, of centres and divergences over training text; none is over both.",
                ),
            )
        ]

    def curves(self, results: Mapping[str, Result]) -> Curves:
        """Test scores of the probe on the mix of layers 0 to k."""
        metric = next(iter(results.values())).task.metric
        found = metric_curves(
            "mix",
            "Score on the mix of layers 0 to k",
            "Scalar mixes as Tenney et al. 2019a; what a layer adds is the step to it.",
            metric,
            what="layers 0 to k",
        )
        for model, result in results.items():
            if result.found(self.name) is None:
                found.missing[model] = no_localisation(result)
            else:
                found.models[model] = [
                    Point(mix.k, mix.test[metric], mix.intervals.get(metric))
                    for mix in result.found(self.name).mixes
                ]
        return found


def mixes_of(result: Result) -> Mixes | None:
    """What localisation found for a result; None if it was not measured."""
    found: Mixes | None = result.found(Localisation.name)
    return found


def no_localisation(result: Result) -> str:
    """Why a result has no mixes and expected layer."""
    if not result.has_all_layers:
        return "not all layers were probed"
    if not may_be_convex(result.probe):
        return "only convex probes are fitted on mixes"
    return UNMEASURED


def _mix(mixes: Mixes, k: int, metric: str) -> Cell:
    for mix in mixes.mixes:
        if mix.k == k:
            return score_cell(mix.test[metric], mix.intervals[metric], metric)
    return Cell(NOTHING)


def _fit_mixes(
    context: ProbeContext,
) -> tuple[Floats, list[float], dict[str, NDArray[Any]]]:
    """The mix weights, and strengths and predictions of the probe on each mix.

    Returns:
        weights (L + 1 + N_SAMPLES, L + 1), the last ones those of mixes of all layers on samples;
        strengths of L + 1 probes; and their predictions on dev and test, each (L + 1, n).
    """
    import torch

    from probes.training.fit import Draw, fit, predict
    from probes.training.memory_plan import block_bytes
    from probes.training.scalar_mix import Mixed, layer_overlap, learn_mixes, mix_scales
    from probes.training.steps import fit_steps, mix_steps

    data, spec = context.data, context.spec
    layers, n_layers = context.layers, len(context.layers)
    left = context.memory - block_bytes(n_layers, data.width_read)
    at_once, hold = data.group_layers(left, spec, 1)
    features = data.features(layers, hold and at_once >= n_layers)
    train, dev = (data.batches(split, features[split]) for split in ("train", "dev"))
    reach = [*range(n_layers), *[n_layers - 1] * N_SAMPLES]
    samples = [0] * n_layers + list(range(1, N_SAMPLES + 1))
    overlap = layer_overlap(train.features)
    groups = [slice(i, i + at_once) for i in range(0, len(reach), at_once)]
    sentences = data.sentences("train")
    with context.bar(len(groups) * mix_steps(sentences)):
        weights = torch.cat(
            [
                learn_mixes(train, dev, data.n_outputs, spec, overlap, reach[group], samples[group])
                for group in groups
            ]
        )
    scales = mix_scales(weights[:n_layers], overlap)
    strengths: list[float] = []
    parts: dict[str, list[NDArray[Any]]] = {"dev": [], "test": []}
    groups = groups[: -(-n_layers // at_once)]
    with context.bar(len(groups) * fit_steps(spec, sentences, data.n_outputs, [Draw()])):
        for group in groups:
            mixed = {split: Mixed(each, scales[group]) for split, each in features.items()}
            fitted = fit(
                replace(train, features=data.computed_once(mixed["train"])),
                replace(dev, features=mixed["dev"]),
                data.n_outputs,
                spec,
                [Draw()],
            )
            strengths += fitted.strength[:, 0].tolist()
            for split, predicted in parts.items():
                outputs = predict(fitted, mixed[split], data.n_outputs, spec, data.sets)
                predicted.append(data.in_labels_unit(outputs[:, 0].cpu().numpy()))
    joined = {split: np.concatenate(arrays) for split, arrays in parts.items()}
    return weights.cpu().double().numpy(), strengths, joined


def mixes_record(
    weights: Floats,
    strengths: Sequence[float],
    predicted: Mapping[str, NDArray[Any]],
    scorers: Mapping[str, Scorer],
) -> Mixes:
    """Scores of all mixes, and what follows from them and from the mix weights.

    Args:
        weights: of the mixes of layers 0 to k for every k, then of the mix of all layers on each
            bootstrap sample of the training split. Shape (L + 1 + samples, L + 1).
        strengths: of L2, of the probe on each of the first L + 1 mixes.
        predicted: on dev and test, by these probes. Each (L + 1, n).
    """
    n_layers = weights.shape[1]
    gold, names = scorers["test"].gold, scorers["test"].names
    values = _resampled(gold, names, predicted["test"])
    intervals = {name: interval(found) for name, found in values.items()}
    scores = {split: scorers[split].scores(given) for split, given in predicted.items()}
    mixes = tuple(
        MixResult(
            k=k,
            weights=tuple(weights[k, : k + 1].tolist()),
            l2=strengths[k],
            dev=scores["dev"][k],
            test=scores["test"][k],
            intervals={name: bounds(intervals[name][k]) if intervals else None for name in names},
        )
        for k in range(n_layers)
    )
    headline = np.array([m.test[names[0]] for m in mixes], dtype=np.float64)
    gain, layer = gain_and_expected_layer(headline, values.get(names[0]))
    full = weights[n_layers - 1 :]
    return Mixes(
        mixes=mixes,
        total_gain=gain,
        expected_layer=layer,
        centre_of_gravity=over_samples(centre_of_gravity(full), n_layers - 1),
        kl=over_samples(kl_from_uniform(full), float(np.log2(n_layers))),
        sample_weights=tuple(tuple(row) for row in full.tolist()),
    )


def _resampled(gold: Gold, names: Sequence[str], predicted: NDArray[Any]) -> dict[str, Floats]:
    """Each metric of every mix in every resample; empty if there are too few clusters."""
    draws = draws_of(gold)
    if draws is None:
        return {}
    return {name: replicates(metrics.get(name), gold, predicted, draws) for name in names}
