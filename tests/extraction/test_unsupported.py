"""Configurations and weights that do not fit the installed class, or each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tiny_models import FAMILIES, build, save, save_tokenizer
from tiny_runs import run

from probes.common.errors import UserError
from probes.compute.devices import pick_device
from probes.extraction.models.loading import load_encoder
from probes.extraction.models.model_files import find_model
from probes.extraction.models.unsupported import require_scaled
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.views import Text
from probes.run.announcements import announce_model

PER_LAYER = 16
"""Weights of a layer of BERT."""


def load(folder: Path, **options: Any) -> Encoder:
    return load_encoder(find_model(str(folder)), device="cpu", **options)


def change(folder: Path, **settings: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **settings}))


def add(folder: Path, *names: str) -> None:
    weights = load_file(folder / "model.safetensors")
    weights |= {name: torch.randn(3, 4) for name in names}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


# -- fields that the class does not implement ---------------------------------------------


@pytest.mark.parametrize(
    ("family", "field", "value"),
    [
        ("bert", "position_embedding_type", "relative_key"),
        ("bert", "position_embedding_type", "rotary"),
        ("bert", "alibi_starting_size", 512),
        ("bert", "rope_theta", 10000.0),
        ("bert", "rope_scaling", {"rope_type": "linear", "factor": 2.0}),
        ("electra", "relative_attention", True),
        ("llama-3", "alibi", True),
    ],
)
@pytest.mark.parametrize("random", [False, True])
def test_positions_that_the_class_does_not_implement_are_refused(
    family: str, field: str, value: object, random: bool, tmp_path: Path
) -> None:
    save(family, tmp_path)
    change(tmp_path, **{field: value})
    with pytest.raises(UserError, match=f"config.json sets {field} to .*does not implement"):
        load_encoder(find_model(("random:" if random else "") + str(tmp_path)), device="cpu")


@pytest.mark.parametrize(
    ("family", "field", "value"),
    [
        ("bert", "position_embedding_type", "absolute"),
        ("bert", "position_embedding_type", None),
        ("bert", "rope_theta", None),
        ("bert", "alibi", False),
        ("llama-3", "rope_theta", 10000.0),
        ("deberta-v2", "relative_attention", True),
    ],
)
def test_positions_that_it_implements_are_not(
    family: str, field: str, value: object, tmp_path: Path
) -> None:
    save(family, tmp_path)
    change(tmp_path, **{field: value})
    load(tmp_path)


# -- weights that are not used ------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["", "bert."])
@pytest.mark.parametrize(
    "name",
    [
        "encoder.layer.0.attention.self.query.lora_A.default.weight",
        "encoder.layer.2.output.dense.weight",
        "embeddings.extra_projection.weight",
        "prefix_encoder.embedding.weight",
    ],
)
def test_weights_of_the_encoder_that_are_not_used_are_counted(
    prefix: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save("bert", tmp_path)
    add(tmp_path, prefix + name, "classifier.weight")
    encoder = load(tmp_path)
    said = capsys.readouterr().err
    assert "its files hold 1 weight of the encoder, or of prompts before it, that Bert" in said
    assert f"does not use (first: {prefix + name})" in said
    assert encoder.notes == {"weights not used": f"1 (first: {prefix + name})"}


def test_layers_that_the_configuration_does_not_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save("bert", tmp_path)
    change(tmp_path, num_hidden_layers=1)
    first = "encoder.layer.1.attention.output.LayerNorm.bias"
    assert load(tmp_path).notes == {"weights not used": f"{PER_LAYER} (first: {first})"}
    assert f"its files hold {PER_LAYER} weights of the encoder" in capsys.readouterr().err


@pytest.mark.parametrize("lm_head", [False, True])
def test_heads_and_what_is_no_weight_are_not_meant(
    lm_head: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    family = FAMILIES["bert"]
    save("bert", tmp_path)
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    transformers.BertForPreTraining(config).save_pretrained(tmp_path)
    save_tokenizer("bert", tmp_path)
    assert family.config == "BertConfig"
    add(
        tmp_path,
        "classifier.layers.0.weight",
        "lm_head.weight",
        "qa_outputs.weight",
        "bert.embeddings.position_ids",
        "bert.encoder.layer.0.attention.self.rotary_emb.inv_freq",
        "bert.encoder.layer.0.attention.masked_bias",
    )
    assert load(tmp_path, lm_head=lm_head).notes == {}
    assert "not used" not in capsys.readouterr().err


def test_weights_of_a_decoder_are_not_meant(tmp_path: Path) -> None:
    save("t5", tmp_path)
    add(tmp_path, "decoder.block.0.layer.0.extra.weight")
    assert load(tmp_path).notes == {}
    add(tmp_path, "encoder.block.0.layer.0.extra.weight")
    assert load(tmp_path).notes == {
        "weights not used": "1 (first: encoder.block.0.layer.0.extra.weight)"
    }


# -- sizes --------------------------------------------------------------------------------


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
@pytest.mark.parametrize("planned", [False, True])
def test_a_configuration_that_asks_for_far_more_than_the_files_hold(
    family: str, settings: dict[str, int], planned: bool, tmp_path: Path
) -> None:
    save(family, tmp_path)
    stored = load_file(tmp_path / "model.safetensors").values()
    n, numbers = len(stored), sum(weight.numel() for weight in stored)
    change(tmp_path, **settings)
    with pytest.raises(UserError, match=f"where its files hold {n:,} with {numbers:,}; correct"):
        load(tmp_path, planned=planned)


# -- models that do not read subwords -----------------------------------------------------

_TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}
OTHERS: dict[str, dict[str, Any]] = {
    "Canine": {**_TINY, "num_hash_buckets": 64},
    "ViT": {**_TINY, "image_size": 16, "patch_size": 8},
}


@pytest.mark.parametrize("kind", OTHERS)
def test_a_model_without_a_table_of_input_embeddings_is_refused(kind: str, tmp_path: Path) -> None:
    config = getattr(transformers, f"{kind}Config")(**OTHERS[kind])
    transformers.AutoModel.from_config(config).save_pretrained(tmp_path)
    save_tokenizer("bert", tmp_path)
    with pytest.raises(UserError, match=rf"{kind}\w* has no table of input embeddings"):
        load(tmp_path)


# -- plans --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("weights", [False, True])
def test_a_plan_describes_the_model_that_is_loaded(
    name: str, weights: bool, tmp_path: Path
) -> None:
    save(name, tmp_path)
    loaded = load(tmp_path)
    if not weights:
        (tmp_path / "model.safetensors").unlink()
    source = find_model(str(tmp_path), planned=True)
    planned = load_encoder(source, device="cpu", planned=True)
    assert source.weightless != weights
    same = {"digest": source.digest, "revision": source.revision}
    assert planned.info == loaded.info.model_copy(update={} if weights else same)
    assert planned.device == loaded.device == torch.device(pick_device("cpu"))
    assert planned.words.mask_id == loaded.words.mask_id
    assert planned.model.dtype == loaded.model.dtype
    assert all(weight.is_meta for weight in planned.model.parameters())


def test_a_plan_needs_no_memory_for_weights(tmp_path: Path) -> None:
    """A model of 6.7 billion parameters (27 GB): its configuration and tokenizer alone."""
    sizes = {
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "head_dim": 128,
        "intermediate_size": 11008,
        "vocab_size": 32000,
    }
    save("llama-3", tmp_path)
    (tmp_path / "model.safetensors").unlink()
    change(tmp_path, **sizes)
    info = load_encoder(find_model(str(tmp_path), planned=True), device="cpu", planned=True).info
    each = 4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096
    assert info.parameters == 32000 * 4096 + 32 * each + 4096
    assert (info.n_layers, info.hidden_size, info.causal) == (32, 4096, True)


@pytest.mark.parametrize(
    "suffix",
    [
        "_scale_inv",
        "_scale",
        ".scale",
        "_scaler",
        "/scale_weight",
        "/qscale_weight",
        ".other",
        "configured",
    ],
)
def test_weights_of_8_bits_are_not_read_without_their_scales(suffix: str, tmp_path: Path) -> None:
    save("llama-3", tmp_path)
    path, key = tmp_path / "model.safetensors", "layers.0.mlp.up_proj.weight"
    weights = load_file(path) | {
        (key + suffix.replace("configured", "_scale")).replace("weight/", ""): torch.ones(1, 1)
    }
    save_file(weights | {key: weights[key].to(torch.float8_e4m3fn)}, path, {"format": "pt"})
    if suffix == "configured":
        change(tmp_path, quantization_config={"quant_method": "fp8"})
    if "scale" not in suffix:
        require_scaled(find_model(str(tmp_path)))
    else:
        with pytest.raises(UserError, match=f"1 weights .* 8 bits and a scale .first: {key}"):
            load_encoder(find_model(str(tmp_path)), device="cpu")


@pytest.mark.parametrize("switch", ["adapters", "tokens", "none"])
def test_the_language_that_all_texts_are_read_in_is_said(
    switch: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model, tokenizer = build("roberta", "RobertaModel")
    if switch == "adapters":
        config = {**model.config.to_dict(), "languages": ["de_DE", "en_XX"]}
        model = transformers.XmodModel(transformers.XmodConfig(**config, default_language="de_DE"))
    elif switch == "tokens":
        tokenizer.src_lang = "de_DE"
    encoder = Encoder(model, tokenizer, name="m", device="cpu")
    said = "--model m: it reads text in one language at a time, here de_DE"
    assert (said in capsys.readouterr().err) == (switch != "none")
    assert encoder.notes == ({"language of all texts": "de_DE"} if switch != "none" else {})


def xmod(folder: Path, default: str | None = "en_XX") -> Any:
    """An X-MOD with adapters of two languages, which are random and not alike."""
    model, _ = build("roberta", "RobertaModel")
    given = {**model.config.to_dict(), "languages": ["de_DE", "en_XX"], "model_type": "xmod"}
    torch.manual_seed(0)
    model = transformers.XmodModel(transformers.XmodConfig(**given, default_language=default))
    save_tokenizer("roberta", folder)
    model.save_pretrained(folder)
    return model.eval()


def test_texts_are_read_in_the_language_that_is_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = xmod(tmp_path)
    source = find_model(str(tmp_path))
    assert source.languages == ("en_XX", "de_DE")
    english, german = source.in_language("en"), source.in_language("de_DE")
    assert english is not None
    assert german is not None
    assert (source.in_language("fr"), english.digest) == (None, source.digest)
    assert german.digest != source.digest
    text = Text(("the", "old", "keeper"), (0, 3))
    for number, its in enumerate((german, english)):
        encoder = load_encoder(its, device="cpu")
        assert encoder.notes == {"language of all texts": its.language}
        (pieces,) = encoder.split([text])
        ids = torch.tensor([[*encoder.words.prefix, *pieces.ids, *encoder.words.suffix]])
        with torch.no_grad():
            wanted = model(ids, lang_ids=torch.tensor([number])).last_hidden_state
        found = encoder.states({"input_ids": ids, "attention_mask": torch.ones_like(ids)})[-1]
        torch.testing.assert_close(found, wanted)
    assert "one language at a time" not in capsys.readouterr().err


@pytest.mark.parametrize("prefix", ["", "random:"])
def test_the_adapter_is_said_where_the_model_has_no_default(
    prefix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its code refuses a text without a language."""
    model = xmod(tmp_path, default=None)
    source = find_model(prefix + str(tmp_path))
    assert source.languages == ("de_DE", "en_XX")
    german = source.in_language("de")
    assert german is not None
    encoder = load_encoder(german, device="cpu")
    announce_model(encoder, german, 0.0)
    assert " · reads de_DE · " in capsys.readouterr().err
    assert encoder.notes == {"language of all texts": "de_DE"}
    if not prefix:
        ids = torch.arange(5, 12)[None]
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        with torch.no_grad():
            wanted = model(**inputs, lang_ids=torch.tensor([0])).last_hidden_state
        torch.testing.assert_close(encoder.states(inputs)[-1], wanted)
    with pytest.raises(UserError, match=r"set default_language in config\.json, as to de_DE"):
        load_encoder(source, device="cpu")


