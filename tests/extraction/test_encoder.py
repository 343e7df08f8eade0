"""Loading, windows, fillers, twins, devices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import torch
import transformers
from model_folders import configure
from tiny_models import FAMILIES, build, fast_tokenizer, save, save_tokenizer
from tiny_readings import vectors_by_layer
from tokenizers import Tokenizer
from transformers import AutoModel

from probes.common.errors import UserError
from probes.extraction.models.loaded_module import declared_causal
from probes.extraction.models.loading import load_encoder
from probes.extraction.models.model_files import find_model
from probes.extraction.reading.encoder import Encoder, require_varied
from probes.extraction.reading.padding import plan_batches
from probes.extraction.reading.views import Text

INPUTS = {"input_ids": torch.tensor([[5, 6, 7]]), "attention_mask": torch.ones(1, 3).long()}

TEXTS = [
    Text(tuple(words.split()), (0, len(words.split())))
    for words in ("the keeper of the light counts the boats", "she saw it", "light")
]


def load(folder: Path, random: bool = False, **options: Any) -> Encoder:
    return load_encoder(find_model(("random:" if random else "") + str(folder)), **options)


def vectors(encoder: Encoder, texts: list[Text] = TEXTS) -> list[torch.Tensor]:
    """All layers of `texts`, each read by itself."""
    alone = [vectors_by_layer(encoder, [text]) for text in texts]
    return [torch.cat(layer) for layer in zip(*alone, strict=True)]


def assert_same(one: list[torch.Tensor], other: list[torch.Tensor]) -> None:
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_a_layer_that_is_the_same_for_all_tokens_is_refused():
    """As copies between two GPUs leave it on some machines."""
    varied = torch.arange(24.0).reshape(2, 3, 4)
    require_varied("tiny", [varied, varied[:, :1]])
    with pytest.raises(UserError, match="--model tiny: layer 1 has the same vector"):
        require_varied("tiny", [varied, torch.zeros(2, 3, 4)])


# -- windows ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "positions", "limit", "window"),
    [
        ("bert", 512, None, 512),
        ("roberta", 514, None, 512),
        ("roberta", 514, 128, 128),
        ("xlm-roberta", 514, 512, 512),
        ("mpnet", 514, None, 512),
        ("bart", 1024, None, 1024),
        ("gpt2", 1024, None, 1024),
        ("gpt2", 64, 1024, 64),
        ("deberta-v2", 512, None, 512),
        ("modernbert", 8192, 8192, 8192),
        ("llama-3", 2048, None, 2048),
        ("t5", None, 64, 64),
        ("t5", None, int(1e30), 512),
    ],
)
def test_usable_window(name, positions, limit, window, tmp_path):
    save(name, tmp_path, **({"max_position_embeddings": positions} if positions else {}))
    config = json.loads((tmp_path / "config.json").read_text())
    assert ("n_positions" in config) == (name == "gpt2")
    if limit is not None:
        save_tokenizer(name, tmp_path, model_max_length=limit)
    encoder = load(tmp_path)
    assert encoder.info.window == window
    specials = len(encoder.words.prefix) + len(encoder.words.suffix)
    assert encoder.capacity == window - specials
    if window <= 1024:  # a full window can be read, and so can a text beyond it
        long = Text(("light",) * (window + 3), (0, window + 3))
        assert all(layer.isfinite().all() for layer in vectors(encoder, [long]))


def test_truncation_and_padding_in_the_file_are_overridden(tmp_path):
    save("bert", tmp_path, max_position_embeddings=300)
    plain = load(tmp_path)
    path = str(tmp_path / "tokenizer.json")
    backend = Tokenizer.from_file(path)
    backend.enable_truncation(128)
    backend.enable_padding(length=128)
    backend.save(path)
    ridden = load(tmp_path)
    assert ridden.info.window == plain.info.window == 300
    assert (ridden.words.prefix, ridden.words.suffix) == (plain.words.prefix, plain.words.suffix)
    long = [Text(("light",) * 200, (0, 200)), *TEXTS]
    assert [p.ids.tolist() for p in ridden.split(long)] == [
        p.ids.tolist() for p in plain.split(long)
    ]
    assert_same(vectors(ridden, long), vectors(plain, long))


# -- what does not fit --------------------------------------------------------------------


@pytest.mark.parametrize("pad", [-1, None])
def test_without_a_padding_token_any_filler_does(tmp_path, pad):
    save("llama-3", tmp_path, pad_token_id=pad)
    encoder = load(tmp_path)
    pieces = encoder.split(TEXTS)
    (batch,) = plan_batches(pieces, 512, capacity=encoder.capacity, specials=encoder.specials)
    assert batch == [0, 1, 2]
    assert_same(vectors_by_layer(encoder, TEXTS), vectors(encoder))


# -- loading ------------------------------------------------------------------------------


def test_a_model_that_gives_tuples_gives_the_same_vectors(tmp_path):
    save("bert", tmp_path)
    expected = vectors(load(tmp_path))
    configure(tmp_path, return_dict=False)
    assert_same(vectors(load(tmp_path)), expected)


def test_a_pooler_or_a_decoder_may_be_missing(tmp_path):
    head, tokenizer = build("bert", "BertForMaskedLM")
    head.save_pretrained(tmp_path / "bert")
    save_tokenizer("bert", tmp_path / "bert")
    expected = vectors(Encoder(head, tokenizer, name="in memory", device="cpu"))
    assert_same(vectors(load(tmp_path / "bert")), expected)

    save("t5", tmp_path / "t5")
    whole = vectors(load(tmp_path / "t5"))
    encoder = transformers.T5EncoderModel.from_pretrained(tmp_path / "t5")
    encoder.save_pretrained(tmp_path / "t5")
    assert_same(vectors(load(tmp_path / "t5")), whole)


def test_a_model_in_memory_keeps_its_pooler_and_configuration():
    model, tokenizer = build("bert", "BertModel")

    def read():
        return Encoder(model, tokenizer, name="mine", device="cpu")

    config = model.config.to_json_string()
    encoder = read()
    vectors(encoder)
    assert model.pooler is not None
    assert model.config.to_json_string() == config
    assert read().info.digest == encoder.info.digest
    with torch.no_grad():
        model.encoder.layer[0].output.dense.weight[0, 0] += 1
    assert read().info.digest != encoder.info.digest


CAUSAL: dict[str, tuple[str, dict[str, Any]]] = {
    "bloom": ("BloomConfig", {}),
    "mpt": ("MptConfig", {"d_model": 16, "n_layers": 2, "n_heads": 2, "max_seq_len": 32}),
    "openai-gpt": ("OpenAIGPTConfig", {}),
    "codegen": ("CodeGenConfig", {"rotary_dim": 4, "num_attention_heads": 4}),
    "xglm": ("XGLMConfig", {"d_model": 16, "num_layers": 2, "attention_heads": 2, "ffn_dim": 32}),
    "mamba": ("MambaConfig", {"state_size": 4, "time_step_rank": 2}),
    "rwkv": ("RwkvConfig", {"attention_hidden_size": 16, "context_length": 32}),
}


@pytest.mark.parametrize("name", CAUSAL)
def test_a_causal_model_is_recognised_without_its_declaration(name):
    kind, settings = CAUSAL[name]
    family = tiny_models.Family(kind, FAMILIES["bert"].tokenizer, "", settings=settings)
    torch.manual_seed(7)
    model = AutoModel.from_config(tiny_models.build_config(family, family.tokenizer()))
    encoder = Encoder(model.eval(), fast_tokenizer("bert"), name=name, device="cpu")
    assert not declared_causal(encoder.model)
    assert encoder.info.causal
    assert encoder.words.mask_id is None


@pytest.mark.parametrize("random", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
def test_exactly_the_decoders_are_causal(name, random, tmp_path):
    save(name, tmp_path)
    causal = name.startswith(("gpt", "llama", "opt", "qwen", "gemma"))
    assert load(tmp_path, random, device="cpu").info.causal is causal
    assert find_model(str(tmp_path)).maybe_causal is causal


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("random", [False, True])
def test_a_model_with_small_weights_is_not_mistaken_for_a_causal_one(random, dtype, tiny_bert):
    encoder = load(tiny_bert, random, dtype=dtype)
    assert not encoder.info.causal
    assert encoder.words.mask_id is not None


def test_layer_l_is_after_the_final_norm_even_if_hidden_states_lack_it(tmp_path):
    save("llama-3", tmp_path)
    expected = vectors(load(tmp_path))
    save("llama-3", tmp_path, tie_last_hidden_states=False)
    encoder = load(tmp_path)
    with torch.no_grad():
        output = encoder.model(**INPUTS, output_hidden_states=True)
    assert not torch.allclose(output.hidden_states[-1], output.last_hidden_state)
    assert_same(vectors(encoder), expected)


@pytest.mark.parametrize("name", ["bert", "roberta", "mpnet", "gpt2", "t5", "llama-3", "gemma3"])
def test_a_random_twin_is_fresh_and_the_same_each_time(name, tmp_path):
    save(name, tmp_path)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    twin = vectors(load(tmp_path, random=True))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    again = vectors(load(tmp_path, random=True))
    trained = vectors(load(tmp_path))
    for layer, (a, b, c) in enumerate(zip(twin, again, trained, strict=True)):
        assert torch.equal(a, b)
        assert ((a - c).norm(dim=1) > 0.1 * c.norm(dim=1)).all(), layer


# -- devices ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bert", "t5", "llama-3", "gpt2"])
@pytest.mark.parametrize("random", [False, True])
def test_a_map_gives_the_same_vectors(name, random, tmp_path):
    pytest.importorskip("accelerate")
    save(name, tmp_path)
    spread = load(tmp_path, device="map", random=random)
    expected = vectors(load(tmp_path, device="cpu", random=random))
    for found, wanted in zip(vectors(spread), expected, strict=True):
        torch.testing.assert_close(found.cpu(), wanted, rtol=1e-4, atol=1e-5)
