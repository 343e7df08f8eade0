"""Attention of texts that stand one after the other in one row, each to itself alone.

All else in a model works on one token at a time, so that padding costs it as much as text
(docs/performance.md; Zhai et al. 2022, ByteTransformer, arXiv:2210.03052).
"""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from probes.common.errors import out_of_memory
from probes.extraction.loading import first_position
from probes.extraction.windows import Unpadded, bare

if TYPE_CHECKING:
    from probes.extraction.encoder import Encoder

_NAME = "text_by_text"
"""Under which transformers knows `attend`."""

_VECTOR = 16
"""Numbers in a vector of AVX-512: torch's kernel takes keys that fill none one by one."""

_LONG = 256
"""Tokens of a text from which on that is not worth a mask, whose size is their square."""

_TRIED, _LONGEST_TRIED = 40, 1024
"""Tokens of the longest text that a model is tried on, and the most if it has windows."""

_CANNOT = (TypeError, ValueError, RuntimeError, AttributeError, LookupError)
"""What a model may raise that is given rows without padding and knows nothing of them."""


def attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    text_lengths: Tensor,
    is_causal: bool | None = None,
    sliding_window: int | None = None,
    **settings: Any,
) -> tuple[Tensor, None]:
    """What each text's attention is if it is read alone.

    Args:
        module, is_causal, settings: as transformers gives them to its attention functions.
        query, key, value: shape (1, heads, tokens, size of a head).
        text_lengths: how long the texts are, as runs of (length, texts). Shape (runs, 2).
        sliding_window: how near tokens must be to each other, by FlashAttention's count; None
            for any distance.

    Returns:
        shape (1, tokens, heads, size of a head).

    Raises:
        ValueError: the model brings a mask, or asks for what transformers' SDPA has not.
    """
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    if attention_mask is not None:
        raise ValueError("the model masks by itself")
    causal = is_causal if is_causal is not None else getattr(module, "is_causal", True)
    found, start = [], 0
    for length, n in text_lengths.tolist():
        end = start + length * n
        # Keys that the mask hides, the next texts', cost less than a vector that is not full.
        n_keys = length if length > _LONG else -(-length // _VECTOR) * _VECTOR
        q = query[0, :, start:end].unflatten(1, (n, length)).transpose(0, 1)
        k, v = (
            _tokens(states[0], start, end + n_keys - length)
            .unfold(1, n_keys, length)
            .permute(1, 0, 3, 2)
            for states in (key, value)
        )
        visible = _seen if length > _LONG else _seen_again
        seen = visible(length, n_keys, sliding_window, causal)
        output, _ = sdpa_attention_forward(module, q, k, v, seen, is_causal=causal, **settings)
        found.append(output.flatten(0, 1))
        start = end
    return torch.cat(found)[None] if len(found) > 1 else found[0][None], None


def _tokens(states: Tensor, start: int, end: int) -> Tensor:
    """Those from `start` to `end` of (heads, tokens, size), and zeros where there are no more.

    How many keys there are changes rounding, which is not to tell what follows a text.
    """
    missing = end - states.shape[1]
    found = states[:, start:end]
    return pad(found, (0, 0, 0, missing)) if missing > 0 else found


def _seen(length: int, n_keys: int, window: int | None, causal: bool) -> Tensor | None:
    """Which tokens see which keys. Shape (1, 1, length, keys); None if there is none to hide."""
    if n_keys == length and (window is None or length <= window):
        return None
    key = torch.arange(n_keys)
    back = torch.arange(length)[:, None] - key
    seen = (key < length) & ((back >= 0) | (not causal))
    return (seen if window is None else seen & (back.abs() < window))[None, None]


_seen_again = lru_cache(maxsize=64)(_seen)


def leave_padding_out(encoder: Encoder) -> None:
    """Let `encoder` lay windows out in a single row, if its model then gives the same vectors.

    It is tried on three texts, two of them of equal length and longer than any window of its
    attention, one with a masked word, in all layers.
    """
    words, n_ids = encoder.words, encoder.model.get_input_embeddings().weight.shape[0]
    longest = min(encoder.capacity, max(_TRIED, _widest_window(encoder.model) + 2))
    if not _takes_attention(encoder.model) or longest > _LONGEST_TRIED:
        return
    # Words differ, so that it shows if one text sees another.
    special = [encoder.layout.pad_id, *words.prefix, *words.suffix]
    usual = np.setdiff1d(np.arange(n_ids // 2, n_ids), special)
    inner = np.split(np.resize(usual, 2 * longest + 1), [longest, 2 * longest])
    if words.mask_id is not None:
        inner[0][longest // 2] = words.mask_id
    texts = [bare([*words.prefix, *part, *words.suffix]) for part in inner]
    alone = [encoder.states(encoder.layout.rows([text]).inputs) for text in texts]
    layout, attention = encoder.layout, _set_attention(encoder.model, _NAME)
    encoder.layout = Unpadded(layout.pad_id, first_position(encoder.model))
    try:
        together = encoder.states(encoder.layout.rows(texts).inputs)
        layers = zip(together, *alone, strict=True)
        same = all(_near(all_[0], torch.cat([own[0] for own in one])) for all_, *one in layers)
    except _CANNOT as error:
        if out_of_memory(error):
            raise
        same = False
    if not same:
        encoder.layout = layout
        _set_attention(encoder.model, attention)


def _near(states: Tensor, expected: Tensor) -> bool:
    """Whether states are the same but for rounding, those that fill the row up left aside."""
    apart = (states[: len(expected)] - expected).float().norm(dim=1)
    rounding = max(1e-4, 2 * torch.finfo(expected.dtype).eps)
    return bool((apart <= rounding * expected.float().norm(dim=1)).all())


def _widest_window(model: Any) -> int:
    """The largest number by which the model's configuration limits how far a token sees.

    Not all models tell it to their attention function, nor do they agree on what it counts.
    """
    settings = model.config.get_text_config().to_dict().items()
    named = [v for k, v in settings if any(part in k for part in ("window", "local", "chunk"))]
    numbers = [n for v in named for n in (v if isinstance(v, list) else [v])]
    return max((n for n in numbers if isinstance(n, int)), default=0)


def _takes_attention(model: Any) -> bool:
    """Whether `model` says of itself that attention and positions can be given to it."""
    parameters = inspect.signature(model.forward).parameters.values()
    return (
        getattr(model, "_supports_flash_attn", False)
        and any(p.name == "position_ids" for p in parameters)
        and any(p.kind is p.VAR_KEYWORD for p in parameters)
    )


def _set_attention(model: Any, name: str) -> str:
    """Let `model` use the attention of that name; the one that it used before."""
    from transformers import AttentionInterface

    AttentionInterface.register(_NAME, attend)
    before: str = model.config._attn_implementation
    model.set_attn_implementation(name)
    return before
