"""Tiny random models of every class of transformers that can be built without data of its own."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import torch
from transformers import MODEL_MAPPING, AutoConfig, AutoModel

N = 4
"""Blocks of the models, where their configuration lets us choose."""

CORE: dict[str, Any] = {
    "vocab_size": 512, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "hidden_size": 32,
    "num_hidden_layers": N, "num_attention_heads": 4, "intermediate_size": 48,
    "max_position_embeddings": 64, "default_language": "en_XX",
}  # fmt: skip
MORE: dict[str, Any] = {
    **dict.fromkeys(("d_model", "n_embd", "dim", "emb_dim", "embedding_size", "embed_dim"), 32),
    **dict.fromkeys(("num_layers", "n_layer", "n_layers", "encoder_layers"), N),
    **dict.fromkeys(("num_encoder_layers", "num_heads", "n_head", "n_heads", "num_head"), 4),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("d_ff", "ffn_dim", "hidden_dim", "d_inner", "n_inner"), 48),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim", "ffn_hidden_size"), 48),
    **dict.fromkeys(("head_dim", "d_kv", "state_size", "v_head_dim", "q_lora_rank"), 8),
    **dict.fromkeys(("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "kv_channels"), 8),
    **dict.fromkeys(("mamba_d_state", "mamba_n_heads", "mamba_d_head", "mamba_num_heads"), 8),
    **dict.fromkeys(("mamba_head_dim", "ssm_state_size", "linear_key_head_dim"), 8),
    **dict.fromkeys(("linear_value_head_dim", "sliding_window", "attention_window"), 8),
    **dict.fromkeys(("hidden_size_per_layer_input", "patch_size"), 8),
    **dict.fromkeys(("num_local_experts", "num_experts", "n_routed_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "num_key_value_heads", "num_kv_heads"), 2),
    **dict.fromkeys(("decoder_layers", "num_decoder_layers", "depth", "expand"), 2),
    **dict.fromkeys(("mamba_expand", "attn_layer_period", "linear_num_key_heads"), 2),
    **dict.fromkeys(("n_shared_experts", "n_group", "topk_group", "n_groups"), 1),
    **dict.fromkeys(("mamba_n_groups", "attn_layer_offset", "first_k_dense_replace"), 1),
    **dict.fromkeys(("moe_intermediate_size", "expert_ffn_hidden_size", "image_size"), 16),
    **dict.fromkeys(("attention_hidden_size", "lru_width", "word_embed_proj_dim"), 32),
    **dict.fromkeys(("out_hidden_size", "projection_dim", "conv_dim"), 32),
    **dict.fromkeys(("rotary_dim", "mamba_dt_rank", "time_step_rank", "index_topk"), 4),
    "linear_num_value_heads": 4, "shared_expert_intermediate_size": 16, "type_vocab_size": 2,
    "intermediate_size_mlp": 48, "mamba_d_ssm": 64, "attention_types": [[["global", "local"], 2]],
    "vocab_size_per_layer_input": 512, "num_kv_shared_layers": 0, "entity_vocab_size": 9,
    "entity_emb_size": 32, "coordinate_size": 6, "shape_size": 4, "num_mem_blocks": 1,
}  # fmt: skip
TRIES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (MORE, {}),
    (MORE, {"head_dim": None}),
    ({}, {}),
    (MORE, {"num_key_value_heads": 4}),
    (MORE, {"num_key_value_heads": 4, "head_dim": 16}),
    ({k: v for k, v in MORE.items() if k not in ("sliding_window", "rotary_dim")}, {}),
    (MORE, {"num_hidden_layers": 6}),
    (MORE, {"hidden_size": 64, "num_heads": 8, "head_dim": 16}),
    ({"num_key_value_heads": 2, "head_dim": 16}, {"hidden_size": 64}),
    (MORE, {"hidden_size": 24}),
    ({k: v for k, v in MORE.items() if "head" not in k}, {}),
]
"""Further sizes, and those that replace others: not every class accepts the same."""

OWN: dict[str, dict[str, Any]] = {
    "Zamba": {
        "hidden_size": 32, "attention_hidden_size": 64, "num_hidden_layers": 6,
        "num_attention_heads": 4, "num_key_value_heads": 4, "attention_head_dim": 16,
        "n_mamba_heads": 2, "intermediate_size": 48, "mamba_d_state": 8, "mamba_dt_rank": 4,
        "layers_block_type": ["mamba", "hybrid"] * 3, "vocab_size": 512,
    },
    "Lilt": {**CORE, "hidden_size": 48, "channel_shrink_ratio": 2},
    "Dbrx": {
        "d_model": 32, "n_heads": 4, "n_layers": N, "vocab_size": 512, "max_seq_len": 64,
        "attn_config": {"kv_n_heads": 2, "clip_qkv": 8, "rope_theta": 10000.0},
        "ffn_config": {"ffn_hidden_size": 48, "moe_num_experts": 4, "moe_top_k": 2},
    },
}  # fmt: skip

CLASSES = {kind.__name__.removesuffix("Config"): kind for kind in MODEL_MAPPING}
"""Configurations by the name of their architecture."""


def _settings(kind: Any, more: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The sizes that a configuration knows, and those of its parts."""
    known = set(inspect.signature(kind.__init__).parameters) | set(kind.attribute_map)
    known = known.union(*(vars(base).get("__annotations__", ()) for base in kind.__mro__))
    found = {k: v for k, v in {**CORE, **more, **changes}.items() if k in known}
    for name, part in kind.sub_configs.items():
        if part is not AutoConfig and part is not kind:
            found[name] = _settings(part, more, changes)
        elif "text" in name or "vision" in name:
            default = getattr(kind(), name)
            sizes = _settings(type(default), more, changes)
            found[name] = {"model_type": default.model_type, **sizes}
    return found


def built(name: str) -> Iterator[Any]:
    """Models of a class that can be built, which need not run."""
    for more, changes in TRIES:
        try:
            config = CLASSES[name](**OWN.get(name) or _settings(CLASSES[name], more, changes))
            with torch.device("meta"):
                model = AutoModel.from_config(config)
            if sum(weight.numel() for weight in model.parameters()) < 3e7:
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(7)
                    yield AutoModel.from_config(config).eval()
        except Exception:  # noqa: BLE001 (whatever a class makes of such sizes)
            continue
