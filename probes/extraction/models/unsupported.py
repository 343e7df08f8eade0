"""Configurations that ask for what their weights, or the installed classes, do not have."""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from safetensors import SafetensorError
from torch.nn.modules.module import register_module_parameter_registration_hook

from probes.common.errors import UserError
from probes.extraction.models.model_files import ModelSource
from probes.extraction.models.stored_dtype import stored_tensors

_MOST_TENSORS = 100_000
"""Limit on the tensors of a model whose weights are not known; no real one has as many."""

_NOT_LOADED = 1000, 10**8
"""Tensors, and numbers in them, that a model may have beside what its files hold several times over
(quantised numbers are stored in groups, a decoder that is not used may be left out)."""


@contextmanager
def size_limit(source: ModelSource) -> Iterator[None]:
    """Stop the building of a model that is far larger than its files.

    Otherwise a wrong number of layers is found out only when all of them have been built.

    Raises:
        UserError: it is.
    """
    shapes = [shape for _, _, shape in _readable_tensors(source)]
    totals = len(shapes), sum(map(math.prod, shapes))
    limits = float(_MOST_TENSORS), math.inf
    if shapes and source.seed is None:
        limits = 4 * totals[0] + _NOT_LOADED[0], 8 * totals[1] + _NOT_LOADED[1]
    tensors = numbers = 0

    def count(_module: Any, _name: str, weight: torch.Tensor) -> None:
        nonlocal tensors, numbers
        tensors, numbers = tensors + 1, numbers + weight.numel()
        if tensors > limits[0] or numbers > limits[1]:
            files = f", where its files hold {totals[0]:,} with {totals[1]:,}" if shapes else ""
            raise UserError(
                f"--model {source.name}: config.json asks for a model of at least {tensors:,} "
                f"tensors with {numbers:,} numbers{files}; correct its numbers of layers and its "
                "sizes."
            )

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()


def require_scaled(source: ModelSource) -> None:
    """Refuse weights of 8 bits that would be read without their scales.

    Raises:
        UserError: the files hold such weights, and config.json has no quantization_config.
    """
    if source.seed is not None or source.stored_quantization:
        return
    stored = {key: dtype for key, dtype, _ in _readable_tensors(source)}
    narrow = [key for key, dtype in stored.items() if dtype.startswith(("F8", "I8", "U8"))]
    scaled = [key for key in narrow if any(x in stored for x in _scales_of(key))]
    if scaled:
        raise UserError(
            f"--model {source.name}: {len(scaled)} weights of its files have 8 bits and a scale "
            f"(first: {scaled[0]}), but config.json has no quantization_config, without which they "
            "are read unscaled; add it, or use weights in another type."
        )


def require_quantiser(source: ModelSource, model: Any = None, unused: Iterable[str] = ()) -> None:
    """Refuse quantised weights that are read as if they were not.

    Args:
        model: the loaded model; None if it is not loaded yet.
        unused: names of weights that it does not use.

    Raises:
        UserError: transformers does not know how the weights are quantised, or leaves out a scale.
    """
    from transformers.quantizers.auto import AutoHfQuantizer

    stored = {} if source.seed is not None else source.stored_quantization
    # Weights that were dequantised have neither a quantiser nor its configuration.
    left_out = hasattr(getattr(model, "config", None), "quantization_config")
    left_out = left_out and getattr(model, "hf_quantizer", None) is None
    scales = [key for key in unused if _SCALE.search(key)]
    if scales or (stored and (left_out or not AutoHfQuantizer.supports_quant_method(stored))):
        raise UserError(
            f"--model {source.name}: its weights are quantised "
            f"({stored.get('quant_method', 'no quantization_config')}) in a way that the installed "
            f"transformers does not read{f'; it does not use {scales[0]}' if scales else ''}. Use "
            "a version that does (pip install --upgrade transformers), or weights in another type."
        )


_SCALE = re.compile(
    r"(?<!input)(?<!output)(?<!activation)(?<![._][qkv])"
    r"[._](scales?|scaler|q?scale_weight|scale_(inv|2)|zeros|qzeros|zero_point|absmax|SCB)$"
)
"""Names of scales and offsets of stored weights. Those of activations change no weight."""


