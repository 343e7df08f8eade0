"""Greedy answers of a language model: after a prompt the most probable token, again and again.

Prompts are read one at a time. A batch sums the numbers of a pass in another order, and where two
tokens are about equally probable, the other one may come next. In bfloat16, 21 of 48 answers of
Gemma 3 270M were others in batches of 8, even of prompts of equal length.
"""

from __future__ import annotations

import copy

import torch

from probes.common.errors import UserError
from probes.extraction.models.loaded_module import quiet_transformers
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.views import Text

_NOT_GREEDY = (
    *("temperature", "top_k", "top_p", "min_p", "top_h", "typical_p", "epsilon_cutoff"),
    *("eta_cutoff", "penalty_alpha", "dola_layers", "max_length", "max_time"),
)
"""Settings in a model's generation_config.json that would change or stop greedy decoding."""


class GreedyDecoder:
    """A language model that answers as transformers' ``generate(do_sample=False)`` does.

    Other settings of its generation_config.json count, such as end tokens or a repetition penalty.

    Args:
        encoder: a model that reads from left to right, with its language-model head.

    Raises:
        UserError: it has no such head, or does not read from left to right.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder, self._model = encoder, encoder.lens().model
        if not encoder.info.causal:
            raise UserError(
                f"--model {encoder.info.name}: reads in both directions, so it cannot continue a "
                "text; choose a decoder."
            )
        settings = copy.deepcopy(self._model.generation_config)
        settings.update(do_sample=False, num_beams=1, num_return_sequences=1)
        settings.update(**dict.fromkeys(_NOT_GREEDY))
        self._model.generation_config = settings
        ends = settings.eos_token_id
        self._ends = ends if isinstance(ends, list) else [ends]

    def ids(self, text: Text) -> list[int]:
        """Tokens of a text as for probing, but without special tokens after it."""
        (pieces,) = self._encoder.split([text])
        before = [] if text.rendered else self._encoder.words.prefix
        return [*before, *pieces.ids.tolist()]

    def answer(self, prompt: list[int], max_new_tokens: int) -> tuple[str, list[int], bool]:
        """The answer to a prompt of these tokens.

        Returns:
            its text without special tokens; the tokens of prompt and answer, without the one that
            ends it; and whether the model ended it, not the limit.
        """
        inputs = torch.tensor([prompt], device=self._encoder.device)
        settings = {"attention_mask": torch.ones_like(inputs), "max_new_tokens": max_new_tokens}
        with quiet_transformers(), torch.inference_mode():
            ids: list[int] = self._model.generate(inputs, **settings)[0].tolist()
        if ended := ids[-1] in self._ends:
            del ids[-1]
        # Alone, some tokenizers write a first word without the space before it.
        decode = self._encoder.words.chats.backend.decode
        return decode(ids).removeprefix(decode(prompt)), ids, ended
