"""Tiny random models of every family, written as a user would have them.

`save` writes configuration, safetensors, tokenizer.json, and the tokenizer class that the
family's published models name.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from tiny_tokenizers import (
    BERT_NAMES,
    LLAMA3_REGEX,
    QWEN_REGEX,
    ROBERTA_NAMES,
    Tiny,
    byte_level,
    sentencepiece_bpe,
    unigram,
    wordpiece,
)


@dataclass(frozen=True)
class Family:
    """The configuration and tokenizer of a family.

    Attributes:
        config: class of its configuration.
        tokenizer: builds its tokenizer.
        tokenizer_class: what its published tokenizer_config.json names.
        window: tokens that it can read, special ones included.
        settings: of the configuration, beside what all share.
    """

    config: str
    tokenizer: Callable[[], Tiny]
    tokenizer_class: str
    window: int = 32
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, config: str, tokenizer: Callable[[], Tiny], tokenizer_class: str, **settings: Any
    ) -> Family:
        return cls(config, tokenizer, tokenizer_class, settings=settings)


ROBERTA_SPECIALS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
    "initializer_range": 0.3,
}
_ROPE = {"num_key_value_heads": 1, "head_dim": 8}


def _roberta() -> Tiny:
    names = tuple(ROBERTA_NAMES.items())
    return byte_level(ROBERTA_SPECIALS, ("<s>",), ("</s>",), names)


def _modernbert() -> Tiny:
    specials = tuple(BERT_NAMES.values())
    return byte_level(specials, ("[CLS]",), ("[SEP]",), tuple(BERT_NAMES.items()), nfc=True)


def _gpt2() -> Tiny:
    end = "<|endoftext|>"
    names = (("bos_token", end), ("eos_token", end), ("unk_token", end))
    return byte_level((end,), (), (), names)


def _neox() -> Tiny:
    end = "<|endoftext|>"
    names = (("bos_token", end), ("eos_token", end), ("unk_token", end))
    return byte_level((end, "<|padding|>"), (), (), names, nfc=True)


def _llama3() -> Tiny:
    begin, end = "<|begin_of_text|>", "<|end_of_text|>"
    names = (("bos_token", begin), ("eos_token", end))
    return byte_level((begin, end), (begin,), (), names, pattern=LLAMA3_REGEX)


def _qwen() -> Tiny:
    end = "<|endoftext|>"
    names = (("eos_token", end), ("pad_token", end), ("unk_token", end))
    return byte_level((end, "<|im_start|>"), (), (), names, pattern=QWEN_REGEX, nfc=True)


_GEMMA = {**_ROPE, "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 8}
_RELATIVE = {
    "relative_attention": True,
    "position_buckets": 4,
    "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "type_vocab_size": 0,
}

_ALBERT, _XLM_R, _DEBERTA, _T5 = (
    partial(unigram, style) for style in ("albert", "xlm-r", "deberta", "t5")
)
_MPNET = partial(wordpiece, "<s>", "</s>", True)
_LLAMA2, _GEMMA_BPE = partial(sentencepiece_bpe, "first"), partial(sentencepiece_bpe, "gemma")
_ROBERTA_SIZES = {"max_position_embeddings": 34, "type_vocab_size": 1}
_BART_SIZES = {
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads", "encoder_layers"), 2),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 32),
    **{"d_model": 16, "decoder_layers": 1, "init_std": 0.3, "scale_embedding": True},
}

FAMILIES: dict[str, Family] = {
    "bert": Family.of("BertConfig", wordpiece, "BertTokenizer"),
    "distilbert": Family.of(
        "DistilBertConfig", wordpiece, "DistilBertTokenizer",
        dim=16, n_layers=2, n_heads=2, hidden_dim=32,
    ),
    "albert": Family.of(
        "AlbertConfig", _ALBERT, "AlbertTokenizer", embedding_size=8, num_hidden_layers=3
    ),
    "electra": Family.of("ElectraConfig", wordpiece, "ElectraTokenizer", embedding_size=8),
    "roberta": Family.of("RobertaConfig", _roberta, "RobertaTokenizer", **_ROBERTA_SIZES),
    "xlm-roberta": Family.of("XLMRobertaConfig", _XLM_R, "XLMRobertaTokenizer", **_ROBERTA_SIZES),
    "deberta-v2": Family.of(
        "DebertaV2Config", _DEBERTA, "DebertaV2Tokenizer",
        **_RELATIVE, conv_kernel_size=3, conv_act="gelu",
    ),
    "mpnet": Family.of("MPNetConfig", _MPNET, "MPNetTokenizer", max_position_embeddings=34),
    "modernbert": Family.of(
        "ModernBertConfig", _modernbert, "TokenizersBackend",
        local_attention=8, global_attn_every_n_layers=2, num_hidden_layers=3,
    ),
    "gpt2": Family.of("GPT2Config", _gpt2, "GPT2Tokenizer"),
    "gpt-neox": Family.of("GPTNeoXConfig", _neox, "GPTNeoXTokenizer"),
    "llama-2": Family.of("LlamaConfig", _LLAMA2, "LlamaTokenizer", **_ROPE),
    "llama-3": Family.of("LlamaConfig", _llama3, "TokenizersBackend", **_ROPE),
    "qwen2": Family.of("Qwen2Config", _qwen, "Qwen2Tokenizer", **_ROPE),
    "qwen3": Family.of("Qwen3Config", _qwen, "Qwen2Tokenizer", **_ROPE),
    "gemma": Family.of("GemmaConfig", _GEMMA_BPE, "GemmaTokenizer", **_GEMMA),
    "gemma2": Family.of("Gemma2Config", _GEMMA_BPE, "GemmaTokenizer", **_GEMMA),
    "gemma3": Family.of("Gemma3TextConfig", _GEMMA_BPE, "GemmaTokenizer", **_GEMMA),
    "llama4": Family.of(
        "Llama4TextConfig", _llama3, "TokenizersBackend",
        **_ROPE, intermediate_size_mlp=32, num_local_experts=2,
    ),
    "opt": Family.of("OPTConfig", _gpt2, "GPT2Tokenizer", ffn_dim=32, init_std=0.3),
    "t5": Family.of(
        "T5Config", _T5, "T5Tokenizer", d_model=16, num_layers=2, num_heads=2, d_ff=32, d_kv=8
    ),
    "bart": Family.of("BartConfig", _roberta, "BartTokenizer", **_BART_SIZES),
}  # fmt: skip


def build_config(family: Family, tiny: Tiny, **changes: Any) -> Any:
    """A tiny configuration of the family that fits the tokenizer."""
    ids = {
        name.replace("_token", "_token_id"): tiny.backend.token_to_id(token)
        for name, token in tiny.named.items()
        if name in ("bos_token", "eos_token", "pad_token", "cls_token", "sep_token")
    }
    ids = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None} | ids
    rows = tiny.backend.get_vocab_size()
    shared = {} if "d_model" in family.settings or "dim" in family.settings else dict(_SIZES)
    if not shared and family.config != "T5Config":
        shared = {"max_position_embeddings": 32, "initializer_range": 0.3}
    settings = {"vocab_size": rows, **ids, **shared, **family.settings, **changes}
    return getattr(transformers, family.config)(**settings)


def fast_tokenizer(name: str, **settings: Any) -> transformers.PreTrainedTokenizerFast:
    """The tokenizer of the family called `name`."""
    tiny = FAMILIES[name].tokenizer()
    given = {"tokenizer_object": tiny.backend, **tiny.named, **settings}
    return transformers.PreTrainedTokenizerFast(**given)


def build(name: str, kind: str) -> tuple[Any, Any]:
    """A tiny model of the family called `name`, of a class of transformers, and its tokenizer."""
    family = FAMILIES[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = getattr(transformers, kind)(build_config(family, family.tokenizer())).eval()
    return model, fast_tokenizer(name)


def save(name: str, folder: Path, **changes: Any) -> Tiny:
    """Write a tiny model of the family called `name` into `folder`; `changes` to its config."""
    family = FAMILIES[name]
    tiny = family.tokenizer()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = transformers.AutoModel.from_config(build_config(family, tiny, **changes))
    model.save_pretrained(folder)
    save_tokenizer(name, folder)
    return tiny


def save_tokenizer(name: str, folder: Path, **settings: Any) -> None:
    """Write the tokenizer of the family called `name`; `settings` to its config."""
    family = FAMILIES[name]
    limit = {} if family.config != "T5Config" else {"model_max_length": family.window}
    fast_tokenizer(name, **(limit | settings)).save_pretrained(folder)
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text()) | {"tokenizer_class": family.tokenizer_class}
    if family.config == "T5Config":
        config["extra_ids"] = 0
    path.write_text(json.dumps(config))
