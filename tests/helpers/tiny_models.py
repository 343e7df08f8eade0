"""Tiny random models of every family, written as a user would have them.

`save` writes configuration, safetensors, tokenizer.json, and the tokenizer class that the
family's published models name.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
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

FAMILIES: dict[str, Family] = {
    "bert": Family("BertConfig", wordpiece, "BertTokenizer"),
    "distilbert": Family(
        "DistilBertConfig",
        wordpiece,
        "DistilBertTokenizer",
        settings={"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32},
    ),
    "albert": Family(
        "AlbertConfig",
        lambda: unigram("albert"),
        "AlbertTokenizer",
        settings={"embedding_size": 8, "num_hidden_layers": 3},
    ),
    "electra": Family(
        "ElectraConfig", wordpiece, "ElectraTokenizer", settings={"embedding_size": 8}
    ),
    "roberta": Family(
        "RobertaConfig",
        _roberta,
        "RobertaTokenizer",
        settings={"max_position_embeddings": 34, "type_vocab_size": 1},
    ),
    "xlm-roberta": Family(
        "XLMRobertaConfig",
        lambda: unigram("xlm-r"),
        "XLMRobertaTokenizer",
        settings={"max_position_embeddings": 34, "type_vocab_size": 1},
    ),
    "deberta-v2": Family(
        "DebertaV2Config",
        lambda: unigram("deberta"),
        "DebertaV2Tokenizer",
        settings={**_RELATIVE, "conv_kernel_size": 3, "conv_act": "gelu"},
    ),
    "mpnet": Family(
        "MPNetConfig",
        lambda: wordpiece("<s>", "</s>", True),
        "MPNetTokenizer",
        settings={"max_position_embeddings": 34},
    ),
    "modernbert": Family(
        "ModernBertConfig",
        _modernbert,
        "TokenizersBackend",
        settings={"local_attention": 8, "global_attn_every_n_layers": 2, "num_hidden_layers": 3},
    ),
    "gpt2": Family("GPT2Config", _gpt2, "GPT2Tokenizer"),
    "gpt-neox": Family("GPTNeoXConfig", _neox, "GPTNeoXTokenizer"),
    "llama-2": Family(
        "LlamaConfig", lambda: sentencepiece_bpe("first"), "LlamaTokenizer", settings=_ROPE
    ),
    "llama-3": Family("LlamaConfig", _llama3, "TokenizersBackend", settings=_ROPE),
    "qwen2": Family("Qwen2Config", _qwen, "Qwen2Tokenizer", settings=_ROPE),
    "qwen3": Family("Qwen3Config", _qwen, "Qwen2Tokenizer", settings=_ROPE),
    "gemma": Family(
        "GemmaConfig", lambda: sentencepiece_bpe("gemma"), "GemmaTokenizer", settings=_GEMMA
    ),
    "gemma2": Family(
        "Gemma2Config", lambda: sentencepiece_bpe("gemma"), "GemmaTokenizer", settings=_GEMMA
    ),
    "gemma3": Family(
        "Gemma3TextConfig", lambda: sentencepiece_bpe("gemma"), "GemmaTokenizer", settings=_GEMMA
    ),
    "llama4": Family(
        "Llama4TextConfig",
        _llama3,
        "TokenizersBackend",
        settings={**_ROPE, "intermediate_size_mlp": 32, "num_local_experts": 2},
    ),
    "opt": Family("OPTConfig", _gpt2, "GPT2Tokenizer", settings={"ffn_dim": 32, "init_std": 0.3}),
    "t5": Family(
        "T5Config",
        lambda: unigram("t5"),
        "T5Tokenizer",
        settings={"d_model": 16, "num_layers": 2, "num_heads": 2, "d_ff": 32, "d_kv": 8},
    ),
    "bart": Family(
        "BartConfig",
        _roberta,
        "BartTokenizer",
        settings={
            "d_model": 16,
            "encoder_layers": 2,
            "decoder_layers": 1,
            "encoder_attention_heads": 2,
            "decoder_attention_heads": 2,
            "encoder_ffn_dim": 32,
            "decoder_ffn_dim": 32,
            "init_std": 0.3,
            "scale_embedding": True,
        },
    ),
}


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