def _readable_tensors(source: ModelSource) -> list[tuple[str, str, list[int]]]:
    """Stored tensors; none if a file cannot be read, which transformers will explain."""
    try:
        return list(stored_tensors(source))
    except (UserError, OSError, SafetensorError):
        return []


def _scales_of(key: str) -> list[str]:
    """Names that the scale of a weight may have."""
    after = [f"{key}{x}" for x in ("_scale_inv", "_scale", "_scaler", ".scale", "_scales")]
    layer = key.removesuffix("weight")
    return [*after, *(f"{layer}{x}" for x in ("scale", "scales", "scale_weight", "qscale_weight"))]


_ROTARY = re.compile(r"\brope|_rope|rotary", re.IGNORECASE)
_POSITIONS = {
    "position_embedding_type": None,
    "rope_theta": _ROTARY,
    "rope_scaling": _ROTARY,
    "rope_parameters": _ROTARY,
    "rotary_emb_fraction": _ROTARY,
    "alibi": re.compile("alibi", re.IGNORECASE),
    "alibi_starting_size": re.compile("alibi", re.IGNORECASE),
    "relative_attention": re.compile("relative_attention"),
}
"""Fields of config.json that say how a model tells positions apart, with what the code of a class
mentions that implements them; None for the value itself. A class that does not know a field ignores
it."""


def require_implemented(source: ModelSource, model: Any) -> None:
    """Refuse a model that tells positions apart in a way that its class does not implement.

    Raises:
        UserError: config.json asks for such a way.
    """
    classes = {base for module in model.modules() for base in type(module).__mro__}
    files = {base.__module__ for base in classes}
    code = "\n".join(
        inspect.getsource(sys.modules[file])
        for file in sorted(files)
        if file.startswith(("transformers.models.", "transformers_modules."))
    )
    config = source.config
    for field, mention in _POSITIONS.items():
        value = config.get(field)
        if not value or value == "absolute":
            continue
        if mention is None:
            escaped = re.escape(str(value))
            # Granite's "nope" stands for no positions, and is whatever is not "rope".
            mention = re.compile(field if value == "nope" else rf"[\"']{escaped}[\"']")
        if not mention.search(code):
            raise UserError(
                f"--model {source.name}: config.json sets {field} to {value!r}, which "
                f"{type(model).__name__} of the installed transformers does not implement; its "
                "vectors would be wrong. Use a version of transformers that does, or another model."
            )


_NO_WEIGHTS = re.compile(
    r"(inv_freq|position_ids|masked_bias|(attn|attention)\.bias|causal_mask|_float_tensor|version"
    r"|relative_position_index|num_batches_tracked)$"
)
"""Masks, frequencies and the like, which older versions of transformers stored beside weights."""


_PROMPT = re.compile(r"(^|\.)(prefix_encoder|prompt_encoder|prompt_embeddings|soft_prompts?)\.")
"""Weights of prefix and prompt tuning, as PEFT and the papers' own code name them."""


def unused_weights(model: Any, part: Any, unexpected: Iterable[str]) -> list[str]:
    """The weights among `unexpected` that belong to `part` of `model`, by their names; sorted.

    Those of heads, poolers and decoders do not; learnt prompts do, since they precede every text.
    """
    child_names = {
        name for name, child in part.named_children() if next(child.parameters(), None) is not None
    }
    child_names |= {name for name, _ in part.named_parameters(recurse=False)}
    path = next(name for name, module in model.named_modules() if module is part)
    prefix = f"{model.base_model_prefix}."

    def belongs(key: str) -> bool:
        if _PROMPT.search(key):
            return True
        inner = path and f"{path}."
        for name in (key, key.removeprefix(prefix), prefix + key):
            if name.startswith(inner) and name.removeprefix(inner).split(".")[0] in child_names:
                return True
        return False

    return sorted(key for key in unexpected if belongs(key) and not _NO_WEIGHTS.search(key))
