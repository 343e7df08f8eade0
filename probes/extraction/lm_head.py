"""The language-model head, applied only where its predictions are wanted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from probes.common.errors import NoHeadError, UserError
from probes.extraction.inspection import base_model, short_text
from probes.extraction.sites import Site, sites_of


def has_lm_head(model: Any, base: Any) -> bool:
    """Whether `model` is `base` with a head that predicts tokens."""
    return model is not base and model.get_output_embeddings() is not None


def class_with_head(config: Any) -> Any:
    """The automatic class of transformers that loads a model with its language-model head.

    Some architectures have a masked and a causal one; the configuration says which was trained.

    Raises:
        NoHeadError: there is none for this architecture, or it is an encoder–decoder's.
    """
    from transformers import (
        MODEL_FOR_CAUSAL_LM_MAPPING,
        MODEL_FOR_MASKED_LM_MAPPING,
        AutoModelForCausalLM,
        AutoModelForMaskedLM,
    )

    if config.is_encoder_decoder:
        raise NoHeadError("it is an encoder–decoder, whose head needs another text to score one")
    if type(config) not in {*MODEL_FOR_MASKED_LM_MAPPING, *MODEL_FOR_CAUSAL_LM_MAPPING}:
        raise NoHeadError(f"transformers has no language-model head for {config.model_type}")
    trained = (config.architectures or [""])[0]
    causal = trained.endswith(("ForCausalLM", "LMHeadModel"))
    if type(config) in MODEL_FOR_MASKED_LM_MAPPING and not causal:
        return AutoModelForMaskedLM
    return AutoModelForCausalLM


def with_base(model: Any, base: Any) -> Any:
    """A random model with a head, around the weights of another random one without.

    Drawn in one go they would be other weights than those whose word vectors are probed.
    """
    base_model(model).load_state_dict(base.state_dict(), strict=False)
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


@dataclass(frozen=True)
class Lens:
    """The head of a language model, applied to the states of any layer (nostalgebraist 2020).

    Attributes:
        model: with its head.
        base: the same without.
        norm: what states pass between the last block and the head; None for nothing.
        n_layers: blocks of the model.
        output: the class of what `base` returns.
    """

    model: Any
    base: Any
    norm: Any
    n_layers: int
    output: Any

    @classmethod
    def of(cls, model: Any, base: Any) -> Lens:
        """Find what comes between the last block and the head, and check it on a short text.

        Raises:
            UserError: the blocks are not found, something else than a module comes after them, or
                the lens at layer L does not give the logits of the model.
        """
        sites = sites_of(base)
        sites.require(Site("layer", len(sites.blocks)))
        given = short_text(base)
        with torch.inference_mode():
            output = base(**given)
            logits = model(**given).logits[0].float()
        lens = cls(model, base, sites.norm, len(sites.blocks), type(output))
        found = lens(output.last_hidden_state[0], lens.n_layers).float()
        if (found - logits).abs().max() > 0.01 * (logits.max() - logits.min()):
            raise UserError(
                f"{type(model).__name__} does not apply its language-model head to the last layer "
                "alone, so that no layer can be read with it."
            )
        return lens

    def __call__(self, states: torch.Tensor, layer: int) -> torch.Tensor:
        """The logits of states of a layer. Shape (n, vocabulary).

        Args:
            states: shape (n, hidden size).
        """
        if self.norm is not None and layer < self.n_layers:
            states = self.norm(states)
        output = self.output(last_hidden_state=states[None])
        ids = torch.zeros(1, len(states), dtype=torch.long, device=states.device)
        own = vars(self.base).get("forward")
        # The model then applies all of its head, and none of its blocks.
        self.base.forward = lambda *args, **kwargs: output
        try:
            with torch.inference_mode():
                logits: torch.Tensor = self.model(input_ids=ids, return_dict=True).logits[0]
        finally:
            del self.base.forward
            if own is not None:
                self.base.forward = own
        return logits
