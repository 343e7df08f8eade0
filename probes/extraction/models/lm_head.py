"""The language-model head, applied only where its predictions are wanted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from probes.common.errors import NoHeadError, UserError
from probes.extraction.changing.sites import Site, sites_of
from probes.extraction.models.loaded_module import base_model, short_text


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


_LOGITS = 1 << 25
"""Logits in memory at once: 128 MB in float32. Gemma 3 has 262,144 at each position."""


class PassWithHead:
    """The output of a pass of the model without its head, and logits at some positions.

    Args:
        output: output of the model without its head; this one has all its attributes.
        lens: the head.
        positions: indices into the flattened (texts × length) positions. Shape (positions,).

    Attributes:
        states: states of the last layer at these positions. Shape (positions, hidden size).
    """

    def __init__(self, output: Any, lens: Lens, positions: torch.Tensor) -> None:
        states = output.last_hidden_state.flatten(0, 1)
        self._output, self._lens = output, lens
        self.states = states.index_select(0, positions.to(states.device))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._output, name)

    @property
    def logits(self) -> torch.Tensor:
        """Logits of all positions. Shape (positions, vocabulary)."""
        return self._lens.logits(self.states)

    def blocks(self) -> Iterator[tuple[slice, torch.Tensor]]:
        """Logits in float32, a few positions at once, so that large vocabularies fit in memory.

        Yields:
            positions, and their logits. Shape (some positions, vocabulary).
        """
        n_rows = max(1, _LOGITS // self._lens.vocabulary)
        for first in range(0, len(self.states), n_rows):
            rows = slice(first, first + n_rows)
            yield rows, self._lens.logits(self.states[rows]).float()


@dataclass(frozen=True)
class Lens:
    """The head of a language model, applied to the states of any layer (nostalgebraist 2020).

    Attributes:
        model: with its head.
        base: the same without.
        output: the class of the output of `base`.
        vocabulary: number of logits of a position.
    """

    model: Any
    base: Any
    output: Any
    vocabulary: int

    @classmethod
    def of(cls, model: Any, base: Any) -> Lens:
        """The head of a model, checked on a short text.

        Raises:
            UserError: the head reads more than the last layer.
        """
        arguments = short_text(base)
        with torch.inference_mode():
            output = base(**arguments)
            logits = model(**arguments).logits[0].float()
        lens = cls(model, base, type(output), logits.shape[-1])
        lens_logits = lens.logits(output.last_hidden_state[0]).float()
        # Rounding alone; a head that also reads other layers differs by far more.
        if (lens_logits - logits).abs().max() > 0.01 * (logits.max() - logits.min()):
            raise UserError(
                f"{type(model).__name__} does not apply its language-model head to the last layer "
                "alone, so that neither tokens nor layers can be scored with it."
            )
        return lens

    @property
    def n_layers(self) -> int:
        """Number of blocks."""
        return len(sites_of(self.base).blocks)

    def require_layers(self) -> None:
        """Check that the norm between the last block and the head is known."""
        sites_of(self.base).require(Site("layer", self.n_layers))

    def __call__(self, states: torch.Tensor, layer: int) -> torch.Tensor:
        """Logits of a layer's states, after the final norm. (n, hidden size) to (n, vocabulary)."""
        norm = sites_of(self.base).norm
        if norm is not None and layer < self.n_layers:
            with torch.inference_mode():
                states = norm(states)
        return self.logits(states)

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Logits of the last layer's states. (n, hidden size) to (n, vocabulary)."""
        output = self.output(last_hidden_state=states[None])
        ids = torch.zeros(1, len(states), dtype=torch.long, device=states.device)
        instance_forward = vars(self.base).get("forward")
        # The model then applies all of its head, and none of its blocks.
        self.base.forward = lambda *args, **kwargs: output
        try:
            with torch.inference_mode(not states.requires_grad):
                logits: torch.Tensor = self.model(input_ids=ids, return_dict=True).logits[0]
        finally:
            del self.base.forward
            if instance_forward is not None:
                self.base.forward = instance_forward
        return logits
