"""Where in a model a task's labels come to be decodable (Tenney et al. 2019a, section 3).

A scalar mix of layers 0 to k is learnt together with a probe, for every k
(probes/training/scalar_mix.py). Then the suite's ordinary probe is fitted on the fixed mix, so that
its score s_k can be compared with those of single layers; s_0 is the score of layer 0.

Intervals of what is computed from the scores s_k resample test sentences. Mix weights do not depend
on test: intervals of what is computed from them come from repeated training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import stdtrit

from probes.common.arrays import Floats
from probes.examples.scoring import Scorer
from probes.records.payload import Estimate, Localisation, MixResult
from probes.records.probe_spec import ProbeSpec
from probes.statistics.bootstrap import LEVEL, MIN_SENTENCES, bounds, interval, replicates, resample
from probes.statistics.gold import Gold
from probes.statistics.metrics import metrics
from probes.training.batches import Batches
from probes.training.features import Features
from probes.training.fit import fit, predict
from probes.training.scalar_mix import Mixed, layer_overlap, learn_mixes, mix_scales

FEW_SENTENCES = f"fewer than {MIN_SENTENCES} test sentences"

NO_SCORE = "the metric is undefined on test"

NO_GAIN = "the interval of the total gain is not above 0"

ONE_SEED = "one seed"


def localise(
    train: Batches,
    dev: Batches,
    test: Features,
    n_outputs: int,
    spec: ProbeSpec,
    n_seeds: int,
    scorers: Mapping[str, Scorer],
    in_labels_unit: Callable[[NDArray[Any]], NDArray[Any]],
    at_once: int,
) -> tuple[Localisation, NDArray[Any]]:
    """Learn the mixes of layers 0 to k for every k, and score probes on them.

    Args:
        train, dev, test: features of all L + 1 layers; labels and weights of shape (1, N).
        in_labels_unit: converts outputs of a probe to what `scorers` score.
        at_once: how many mixes fit in memory together.

    Returns:
        the record, and the predictions on test of every mix (L + 1, n).
    """
    n_layers = train.features.shape[0]
    reach = [*range(n_layers), *[n_layers - 1] * (n_seeds - 1)]
    seeds = [0] * n_layers + list(range(1, n_seeds))
    overlap = layer_overlap(train.features)
    groups = [slice(i, i + at_once) for i in range(0, len(reach), at_once)]
    weights = torch.cat(
        [
            learn_mixes(train, dev, n_outputs, spec, overlap, reach[group], seeds[group])
            for group in groups
        ]
    )
    strengths: list[float] = []
    scales = mix_scales(weights[:n_layers], overlap)
    parts: dict[str, list[NDArray[Any]]] = {"dev": [], "test": []}
    for group in groups[: -(-n_layers // at_once)]:
        mixed_train, mixed_dev, mixed_test = (
            Mixed(features, scales[group]) for features in (train.features, dev.features, test)
        )
        fitted = fit(
            replace(train, features=mixed_train),
            replace(dev, features=mixed_dev),
            n_outputs,
            spec,
            [0],
        )
        strengths += fitted.strength[:, 0].tolist()
        for split, features in (("dev", mixed_dev), ("test", mixed_test)):
            outputs = predict(fitted, features, n_outputs, spec, train.sets)
            parts[split].append(in_labels_unit(outputs[:, 0].cpu().numpy()))
    predicted = {split: np.concatenate(arrays) for split, arrays in parts.items()}
    record = localisation_record(weights.cpu().double().numpy(), strengths, predicted, scorers)
    return record, predicted["test"]


def localisation_record(
    weights: Floats,
    strengths: Sequence[float],
    predicted: Mapping[str, NDArray[Any]],
    scorers: Mapping[str, Scorer],
) -> Localisation:
    """Scores of all mixes, and what follows from them and from the mix weights.

    Args:
        weights: of the mixes of layers 0 to k for every k with seed 0, then of the mix of all
            layers with each other seed. Shape (L + S, L + 1).
        strengths: of L2, of the probe on each mix of seed 0.
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
    return Localisation(
        mixes=mixes,
        total_gain=gain,
        expected_layer=layer,
        centre_of_gravity=over_seeds(centre_of_gravity(full), n_layers - 1),
        kl=over_seeds(kl_from_uniform(full), float(np.log2(n_layers))),
        seed_weights=tuple(tuple(row) for row in full.tolist()),
    )


