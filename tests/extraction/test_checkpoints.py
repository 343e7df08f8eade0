"""Checkpoints in GGUF and quantised ones."""

import hashlib
import json
import shutil
from pathlib import Path
from random import Random

import pytest
import tiny_models
import torch
import transformers
from model_folders import add_weights, configure
from safetensors.torch import load_file
from torch.testing._internal.two_tensor import TwoTensor
from transformers import AutoModel, BitsAndBytesConfig

from probes import run_probes
from probes.cli.api import models_of
from probes.common.errors import UserError
from probes.common.files import sha256
from probes.extraction.models.loaded_module import digest_of_loaded, quantisation_of_loaded
from probes.extraction.models.loading import load_encoder
from probes.extraction.models.model_files import find_model
from probes.extraction.models.stored_dtype import stored_dtype
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.views import Text
from probes.run.config import RunConfig

gguf = pytest.importorskip("gguf")

IDS = torch.arange(20, 36).view(2, 8)
INPUTS = {"input_ids": IDS, "attention_mask": torch.ones_like(IDS)}
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
def tiny_qwen(tmp_path_factory):
    """A tiny Qwen 2 as transformers saves it."""
    made = tmp_path_factory.mktemp("checkpoint") / "tiny-qwen"
    tiny_models.save("qwen2", made)
    return made


