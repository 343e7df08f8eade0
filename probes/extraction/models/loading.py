"""Loading of models: files become an `Encoder`."""

from __future__ import annotations

import functools
import importlib.util
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch

from probes.common.errors import NoHeadError, UserError, counted
from probes.common.terminal import progress
from probes.compute.devices import MAP, DType, pick_device
from probes.extraction.models.lm_head import class_with_head, with_base
from probes.extraction.models.loaded_module import (
    TRANSFORMERS_ERRORS,
    base_model,
    declared_causal,
    language_switch,
    one_line,
    quiet_transformers,
    switch_language,
)
from probes.extraction.models.model_files import ModelSource
from probes.extraction.models.model_names import RANDOM
from probes.extraction.models.unsupported import (
    require_implemented,
    require_quantiser,
    require_scaled,
    size_limit,
    unused_weights,
)
from probes.extraction.reading.encoder import Encoder
from probes.tasks.task import ReadSite


def load_encoder(
    source: ModelSource,
    *,
    device: str = "auto",
    dtype: DType = "float32",
    trust_remote_code: bool = False,
    lm_head: bool = False,
    planned: bool = False,
) -> Encoder:
    """Load the model that `source` points at.

    Args:
        device: a torch device, "auto", or "map" to spread the layers over all devices.
        dtype: dtype of the forward pass.
        trust_remote_code: run code from the model's own folder if needed.
        lm_head: also load the language-model head, for collectors that read logits.
        planned: make a `PlannedEncoder` instead, without weights.

    Raises:
        NoHeadError: the files have no language-model head.
    """
    with _gguf_parsed_once(source):
        model, tokenizer, unused = load_model(
            source, device, dtype, trust_remote_code, lm_head, planned=planned
        )
    source.require_unchanged()
    encoder_class = PlannedEncoder if planned else Encoder
    encoder = encoder_class(
        model,
        tokenizer,
        name=source.name,
        revision=source.revision,
        digest=source.digest,
        device=device,
        random_seed=source.seed,
        configuration=source.configuration,
        unused=unused,
        language=source.language,
    )
    if source.quantization:
        encoder.notes["quantised weights"] = source.quantization
    elif source.seed is not None and (source.gguf or source.stored_quantization):
        encoder.notes["quantised weights"] = "none, unlike those of the pretrained model"
    return encoder


@contextmanager
def _gguf_parsed_once(source: ModelSource) -> Iterator[None]:
    """Parse a GGUF file once: transformers does so four times, in Python, at 15 s for Gemma's."""
    if not source.gguf:
        yield
        return
    import gguf

    reader = gguf.GGUFReader
    gguf.GGUFReader = functools.cache(reader)  # type: ignore[assignment, misc]
    try:
        yield
    finally:
        gguf.GGUFReader = reader  # type: ignore[misc]


