"""A model from its files, or from memory: the part that is used, its window, its device."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pickle import UnpicklingError
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError

from probes.common.errors import UserError, out_of_memory
from probes.common.terminal import progress
from probes.compute.devices import MAP, DType, pick_device
from probes.extraction.model_files import RANDOM, ModelSource
from probes.extraction.packing import pack_linears

DEFAULT_WINDOW = 512
"""Tokens, where neither the model nor its tokenizer sets a bound."""

_UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RuntimeError,
    ImportError,
    AssertionError,
    ArithmeticError,
    UnpicklingError,
    SafetensorError,
    StrictDataclassError,
)
"""What transformers may raise for files that are not as they should be."""


def load_files(
    source: ModelSource, device: str, dtype: DType, trust_remote_code: bool
) -> tuple[Any, Any]:
    """The transformers model and tokenizer that `source` points at.

    Raises:
        UserError: transformers cannot load it, its files lack weights that it needs, or its
            layers are to be spread over devices and accelerate is missing.
    """
    from transformers import AutoConfig, AutoModel, AutoTokenizer
    from transformers.utils import logging as hf_logging

    if device == MAP and importlib.util.find_spec("accelerate") is None:
        raise UserError(f"--device {MAP}: needs accelerate; pip install accelerate")
    folder = str(source.folder)
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": trust_remote_code}
    precision = torch.float32 if dtype == "auto" else getattr(torch, dtype)
    hf_logging.set_verbosity_error()
    hf_logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        if source.seed is not None:
            config = AutoConfig.from_pretrained(folder, **options)
            with torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(source.seed)
                model = AutoModel.from_config(
                    config, dtype=precision, trust_remote_code=trust_remote_code
                )
            if device == MAP:
                model = _spread(model)
            absent, unused, mismatched = [], [], []
        else:
            model, loading = AutoModel.from_pretrained(
                folder,
                dtype=precision,
                use_safetensors=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                device_map="auto" if device == MAP else None,
                **options,
            )
            absent, unused = loading["missing_keys"], loading["unexpected_keys"]
            mismatched = sorted(loading["mismatched_keys"])
            # A tuple would have no states of layers by name.
            model.config.return_dict = True
    except Exception as error:
        # `tokenizers` knows no narrower type for a file that it cannot read.
        if type(error) is not Exception and not isinstance(error, _UNREADABLE):
            raise
        first = _said(error)
        if "trust_remote_code" in str(error):
            raise UserError(
                f"--model {source.name}: it needs code of its own, which would run here; read what "
                f"{source.folder} holds, and if you trust it add --trust-remote-code."
            ) from error
        raise UserError(f"--model {source.name}: transformers cannot load it: {first}") from error
    weights = {key: id(w) for key, w in model.named_parameters(remove_duplicate=False)}
    if getattr(model, "pooler", None) is not None:
        # BigBird's is a mere Linear, and what it gives goes on through an activation.
        model.pooler = None if isinstance(model.pooler, torch.nn.Linear) else _NoPooler()
    _require_shapes(source.name, mismatched)
    _require_weights(source.name, absent, weights, part_that_reads(model))
    _tell_unused(source.name, unused, weights)
    if device == "cpu" or (device == "auto" and pick_device(device).type == "cpu"):
        pack_linears(part_that_reads(model))
    return model, tokenizer


def _said(error: Exception) -> str:
    """An error's kind, where it says too little without, and its words, in one line."""
    words = " ".join(str(error).split())[:300]
    return words if len(words) > 30 else f"{type(error).__name__}: {words}"


@contextmanager
def trying(name: str) -> Iterator[None]:
    """What is done first with a model that was loaded: where it fails, the model is at fault.

    Raises:
        UserError: it failed, and not for lack of memory.
    """
    try:
        yield
    except _UNREADABLE as error:
        if out_of_memory(error):
            raise
        raise UserError(
            f"--model {name}: it cannot be run ({_said(error)}); look at its config.json."
        ) from error


def _require_shapes(name: str, mismatched: Sequence[tuple[str, Any, Any]]) -> None:
    if mismatched:
        weight, stored, wanted = mismatched[0]
        raise UserError(
            f"--model {name}: {len(mismatched)} weights have another shape in its files than "
            f"config.json says (first: {weight}, {list(stored)} and not {list(wanted)})."
        )


def _tell_unused(name: str, unused: Iterable[str], weights: Iterable[str]) -> None:
    """Say which weights of a model's files are a layer's, but of no layer that was built."""

    def pattern(key: str) -> str:
        return re.sub(r"\.\d+\.", ".#.", key)

    built = tuple({pattern(key) for key in weights if ".#." in pattern(key)})
    left = sorted(key for key in unused if pattern(key).endswith(built))
    if left:
        progress.insist(
            f"--model {name}: {len(left)} weights in its files belong to layers that config.json "
            f"does not count (first: {left[0]}); they are not used."
        )


class _NoPooler(torch.nn.Module):
    """In place of a pooler, which would be computed at every pass and gives no word vector.

    Not None: SqueezeBERT and LayoutLM call theirs without asking whether there is one.
    """

    def forward(self, *args: Any, **kwargs: Any) -> None:
        """Nothing."""


