"""Applies the reported probes to new vectors: of words, or of the examples of another corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Ints
from probes.records.parameters import FOLDABLE, Parameters, folded, of_layer
from probes.records.probe_spec import ProbeSpec
from probes.training.families import MULTI_LAYER, SHIPPED, reads_tokens

if TYPE_CHECKING:
    import torch

    from probes.extraction.reading.vectors import StoredVectors
    from probes.measurements.context import TaskContext

_AT_ONCE = 1 << 14
"""Number of examples whose vectors are in memory at once."""


def why_not_applied(probe: ProbeSpec) -> str:
    """The reason why a family's probes cannot be applied to words; empty if they can."""
    can = probe.family in FOLDABLE
    return "" if can else f"only {', '.join(FOLDABLE)} probes are applied to other text"


def why_not_transferred(probe: ProbeSpec) -> str:
    """The reason why a family's probes cannot be applied to other examples; empty if they can."""
    can = probe.family in SHIPPED
    return "" if can else f"{probe.family} is a plug-in, whose probes are not applied to other text"


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
        self._context, self._parameters, self._outputs = context, parameters, outputs
        self._probes = {
            layer: LayerProbe.of(family, kind, folded(parameters, layer, kind), outputs)
            for layer in layers
            if family in FOLDABLE
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

    def of_examples(
        self, layer: int, vectors: StoredVectors, spans: Sequence[Ints]
    ) -> NDArray[Any]:
        """Predictions for examples of any corpus, but not of label sets. Shape (n,).

        Args:
            vectors: vectors of that corpus.
            spans: first and end row of each example's span, once per span. Each (n, 2).
        """
        import torch

        from probes.training.standardisation import SpanRows

        if not self._probes:
            return self._of_family(layer, vectors, spans)
        layer_vectors, predicted = vectors.layer(layer), []
        for first in range(0, len(spans[0]), _AT_ONCE):
            parts = (SpanRows.of(span[first : first + _AT_ONCE]) for span in spans)
            features = torch.cat([part.means(layer_vectors) for part in parts], dim=1)
            predicted.append(self.of_features(layer, features))
        return np.concatenate(predicted)

    def _of_family(self, layer: int, vectors: StoredVectors, spans: Sequence[Ints]) -> NDArray[Any]:
        """`of_examples` for probes that read all tokens of a text, or several layers."""
        import torch

        from probes.training.bags import Bags
        from probes.training.dataset import token_spans
        from probes.training.family import FittedProbes
        from probes.training.features import SideBySide
        from probes.training.fit import predict
        from probes.training.standardisation import restored_features

        spec, data, stored = self._context.spec, self._context.data, self._parameters
        read_spans = list(map(token_spans, spans)) if reads_tokens(spec) else spans
        parts = [
            restored_features(vectors, x, read_spans, stored, data.device)
            for x in data.layers_read(spec, [layer])
        ]
        features = SideBySide(parts) if spec.family == MULTI_LAYER else parts[0]
        if reads_tokens(spec):
            features = Bags(features, torch.from_numpy(spans[0][:, 1] - spans[0][:, 0]))
        arrays = (stored[of_layer(layer, name)] for name in ("weight", "bias"))
        tensors = [torch.from_numpy(array)[None, None].to(data.device) for array in arrays]
        fitted = FittedProbes(tensors, *[torch.zeros(1, 1)] * 3)
        outputs = predict(fitted, features, len(self._outputs), spec, as_margins=self._as_margins)
        predicted: NDArray[Any] = outputs[0, 0].cpu().numpy()
        if "label-unit" in stored:
            mean, deviation = stored["label-unit"]
            predicted = predicted.astype(np.float64) * deviation + mean
        elif not self._as_margins:
            predicted = self._outputs[predicted]
        return predicted
