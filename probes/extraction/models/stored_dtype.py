"""The type that a checkpoint is stored in. No torch here."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from safetensors import SafetensorError, safe_open

from probes.common.errors import UserError
from probes.compute.devices import DType
from probes.extraction.models.model_files import ModelSource
from probes.extraction.models.model_folders import weight_files

_NARROW: dict[str, DType] = {"BF16": "bfloat16", "F16": "float16"}
"""Types as the safetensors format calls them."""


def stored_dtype(source: ModelSource) -> DType:
    """bfloat16 or float16 if more than half of a checkpoint's numbers are in it; else float32.

    A random twin has the type of its original. Where there are no weights, and where they are
    quantised, config.json names the type; a GGUF file is read in bfloat16.
    """
    if source.gguf:
        return "bfloat16"
    if source.stored_quantization:
        return _configured_dtype(source)
    numbers: Counter[str] = Counter()
    try:
        for _, dtype, shape in stored_tensors(source):
            numbers[dtype] += math.prod(shape)
    except (UserError, OSError, SafetensorError):
        # A random twin needs no weights; of any other model, loading says what is wrong.
        return _configured_dtype(source)
    most = (name for code, name in _NARROW.items() if 2 * numbers[code] > numbers.total())
    return next(most, "float32")


def stored_tensors(source: ModelSource) -> Iterator[tuple[str, str, list[int]]]:
    """Name, type and shape of each tensor, from the headers of the weights.

    Raises:
        UserError: there are none, or no safetensors.
        OSError, SafetensorError: a file cannot be read.
    """
    if source.gguf:
        return
    for name in weight_files(source.name, source.folder):
        if not name.endswith(".safetensors"):
            continue  # the index
        with safe_open(source.folder / name, framework="numpy") as file:
            for key in file.keys():  # noqa: SIM118
                tensor = file.get_slice(key)
                yield key, tensor.get_dtype(), tensor.get_shape()


def _configured_dtype(source: ModelSource) -> DType:
    """The type that config.json names."""
    dtype_name = source.config.get("dtype", source.config.get("torch_dtype"))
    return next((dtype for dtype in _NARROW.values() if dtype == dtype_name), "float32")
