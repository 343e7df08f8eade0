"""What another training would have changed in bootstrap replicates of a test split."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from probes.common.arrays import Floats


def training_noise(
    name: str, layers: Sequence[int], sd: float, df: int, n: int, block: int = 0
) -> Floats:
    """Draws of what further trainings would add to the scores of one result's probes.

    Resampling a test split takes the probes as they are. To the replicates of each layer is added
    a draw from the normal distribution times the standard deviation over trainings, for each layer
    by itself. Since the deviation is an estimate, pooled over layers, it is multiplied by
    √(df / χ²), with one draw of χ² for all layers: their noise together has a multivariate t
    distribution.

    Args:
        name: of the result; the same name, layer and n have the same draws, whatever they are
            compared with.
        layers: of the rows.
        df: degrees of freedom of `sd`.
        n: number of resamples.
        block: of resamples; each has draws of its own.

    Returns:
        shape (layers, n).
    """
    name += f" {block}" if block else ""
    widths = sd * np.sqrt(df / _generator(name).chisquare(df, n))
    return np.stack([widths * _generator(name, x).standard_normal(n) for x in layers])


def _generator(*names: object) -> np.random.Generator:
    digest = hashlib.sha256(repr(names).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16]))
