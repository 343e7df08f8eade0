"""Which layers the data can tell from the best one; known once training variance is."""

from __future__ import annotations

from probes.measurements.training_variance import TrainingVariance, Variances
from probes.records.result import ALPHA, Result


def p_best(result: Result) -> dict[int, float | None] | None:
    """By layer, the p-value of its difference from the best one.

    None without training variance.
    """
    found: Variances | None = result.found(TrainingVariance.name)
    return None if found is None else found.p_best


def confidence_set(result: Result) -> set[int] | None:
    """The best layer, and those that a test at .05 did not separate from it.

    None without training variance: scores alone cannot tell layers apart.
    """
    found = p_best(result)
    if found is None:
        return None
    return {
        layer
        for layer in result.extent
        if layer == result.best_layer.layer or ((p := found.get(layer)) is not None and p >= ALPHA)
    }
