"""The three layers at which dear evidence is gathered by default."""

from __future__ import annotations

from probes.records.result import Result


def three_layers(result: Result) -> tuple[int, ...]:
    """The lowest layer probed, the best on dev, and the highest, ascending; fewer if they agree."""
    probed = [layer.layer for layer in result.layers]
    return tuple(sorted({probed[0], result.best_layer.layer, probed[-1]}))
