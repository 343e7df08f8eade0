"""Vectors read inside blocks, against hooks written down by hand; models that are refused."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import pytest
import torch
from places import NORMS, OTHERS, PLACES, block_of, layers, n_hooks, tiny
from tiny_readings import collected, encoder_of, files_below, plain_input, random_texts, random_view

from probes.common.errors import UserError
from probes.extraction.changing.interventions import Custom, Intervention, SkipBlock, changed_passes
from probes.extraction.changing.sites import Site, changed_sites, sites_of
from probes.extraction.reading.collectors import WordVectors
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.encoding import read_changed, vectors_of, word_vectors
from probes.extraction.reading.vectors import layer_part
from probes.extraction.reading.views import Text, View

EVERY = None, "attention", "mlp"
TEXTS = [x for x in random_texts(30) if len(x.words) < 7 and x.kept_span[0] < x.kept_span[1]]
_BERT = "attention.output.LayerNorm", "output.LayerNorm"
POST_NORM = {
    **dict.fromkeys(["bert", "electra", "roberta", "xlm-roberta"], _BERT),
    "distilbert": ("sa_layer_norm", "output_layer_norm"),
    "albert": ("attention.LayerNorm", "full_layer_layer_norm"),
    "mpnet": ("attention.LayerNorm", "output.LayerNorm"),
    "bart": ("self_attn_layer_norm", "final_layer_norm"),
}
PRE_NORM = ["gpt2", "gpt-neox", "llama-2", "llama-3", "qwen2", "qwen3", "gemma", "modernbert", "t5"]
PARTS_NORMED = ["gemma2", "gemma3"]


def ours(encoder: Encoder, pooling: Any = "mean", tokens: int = 64) -> dict[str, torch.Tensor]:
    every = range(encoder.info.n_layers + 1)
    return collected(encoder, TEXTS, WordVectors(every, pooling, "float32", EVERY), tokens)


def pooled(states: torch.Tensor, pooling: str) -> torch.Tensor:
    return {"mean": states.mean(0), "first": states[0], "last": states[-1]}[pooling]


def states_by_hand(model: Any, name: str, ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """States of one text at all sites; ALBERT calls one block for all layers. Each (length, size)."""
    states: dict[str, torch.Tensor] = {}

    def keep(site: Any, block: int, _: Any, __: Any, output: torch.Tensor) -> None:
        while layer_part(block, site) in states:
            block += 1
        states[layer_part(block, site)] = output.clone().reshape(ids.shape[1], -1)

    hooks = []
    for block in [1] if name == "albert" else range(1, model.config.num_hidden_layers + 1):
        its = block_of(model, name, block)
        for site, path in (("attention", PLACES[name].output), ("mlp", PLACES[name].mlp)):
            part = its.get_submodule(path)
            hooks.append(part.register_forward_hook(partial(keep, site, block)))
    for layer, state in enumerate(layers(model, ids, torch.ones_like(ids))):
        states[layer_part(layer)] = state
    for hook in hooks:
        hook.remove()
    return states


def by_hand(encoder: Encoder, name: str, pooling: str) -> dict[str, torch.Tensor]:
    """Text by text, without padding."""
    found: dict[str, list[torch.Tensor]] = {}
    for text, pieces in zip(TEXTS, encoder.split(TEXTS), strict=True):
        ids = plain_input(encoder, text)["input_ids"]
        start = len(encoder.words.prefix)
        for part, state in states_by_hand(encoder.model, name, ids).items():
            for word in range(*text.kept_span):
                here = slice(start + pieces.bounds[word], start + pieces.bounds[word + 1])
                found.setdefault(part, []).append(pooled(state[here], pooling))
    return {part: torch.stack(vectors) for part, vectors in found.items()}


@pytest.mark.parametrize("name", PLACES)
def test_vectors_are_those_of_plain_passes(name):
    encoder = encoder_of(name)
    hooks = n_hooks(encoder.model)
    for pooling in ("mean", "last"):
        wanted = by_hand(encoder, name, pooling)
        found = ours(encoder, pooling)
        assert found.keys() == wanted.keys()
        for part, vectors in wanted.items():
            torch.testing.assert_close(found[part], vectors, rtol=1e-5, atol=2e-6, msg=part)
    assert n_hooks(encoder.model) == hooks
    assert len({vectors[0, 0].item() for vectors in found.values()}) == len(found)


def parts_of(block: int) -> tuple[str, str]:
    return layer_part(block, "attention"), layer_part(block, "mlp")


def after_block(name: str, model: Any, block: int, *states: torch.Tensor) -> torch.Tensor:
    """What a block makes of the state before it and of the outputs of its attention and MLP."""
    before, attention, mlp = states
    its = block_of(model, name, block)
    if name in POST_NORM:  # of what has been added
        first, second = map(its.get_submodule, POST_NORM[name])
        return second(first(before + attention) + mlp)
    if name in PARTS_NORMED:
        attention = its.post_attention_layernorm(attention)
        mlp = its.post_feedforward_layernorm(mlp)
    total = before + attention + mlp
    last = block == model.config.num_hidden_layers
    return model.get_submodule(NORMS[name])(total) if last else total


@pytest.mark.parametrize("name", [*PRE_NORM, *POST_NORM, *PARTS_NORMED])
def test_blocks_add_their_parts_to_the_stream(name):
    encoder = encoder_of(name)
    found = ours(encoder, "first")
    for block in range(1, encoder.info.n_layers + 1):
        states = (found[part] for part in (layer_part(block - 1), *parts_of(block)))
        wanted = after_block(name, encoder.model, block, *states).detach()
        torch.testing.assert_close(found[layer_part(block)], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["bert", "gpt2", "mpnet"])
def test_layers_are_the_same_whatever_is_read_beside_them(name):
    encoder = encoder_of(name)
    every = range(encoder.info.n_layers + 1)
    alone = collected(encoder, TEXTS, WordVectors(every, "mean", "float32"), 64)
    beside = ours(encoder)
    assert all(torch.equal(vectors, beside[part]) for part, vectors in alone.items())
    for part, vectors in ours(encoder, tokens=1).items():
        torch.testing.assert_close(vectors, beside[part], rtol=1e-4, atol=1e-5)


def test_sites_are_added_to_a_store(tmp_path):
    encoder, view = encoder_of("bert"), random_view(30)
    about = tmp_path, encoder.info, "float32", view, [0, 1, 2]
    plain = word_vectors(*about)
    vectors_of(plain, encoder)
    before = {path: x for path, x in files_below(tmp_path).items() if path.endswith(".npy")}
    more = word_vectors(*about, sites=EVERY)
    assert more.key == plain.key
    assert plain.collector.parts == ("layer-00", "layer-01", "layer-02")
    assert set(more.collector.parts) - set(plain.collector.parts) == {*parts_of(1), *parts_of(2)}
    n_words = sum(end - start for start, end in (text.kept_span for text in view.texts))
    assert more.bytes_missing() == 4 * n_words * encoder.info.hidden_size * 2
    stored = vectors_of(more, encoder)
    after = files_below(tmp_path)
    assert all(after[path] == content for path, content in before.items())
    only = WordVectors([2], "mean", "float32", ["mlp"])
    (wanted,) = collected(encoder, view.texts, only).values()
    (row,) = [i for i, text in enumerate(view.texts) if text.kept_span[1] > text.kept_span[0]][:1]
    first = sum(text.kept_span[1] - text.kept_span[0] for text in view.texts[:row])
    found = torch.from_numpy(stored.of(site="mlp").layer(2)[stored.starts[[row]]]).float()
    torch.testing.assert_close(found, wanted[[first]], rtol=1e-3, atol=1e-3)
    assert [stored.of(site=site).derived("x", lambda: object()) for site in EVERY] == [
        stored.of(site=site).derived("x", lambda: None) for site in EVERY
    ]
    stored.forget_derived()
    assert [stored.of(site=site).derived("x", lambda: None) for site in EVERY] == [None] * 3


def at_zero(site: Site) -> list[Intervention]:
    return [Custom("nothing", 1, site, torch.zeros_like)]


def test_what_is_read_is_what_interventions_leave():
    encoder = encoder_of("bert")
    plain = ours(encoder)
    with changed_passes(encoder, at_zero(Site("mlp", 1))):
        found = ours(encoder)
    assert not found[layer_part(1, "mlp")].any()
    assert torch.equal(found[layer_part(1, "attention")], plain[layer_part(1, "attention")])
    assert not torch.equal(found[layer_part(2, "mlp")], plain[layer_part(2, "mlp")])
    # No block is left out, though blocks below the change are the same.
    collector = WordVectors([1, 2], "mean", "float32", EVERY)
    changes: list[list[Intervention]] = [[], [SkipBlock(2)], at_zero(Site("mlp", 2))]
    view = View("plain", tuple(dict.fromkeys(TEXTS)))
    untouched, skipped, zero = (x for _, x in read_changed(view, collector, encoder, changes))
    for part in parts_of(1):
        assert torch.equal(untouched[part], skipped[part])
    assert torch.equal(skipped["layer-02"], untouched["layer-01"])
    assert not zero["layer-02-mlp"].any()


def test_a_model_without_the_site_is_refused():
    encoder = encoder_of("bert")
    encoder.require("mlp")
    message = r"BertModel: it has 2 blocks, and no mlp 3\."
    with pytest.raises(UserError, match=message):
        collected(encoder, [Text(("a",), (0, 1))], WordVectors([3], sites=["mlp"]))


OWN = "its attention cannot be changed head by head (it is computed in its own way)"
NO_MLP = "the output of its MLP cannot be changed (no linear map gives it)"
NO_BLOCKS = "its blocks are not found; it cannot be changed layer by layer"
OWN_WAYS = product(
    ("Falcon", "Mpt", "Longformer", "BigBird"), ("maps", "heads", "attention", "mlp")
)
REFUSED = {("Mixtral", "mlp"): NO_MLP, **dict.fromkeys(OWN_WAYS, OWN)}
REFUSED |= {(name, "layer"): NO_BLOCKS for name in ("XLM", "XLNet", "Mamba")}


@pytest.mark.parametrize("name", PLACES)
def test_places_are_those_written_down_by_hand(name):
    model = tiny(name)
    sites = sites_of(model)
    n = model.config.num_hidden_layers
    assert len(sites.blocks) == n
    for layer in range(1, n + 1):
        block = block_of(model, name, layer)
        assert sites.blocks[layer - 1].module is block
        for kind, path in (("heads", 1), ("attention", 1), ("mlp", 2)):
            found = sites.calls[kind][layer - 1]  # type: ignore[index]
            assert found.module is block.get_submodule(PLACES[name][path])
            assert found.number == (layer - 1 if name == "albert" else 0)
    assert sites.n_heads == 2
    norm = NORMS.get(name)
    assert sites.norm is (model.get_submodule(norm) if norm else None)
    assert sites_of(model) is sites
    assert not sites.refused


@pytest.mark.parametrize("name", [*PLACES, *OTHERS])
def test_a_layer_that_is_changed_is_seen_as_changed(name):
    if (name, "layer") in REFUSED:
        pytest.skip("refused below")
    model = tiny(name)
    before, hooks = layers(model), n_hooks(model)
    sites = sites_of(model)
    for layer in range(len(sites.blocks) + 1):
        with changed_sites(model, sites, [(Site("layer", layer), lambda x, _: x * 0 + 5)]):
            found = layers(model)
        assert (found[layer] == 5).all()
        assert all(torch.equal(*pair) for pair in zip(found[:layer], before, strict=False))
        assert all(
            not torch.equal(*pair) for pair in zip(found[layer:], before[layer:], strict=True)
        )
    assert n_hooks(model) == hooks
    assert all(torch.equal(*pair) for pair in zip(layers(model), before, strict=True))


@pytest.mark.parametrize(("name", "kind"), REFUSED)
def test_what_is_not_found_is_refused_by_name(name, kind):
    model = tiny(name)
    with pytest.raises(UserError) as error:
        sites_of(model).require(Site(kind, 1))
    assert str(error.value) == f"{type(model).__name__}: {REFUSED[name, kind]}."


def test_blocks_and_heads_that_are_not_there():
    sites = sites_of(tiny("bert"))
    for site, why in (
        (Site("layer", 3), "it has 2 blocks, and no layer 3"),
        (Site("block", 0), "it has 2 blocks, and no block 0"),
        (Site("heads", 1, 3), "it has 2 heads in each block, and no head 3"),
        (Site("maps", 1, 0), "it has 2 heads in each block, and no head 0"),
    ):
        with pytest.raises(UserError, match=f"^BertModel: {why}.$"):
            sites.require(site)
