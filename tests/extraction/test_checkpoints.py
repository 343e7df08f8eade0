"""Checkpoints in GGUF and quantised ones."""

import json

import pytest
import tiny_models
import torch
from safetensors.torch import load_file

from probes import run_probes
from probes.common.errors import UserError
from probes.extraction.loading import load_encoder
from probes.extraction.model_files import find_model
from probes.extraction.stored_dtype import stored_dtype
from probes.extraction.views import Text

gguf = pytest.importorskip("gguf")

NAMES = {
    "embed_tokens": "token_embd",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "post_attention_layernorm": "ffn_norm",
    "input_layernorm": "attn_norm",
    "layers.": "blk.",
}
"""Parts of names in transformers, with what llama.cpp calls them."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny Qwen 2 as transformers saves it."""
    made = tmp_path_factory.mktemp("checkpoint") / "tiny-qwen"
    tiny_models.save("qwen2", made)
    return made


@pytest.fixture(scope="module")
def file(folder):
    """The same numbers, configuration and tokenizer in a GGUF file."""
    path = folder.parent / "tiny-qwen-f32.gguf"
    config = json.loads((folder / "config.json").read_text())
    tokenizer = json.loads((folder / "tokenizer.json").read_text())["model"]
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    vocabulary = sorted(tokenizer["vocab"], key=tokenizer["vocab"].get)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(vocabulary)
    writer.add_token_types([1] * len(vocabulary))
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["merges"]])
    writer.add_eos_token_id(config["eos_token_id"])
    for name, weight in load_file(folder / "model.safetensors").items():
        for ours, theirs in NAMES.items():
            name = name.replace(ours, theirs)
        name = "output_norm.weight" if name == "norm.weight" else name
        writer.add_tensor(name, weight.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_gguf_file_gives_the_vectors_of_the_same_weights(folder, file):
    encoders = [load_encoder(find_model(str(x)), device="cpu") for x in (folder, file)]
    words = ("the", "Keeper's", "boats", "in", "1987")
    assert encoders[1].info.name == "tiny-qwen-f32.gguf"
    pieces = [encoder.split([Text(words, (0, len(words)))])[0].ids.tolist() for encoder in encoders]
    assert pieces[0] == pieces[1]
    ids = torch.arange(20, 36).view(2, 8)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    for ours, theirs in zip(*(encoder.states(inputs) for encoder in encoders), strict=True):
        torch.testing.assert_close(theirs, ours, rtol=1e-6, atol=1e-6)


def test_the_twin_of_a_gguf_file_has_its_architecture_and_says_so(file):
    twin = find_model(f"random:{file}")
    assert twin.is_twin_of(find_model(str(file)))
    encoder = load_encoder(twin, device="cpu")
    assert (encoder.info.n_layers, encoder.info.random_seed) == (2, 0)
    assert encoder.notes["quantised weights"] == "none, unlike those of the pretrained model"


def test_a_folder_with_nothing_but_a_gguf_file_names_it(file, tmp_path):
    (tmp_path / "m.gguf").write_bytes(file.read_bytes())
    with pytest.raises(UserError, match=r"but a GGUF file; give --model .*/m\.gguf$"):
        find_model(str(tmp_path))
    with pytest.raises(UserError, match=r"there is no such folder or \.gguf file"):
        find_model(str(tmp_path / "n.gguf"))


@pytest.fixture
def quantised(folder, tmp_path):
    """A folder whose config.json says how its weights are quantised."""

    def made(**stored):
        for path in folder.iterdir():
            (tmp_path / path.name).write_bytes(path.read_bytes())
        config = json.loads((folder / "config.json").read_text())
        changes = {"quantization_config": stored, "dtype": "bfloat16"}
        (tmp_path / "config.json").write_text(json.dumps(config | changes))
        return str(tmp_path)

    return made


@pytest.mark.parametrize(
    ("stored", "load", "installed", "error"),
    [
        ({"quant_method": "gptq", "bits": 4}, None, [], "quantised by gptq, which needs gptqmodel"),
        ({"quant_method": "awq"}, None, [], "pip install gptqmodel$"),
        ({"load_in_4bit": True}, None, [], "by bitsandbytes, which needs bitsandbytes"),
        ({"quant_method": "fp8"}, "4bit", ["bitsandbytes"], r"is already quantised \(fp8\)"),
        (None, "8bit", [], "--load 8bit: needs bitsandbytes; pip install bitsandbytes"),
    ],
)
def test_what_is_missing_is_named(folder, quantised, monkeypatch, stored, load, installed, error):
    monkeypatch.setattr("probes.extraction.model_folders.installed", installed.__contains__)
    with pytest.raises(UserError, match=error):
        find_model(quantised(**stored) if stored else str(folder), load=load)


def test_quantisation_is_part_of_the_name_and_the_key_but_not_of_the_twin(
    folder, quantised, monkeypatch
):
    monkeypatch.setattr("probes.extraction.model_folders.installed", lambda name: True)
    whole, loaded = (find_model(str(folder), load=load) for load in (None, "4bit"))
    assert (whole.name, loaded.name) == ("tiny-qwen", "tiny-qwen (4bit)")
    assert len({whole.digest, loaded.digest, find_model(str(folder), load="8bit").digest}) == 3
    twin = find_model(f"random:{folder}", load="4bit")
    assert twin == find_model(f"random:{folder}")
    assert twin.is_twin_of(loaded)
    stored = find_model(quantised(quant_method="gptq", bits=4))
    assert stored.name.endswith(" (gptq 4bit)")
    assert stored_dtype(stored) == "bfloat16"
    random = load_encoder(find_model(f"random:{stored.folder}"), device="cpu")
    assert {x.dtype for x in random.model.parameters()} == {torch.float32}


def test_a_model_in_memory_is_not_quantised(folder):
    model, tokenizer = tiny_models.build("qwen2", "Qwen2Model")
    with pytest.raises(UserError, match="load=4bit: the model is in memory; give its folder"):
        run_probes(model, tokenizer, load="4bit")


@pytest.mark.parametrize("load", ["8bit", "4bit"])
def test_weights_are_quantised_while_they_are_loaded(tmp_path, load):
    pytest.importorskip("bitsandbytes")
    folder = tmp_path / "tiny-qwen"
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 32}
    tiny_models.save("qwen2", folder, hidden_size=64, intermediate_size=64, **heads)
    encoders = [load_encoder(find_model(str(folder), load=x), device="cpu") for x in (None, load)]
    ids = torch.arange(20, 36).view(2, 8)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    (_, *whole), (_, *packed) = (list(encoder.states(inputs)) for encoder in encoders)
    for ours, theirs in zip(whole, packed, strict=True):
        distance = float((ours - theirs).norm() / ours.norm())
        assert 0 < distance < 0.7  # of random weights, which 4 bits approximate badly
    assert encoders[0].info.parameters == encoders[1].info.parameters
    assert encoders[1].notes["quantised weights"] == load
