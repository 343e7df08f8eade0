"""Probes on the mixes of layers 0 to k, for every k.

A mix is learnt together with a probe (probes/training/scalar_mix.py); then the suite's ordinary
probe is fitted on it to the end, so that its score stands beside those of single layers; the first
is layer 0's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from probes.examples.scoring import Scorer
from probes.measurements.localisation import measure
from probes.records.payload import Localisation
from probes.records.probe_spec import ProbeSpec
from probes.training.batches import Batches
from probes.training.families import family_of
from probes.training.features import Features
from probes.training.fit import fit_at, predict
from probes.training.scalar_mix import Mixed, even_weights, layer_overlap, learn_mixes, mix_scales


def localise(
    train: Batches,
    dev: Batches,
    test: Features,
    n_outputs: int,
    spec: ProbeSpec,
    n_seeds: int,
    strengths: Sequence[float],
    steps: Sequence[float],
    scorers: Mapping[str, Scorer],
    in_labels_unit: Callable[[NDArray[Any]], NDArray[Any]],
    at_once: int,
) -> tuple[Localisation, NDArray[Any]]:
    """Learn the mixes of layers 0 to k for every k, and measure.

    Strength and step of a mix are the geometric means of its layers', weighted as they are mixed.

    Args:
        train, dev, test: features of all L + 1 layers; labels and weights of shape (1, N).
        strengths, steps: of the plain probe of each layer; a closed form's step is the spec's.
        in_labels_unit: makes of what a probe says what `scorers` score.
        at_once: how many mixes are trained at once, as memory allows.

    Returns:
        the measures, and the predictions on test of every mix (L + 1, n).
    """
    n_layers = train.features.shape[0]
    reach = [*range(n_layers), *[n_layers - 1] * (n_seeds - 1)]
    seeds = [0] * n_layers + list(range(1, n_seeds))
    overlap = layer_overlap(train.features)
    log_strength = torch.tensor(strengths, device=overlap.device).log()
    log_step = torch.tensor(steps, dtype=torch.float64).log()
    even = even_weights(reach, n_layers)
    start = (even.to(overlap.device) @ log_strength).exp()
    # A convex probe's, as wide features need smaller ones; others begin with the spec's.
    size = torch.full(start.shape, spec.step, dtype=torch.float64)
    if family_of(spec).convex:
        size = (even.double() @ log_step).exp()
    groups = [slice(i, i + at_once) for i in range(0, len(reach), at_once)]
    learnt = [
        learn_mixes(
            train,
            dev,
            n_outputs,
            spec,
            overlap,
            reach[group],
            seeds[group],
            start[group],
            size[group],
        )
        for group in groups
    ]
    cells = torch.cat([weights for weights, _ in learnt])
    near = [torch.cat(parts) for parts in zip(*(found for _, found in learnt), strict=True)]
    strength = (cells[:n_layers] @ log_strength).exp()[:, None]
    step = (cells[:n_layers].cpu().double() @ log_step).exp()
    scales = mix_scales(cells[:n_layers], overlap)
    given: dict[str, list[NDArray[Any]]] = {"dev": [], "test": []}
    for group in groups[: -(-n_layers // at_once)]:
        train_mixed, dev_mixed, test_mixed = (
            Mixed(features, scales[group]) for features in (train.features, dev.features, test)
        )
        fitted = fit_at(
            replace(train, features=train_mixed),
            replace(dev, features=dev_mixed),
            n_outputs,
            spec,
            strength[group],
            step[group],
            [parameter[:n_layers][group] for parameter in near],
        )
        for split, features in (("dev", dev_mixed), ("test", test_mixed)):
            said = predict(fitted, features, n_outputs, spec, train.sets)
            given[split].append(in_labels_unit(said[:, 0].cpu().numpy()))
    predicted = {split: np.concatenate(parts) for split, parts in given.items()}
    weights = cells.cpu().double().numpy()
    return measure(weights, strength[:, 0].tolist(), predicted, scorers), predicted["test"]
