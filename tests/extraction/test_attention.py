"""Models whose attention maps cannot be read end with one sentence."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from tiny_models import build
from tiny_readings import Maps, collected

from probes.common.errors import UserError
from probes.extraction.encoder import Encoder
from probes.extraction.views import Text

_CODER = {"layers": 2, "attention_heads": 2, "ffn_dim": 32}
ODD: dict[str, dict[str, Any]] = {
    "Longformer": {"attention_window": [8, 8], "num_attention_heads": 2, "intermediate_size": 32},
    "LED": {
        "attention_window": [8, 8],
        "d_model": 16,
        "max_encoder_position_embeddings": 64,
        **{f"{part}_{name}": n for part in ("encoder", "decoder") for name, n in _CODER.items()},
    },
    "LongT5": {
        "d_model": 16,
        "d_kv": 8,
        "d_ff": 32,
        "num_layers": 2,
        "num_heads": 2,
        "local_radius": 4,
    },
    "Mamba": {"state_size": 4},
    "Rwkv": {"attention_hidden_size": 16},
    "BigBird": {"num_attention_heads": 2, "intermediate_size": 32},
}
"""Local attention in bands and blocks, no attention, and sparse attention of its own."""


def encoder_of(kind: str) -> Encoder:
    _, tokenizer = build("bert", "BertModel")
    sizes = {"hidden_size": 16, "num_hidden_layers": 2} if "d_model" not in ODD[kind] else {}
    ids = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    config = getattr(transformers, f"{kind}Config")(**ids, **sizes, **ODD[kind])
    torch.manual_seed(7)
    model = transformers.AutoModel.from_config(config)
    return Encoder(model, tokenizer, name=kind.lower(), device="cpu")


def texts(*lengths: int) -> list[Text]:
    return [Text(("the",) * n, (0, n)) for n in lengths]


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("n_words", [3, 12, 30])
def test_maps_that_cannot_be_read_are_refused(kind: str, n_words: int) -> None:
    encoder = encoder_of(kind)
    used = encoder.model.config._attn_implementation
    with pytest.raises(UserError, match=r"computes attention in its own way, which cannot be obse"):
        collected(encoder, texts(n_words), Maps())
    assert encoder.model.config._attn_implementation == used


def test_maps_that_are_square_by_chance_alone() -> None:
    """Seven words and two special tokens: as many as the columns of a band, 8 + 1."""
    encoder = encoder_of("Longformer")
    with pytest.raises(UserError, match="computes attention in its own way"):
        collected(encoder, texts(7, 12), Maps())
