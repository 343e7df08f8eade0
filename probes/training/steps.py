"""Numbers of training steps, for progress bars.

If groups of layers are trained in turn (`probes.training.memory_plan.group_layers`), each group
takes this many steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from probes.records.probe_spec import ProbeSpec
from probes.training.batches import batch_bounds
from probes.training.families import family_of, is_convex, is_seeded
from probes.training.fit import Draw, fits_full_batches, full_batch_steps
from probes.training.online_code import PREFIX_STEPS, block_ends
from probes.training.scalar_mix import MIX_BATCH
from probes.training.scalar_mix import mix_steps as steps_of_batches
from probes.training.trainer import scheduled_steps


def fit_steps(
    spec: ProbeSpec,
    sentences: Tensor,
    n_outputs: int,
    draws: Sequence[Draw],
    kept: NDArray[np.bool_] | None = None,
    *,
    converge: bool = False,
) -> int:
    """Steps of `probes.training.fit.fit`.

    Args:
        sentences: the sentence of each training example, equal ones adjacent. Shape (N,).
        n_outputs: number of classes; 0 for a regression.
        kept: True for the training examples in the fit of each draw (K, N); by default all.
        converge: see `probes.training.fit.fit`.
    """
    family = family_of(spec)
    if family.closed_form and n_outputs == 0:
        rows = [b""] * len(draws) if kept is None else [row.tobytes() for row in kept]
        return len({(draw.sample, row) for draw, row in zip(draws, rows, strict=True)})
    if not (is_convex(spec) or is_seeded(spec)):  # solved
        return len(draws) * full_batch_steps(spec, converge=True)
    if fits_full_batches(spec, len(sentences), n_outputs):
        usual = full_batch_steps(spec)
    else:
        usual = scheduled_steps(spec, len(batch_bounds(sentences, spec.batch)) - 1)
    if family.convex:
        return full_batch_steps(spec, converge=True) if converge else usual
    return len(set(draws)) * usual


def mix_steps(sentences: Tensor) -> int:
    """Steps of `probes.training.scalar_mix.learn_mixes`.

    Args:
        sentences: see `fit_steps`.
    """
    return steps_of_batches(len(batch_bounds(sentences, MIX_BATCH)) - 1)


def code_steps(sentences: Tensor) -> int:
    """Steps of `probes.training.online_code.online_code`.

    Args:
        sentences: see `fit_steps`.
    """
    return PREFIX_STEPS * (len(block_ends(sentences)) - 1)