@pytest.fixture(scope="module")
def file(tiny_qwen):
    """The same numbers, configuration and tokenizer in a GGUF file."""
    path = tiny_qwen.parent / "tiny-qwen-f32.gguf"
    config = json.loads((tiny_qwen / "config.json").read_text())
    tokenizer = json.loads((tiny_qwen / "tokenizer.json").read_text())["model"]
    writer = gguf.GGUFWriter(path, "qwen2")
    for add, setting in (
        (writer.add_block_count, "num_hidden_layers"),
        (writer.add_context_length, "max_position_embeddings"),
        (writer.add_embedding_length, "hidden_size"),
        (writer.add_feed_forward_length, "intermediate_size"),
        (writer.add_head_count, "num_attention_heads"),
        (writer.add_head_count_kv, "num_key_value_heads"),
        (writer.add_layer_norm_rms_eps, "rms_norm_eps"),
        (writer.add_eos_token_id, "eos_token_id"),
    ):
        add(config[setting])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    vocabulary = sorted(tokenizer["vocab"], key=tokenizer["vocab"].get)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(vocabulary)
    writer.add_token_types([1] * len(vocabulary))
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["merges"]])
    for name, weight in load_file(tiny_qwen / "model.safetensors").items():
        for ours, theirs in NAMES.items():
            name = name.replace(ours, theirs)
        name = "output_norm.weight" if name == "norm.weight" else name
        writer.add_tensor(name, weight.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_gguf_file_gives_the_vectors_of_the_same_weights(tiny_qwen, file):
    encoders = [load_encoder(find_model(str(x)), device="cpu") for x in (tiny_qwen, file)]
    words = ("the", "Keeper's", "boats", "in", "1987")
    assert encoders[1].info.name == "tiny-qwen-f32.gguf"
    pieces = [encoder.split([Text(words, (0, len(words)))])[0].ids.tolist() for encoder in encoders]
    assert pieces[0] == pieces[1]
    for ours, theirs in zip(*(encoder.states(INPUTS) for encoder in encoders), strict=True):
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
    with pytest.raises(UserError, match="there is no such file"):
        find_model(str(tmp_path / "n.gguf"))


@pytest.fixture
def quantised(tiny_qwen, tmp_path):
    """A folder whose config.json says how its weights are quantised."""

    def made(**stored):
        shutil.copytree(tiny_qwen, tmp_path, dirs_exist_ok=True)
        configure(tmp_path, quantization_config=stored, dtype="bfloat16")
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
def test_what_is_missing_is_named(
    tiny_qwen, quantised, monkeypatch, stored, load, installed, error
):
    monkeypatch.setattr(
        "probes.extraction.models.model_folders.is_installed", installed.__contains__
    )
    with pytest.raises(UserError, match=error):
        find_model(quantised(**stored) if stored else str(tiny_qwen), load=load)


def test_quantisation_is_part_of_the_name_and_the_key_but_not_of_the_twin(
    tiny_qwen, quantised, monkeypatch
):
    monkeypatch.setattr("probes.extraction.models.model_folders.is_installed", lambda name: True)
    whole, loaded = (find_model(str(tiny_qwen), load=load) for load in (None, "4bit"))
    assert (whole.name, loaded.name) == ("tiny-qwen", "tiny-qwen (4bit)")
    assert len({whole.digest, loaded.digest, find_model(str(tiny_qwen), load="8bit").digest}) == 3
    twin = find_model(f"random:{tiny_qwen}", load="4bit")
    assert twin == find_model(f"random:{tiny_qwen}")
    assert twin.is_twin_of(loaded)
    stored = find_model(quantised(quant_method="gptq", bits=4))
    assert stored.name.endswith(" (gptq 4bit)")
    assert stored_dtype(stored) == "bfloat16"
    random = load_encoder(find_model(f"random:{stored.folder}"), device="cpu")
    assert {x.dtype for x in random.model.parameters()} == {torch.float32}


def assert_read_as_by_transformers(folder):
    """The states of every layer are those of plain transformers."""
    plain = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        output = plain(**INPUTS, output_hidden_states=True)
    encoder = load_encoder(find_model(str(folder)), device="cpu")
    for ours, theirs in zip(encoder.states(INPUTS), output.hidden_states, strict=True):
        torch.testing.assert_close(ours, theirs)
    return encoder


FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"}


@pytest.fixture
def fp8(quantised):
    """The linear maps of the blocks in float8, with a scale each, as DeepSeek stores them."""
    folder = Path(quantised(**FP8))
    for key, weight in load_file(folder / "model.safetensors").items():
        if "_proj.weight" in key:
            scale = weight.abs().max() / 448
            stored = {key: (weight / scale).to(torch.float8_e4m3fn)}
            add_weights(folder, stored | {f"{key}_scale_inv": scale.view(1, 1)})
    return folder


def test_a_checkpoint_in_float8_is_read_with_its_scales(tiny_qwen, fp8):
    encoder = assert_read_as_by_transformers(fp8)
    whole = load_file(tiny_qwen / "model.safetensors")["layers.1.mlp.down_proj.weight"]
    read = encoder.model.layers[1].mlp.down_proj.weight
    assert (read - whole).norm() < 0.05 * whole.norm()  # three bits of mantissa
    assert encoder.notes == {"quantised weights": "fp8"}


def test_a_plan_and_a_twin_of_quantised_weights_need_no_quantiser(fp8):
    planned = load_encoder(find_model(str(fp8), planned=True), device="cpu", planned=True)
    assert planned.info.n_layers == 2
    twin = load_encoder(find_model(f"random:{fp8}"), device="cpu")
    assert not hasattr(twin.model.config, "quantization_config")


def test_quantised_weights_that_were_read_without_scales_have_another_key(tiny_qwen, quantised):
    """Earlier versions stored wrong vectors under the digest of the files."""
    for folder, same in ((tiny_qwen, True), (quantised(**FP8), False)):
        source = find_model(str(folder))
        files = json.dumps({x.name: sha256(x) for x in source.files}, sort_keys=True)
        assert (source.digest == hashlib.sha256(files.encode()).hexdigest()) is same


def test_a_quantiser_that_is_not_there_after_loading_is_refused(fp8, monkeypatch):
    load = transformers.modeling_utils.get_hf_quantizer

    def none(config, *given, **options):
        del config.quantization_config
        _, *rest = load(config, *given, **options)
        config.quantization_config = None
        return None, *rest

    monkeypatch.setattr("transformers.modeling_utils.get_hf_quantizer", none)
    with pytest.raises(UserError, match=r"quantised \(fp8\) .* it does not use .*_scale_inv"):
        load_encoder(find_model(str(fp8)), device="cpu")


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("lm_head", [False, True])
def test_checkpoints_of_bitsandbytes_are_read_as_transformers_reads_them(tmp_path, bits, lm_head):
    pytest.importorskip("bitsandbytes")
    whole, made = tmp_path / "whole", tmp_path / "made"
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 32}
    tiny_models.save("qwen2", whole, hidden_size=64, intermediate_size=64, **heads)
    transformers.AutoModelForCausalLM.from_pretrained(
        whole,
        quantization_config=BitsAndBytesConfig(**{f"load_in_{bits}bit": True}),
        dtype=torch.float32,
    ).save_pretrained(made)
    tiny_models.save_tokenizer("qwen2", made)
    encoder = assert_read_as_by_transformers(made)
    assert encoder.notes == {"quantised weights": f"bitsandbytes {bits}bit"}
    if lm_head:
        assert load_encoder(find_model(str(made)), device="cpu", lm_head=True).has_head


@pytest.mark.parametrize("seed", range(6))
def test_a_damaged_gguf_file_is_one_line(file, tmp_path, seed):
    """Cut off, or with other bytes in the table of its metadata."""
    random, whole = Random(seed), bytearray(file.read_bytes())
    if seed % 2:
        whole = whole[: random.randrange(len(whole))]
    else:
        whole[8 : random.randrange(16, 400)] = random.randbytes(random.randrange(8, 400))
    path = tmp_path / "damaged.gguf"
    path.write_bytes(whole)
    with pytest.raises(UserError, match="the file is cut off or damaged, copy it again") as error:
        load_encoder(find_model(str(path)), device="cpu")
    assert "\n" not in str(error.value)


