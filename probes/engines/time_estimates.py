"""How long forward passes and fits will take, by counting operations."""

from __future__ import annotations

from functools import cache

from probes.records.probe_spec import ProbeSpec

_SHARE = 0.4
"""Of the speed of matrix products, what forward passes and fits reach with all that they do."""


def in_words(seconds: float) -> str:
    """``40 s``, ``3 min``, ``2.5 h``."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def encoding_seconds(n_parameters: int, n_tokens: int, device: str) -> float:
    """Seconds of a forward pass, two operations per token and parameter.

    Args:
        n_parameters: of the blocks, without embeddings.
    """
    return 2 * n_parameters * n_tokens / (_SHARE * product_speed(device))


def fit_seconds(
    spec: ProbeSpec, n_train: int, n_features: int, n_outputs: int, device: str
) -> float:
    """Seconds of one fit of one layer, six operations per example and parameter in each pass."""
    from probes.training.fit import fits_full_batches, full_batch_steps

    outputs = max(1, n_outputs)
    n_parameters = n_features * outputs
    if spec.hidden:
        n_parameters = spec.hidden * (n_features + outputs)
    passes = max(spec.epochs, spec.min_steps * spec.batch / n_train)
    if fits_full_batches(spec, n_train, n_outputs):
        passes = full_batch_steps(spec)
    return passes * n_train * 6 * n_parameters / (_SHARE * product_speed(device))


@cache
def product_speed(device: str) -> float:
    """Operations per second in matrix products of this device, measured for a moment."""
    import time

    import torch

    factor = torch.randn(1024, 1024, device=device)
    best = float("inf")
    for _ in range(8):
        clock = time.perf_counter()
        (factor @ factor)[0, 0].item()
        best = min(best, time.perf_counter() - clock)
    return 2 * 1024**3 / best