def _require_weights(name: str, absent: list[str], weights: dict[str, int], part: Any) -> None:
    """Refuse a model of which `part` needs weights that its files lack.

    Args:
        weights: Python's id of each parameter of the model, which are not to be held on to.
    """
    used = {id(weight) for weight in part.parameters()}
    missing = sorted(key for key in absent if key not in weights or weights[key] in used)
    if missing:
        raise UserError(
            f"--model {name}: {len(missing)} weights are not in its files and would be drawn at "
            f"random (first: {missing[0]}); {RANDOM}{name} is a random twin."
        )


def _spread(model: Any) -> Any:
    """Lay the layers of a model that was built in memory over the devices there are."""
    accelerate = importlib.import_module("accelerate")
    whole = list(model._no_split_modules or ())
    devices = accelerate.infer_auto_device_map(model, no_split_module_classes=whole)
    return accelerate.dispatch_model(model, devices)


def part_that_reads(model: Any) -> Any:
    """The part of `model` whose states are probed: no head, and no decoder behind an encoder."""
    model = model.base_model
    # Not by the configuration: an encoder saved on its own says that it is no encoder–decoder.
    two_texts = "decoder_input_ids" in inspect.signature(model.forward).parameters
    return model.get_encoder() if two_texts else model


def runs_remote_code(model: Any, tokenizer: Any) -> bool:
    """Whether a class of either comes from a model's folder and not from transformers.

    Into a package of this name transformers copies the code that a folder brings.
    """
    parts = (model, *model.modules(), tokenizer, model.config)
    return any(type(part).__module__.split(".")[0] == "transformers_modules" for part in parts)


def declared_causal(model: Any) -> bool:
    """Whether an attention of `model` says that a place sees only what stands before it.

    Not all do: Bloom and GPT mask by themselves, Mamba has no attention.
    """
    return any(getattr(module, "is_causal", False) for module in model.modules())


def place(model: Any, part: Any, device: str) -> torch.device:
    """Put `part` of `model` on `device` and return where its inputs go.

    A model that is spread over devices already stays as it lies.

    Raises:
        UserError: there is no such device here.
    """
    if device != MAP and getattr(model, "hf_device_map", None) is None:
        part.to(pick_device(device))
    elif getattr(part, "_hf_hook", None) is not None:
        # Accelerate would bring the vectors of every layer to the device of the input.
        part._hf_hook.io_same_device = False
    weights = [part.get_input_embeddings().weight, *part.parameters()]
    return next((w.device for w in weights if not w.is_meta), torch.device("cpu"))


def usable_window(model: Any, tokenizer: Any) -> int:
    """How many tokens, special ones included, the model can read at once.

    The smallest of `max_position_embeddings`, the rows of its position table that are not
    reserved, and the tokenizer's own limit. RoBERTa's kin count positions from the padding
    index on: 514 rows hold 512 tokens. T5 has relative positions and no bound of its own.
    """
    configured = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    rows = [table.num_embeddings - _reserved(table) for table in _position_tables(model)]
    limits = [configured, tokenizer.model_max_length, *rows]
    # A tokenizer that has no limit says so with a number beyond any window.
    sane = [int(limit) for limit in limits if limit is not None and 0 < limit < 10**7]
    return min(sane, default=DEFAULT_WINDOW)


def first_position(model: Any) -> int:
    """The position of a text's first token, as the model counts them."""
    return max(map(_reserved, _position_tables(model)), default=0)


def _position_tables(model: Any) -> list[torch.nn.Embedding]:
    named = [(name.rpartition(".")[2], module) for name, module in model.named_modules()]
    return [
        module
        for name, module in named
        if name == "position_embeddings" and isinstance(module, torch.nn.Embedding)
    ]


def _reserved(table: torch.nn.Embedding) -> int:
    """Rows of a position table that stand for no position."""
    return 0 if table.padding_idx is None else table.padding_idx + 1


def accepted_arguments(model: Any) -> dict[str, bool]:
    """Arguments that spare work, of those that the model's `forward` knows."""
    return (
        {"use_cache": False} if "use_cache" in inspect.signature(model.forward).parameters else {}
    )


def digest_of_loaded(model: Any, tokenizer: Any) -> str:
    """SHA-256 over the weights, configuration and tokenizer of a model in memory.

    Raises:
        UserError: some of its weights are offloaded and not in memory.
    """
    digest = hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode())
    digest.update(model.config.to_json_string().encode())
    # What the tokenizer object adds to its backend: special tokens, limit.
    special = (tokenizer.special_tokens_map, tokenizer.model_max_length)
    digest.update(repr(special).encode())
    for name, tensor in sorted(model.state_dict().items()):
        if tensor.is_meta:
            raise UserError(
                f"{name} is offloaded and cannot be read; give the model by name, with "
                f"--device {MAP}."
            )
        digest.update(name.encode())
        plain = (tensor.to_dense() if tensor.is_mkldnn else tensor.detach().cpu()).contiguous()
        digest.update(plain.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