def test_a_model_in_memory_is_not_quantised(tiny_qwen):
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
    (_, *whole), (_, *packed) = (list(encoder.states(INPUTS)) for encoder in encoders)
    for ours, theirs in zip(whole, packed, strict=True):
        distance = float((ours - theirs).norm() / ours.norm())
        assert 0 < distance < 0.7  # of random weights, which 4 bits approximate badly
    assert encoders[0].info.parameters == encoders[1].info.parameters
    assert encoders[1].notes["quantised weights"] == load


QUANTISED = {
    "bitsandbytes": lambda: BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4"),
    "torchao": lambda: transformers.TorchAoConfig(
        pytest.importorskip("torchao.quantization").Int8WeightOnlyConfig()
    ),
    "quanto": lambda: transformers.QuantoConfig(weights="int8"),
}


@pytest.mark.parametrize(("package", "method"), [("optimum.quanto", "quanto"),
    ("bitsandbytes", "bitsandbytes"), ("torchao", "torchao")])  # fmt: skip
def test_quantised_models_in_memory_have_keys_of_what_they_store(tmp_path, package, method):
    pytest.importorskip(package)
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 32}
    tiny_models.save("qwen2", tmp_path, hidden_size=64, intermediate_size=64, **heads)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)

    def loaded():
        options = {"quantization_config": QUANTISED[method](), "dtype": torch.float32}
        return AutoModel.from_pretrained(tmp_path, device_map="cpu", **options)

    def encoder_of(model):
        return models_of((model, tokenizer), None, None, RunConfig(device="cpu"))[0].encoder

    model, again = loaded(), loaded()
    again(**INPUTS)
    encoder = encoder_of(model)
    assert encoder.info.digest == encoder_of(again).info.digest
    assert encoder.notes == {"quantised weights": method}
    with torch.no_grad():
        expected = again(**INPUTS).last_hidden_state
    torch.testing.assert_close(encoder.states(INPUTS)[-1], expected)
    whole = AutoModel.from_pretrained(tmp_path)
    assert encoder.info.digest != encoder_of(whole).info.digest
    # One number less in packed weights.
    packed = again.layers[1].mlp.down_proj.weight
    names = ("qdata", "_data")  # torchao's, quanto's
    part = next((getattr(packed, name) for name in names if hasattr(packed, name)), packed.data)
    part.view(-1)[5] ^= 1
    assert encoder_of(again).info.digest != encoder.info.digest


class PackedLinear(torch.nn.Module):
    """A linear map whose weights are stored in 8 bits, with a scale for each row."""

    def __init__(self, whole):
        super().__init__()
        scale = whole.weight.detach().abs().amax(1, keepdim=True) / 127
        self.register_buffer("packed", (whole.weight.detach() / scale).round().to(torch.int8))
        self.register_buffer("scale", scale)

    def forward(self, x):
        return x @ (self.packed * self.scale).T


def test_a_changed_byte_of_packed_weights_or_scales_is_another_model():
    def encoder(change=lambda layer: None):
        model, tokenizer = tiny_models.build("qwen2", "Qwen2Model")
        mlp = model.layers[1].mlp
        mlp.down_proj = PackedLinear(mlp.down_proj)
        change(mlp.down_proj)
        return Encoder(model, tokenizer, name="packed", device="cpu")

    def changed(name):
        def change(layer):
            getattr(layer, name).view(-1).view(torch.uint8)[7] ^= 1

        return change

    digests = [
        encoder().info.digest,
        *(encoder(changed(x)).info.digest for x in ("packed", "scale")),
    ]
    assert len({*digests}) == 3
    assert encoder().info.digest == digests[0]


def test_tensors_within_a_weight_are_digested_with_its_shape():
    model, tokenizer = tiny_models.build("qwen2", "Qwen2Model")
    digests = {digest_of_loaded(model, tokenizer)}
    weight, scale = torch.zeros(4, 2), torch.ones(4, 2)
    changed = weight.clone()
    changed[3, 1] = 1
    stored = [(weight, scale), (changed, scale), (weight, 2 * scale), (weight.T, scale.T)]
    for part, other in stored:
        model.layers[1].mlp.down_proj.weight = torch.nn.Parameter(
            TwoTensor(part.contiguous(), other.contiguous()), requires_grad=False
        )
        assert quantisation_of_loaded(model) == "TwoTensor"
        digests.add(digest_of_loaded(model, tokenizer))
        assert digest_of_loaded(model, tokenizer) in digests
    assert len(digests) == 5
