"""The number of layers that can be trained at once within a memory budget."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from probes.records.probe_spec import ProbeSpec
from probes.training.bags import TOKENS_AT_ONCE
from probes.training.batches import BATCH, EVALUATION, READERS
from probes.training.families import family_of
from probes.training.full_batch import PAIRS
from probes.training.preconditioning import DRAWS, WIDEST

_METAL = 1 << 32
"""Bytes below which a tensor must stay for Metal's kernels."""

_STEP = 2 * BATCH + EVALUATION
"""Examples whose outputs are in memory at once: of the largest step, and of an evaluation."""


@dataclass(frozen=True)
class Work:
    """Sizes that determine the memory that training takes.

    Attributes:
        n_features: features of an example.
        n_read: features of the blocks that these are computed from, which may be wider.
        n_examples: examples of all splits.
        n_outputs: number of classes; 0 for a regression.
        n_cells: cells of a layer that are fitted at once.
        n_batches: batches that a step reads, one for each fit.
        n_tokens: tokens of a text, for probes that read them all; `n_examples` are then tokens.
    """

    spec: ProbeSpec
    n_features: int
    n_read: int
    n_examples: int
    n_outputs: int
    n_cells: int
    n_batches: int = 1
    n_tokens: int = 0


def _examples_in_memory(n_batches: int) -> int:
    """Examples whose features are in memory at once, in training or while they are prepared.

    These are twice the larger of: the block being read (and the one before it), the blocks of all
    readers (and what they write), the batches of a step (and these batches stacked).
    """
    return 2 * max(_STEP, READERS * EVALUATION, n_batches * BATCH)


def block_bytes(n_layers: int, n_features: int) -> int:
    """Bytes for the layers that mixes are computed from, besides the training of each mix."""
    return 4 * _examples_in_memory(1) * n_layers * n_features


def _layer_bytes(work: Work) -> int:
    """Bytes for fitting a layer, not counting features held in memory."""
    spec, n_features = work.spec, work.n_features
    outputs = max(1, work.n_outputs)
    units = spec.hidden + outputs
    parameters = work.n_cells * (
        n_features * spec.hidden + units * outputs if spec.hidden else n_features * outputs
    )
    family, at_once, at_a_step = family_of(spec), _examples_in_memory(work.n_batches), _STEP
    if work.n_tokens and not family.convex:
        # Scores of tokens: of an attention probe, one and its values for each head.
        units = parameters = max(1, spec.hidden) * (1 + outputs)
        parameters *= work.n_cells * n_features
        at_a_step = TOKENS_AT_ONCE + spec.batch * work.n_tokens
        at_once = max(at_once, 2 * at_a_step)
    # Values, gradients, two moments, the best so far and a copy; of a convex fit, the steps and
    # changes that curvature is estimated from. Features. Outputs of a batch and of an evaluation
    # block, and what is computed from them.
    copies = 6 + 2 * PAIRS if family.convex else 6
    features = at_once * work.n_read
    working = 4 * (copies * parameters + features + 3 * work.n_cells * units * at_a_step)
    solved = family.closed_form and not work.n_outputs
    if family.convex or solved:
        # The products of features, their eigenvectors, and LAPACK's workspace.
        working += 8 * 8 * n_features**2
    sparse = spec.family == "sparse"  # a convex fit of each cell to a few features
    if sparse or (family.convex and not solved):
        # An inverse for each output; curvatures of all examples, their sums, and what is drawn.
        n_wide = (0 if sparse else min(n_features, WIDEST)) + 1
        n_estimates = outputs * (1 if sparse else work.n_cells)
        working += n_estimates * (4 * n_wide**2 + 24 * work.n_examples + 20 * DRAWS)
    return working


def group_layers(memory: int, device: torch.device, work: Work) -> tuple[int, int]:
    """Number of layers to fit at once within `memory` bytes, and bytes for their features.

    Features are held if those of one layer leave room for its fit. Otherwise no bytes are for them:
    they are read from files, a batch at a time.
    """
    working, holding = _layer_bytes(work), 4 * work.n_features * work.n_examples
    if family_of(work.spec).convex and device.type != "cpu":
        holding *= 2  # in their own axes and in the principal ones; a CPU keeps those that are read
    # The features held for a group of layers are one tensor.
    largest = _METAL - 1 if device.type == "mps" else memory
    if working + holding > memory or holding > largest:
        return max(1, memory // working), 0
    n_layers = min(memory // (working + holding), largest // holding)
    return n_layers, n_layers * holding
