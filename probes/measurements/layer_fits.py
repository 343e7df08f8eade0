"""Probes that were fitted at some layers, with their predictions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.records.parameters import Parameters

Array = NDArray[Any]

Labels = Mapping[str, Array]
"""Labels of train and dev, each (R, n), as class indices or numbers (`Examples.targets`)."""


@dataclass(frozen=True)
class Fits:
    """K fits at each of L layers.

    Attributes:
        predicted: predictions on dev and test, in the form that scorers take. Each (L, K, n, …).
        strength: L2 strength. Shape (L, K).
        stopped: share of the steps after which the dev loss was lowest. Shape (L, K).
        dev_loss: dev loss in the unit of the labels. Shape (L, K).
        n_parameters: number of parameters of one probe, the largest if they differ by layer.
        parameters: parameters of the first fit of each layer; see `probes.records.parameters`.
        margins: margins on dev and test of the first fit of each layer, for two classes of texts;
            see `probes.training.fit.first_margins`. Each (L, n).
    """

    predicted: Mapping[str, Array]
    strength: Array
    stopped: Array
    dev_loss: Array
    n_parameters: int
    parameters: Parameters
    margins: Mapping[str, Array] = field(default_factory=dict)


def concatenated_fits(parts: Iterable[Fits]) -> Fits:
    """Join the fits of several groups of layers."""
    fits = list(parts)

    def joined(of_parts: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
        return {split: np.concatenate([part[split] for part in of_parts]) for split in of_parts[0]}

    return Fits(
        joined([part.predicted for part in fits]),
        np.concatenate([part.strength for part in fits]),
        np.concatenate([part.stopped for part in fits]),
        np.concatenate([part.dev_loss for part in fits]),
        max(part.n_parameters for part in fits),
        {name: array for part in fits for name, array in part.parameters.items()},
        joined([part.margins for part in fits]),
    )