@quiet_transformers()
def load_model(
    source: ModelSource,
    device: str,
    dtype: DType,
    trust_remote_code: bool,
    lm_head: bool = False,
    *,
    planned: bool = False,
) -> tuple[Any, Any, list[str]]:
    """Load the transformers model and tokenizer that `source` points at; also names unused weights.

    Args:
        lm_head: whether to load the language-model head too.
        planned: whether to build the model on torch's device "meta", without numbers.

    Raises:
        UserError: transformers cannot load the model or does not implement config.json, the files
            lack weights, or layers should be spread over devices and accelerate is missing.
    """
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    if device == MAP and importlib.util.find_spec("accelerate") is None:
        raise UserError(f"--device {MAP}: needs accelerate; pip install accelerate")
    require_scaled(source)
    folder = str(source.folder)
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": trust_remote_code}
    if source.gguf:
        options["gguf_file"] = source.gguf
    precision = getattr(torch, dtype)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        config = AutoConfig.from_pretrained(folder, **options)
        model_class = class_with_head(config) if lm_head else AutoModel
        require_quantiser(source)
        if source.seed is not None:  # a twin has weights in the type of the pass
            for part in (config, config.get_text_config()):
                vars(part).pop("quantization_config", None)
        model_options = {"dtype": precision, "trust_remote_code": trust_remote_code}
        loading_info: Mapping[str, Any] = {}
        with size_limit(source):
            if planned:
                with torch.device("meta"):
                    model = AutoModel.from_config(config, **model_options)
            elif source.seed is not None:
                with torch.random.fork_rng(devices=[]):
                    torch.default_generator.manual_seed(source.seed)
                    model = AutoModel.from_config(config, **model_options)
                    if lm_head:
                        model = with_base(model_class.from_config(config, **model_options), model)
                if device == MAP:  # only from_pretrained takes a device_map
                    model = _spread_over_devices(model)
            else:
                if source.load:  # None would switch off the checkpoint's own configuration
                    options["quantization_config"] = _bitsandbytes(source.load, precision)
                model, loading_info = model_class.from_pretrained(
                    folder,
                    dtype=precision,
                    use_safetensors=True,
                    output_loading_info=True,
                    ignore_mismatched_sizes=True,  # our own error says what to correct
                    device_map=_device_map(source, device),
                    **options,
                )
                # A tuple would not name the states of layers.
                model.config.return_dict = True
    except NoHeadError as error:
        raise NoHeadError(f"--model {source.name}: {error}.") from error
    except Exception as error:
        # `tokenizers` raises a plain Exception for an unreadable file.
        if type(error) is not Exception and not isinstance(error, TRANSFORMERS_ERRORS):
            raise
        if "trust_remote_code" in str(error):
            raise UserError(
                f"--model {source.name}: needs its own code, which would run on this machine. "
                f"Read it in {source.folder}; if you trust it, add --trust-remote-code."
            ) from error
        damaged = " (if the file is cut off or damaged, copy it again)" if source.gguf else ""
        raise UserError(
            f"--model {source.name}: transformers cannot load it: {one_line(error)}{damaged}"
        ) from error
    part = base_model(model)
    require_implemented(source, part)
    if source.language:
        switch_language(part, tokenizer, source.language)
    elif source.languages and not language_switch(part, tokenizer):
        raise UserError(
            f"--model {source.name}: reads one language at a time, and the corpus names none that "
            f"it has; set default_language in config.json, as to {source.languages[0]}."
        )
    weights = {key: id(w) for key, w in model.named_parameters(remove_duplicate=False)}
    if getattr(model, "pooler", None) is not None:
        # BigBird's pooler is a plain Linear, whose output passes through an activation.
        model.pooler = None if isinstance(model.pooler, torch.nn.Linear) else _NoPooler()
    _require_weight_shapes(source.name, sorted(loading_info.get("mismatched_keys", ())))
    missing = loading_info.get("missing_keys", ())
    _require_weights(source.name, missing, weights, part)
    if lm_head:
        _require_head(source.name, missing, weights, model)
    unexpected = loading_info.get("unexpected_keys", ())
    unused = unused_weights(model, part, unexpected)
    heads = tuple(f"{name}." for name, _ in model.named_children()) if lm_head else ()
    of_heads = [key for key in unexpected if key.startswith(heads)]
    require_quantiser(source, None if planned else model, [*unused, *of_heads])
    if unused:
        progress.warn(
            f"--model {source.name}: its files hold {counted(len(unused), 'weight')} of the "
            f"encoder, or of prompts before it, that {type(part).__name__} with this config.json "
            f"does not use (first: {unused[0]})"
        )
    return model, tokenizer, unused


def _device_map(source: ModelSource, device: str) -> Any:
    """The device of each weight; None to load all on the CPU and move them later."""
    if device == MAP:
        return "auto"
    # Quantised weights are packed for the device that they are loaded to.
    return {"": pick_device(device)} if source.quantization else None


def _bitsandbytes(load: str, precision: torch.dtype) -> Any:
    """Settings of bitsandbytes: LLM.int8() (Dettmers et al. 2022) or NF4 (Dettmers et al. 2023)."""
    from transformers import BitsAndBytesConfig

    # It warns in every layer of every pass that bfloat16 is computed in float16.
    logging.getLogger("bitsandbytes.autograd._functions").setLevel(logging.ERROR)
    if load == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True)
    if load == "4bit":
        return BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=precision
        )
    return None