def test_the_token_of_a_language_is_that_of_the_tokenizer(tmp_path: Path) -> None:
    pieces = [(x, 0.0) for x in ("<s>", "<pad>", "</s>", "<unk>", "▁a", "▁b", "▁")]
    tokenizer = transformers.MBart50Tokenizer(vocab=pieces, src_lang="en_XX")
    tokenizer.save_pretrained(tmp_path)
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "max_position_embeddings": 32}
    config = transformers.MBartConfig(vocab_size=len(tokenizer), **sizes)
    transformers.MBartModel(config).save_pretrained(tmp_path)
    source = find_model(str(tmp_path)).in_language("de")
    assert source is not None
    encoder = load_encoder(source, device="cpu")
    (found,) = encoder.split([Text(("a", "b"), (0, 2))])
    tokenizer.src_lang = "de_DE"
    ours = [*encoder.words.prefix, *found.ids, *encoder.words.suffix]
    assert ours == tokenizer("a b").input_ids
    assert encoder.notes == {"language of all texts": "de_DE"}


@pytest.mark.slow
def test_the_language_is_that_of_the_treebank_if_the_model_has_it(tmp_path: Path) -> None:
    xmod(tmp_path / "model")
    rows = "1\tx\tx\tNOUN\t_\t_\t0\troot\t_\t_\n2\ty\ty\tVERB\t_\t_\t1\tdep\t_\t_\n"
    lines = "".join(f"# sent_id = {i}\n{rows}\n" for i in range(9))
    for code in ("de", "fr"):
        for split in ("train", "dev", "test"):
            path = tmp_path / code / f"{code}_x-ud-{split}.conllu"
            path.parent.mkdir(exist_ok=True)
            path.write_text(lines.replace("x", split), encoding="utf-8")
    read_in = {}
    for code in ("de", "fr"):
        settings = {"corpus": str(tmp_path / code), "tasks": "pos", "probes": "linear"}
        (result,) = run(tmp_path / "model", tmp_path, limit=None, quiet=True, **settings)
        read_in[code] = result.provenance["language of all texts"], result.model.digest
    assert [x for x, _ in read_in.values()] == ["de_DE", "en_XX"]
    assert read_in["de"][1] != read_in["fr"][1]