def _resampled(gold: Gold, names: Sequence[str], predicted: NDArray[Any]) -> dict[str, Floats]:
    """Each metric of every mix in every resample; empty if there are too few sentences."""
    if gold.n_sentences < MIN_SENTENCES:
        return {}
    draws = resample(gold.n_sentences)
    return {name: replicates(metrics.get(name), gold, predicted, draws) for name in names}


def expected_layer(scores: Floats) -> Floats:
    """Σ_k k · (s_k − s_{k−1}) / (s_L − s_0), k = 1 … L, of raw differences (eq. 4).

    Args:
        scores: cumulative scores s_0 … s_L along the first axis. Shape (L + 1, …).
    """
    steps = np.diff(scores, axis=0)
    layers = np.arange(1, len(scores)).reshape(-1, *[1] * (scores.ndim - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = (layers * steps).sum(0) / (scores[-1] - scores[0])
    # It is undefined in a resample without any gain.
    return np.where(np.isfinite(found), found, np.nan)


def centre_of_gravity(weights: Floats) -> Floats:
    """Σ_j j · s_j of mix weights s (…, L + 1) (eq. 2)."""
    centre: Floats = weights @ np.arange(weights.shape[-1])
    return centre


def kl_from_uniform(weights: Floats) -> Floats:
    """Σ_j s_j log₂(s_j · (L + 1)) in bits, of mix weights s (…, L + 1)."""
    terms = weights * np.log2(np.where(weights > 0, weights * weights.shape[-1], 1.0))
    bits: Floats = terms.sum(-1)
    return bits


def gain_and_expected_layer(scores: Floats, values: Floats | None) -> tuple[Estimate, Estimate]:
    """Total gain and expected layer, each with its percentile interval.

    Args:
        scores: cumulative scores on test. Shape (L + 1,).
        values: the same in every resample, (L + 1, n); None if there are too few sentences.
    """
    if np.isnan(scores).any():
        missing = Estimate(value=None, interval=None, missing=NO_SCORE)
        return missing, missing
    total = float(scores[-1] - scores[0])
    if values is None:
        return (
            Estimate(value=total, interval=None, missing=FEW_SENTENCES),
            Estimate(value=None, interval=None, missing=FEW_SENTENCES),
        )
    between = bounds(interval(values[-1] - values[0]))
    gain = Estimate(value=total, interval=between, missing=None if between else NO_SCORE)
    if between is None or between[0] <= 0:
        return gain, Estimate(value=None, interval=None, missing=NO_GAIN if between else NO_SCORE)
    layer = float(expected_layer(scores))
    return gain, Estimate(value=layer, interval=bounds(interval(expected_layer(values))))


def over_seeds(values: Floats, most: float) -> Estimate:
    """Seed 0's value with a t-interval from the other seeds' bootstrap samples.

    The standard error is the root mean square deviation of the other n − 1 seeds from seed 0,
    which was trained on the sample that theirs are drawn from: n − 1 degrees of freedom.

    Args:
        values: of each seed. Shape (n,).
        most: the largest possible value; the smallest is 0.
    """
    value, n_others = float(values[0]), len(values) - 1
    if not n_others:
        return Estimate(value=value, interval=None, missing=ONE_SEED)
    error = np.sqrt(((values[1:] - value) ** 2).mean())
    half = float(stdtrit(n_others, (1 + LEVEL) / 2) * error)
    return Estimate(value=value, interval=(max(0.0, value - half), min(most, value + half)))
