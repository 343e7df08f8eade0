"""Models that are refused, in one line: family × what was changed in the folder × message."""

import shutil
from functools import partial

import pytest
import torch
import transformers
from model_folders import add_weights, configure, write_index
from safetensors.torch import load_file
from tiny_models import fast_tokenizer, save, save_tokenizer

from probes.common.errors import UserError
from probes.extraction.models.loading import load_encoder
from probes.extraction.models.model_files import find_model
from probes.extraction.reading.encoder import Encoder


def load(name, planned=False, **options):
    source = find_model(str(name), planned=planned)
    return load_encoder(source, device="cpu", planned=planned, **options)


def assert_refused(message, name, **options):
    with pytest.raises(UserError, match=message) as refused:
        load(name, **options)
    assert "\n" not in str(refused.value)


# -- changes to a folder ------------------------------------------------------------------


def sets(**settings):
    return partial(configure, **settings)


def adds(*names):
    return partial(add_weights, weights={name: torch.ones(3, 4) for name in names})


def removes(name):
    return partial(add_weights, weights={name: None})


def renames_weights(name):
    return lambda folder: (folder / "model.safetensors").rename(folder / name)


def writes(name, content):
    return lambda folder: (folder / name).write_text(content)


def leaves_only(name, content=""):
    def change(folder):
        shutil.rmtree(folder)
        folder.mkdir()
        (folder / name).write_text(content)

    return change


def cuts(name):
    def change(folder):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])

    return change


def without_tokenizer(folder):
    for name in ("tokenizer.json", "vocab.txt"):
        (folder / name).unlink(missing_ok=True)


def move_inside(folder):
    """As sentence-transformers 1 had it, beside a pooling layer; checkpoints are in folders, too."""
    folder.rename(folder.parent / "0_Transformer")
    (folder / "0_Pooling").mkdir(parents=True)
    (folder.parent / "0_Transformer").rename(folder / "0_Transformer")
    (folder / "0_Pooling" / "config.json").write_text("{}")


def indexes(*names):
    return lambda folder: write_index(folder, names)


UP = "layers.0.mlp.up_proj."


def eight_bits(scale):
    """One map in 8 bits, and a weight of this name beside it."""

    def change(folder):
        weight = load_file(folder / "model.safetensors")[UP + "weight"]
        weights = {UP + "weight": weight.to(torch.float8_e4m3fn), UP + scale: torch.ones(1, 1)}
        add_weights(folder, weights)

    return change


OF_BERT = '{"base_model_name_or_path": "bert-base-uncased"}'
REFUSED = [
    # What is no whole model.
    ("bert", renames_weights("pytorch_model.bin"), "only pickled weights"),
    ("bert", renames_weights("tf_model.h5"), r"only in another format \(tf_model\.h5\)"),
    ("bert", renames_weights("model.onnx"), r"only in another format \(model\.onnx\)"),
    ("bert", leaves_only("model.onnx"), r"only in another format \(model\.onnx\)"),
    ("bert", without_tokenizer, "holds no tokenizer"),
    ("bert", sets(transformers_weights="other.safetensors"), r"config\.json names 'other.safetensors' as its weights"),
    ("bert", indexes("part.safetensors", "../model/part.safetensors"), r"lists '\.\./model/part\.safetensors', which is not a safetensors file in"),
    ("bert", indexes("part.safetensors", "weights.bin"), "lists 'weights.bin', which is not a safetensors file in"),
    ("bert", indexes("part.safetensors", "gone.safetensors"), "gone.safetensors is missing, but model.safetensors.index.json lists it"),
    ("bert", move_inside, r"holds no config\.json, .* give --model .*/0_Transformer$"),
    ("bert", writes("adapter_config.json", OF_BERT), "holds an adapter of bert-base-uncased, which is only part"),
    ("bert", writes("adapter_config.json", '{"model_name": "roberta-base"}'), "holds an adapter of roberta-base, which is only part"),
    ("bert", writes("adapter_config.json", "{}"), "holds an adapter, which is only part"),
    ("bert", writes("adapter_config.json", "["), "holds an adapter, which is only part"),
    ("bert", leaves_only("adapter_config.json", OF_BERT), "holds an adapter of bert-base-uncased, which is only part"),
    # Damaged files.
    *((name, cuts(file), "transformers cannot load it") for name in ("bert", "llama-3", "t5") for file in ("config.json", "tokenizer.json", "model.safetensors")),
    # Files that do not fit each other, or the class.
    ("bert", removes("encoder.layer.1.output.dense.weight"), r"1 weights .* encoder.layer.1.output.dense.weight"),
    ("bert", lambda folder: save("bert", folder, vocab_size=100), r"has only 100 embeddings\. Use the model's own tokenizer"),
    ("bert", lambda folder: save_tokenizer("bert", folder, model_max_length=2), "window of 2 tokens leaves no room for text"),
    ("bert", sets(hidden_size="abc"), "transformers cannot load it: .*hidden_size"),
    ("bert", sets(hidden_size=32), r"have another shape .* \[32\]"),
    ("bert", sets(num_attention_heads=0), "ZeroDivisionError"),
    ("bert", sets(num_attention_heads=-2), "cannot be run"),
    ("bert", sets(vocab_size=-1), "transformers cannot load it"),
    ("bert", sets(pad_token_id=99999), "transformers cannot load it"),
    ("bert", sets(chunk_size_feed_forward=3), "cannot be run"),
    ("bert", sets(num_hidden_layers=0), "config.json gives it no layers"),
    # Scales of quantised weights that would not be used.
    *(("llama-3", eight_bits(name), f"1 weights .* 8 bits and a scale .first: {UP}weight") for name in ("weight_scale_inv", "weight_scale", "weight.scale", "weight_scaler", "scale_weight", "qscale_weight")),
    *(("qwen2", adds(UP + x), f"it does not use {UP}{x}") for x in ("weight_scale", "scales", "qzeros", "SCB", "qscale_weight", "weight_scaler", "weight.absmax", "weight_zero_point")),
]  # fmt: skip


