"""Which layers may be the best; known once training variance is."""

from __future__ import annotations

from probes.measurements.training_variance import TrainingVariance, Variances
from probes.records.result import Result
from probes.statistics.significance import ALPHA


def p_best(result: Result) -> dict[int, float | None] | None:
    """By layer, the least p-value of a difference from a layer that scores higher on test.

    None without training variance.
    """
    found: Variances | None = result.found(TrainingVariance.name)
    return None if found is None else found.p_best


def confidence_set(result: Result) -> set[int] | None:
    """The layers that no other layer is separated above, at .05 over all pairs of layers.

    It says nothing of the layer that is best on dev, which may be outside. None where nothing was
    tested: without training variance, since scores alone cannot tell layers apart, or with too few
    test documents or sentences.
    """
    found = p_best(result)
    if found is None or all(p is None for p in found.values()):
        return None
    return {layer for layer in result.extent if (found.get(layer) or 0.0) >= ALPHA}
