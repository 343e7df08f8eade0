"""Properties of a model in memory that the encoder needs: base, window, device, digest."""

from __future__ import annotations

import hashlib
import inspect
import json
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pickle import UnpicklingError
from typing import Any
from weakref import WeakKeyDictionary

import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError

from probes.common.errors import UserError, out_of_memory
from probes.common.hub import library
from probes.compute.devices import MAP, pick_device
from probes.extraction.changing.module_calls import Call, hooks
from probes.extraction.models.model_files import READ_ANEW
from probes.extraction.models.model_folders import quantization_config
from probes.extraction.reading.collectors import layer_states

DEFAULT_WINDOW = 512
"""Window in tokens if neither the model nor the tokenizer sets one."""

TRANSFORMERS_ERRORS = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RuntimeError,
    ImportError,
    AssertionError,
    ArithmeticError,
    UnpicklingError,
    struct.error,
    SafetensorError,
    StrictDataclassError,
)
"""Errors that transformers may raise if a model's files are damaged or inconsistent."""


@contextmanager
def first_use(name: str) -> Iterator[None]:
    """Turn any failure in a model's first use into an error about the model.

    Raises:
        UserError: something failed other than memory.
    """
    try:
        yield
    except TRANSFORMERS_ERRORS as error:
        if out_of_memory(error):
            raise
        raise UserError(
            f"--model {name}: cannot be run ({one_line(error)}); check its config.json."
        ) from error


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence the logs and progress bars of transformers; we report problems ourselves."""
    library("constants")  # which transformers imports
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def one_line(error: Exception) -> str:
    """An error's message in one line, with its type if the message is too short to explain it."""
    words = " ".join(str(error).split())[:300]
    return words if len(words) > 30 else f"{type(error).__name__}: {words}"


def base_model(model: Any) -> Any:
    """The part of `model` whose states are probed; the model's head calls the same part.

    It has no language-model or other head. For an encoder–decoder, it is the encoder.
    """
    base = model.base_model
    if base is model and model.get_output_embeddings() is not None:
        # Llama 4 names a base that does not exist.
        parts = [part for part in model.children() if hasattr(part, "base_model_prefix")]
        base = parts[0] if len(parts) == 1 else model
    # Do not ask the configuration: an encoder saved alone is not marked as an encoder–decoder.
    if "decoder_input_ids" in inspect.signature(base.forward).parameters:
        return base.get_encoder()
    # In OPT and decoders of the BART family, heads call the decoder directly, not its wrapper.
    decoder = getattr(base, "decoder", None)
    if hasattr(decoder, "base_model_prefix") and _n_weights(decoder) == _n_weights(base):
        return decoder
    return base


def _n_weights(module: Any) -> int:
    return sum(1 for _ in module.parameters())


def input_embeddings(model: Any, name: str) -> Any:
    """The module with a vector for each token.

    Raises:
        UserError: there is none, as in models of images, sound or characters.
    """
    try:
        embeddings = model.get_input_embeddings()
    except (NotImplementedError, AttributeError):
        embeddings = None
    main_input = getattr(model, "main_input_name", "input_ids")
    if main_input != "input_ids" or getattr(getattr(embeddings, "weight", None), "ndim", None) != 2:
        raise UserError(
            f"--model {name}: {type(model).__name__} has no table of input embeddings, a vector "
            "for each subword; only models that read text as subwords are supported."
        )
    return embeddings


def runs_remote_code(model: Any, tokenizer: Any) -> bool:
    """Whether the model or tokenizer has a class from the model's folder.

    transformers copies the code of such a folder into a package called transformers_modules.
    """
    parts = (model, *model.modules(), tokenizer, model.config)
    return any(type(part).__module__.split(".")[0] == "transformers_modules" for part in parts)


def declared_causal(model: Any) -> bool:
    """Whether an attention module of `model` declares that no token sees a later one.

    Some causal models do not: Bloom and GPT build their own masks, and Mamba has no attention.
    """
    return any(getattr(module, "is_causal", False) for module in model.modules())


def move_to(model: Any, part: Any, device: str) -> torch.device:
    """Move `part` of `model` to `device`, and return the device of the inputs.

    A model that is already spread over devices is not moved, nor a quantised one, whose weights are
    packed for a device.
    """
    is_settled = getattr(model, "hf_device_map", None) is not None or quantisation_of_loaded(model)
    if device != MAP and not is_settled:
        part.to(pick_device(device))
    elif getattr(part, "_hf_hook", None) is not None:
        # Otherwise accelerate copies the vectors of every layer to the device of the input.
        part._hf_hook.io_same_device = False
    weights = [part.get_input_embeddings().weight, *part.parameters()]
    return next((w.device for w in weights if not w.is_meta), torch.device("cpu"))


def usable_window(model: Any, tokenizer: Any) -> int:
    """Number of tokens, special ones included, that the model can read at once.

    The minimum of `max_position_embeddings`, the usable rows of the position table, and the
    tokenizer's limit. The RoBERTa family counts positions from the padding index, so that 514 rows
    hold 512 tokens. T5 has relative positions and sets no limit.
    """
    configured = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    rows = [
        # Rows up to the padding index stand for no position.
        table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1)
        for name, table in model.named_modules()
        if name.rpartition(".")[2] == "position_embeddings"
        and isinstance(table, torch.nn.Embedding)
    ]
    limits = [configured, tokenizer.model_max_length, *rows]
    # Tokenizers without a limit have a huge number here.
    sane = [int(limit) for limit in limits if limit is not None and 0 < limit < 10**7]
    return min(sane, default=DEFAULT_WINDOW)


