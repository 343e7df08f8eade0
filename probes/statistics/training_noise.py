"""Bootstrap replicates that know of the training as well as of the test sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from probes.common.arrays import Floats

_SEED = 1


def with_training_noise(values: Floats, spreads: Sequence[tuple[float, int]]) -> Floats:
    """Replicates of test scores with what another training would have changed.

    Resampling test sentences takes the probes as they are. To each replicate of each cell is added
    a draw from Student's t × SD for every source of variance in training: t, since the SD is itself
    an estimate from few fits.

    Args:
        values: shape (cells, resamples).
        spreads: standard deviation and degrees of freedom of each source.

    Returns:
        the replicates, of the same shape; the same draws for the same shape.
    """
    rng = np.random.default_rng(_SEED)
    noisy = values.copy()
    for sd, df in spreads:
        noisy += sd * rng.standard_t(df, size=values.shape)
    return noisy
