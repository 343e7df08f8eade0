"""The type that a checkpoint is stored in. No torch here."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

from safetensors import SafetensorError, safe_open

from probes.common.errors import UserError
from probes.compute.devices import DType
from probes.extraction.model_files import ModelSource, weight_files

_NARROW: dict[str, DType] = {"BF16": "bfloat16", "F16": "float16"}
"""Types as the safetensors format calls them."""


def stored_dtype(source: ModelSource) -> DType:
    """bfloat16 or float16 if more than half of a checkpoint's numbers are in it; else float32.

    A random twin has the type of its original; where there are no weights, config.json names it.
    """
    try:
        numbers = _numbers(source)
    except (UserError, OSError, SafetensorError):
        # A random twin needs no weights; of any other model, loading says what is wrong.
        return _configured(source.folder)
    most = (dtype for code, dtype in _NARROW.items() if 2 * numbers[code] > numbers.total())
    return next(most, "float32")


def _numbers(source: ModelSource) -> Counter[str]:
    """How many numbers the headers of the weights count, by type."""
    numbers: Counter[str] = Counter()
    for name in weight_files(source.name, source.folder):
        if not name.endswith(".safetensors"):
            continue  # the index
        with safe_open(source.folder / name, framework="numpy") as file:
            for tensor in map(file.get_slice, file.keys()):
                numbers[tensor.get_dtype()] += math.prod(tensor.get_shape())
    return numbers


def _configured(folder: Path) -> DType:
    """The type that config.json names."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
        named = config.get("dtype", config.get("torch_dtype"))
    except (OSError, ValueError, AttributeError, RecursionError):
        return "float32"  # transformers will say what is wrong with it
    return next((dtype for dtype in _NARROW.values() if dtype == named), "float32")
