"""Places of blocks, attention and MLPs in tiny models, written down by hand."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import torch
import transformers
from tiny_models import FAMILIES, build

from probes.extraction.models.loaded_module import accepted_arguments, base_model
from probes.extraction.reading.vectors import layer_part


class Places(NamedTuple):
    """Names of modules: of the blocks, and in each of W_O, of the MLP's last map, and of W_Q."""

    blocks: str
    output: str
    mlp: str
    query: str


_BERT = Places("encoder.layer", "attention.output.dense", "output.dense", "attention.self.query")
_LLAMA = Places("layers", "self_attn.o_proj", "mlp.down_proj", "self_attn.q_proj")
_INNER = "encoder.albert_layer_groups.0.albert_layers"
PLACES = {
    **dict.fromkeys(["bert", "electra", "roberta", "xlm-roberta"], _BERT),
    **dict.fromkeys(["llama-2", "llama-3", "qwen2", "qwen3", "gemma", "gemma2", "gemma3"], _LLAMA),
    "deberta-v2": _BERT._replace(query="attention.self.query_proj"),
    "distilbert": Places("transformer.layer", "attention.out_lin", "ffn.lin2", "attention.q_lin"),
    "albert": Places(_INNER, "attention.dense", "ffn_output", "attention.query"),
    "mpnet": Places("encoder.layer", "attention.attn.o", "output.dense", "attention.attn.q"),
    "modernbert": Places("layers", "attn.Wo", "mlp.Wo", "attn.Wqkv"),
    "gpt2": Places("h", "attn.c_proj", "mlp.c_proj", "attn.c_attn"),
    "gpt-neox": Places(
        "layers", "attention.dense", "mlp.dense_4h_to_h", "attention.query_key_value"
    ),
    "t5": Places(
        "block", "layer.0.SelfAttention.o", "layer.1.DenseReluDense.wo", "layer.0.SelfAttention.q"
    ),
    "bart": Places("layers", "self_attn.out_proj", "fc2", "self_attn.q_proj"),
}
_NORMS_OF_PARTS = "post_attention_layernorm", "post_feedforward_layernorm"
WRITES = {
    **{name: (x.output, x.mlp) for name, x in PLACES.items()},
    **dict.fromkeys(("gemma2", "gemma3", "Olmo2"), _NORMS_OF_PARTS),
    "Glm4": ("post_self_attn_layernorm", "post_mlp_layernorm"),
    "Granite": ("self_attn.o_proj", "mlp.down_proj"),
    "Mixtral": ("self_attn.o_proj", "mlp"),
    "DeepseekV3": ("self_attn.o_proj", "mlp"),
}
"""Names of the modules of a block whose outputs it adds to the residual stream."""

NORMS = {
    "modernbert": "final_norm",
    "gpt2": "ln_f",
    "gpt-neox": "final_layer_norm",
    "t5": "final_layer_norm",
    **dict.fromkeys((name for name, its in PLACES.items() if its is _LLAMA), "norm"),
}
"""Names of the norms after the last block."""

_BERT_NORMS = "attention.output.LayerNorm", "output.LayerNorm"
POST_NORMS = {
    **dict.fromkeys(
        (name for name, its in PLACES.items() if its.blocks == _BERT.blocks), _BERT_NORMS
    ),
    "distilbert": ("sa_layer_norm", "output_layer_norm"),
    "albert": ("attention.LayerNorm", "full_layer_layer_norm"),
    "mpnet": ("attention.LayerNorm", "output.LayerNorm"),
    "bart": ("self_attn_layer_norm", "final_layer_norm"),
}
"""Norms of the sums with attention and with the MLP in blocks that have the norms there."""
MLP_NORMS = {
    **dict.fromkeys(
        (name for name, its in PLACES.items() if its is _LLAMA), "post_attention_layernorm"
    ),
    **dict.fromkeys(("gemma2", "gemma3"), "pre_feedforward_layernorm"),
    "modernbert": "mlp_norm",
    "gpt2": "ln_2",
    "t5": "layer.1.layer_norm",
}
"""Norms before MLPs that read the sum with attention. GPT-NeoX reads the block's input there."""