def language_switch(model: Any, tokenizer: Any) -> str:
    """The language that a model assumes for every text; empty for models without such a switch.

    X-MOD has an adapter for each language. Tokenizers of the mBART family mark each text with a
    language.
    """
    adapters = getattr(model.config, "default_language", None)
    return str(adapters or getattr(tokenizer, "src_lang", None) or "")


def switch_language(model: Any, tokenizer: Any, language: str) -> None:
    """Set the language that the model assumes for all texts; see `language_switch`."""
    if hasattr(model, "set_default_language"):
        model.set_default_language(language)
    else:
        tokenizer.src_lang = language


def accepted_arguments(model: Any) -> dict[str, bool]:
    """Arguments that avoid needless work, if the model's `forward` has them."""
    takes_cache = "use_cache" in inspect.signature(model.forward).parameters
    return {"use_cache": False} if takes_cache else {}


def takes_token_types(model: Any, highest: int) -> bool:
    """Whether `model` distinguishes token types up to `highest`.

    RoBERTa takes token types but has only one. GPT-2 takes them but adds the vector of a word.
    XLNet compares the types of two tokens without a table of types.
    """
    config = model.config.get_text_config()
    n_types = getattr(config, "type_vocab_size", None) or 0
    has_types = n_types > highest or config.model_type == "xlnet"
    return has_types and "token_type_ids" in inspect.signature(model.forward).parameters


def digest_of_loaded(model: Any, tokenizer: Any) -> str:
    """SHA-256 of the weights, configuration and tokenizer of a model in memory.

    Quantised weights are digested as they are stored: packed numbers, scales and shapes.

    Raises:
        UserError: some weights are offloaded and not in memory.
    """
    digest = hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode())
    digest.update(model.config.to_json_string().encode())
    digest.update(READ_ANEW.get(model.config.model_type, "").encode())
    # The tokenizer object adds special tokens and a limit to its backend.
    special = (tokenizer.special_tokens_map, tokenizer.model_max_length)
    digest.update(repr(special).encode())
    for stored_name, stored in sorted(model.state_dict().items()):
        for name, tensor in _plain_tensors(stored_name, stored):
            if tensor.is_meta:
                raise UserError(
                    f"{name} is offloaded to disk, so the model has no digest. Give the model by "
                    f"name, with --device {MAP}."
                )
            digest.update(name.encode())
            plain = tensor.detach().cpu().contiguous()
            digest.update(plain.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _plain_tensors(name: str, tensor: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors of which one consists; torchao and quanto have classes for quantised ones."""
    if not hasattr(tensor, "__tensor_flatten__"):
        yield name, tensor
        return
    inner_names, settings = tensor.__tensor_flatten__()
    about = f"{name} {type(tensor).__name__} {tuple(tensor.shape)} {settings}"
    for inner_name in inner_names:
        yield from _plain_tensors(f"{about} {inner_name}", getattr(tensor, inner_name))


def quantisation_of_loaded(model: Any) -> str:
    """The name of the quantisation of a model in memory; empty if its weights are whole."""
    if settings := quantization_config(json.loads(model.config.to_json_string())):
        return str(settings.get("quant_method") or "bitsandbytes")
    weights = model.state_dict().values()
    return next((type(x).__name__ for x in weights if hasattr(x, "__tensor_flatten__")), "")


def short_states(base: Any) -> list[torch.Tensor]:
    """States of all layers of a model without its head, for one short text."""
    return layer_states(run_base_model(base, **short_text(base), output_hidden_states=True))


BLOCKS: WeakKeyDictionary[Any, Sequence[Call]] = WeakKeyDictionary()
"""Blocks of models whose `hidden_states` are not the input and the outputs of their blocks."""


def run_base_model(base: Any, **arguments: Any) -> Any:
    """The output of a pass. Models in `BLOCKS` get the `hidden_states` that others give."""
    if base not in BLOCKS or not arguments.get("output_hidden_states"):
        return base(**arguments)
    states: list[torch.Tensor] = []

    def record_states(output: torch.Tensor, block_input: torch.Tensor) -> torch.Tensor:
        states.extend((output,) if states else (block_input, output))
        return output

    with hooks(base) as add:
        for block in BLOCKS[base]:
            add(block, record_states, first=False)
        output = base(**arguments)
    if len(states) != len(BLOCKS[base]) + 1:
        raise UserError(
            f"{type(base).__name__}: its blocks were replaced; make a new Encoder of the model."
        )
    output.hidden_states = tuple(states)
    return output


def short_text(base: Any) -> dict[str, Any]:
    """Arguments of a forward pass over one short text."""
    table = base.get_input_embeddings().weight
    rows = getattr(base.config.get_text_config(), "max_position_embeddings", None) or 0
    # The RoBERTa family has two rows for no position, and XLNet has a limit of -1.
    ids = torch.arange(min(8, rows - 2) if rows > 2 else 8, device=table.device)[None]
    ids = (ids + len(table) // 2) % len(table)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), **accepted_arguments(base)}
