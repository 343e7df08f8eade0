"""How much memory training may take, and how many layers that is at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from probes.compute.workers import n_workers
from probes.records.probe_spec import ProbeSpec
from probes.training.batches import BATCH, EVALUATION

_METAL = 1 << 32
"""Bytes that no tensor may reach for Metal's kernels."""

_STEP = 2 * BATCH + EVALUATION
"""Examples whose outputs lie in memory at once: of the largest step, and of an evaluation."""


@dataclass(frozen=True)
class Work:
    """What is to be trained, as far as it takes memory.

    Attributes:
        n_features: that probes are fitted on.
        n_read: of the blocks that those are made from, which may be wider.
        n_examples: of all splits.
        n_outputs: number of classes; 0 for regression.
        n_cells: of a layer, fitted at once.
        n_batches: that a step reads, one for each course.
    """

    spec: ProbeSpec
    n_features: int
    n_read: int
    n_examples: int
    n_outputs: int
    n_cells: int
    n_batches: int = 1


def _read(n_batches: int) -> int:
    """Examples whose features lie in memory at once: in training, or while they are prepared.

    A block being read beside the last one, or what each worker reads beside what it writes, or a
    step's batches beside all of them in one.
    """
    return 2 * max(_STEP, n_workers() * EVALUATION, n_batches * BATCH)


def block_bytes(n_layers: int, n_features: int) -> int:
    """What the layers that mixes are made of take, beside what training needs for each mix."""
    return 4 * _read(1) * n_layers * n_features


def least(work: Work, n_mixed: int) -> int:
    """Bytes that `work` takes if layers are fitted one at a time and no features are held.

    Args:
        n_mixed: layers that mixes are made of; 0 for no mixes.
    """
    return _layer_bytes(work) + block_bytes(n_mixed, work.n_read)


def _layer_bytes(work: Work) -> int:
    """What fitting a layer takes, its features apart."""
    spec, n_features = work.spec, work.n_features
    cells = max(len(spec.strengths), work.n_cells)
    outputs = max(1, work.n_outputs)
    units = spec.hidden + outputs
    parameters = cells * (
        n_features * spec.hidden + units * outputs if spec.hidden else n_features * outputs
    )
    # Values, gradients, two moments, the best so far and a copy; features; outputs of a batch and
    # of an evaluation block with what is derived from them.
    working = 4 * (6 * parameters + _read(work.n_batches) * work.n_read + 3 * cells * units * _STEP)
    if spec.family == "linear" and not work.n_outputs:
        # The closed form's products of features, their eigenvectors, and what LAPACK takes.
        working += 8 * 8 * n_features**2
    return working


def group_layers(memory: int, device: torch.device, work: Work) -> tuple[int, bool]:
    """How many layers to fit at once within `memory` bytes, and whether to hold their features.

    On a CPU features are always read from the map as they are needed, since that costs little;
    on another device they are held if those of one layer leave room for its fit.
    """
    working, holding = _layer_bytes(work), 4 * work.n_features * work.n_examples
    # What is held of a group is one tensor.
    largest = _METAL - 1 if device.type == "mps" else memory
    hold = device.type != "cpu" and working + holding <= memory and holding <= largest
    n_layers = memory // (working + hold * holding)
    return max(1, min(n_layers, largest // holding) if hold else n_layers), hold
