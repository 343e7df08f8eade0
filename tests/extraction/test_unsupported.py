"""Weights that are not used, plans without weights, and models of several languages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from model_folders import add_weights, configure
from safetensors.torch import load_file
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


def load(folder, **options):
    return load_encoder(find_model(str(folder)), device="cpu", **options)


def ones(names):
    return {name: torch.ones(3, 4) for name in names}


PROMPTS = "prefix_encoder.embedding.weight"
LORA = "encoder.layer.0.attention.self.query.lora_A.default.weight"
THIRD = "encoder.layer.2.output.dense.weight"
PROJECTION = "embeddings.extra_projection.weight"
OTHERS = [
    # Positions that the class implements.
    ("bert", {"position_embedding_type": "absolute"}, [], None),
    ("bert", {"position_embedding_type": None}, [], None),
    ("bert", {"rope_theta": None}, [], None),
    ("bert", {"alibi": False}, [], None),
    ("llama-3", {"rope_theta": 10000.0}, [], None),
    ("deberta-v2", {"relative_attention": True}, [], None),
    # Weights of the encoder, but not of heads, which are not read, and of decoders.
    *(("bert", {}, [name, "classifier.weight"], (1, name)) for name in (PROMPTS, LORA, THIRD, PROJECTION)),
    *(("bert", {}, [f"bert.{name}"], (1, f"bert.{name}")) for name in (PROMPTS, LORA, THIRD, PROJECTION)),
    ("bert", {"num_hidden_layers": 1}, [], (16, "encoder.layer.1.attention.output.LayerNorm.bias")),
    ("t5", {}, ["decoder.block.0.layer.0.extra.weight"], None),
    ("t5", {}, ["encoder.block.0.layer.0.extra.weight"], (1, "encoder.block.0.layer.0.extra.weight")),
    # What has a name like a scale of quantised weights.
    *(("qwen2", {}, [name], (1, name)) for name in ("layers.0.mlp.up_proj.input_scale", "layers.0.self_attn.k_scale", "layers.0.mlp.up_proj.lora_A")),
]  # fmt: skip


@pytest.mark.parametrize(("family", "settings", "weights", "unused"), OTHERS)
def test_weights_of_the_encoder_that_are_not_used_are_counted(
    family, settings, weights, unused, tmp_path, capsys
):
    save(family, tmp_path)
    configure(tmp_path, **settings)
    add_weights(tmp_path, ones(weights))
    notes, said = load(tmp_path).notes, capsys.readouterr().err
    if unused is None:
        assert (notes, "not use" in said) == ({}, False)
    else:
        n, first = unused
        assert notes == {"weights not used": f"{n} (first: {first})"}
        assert f"its files hold {n} weight{'s' * (n > 1)} of the encoder, or of prompts" in said
        assert f"does not use (first: {first})" in said


@pytest.mark.parametrize("lm_head", [False, True])
def test_heads_and_what_is_no_weight_are_not_meant(lm_head, tmp_path, capsys):
    save("bert", tmp_path)
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    transformers.BertForPreTraining(config).save_pretrained(tmp_path)
    heads = ["classifier.layers.0.weight", "lm_head.weight", "qa_outputs.weight"]
    buffers = [
        "bert.embeddings.position_ids",
        "bert.encoder.layer.0.attention.self.rotary_emb.inv_freq",
        "bert.encoder.layer.0.attention.masked_bias",
    ]
    add_weights(tmp_path, ones([*heads, *buffers]))
    assert load(tmp_path, lm_head=lm_head).notes == {}
    assert "not used" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("suffix", "settings"),
    [(".other", {}), ("_scale", {"quantization_config": {"quant_method": "fp8"}})],
)
def test_weights_of_8_bits_may_be_read_without_a_scale_or_by_a_quantiser(
    suffix, settings, tmp_path
):
    save("llama-3", tmp_path)
    key = "layers.0.mlp.up_proj.weight"
    weight = load_file(tmp_path / "model.safetensors")[key].to(torch.float8_e4m3fn)
    add_weights(tmp_path, {key: weight, key + suffix: torch.ones(1, 1)})
    configure(tmp_path, **settings)
    require_scaled(find_model(str(tmp_path)))


# -- plans --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("weights", [False, True])
def test_a_plan_describes_the_model_that_is_loaded(name, weights, tmp_path):
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


def test_a_plan_needs_no_memory_for_weights(tmp_path):
    """A model of 6.7 billion parameters (27 GB): its configuration and tokenizer alone."""
    heads = {"num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128}
    sizes = {"hidden_size": 4096, "intermediate_size": 11008, "vocab_size": 32000, **heads}
    save("llama-3", tmp_path)
    (tmp_path / "model.safetensors").unlink()
    configure(tmp_path, num_hidden_layers=32, **sizes)
    info = load_encoder(find_model(str(tmp_path), planned=True), device="cpu", planned=True).info
    each = 4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096
    assert info.parameters == 32000 * 4096 + 32 * each + 4096
    assert (info.n_layers, info.hidden_size, info.causal) == (32, 4096, True)


@pytest.mark.parametrize("switch", ["adapters", "tokens", "none"])
def test_the_language_that_all_texts_are_read_in_is_said(switch, capsys):
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


def test_texts_are_read_in_the_language_that_is_chosen(tmp_path, capsys):
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
def test_the_adapter_is_said_where_the_model_has_no_default(prefix, tmp_path, capsys):
    """Its code refuses a text without a language."""
    model = xmod(tmp_path, default=None)
    source = find_model(prefix + str(tmp_path))
    assert source.languages == ("de_DE", "en_XX")
    german = source.in_language("de")
    assert german is not None
    encoder = load_encoder(german, device="cpu")
    announce_model(encoder, german)
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


def test_the_token_of_a_language_is_that_of_the_tokenizer(tmp_path):
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
def test_the_language_is_that_of_the_treebank_if_the_model_has_it(tmp_path):
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
        (result,) = run(tmp_path / "model", tmp_path, limit=None, quiet=True, **settings).results
        read_in[code] = result.provenance["language of all texts"], result.model.digest
    assert [x for x, _ in read_in.values()] == ["de_DE", "en_XX"]
    assert read_in["de"][1] != read_in["fr"][1]