def _require_weight_shapes(name: str, mismatched: Sequence[tuple[str, Any, Any]]) -> None:
    if mismatched:
        weight, stored, expected = mismatched[0]
        raise UserError(
            f"--model {name}: {len(mismatched)} weights in its files have another shape than "
            f"config.json says (first: {weight}, {list(stored)} instead of {list(expected)}). "
            "Correct config.json."
        )


def _require_head(name: str, missing: Iterable[str], weights: dict[str, int], model: Any) -> None:
    """Refuse a language-model head whose weights are not in the files."""
    try:
        _require_weights(name, missing, weights, model)
    except UserError as error:
        raise NoHeadError(
            f"--model {name}: its files have no weights of a language-model head, so it cannot "
            "score tokens. Use a checkpoint that has one."
        ) from error


def _require_weights(name: str, missing: Iterable[str], weights: dict[str, int], part: Any) -> None:
    """Refuse a model whose files lack weights that `part` needs.

    Args:
        weights: Python's id of each parameter of the model (references would keep them alive).
    """
    used = {id(weight) for weight in part.parameters()}
    needed = sorted(key for key in missing if key not in weights or weights[key] in used)
    if needed:
        raise UserError(
            f"--model {name}: {len(needed)} weights are not in its files and would be random "
            f"(first: {needed[0]}). Use complete weights, or {RANDOM}{name} for a random twin."
        )


class _NoPooler(torch.nn.Module):
    """Replaces a pooler, which would cost time in every pass and gives no word vector.

    It is a module because SqueezeBERT and LayoutLM call their pooler without a check for None.
    """

    def forward(self, *args: Any, **kwargs: Any) -> None:
        """Return None."""


def _spread_over_devices(model: Any) -> Any:
    """Distribute the layers of a model that was built in memory over all devices."""
    accelerate = importlib.import_module("accelerate")
    unsplit_classes = list(model._no_split_modules or ())
    devices = accelerate.infer_auto_device_map(model, no_split_module_classes=unsplit_classes)
    return accelerate.dispatch_model(model, devices)


class PlannedEncoder(Encoder):
    """A model on torch's device "meta". It has shapes but no numbers, so it cannot read texts.

    Properties that `Encoder` finds in a small pass come from the configuration.

    Attributes:
        device: the device that the model would run on; the CPU for "map".
    """

    def _move_to_device(self, model: Any, device: str) -> torch.device:
        return torch.device("cpu") if device == MAP else torch.device(pick_device(device))

    def require(self, site: ReadSite) -> None:
        """Check that there is a final norm for `unnormed`; other sites are not known yet.

        Raises:
            UserError: the last module that a pass calls, but for poolers, is in a block.
        """
        called, reason = list[torch.nn.Module](), ""

        def note(module: torch.nn.Module, _: Any, output: Any) -> None:
            if isinstance(output, torch.Tensor) and output.ndim == 3:
                called.append(module)

        if site != "unnormed":
            return
        lists = [x for x in self.model.modules() if isinstance(x, torch.nn.ModuleList)]
        in_blocks = {inner for modules in lists for inner in modules.modules()}
        leaves = [x for x in self.model.modules() if not [*x.children()]]
        hooks = [x.register_forward_hook(note) for x in leaves]
        ids = torch.ones(1, 4, dtype=torch.long, device="meta")
        with suppress(*TRANSFORMERS_ERRORS):  # some passes look at numbers, and tell nothing
            self.model(input_ids=ids)
            if called[-1] in in_blocks:
                reason = "it has no norm after its last block; read block instead"
        for hook in hooks:
            hook.remove()
        if reason:
            about = f"--sites {site}: {self.info.name}: {self.info.architecture}"
            raise UserError(f"{about}: {reason}.")

    def _try_out(self, name: str, n_embeddings: int) -> tuple[int, int, bool]:
        config = self.model.config.get_text_config()
        return config.num_hidden_layers, config.hidden_size, declared_causal(self.model)
