"""Type aliases for numpy arrays, and arrays of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

Floats = NDArray[np.float64]

Bools = NDArray[np.bool_]


def without_torch(values: Any) -> Any:
    """A tensor as an array, which has no bfloat16; anything else as it is."""
    if not hasattr(values, "detach"):
        return values
    values = values.detach().cpu()
    return (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()
