"""The per-example arrays beside a result."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from probes.common.errors import UserError

_UNREADABLE = (
    MemoryError, OSError, ValueError, BadZipFile, EOFError, KeyError, RuntimeError, struct.error,
    zlib.error,
)  # fmt: skip
"""What reading a damaged archive may raise; of an encrypted or unknown kind it is RuntimeError."""

_NAMES = {"predicted", "layers", "gold", "sentence", "punctuation", "unseen"}

Arrays = Mapping[str, NDArray[Any]]
"""By name: `predicted` (layers, seeds, n), `layers`, and of the examples `gold`, `sentence`,
`punctuation` and `unseen`, the names of the labels that train lacks. Of multi-label tasks
`predicted` is (layers, seeds, n, bytes), and there are `sets`: see `probes.statistics.gold`."""


def read_arrays(path: Path) -> Arrays:
    """The per-example arrays beside the result at `path`.

    Raises:
        UserError: they are not there, or not readable.
    """
    beside = path.with_suffix(".npz")
    try:
        with np.load(beside, allow_pickle=False) as stored:
            arrays = dict(stored)
        # A damaged table of contents may name fewer than there are.
        if missing := _NAMES - arrays.keys():
            raise ValueError(f"it lacks {', '.join(sorted(missing))}")
        _require_shapes(arrays)
        return arrays
    except _UNREADABLE as error:
        raise UserError(f"{beside}: not readable ({error}); delete it and run again.") from error


def _require_shapes(arrays: Arrays) -> None:
    """Raise ValueError unless arrays are numbers of the same examples."""
    n = arrays["gold"].size
    predicted, layers = arrays["predicted"], arrays["layers"]
    found = {name: arrays[name].shape for name in ("gold", "sentence", "punctuation")}
    wanted = (*layers.shape, *predicted.shape[1:2], n, *predicted.shape[3:])
    if set(found.values()) != {(n,)} or predicted.ndim != 3 + ("sets" in arrays):
        raise ValueError(f"its arrays do not belong together: {found}")
    if predicted.shape != wanted or not predicted.size:
        raise ValueError(f"its predictions have the shape {predicted.shape}, not {wanted}")
    if any(arrays[name].dtype.kind not in "biuf" for name in (*found, "predicted", "layers")):
        raise ValueError("its arrays do not hold numbers")
