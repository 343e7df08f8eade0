"""The language-model head, applied only where its predictions are wanted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


def has_lm_head(model: Any, base: Any) -> bool:
    """Whether `model` is `base` with a head that predicts tokens."""
    return model is not base and model.get_output_embeddings() is not None


def class_with_head(config: Any) -> Any:
    """The automatic class of transformers that loads a model with its language-model head.

    Some architectures have a masked and a causal one; the configuration says which was trained.
    """
    from transformers import (
        MODEL_FOR_MASKED_LM_MAPPING,
        AutoModelForCausalLM,
        AutoModelForMaskedLM,
    )

    trained = (config.architectures or [""])[0]
    causal = trained.endswith(("ForCausalLM", "LMHeadModel"))
    if type(config) in MODEL_FOR_MASKED_LM_MAPPING and not causal:
        return AutoModelForMaskedLM
    return AutoModelForCausalLM


def with_base(model: Any, base: Any) -> Any:
    """A random model with a head, around the weights of another random one without.

    Drawn in one go they would be other weights than those whose word vectors are probed.
    """
    model.base_model.load_state_dict(base.state_dict(), strict=False)
    return model


@contextmanager
def head_applied_at(base: Any, positions: torch.Tensor) -> Iterator[None]:
    """Let the model around `base` apply its head to some positions alone.

    A head over a vocabulary of 100,000 tokens is dearer than several blocks. In the block, `base`
    hands on its last states at `positions` as if they were one text, so that the model's output
    has ``logits`` of shape (1, positions, vocabulary); its hidden states are complete.

    Args:
        positions: indices into the flattened (texts × length) positions. Shape (positions,).
    """

    def chosen(module: Any, given: Any, output: Any) -> Any:
        states = output.last_hidden_state
        flat = states.reshape(-1, states.shape[-1])
        output.last_hidden_state = flat.index_select(0, positions.to(flat.device))[None]
        return output

    hook = base.register_forward_hook(chosen)
    try:
        yield
    finally:
        hook.remove()
