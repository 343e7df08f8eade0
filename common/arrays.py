"""Type aliases for numpy arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

Floats = NDArray[np.float64]

Bools = NDArray[np.bool_]