@pytest.mark.parametrize(("family", "change", "message"), REFUSED)
def test_a_changed_folder_is_refused_in_one_line(family, change, message, tmp_path):
    save(family, tmp_path / "model")
    change(tmp_path / "model")
    assert_refused(message, tmp_path / "model")


POSITIONS = [
    ("bert", "position_embedding_type", "relative_key"),
    ("bert", "position_embedding_type", "rotary"),
    ("bert", "alibi_starting_size", 512),
    ("bert", "rope_theta", 10000.0),
    ("bert", "rope_scaling", {"rope_type": "linear", "factor": 2.0}),
    ("electra", "relative_attention", True),
    ("llama-3", "alibi", True),
]


@pytest.mark.parametrize(("family", "field", "value"), POSITIONS)
def test_positions_that_the_class_does_not_implement_are_refused(family, field, value, tmp_path):
    save(family, tmp_path)
    configure(tmp_path, **{field: value})
    for prefix in ("", "random:"):
        assert_refused(f"config.json sets {field} to .*does not implement", f"{prefix}{tmp_path}")


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("bert", {"num_hidden_layers": 10_000_000}),
        ("bert", {"hidden_size": 200_000}),
        ("bert", {"vocab_size": 10**9}),
        ("bert", {"max_position_embeddings": 10**9}),
        ("t5", {"num_decoder_layers": 10_000_000}),
    ],
)
def test_a_configuration_that_asks_for_far_more_than_the_files_hold(family, settings, tmp_path):
    save(family, tmp_path)
    stored = load_file(tmp_path / "model.safetensors").values()
    n, numbers = len(stored), sum(weight.numel() for weight in stored)
    configure(tmp_path, **settings)
    for planned in (False, True):
        message = f"where its files hold {n:,} with {numbers:,}; correct"
        assert_refused(message, tmp_path, planned=planned)


@pytest.mark.parametrize("part", [None, "text_config"])
def test_a_quantiser_that_transformers_does_not_know_is_refused_by_name(part, tmp_path):
    save("qwen2", tmp_path)
    stored = {"quantization_config": {"quant_method": "modelopt"}}
    configure(tmp_path, dtype="bfloat16", **({part: stored} if part else stored))
    for planned in (False, True):
        message = r"quantised \(modelopt\) in a way that .* not read\. Use"
        assert_refused(message, tmp_path, planned=planned)


def test_a_scale_of_the_head_that_is_not_used_is_refused(tmp_path):
    save("qwen2", tmp_path)
    embeddings = load_file(tmp_path / "model.safetensors")["embed_tokens.weight"]
    weights = {"lm_head.scale_weight": torch.ones(1), "lm_head.weight": embeddings}
    add_weights(tmp_path, weights)
    assert_refused("it does not use lm_head.scale_weight", tmp_path, lm_head=True)


# -- classes ------------------------------------------------------------------------------

_TINY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
CLASSES = {
    "Canine": ({**_TINY, "intermediate_size": 64, "num_hash_buckets": 64}, "has no table of input embeddings"),
    "ViT": ({**_TINY, "intermediate_size": 64, "image_size": 16, "patch_size": 8}, "has no table of input embeddings"),
    # It has no attention mask.
    "FNet": ({"vocab_size": 400, "hidden_size": 16, "num_hidden_layers": 2, "intermediate_size": 32, "max_position_embeddings": 32, "tpu_short_seq_length": 32, "initializer_range": 0.3}, "padding changes its vectors"),
    "FunnelBase": ({"vocab_size": 400, "d_model": 16, "n_head": 2, "d_head": 8, "d_inner": 32, "block_sizes": [1, 1, 1], "num_decoder_layers": 1}, "instead of one vector per token"),
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_that_gives_no_vectors_of_tokens_is_refused(name):
    settings, message = CLASSES[name]
    kind = getattr(transformers, f"{name}Model")
    with pytest.raises(UserError, match=message) as refused:
        Encoder(kind(kind.config_class(**settings)), fast_tokenizer("bert"), name="m", device="cpu")
    assert "\n" not in str(refused.value)
