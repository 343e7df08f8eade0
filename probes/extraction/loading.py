"""How a model is loaded: its files become an `Encoder`."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.compute.devices import MAP, DType
from probes.extraction.encoder import Encoder
from probes.extraction.inspection import (
    TRANSFORMERS_ERRORS,
    base_model,
    one_line,
    quiet_transformers,
)
from probes.extraction.lm_head import class_with_head, with_base
from probes.extraction.model_files import ModelSource
from probes.extraction.model_names import RANDOM


def load_encoder(
    source: ModelSource,
    *,
    device: str = "auto",
    dtype: DType = "float32",
    trust_remote_code: bool = False,
    lm_head: bool = False,
) -> Encoder:
    """Load the model that `source` points at.

    Args:
        device: a torch device, "auto", or "map" to spread the layers over all devices.
        dtype: the type in which it computes.
        trust_remote_code: run code from the model's own folder if it needs any.
        lm_head: load its language-model head too, for collectors that read logits.

    Raises:
        UserError: transformers cannot load it, its files lack weights that it needs, it is not
            a model whose word vectors can be taken (see `Encoder`), or its files changed since
            they were digested.
    """
    model, tokenizer = load_model(source, device, dtype, trust_remote_code, lm_head)
    source.require_unchanged()
    return Encoder(
        model,
        tokenizer,
        name=source.name,
        revision=source.revision,
        digest=source.digest,
        device=device,
        random_seed=source.seed,
    )


@quiet_transformers()
def load_model(
    source: ModelSource,
    device: str,
    dtype: DType,
    trust_remote_code: bool,
    lm_head: bool = False,
) -> tuple[Any, Any]:
    """The transformers model and tokenizer that `source` points at.

    Args:
        lm_head: whether to load the language-model head too.

    Raises:
        UserError: transformers cannot load it, its files lack weights that it needs, or its
            layers are to be spread over devices and accelerate is missing.
    """
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    if device == MAP and importlib.util.find_spec("accelerate") is None:
        raise UserError(f"--device {MAP}: needs accelerate; pip install accelerate")
    folder = str(source.folder)
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": trust_remote_code}
    precision = getattr(torch, dtype)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        config = AutoConfig.from_pretrained(folder, **options)
        kind = class_with_head(config) if lm_head else AutoModel
        if source.seed is not None:
            given = {"dtype": precision, "trust_remote_code": trust_remote_code}
            with torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(source.seed)
                model = AutoModel.from_config(config, **given)
                if lm_head:
                    model = with_base(kind.from_config(config, **given), model)
            if device == MAP:
                model = _spread(model)
            missing, unexpected, mismatched = [], [], []
        else:
            model, loading = kind.from_pretrained(
                folder,
                dtype=precision,
                use_safetensors=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                device_map="auto" if device == MAP else None,
                **options,
            )
            missing, unexpected = loading["missing_keys"], loading["unexpected_keys"]
            mismatched = sorted(loading["mismatched_keys"])
            # A model that returns tuples would not name the states of its layers.
            model.config.return_dict = True
    except Exception as error:
        # `tokenizers` raises a plain Exception for a file that it cannot read.
        if type(error) is not Exception and not isinstance(error, TRANSFORMERS_ERRORS):
            raise
        if "trust_remote_code" in str(error):
            raise UserError(
                f"--model {source.name}: needs code of its own, which would run on this machine; "
                f"read it in {source.folder}, and if you trust it add --trust-remote-code."
            ) from error
        raise UserError(
            f"--model {source.name}: transformers cannot load it: {one_line(error)}"
        ) from error
    weights = {key: id(w) for key, w in model.named_parameters(remove_duplicate=False)}
    if getattr(model, "pooler", None) is not None:
        # BigBird's is a plain Linear, whose output goes on through an activation.
        model.pooler = None if isinstance(model.pooler, torch.nn.Linear) else _NoPooler()
    _require_shapes(source.name, mismatched)
    _require_weights(source.name, missing, weights, model if lm_head else base_model(model))
    _warn_of_unused(source.name, unexpected, weights)
    return model, tokenizer


def _require_shapes(name: str, mismatched: Sequence[tuple[str, Any, Any]]) -> None:
    if mismatched:
        weight, stored, wanted = mismatched[0]
        raise UserError(
            f"--model {name}: {len(mismatched)} weights have another shape in its files than "
            f"config.json asks for (first: {weight}, {list(stored)} instead of {list(wanted)}); "
            "correct config.json."
        )


def _require_weights(name: str, missing: list[str], weights: dict[str, int], part: Any) -> None:
    """Refuse a model of which `part` needs weights that its files lack.

    Args:
        weights: Python's id of each parameter of the model, so that none is kept alive.
    """
    used = {id(weight) for weight in part.parameters()}
    needed = sorted(key for key in missing if key not in weights or weights[key] in used)
    if needed:
        raise UserError(
            f"--model {name}: {len(needed)} weights are not in its files and would be random "
            f"(first: {needed[0]}); use complete weights, or {RANDOM}{name} for a random twin."
        )


def _warn_of_unused(name: str, unexpected: Iterable[str], weights: Iterable[str]) -> None:
    """Warn if the files hold weights of layers that config.json does not count."""

    def pattern(key: str) -> str:
        return re.sub(r"\.\d+\.", ".#.", key)

    built = tuple({pattern(key) for key in weights if ".#." in pattern(key)})
    unused = sorted(key for key in unexpected if pattern(key).endswith(built))
    if unused:
        progress.warn(
            f"--model {name}: {len(unused)} weights in its files belong to layers that config.json "
            f"does not count (first: {unused[0]}); they are not used."
        )


class _NoPooler(torch.nn.Module):
    """Replaces a pooler, which would be computed in every pass and gives no word vector.

    Not None: SqueezeBERT and LayoutLM call theirs without checking whether there is one.
    """

    def forward(self, *args: Any, **kwargs: Any) -> None:
        """Return None."""


def _spread(model: Any) -> Any:
    """Distribute the layers of a model that was built in memory over all devices."""
    accelerate = importlib.import_module("accelerate")
    whole = list(model._no_split_modules or ())
    devices = accelerate.infer_auto_device_map(model, no_split_module_classes=whole)
    return accelerate.dispatch_model(model, devices)
