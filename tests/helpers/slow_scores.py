"""Scores of a text by a language model, the slow and obvious way: one forward pass per token.

Every function returns the log-probability of every token that is not special, in natural logs.
"""

from __future__ import annotations

from typing import Any

import torch


def pseudo_log_likelihood(model: Any, tokenizer: Any, text: str) -> list[float]:
    """Each token where it alone is masked (Salazar et al. 2020)."""
    return _masked(model, tokenizer, text, within_word=False)


def within_word_l2r(model: Any, tokenizer: Any, text: str) -> list[float]:
    """Each token where it and the later pieces of its word are masked (Kauf & Ivanova 2023)."""
    return _masked(model, tokenizer, text, within_word=True)


def left_to_right(model: Any, tokenizer: Any, text: str) -> list[float]:
    """Each token after those before it; a start token if the tokenizer adds none."""
    coded = tokenizer(text, return_special_tokens_mask=True)
    ids, special = coded["input_ids"], coded["special_tokens_mask"]
    if not special or not special[0]:
        ids, special = [tokenizer.bos_token_id, *ids], [1, *special]
    return [
        _log_probabilities(model, ids[:i])[-1, ids[i]].item()
        for i in range(len(ids))
        if not special[i]
    ]


def ends_of_words(model: Any, tokenizer: Any, text: str) -> list[float]:
    """Gain of each token where the end of a word is part of it (Pimentel & Meister 2024)."""
    coded = tokenizer(text, add_special_tokens=False)["input_ids"]
    ids = [tokenizer.bos_token_id, *coded]
    names = tokenizer.convert_ids_to_tokens([*range(len(tokenizer))])
    starts = [i for i, name in enumerate(names) if name[0] in "Ġ▁"]

    def a_word_begins_after(n: int) -> float:
        return _log_probabilities(model, ids[:n])[-1, starts].logsumexp(0).item()

    found = []
    for i, token in enumerate(ids[1:], start=1):
        ends = i + 1 == len(ids) or ids[i + 1] in starts
        gain = a_word_begins_after(i + 1) if ends else 0.0
        begins = i > 1 and token in starts
        found.append(gain - (a_word_begins_after(i) if begins else 0.0))
    return found


def _masked(model: Any, tokenizer: Any, text: str, within_word: bool) -> list[float]:
    coded = tokenizer(text, return_special_tokens_mask=True)
    ids, words = coded["input_ids"], coded.word_ids()
    scores = []
    for i, special in enumerate(coded["special_tokens_mask"]):
        if special:
            continue
        hidden = {j for j in range(i, len(ids)) if words[j] == words[i]} if within_word else {i}
        seen = [tokenizer.mask_token_id if j in hidden else token for j, token in enumerate(ids)]
        scores.append(_log_probabilities(model, seen)[i, ids[i]].item())
    return scores


@torch.no_grad()
def _log_probabilities(model: Any, ids: list[int]) -> torch.Tensor:
    """Log-probabilities of all tokens of the vocabulary at all positions."""
    logits: torch.Tensor = model(input_ids=torch.tensor([ids])).logits[0]
    return logits.float().log_softmax(-1)