SMALL = {
    **{"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2},
    "initializer_range": 0.3,
}
_GPT = {"n_embd": 16, "n_layer": 2, "n_head": 2}
OTHERS: dict[str, dict[str, Any]] = {
    "XLNet": {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32},
    "Bloom": {"hidden_size": 16, "n_layer": 2, "n_head": 2},
    "GPTJ": {**_GPT, "rotary_dim": 4},
    "GPTNeo": {
        "hidden_size": 16,
        "num_layers": 2,
        "num_heads": 2,
        "attention_types": [[["global", "local"], 1]],
        "window_size": 4,
    },
    "OpenAIGPT": _GPT,
    "OPT": {**SMALL, "ffn_dim": 32, "word_embed_proj_dim": 16},
    "Falcon": SMALL,
    "Mpt": {"d_model": 16, "n_heads": 2, "n_layers": 2},
    "Longformer": {**SMALL, "attention_window": [8, 8], "intermediate_size": 32},
    "BigBird": {**SMALL, "intermediate_size": 32},
    "Mixtral": {**SMALL, "num_key_value_heads": 1, "intermediate_size": 32, "num_local_experts": 2},
    "Olmo2": {**SMALL, "intermediate_size": 32},
    "Glm4": {**SMALL, "intermediate_size": 32, "num_key_value_heads": 1, "head_dim": 8},
    "Granite": {**SMALL, "intermediate_size": 32, "residual_multiplier": 0.25},
    "GraniteMoe": {**SMALL, "intermediate_size": 32, "residual_multiplier": 0.25},
    "DeepseekV3": {
        **SMALL,
        **dict.fromkeys(("q_lora_rank", "kv_lora_rank", "v_head_dim"), 8),
        **dict.fromkeys(("qk_rope_head_dim", "qk_nope_head_dim"), 8),
        **dict.fromkeys(("intermediate_size", "moe_intermediate_size"), 32),
        **dict.fromkeys(("n_group", "topk_group", "first_k_dense_replace"), 1),
        "num_key_value_heads": 2,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
    },
    "XLM": {"emb_dim": 16, "n_layers": 2, "n_heads": 2},
    "Mamba": {"hidden_size": 16, "num_hidden_layers": 2, "state_size": 4},
}
"""Of further architectures, what makes them tiny."""


def tiny(name: str) -> Any:
    """A tiny model without its head; of an encoder–decoder, the encoder."""
    if name in FAMILIES:
        kind = FAMILIES[name].config.replace("Config", "Model")
        return base_model(build(name, kind)[0])
    config = getattr(transformers, f"{name}Config")(
        vocab_size=99, pad_token_id=0, bos_token_id=1, eos_token_id=2, **OTHERS[name]
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        return transformers.AutoModel.from_config(config).eval()


def block_of(model: Any, name: str, layer: int) -> Any:
    """A block, counted from 1; ALBERT has one."""
    return model.get_submodule(PLACES[name].blocks)[0 if name == "albert" else layer - 1]


IDS = torch.randint(5, 50, (3, 9), generator=torch.Generator().manual_seed(0))
LENGTHS = [9, 6, 2]
MASK = (torch.arange(9) < torch.tensor(LENGTHS)[:, None]).long()


def layers(model: Any, ids: torch.Tensor = IDS, mask: torch.Tensor = MASK) -> list[torch.Tensor]:
    """The states of every layer at real tokens alone, by a plain pass. Each (tokens, size)."""
    with torch.no_grad():
        found = model(
            input_ids=ids,
            attention_mask=mask,
            output_hidden_states=True,
            **accepted_arguments(model),
        )
    return [x[mask.bool()] for x in (*found.hidden_states[:-1], found.last_hidden_state)]


def n_hooks(model: Any) -> int:
    """Number of hooks of all modules."""
    return sum(len(x._forward_hooks) + len(x._forward_pre_hooks) for x in model.modules())


def states_by_hand(model: Any, name: str, ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """States of one text at all sites; ALBERT calls one block for all layers. Each (length, size)."""
    states: dict[str, torch.Tensor] = {}

    def keep(site: Any, block: int, output: torch.Tensor) -> None:
        while layer_part(block, site) in states:
            block += 1
        states[layer_part(block, site)] = output.clone().reshape(ids.shape[1], -1)

    hooks = []
    n_blocks = model.config.num_hidden_layers
    for block in [1] if name == "albert" else range(1, n_blocks + 1):
        its = block_of(model, name, block)
        outputs = dict(zip(("attention", "mlp"), WRITES[name], strict=True))
        if name in POST_NORMS:
            outputs["mid"] = POST_NORMS[name][0]
        for site, path in outputs.items():
            take = partial(keep, site, block)
            part = its.get_submodule(path)
            hooks.append(part.register_forward_hook(lambda _, __, x, take=take: take(x)))
        if name in MLP_NORMS:
            take = partial(keep, "mid", block)
            norm = its.get_submodule(MLP_NORMS[name])
            hooks.append(norm.register_forward_pre_hook(lambda _, x, take=take: take(x[0])))
    if name in NORMS:
        norm = model.get_submodule(NORMS[name])
        take = partial(keep, "unnormed", n_blocks)
        hooks.append(norm.register_forward_pre_hook(lambda _, x: take(x[0])))
    for layer, state in enumerate(layers(model, ids, torch.ones_like(ids))):
        states[layer_part(layer)] = state
    for hook in hooks:
        hook.remove()
    return states
