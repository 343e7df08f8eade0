"""Applies the reported probes to new vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Ints
from probes.records.parameters import FOLDABLE, Parameters, folded
from probes.records.probe_spec import ProbeSpec

if TYPE_CHECKING:
    import torch

    from probes.measurements.context import TaskContext

AT_ONCE = 1 << 14
"""Number of examples whose vectors are in memory at once."""


def why_not_applied(probe: ProbeSpec) -> str:
    """The reason why probes of a family cannot be applied; empty if they can."""
    can = probe.family in FOLDABLE
    return "" if can else f"only {', '.join(FOLDABLE)} probes are applied to other text"


class StoredProbes:
    """The first fit of some layers of a task.

    Args:
        context: the task and its scores.
        layers: layers whose probes are applied.
        parameters: parameters of another record of the task's scores; by default the context's.
        outputs: class of each output (C,); by default 0 to C − 1.
    """

    def __init__(
        self,
        context: TaskContext,
        layers: Sequence[int],
        parameters: Parameters | None = None,
        outputs: Ints | None = None,
    ) -> None:
        from probes.training.layer_probe import LayerProbe

        if parameters is None:
            parameters = context.parameters(layers)
        if outputs is None:
            outputs = np.arange(context.data.n_outputs)
        family, kind = context.spec.family, context.task.kind
        self._as_margins = context.data.as_margins
        self._probes = {
            layer: LayerProbe.of(family, kind, folded(parameters, layer, kind), outputs)
            for layer in layers
        }

    def predict(self, layer: int, vectors: torch.Tensor, spans: Ints) -> NDArray[Any]:
        """Predictions in the form that scorers take. Shape (n, …).

        Args:
            vectors: vectors of words. Shape (words, H).
            spans: first and end row of each example's spans. Shape (n, spans, 2).
        """
        import torch

        from probes.training.standardisation import SpanRows

        cpu_vectors = vectors.cpu()
        means = [SpanRows.of(rows).means(cpu_vectors) for rows in spans.swapaxes(0, 1)]
        return self.of_features(layer, torch.cat(means, dim=1))

    def of_features(self, layer: int, features: torch.Tensor) -> NDArray[Any]:
        """Predictions from concatenated mean vectors of spans: (n, H × spans) to (n, …)."""
        probe = self._probes[layer]
        predicted: NDArray[Any] = (
            probe.decision_function(features).astype(np.float32)
            if self._as_margins
            else probe.predict(features)
        )
        return predicted if predicted.ndim == 1 else np.packbits(predicted > 0, 1)
