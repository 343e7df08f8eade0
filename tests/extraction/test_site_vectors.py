"""Vectors read inside blocks, against hooks written down by hand; models that are refused."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from places import (
    IDS,
    MASK,
    MLP_NORMS,
    NORMS,
    OTHERS,
    PLACES,
    POST_NORMS,
    WRITES,
    block_of,
    layers,
    n_hooks,
    states_by_hand,
    tiny,
)
from tiny_readings import collected, encoder_of, files_below, plain_input, random_texts, random_view

from probes.common.errors import UserError
from probes.extraction.changing.interventions import (
    Custom,
    Intervention,
    SkipBlock,
    _only_at_pieces,
    changed_passes,
)
from probes.extraction.changing.sites import Site, changed_sites, sites_of
from probes.extraction.reading.collectors import WordVectors
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.encoding import read_changed, vectors_of, word_vectors
from probes.extraction.reading.vectors import layer_part
from probes.extraction.reading.views import Text, View
from probes.tasks.task import ReadSite

EVERY: tuple[ReadSite | None, ...] = (None, "mid", "attention", "mlp", "unnormed")
TEXTS = [x for x in random_texts(30) if len(x.words) < 7 and x.kept_span[0] < x.kept_span[1]]


def sites_of_family(name: str) -> list[ReadSite | None]:
    lacking = {"mid": name == "gpt-neox", "unnormed": name not in NORMS}
    return [site for site in EVERY if not lacking.get(site or "")]


def ours(encoder: Encoder, pooling: Any = "mean", tokens: int = 64) -> dict[str, torch.Tensor]:
    every, sites = range(encoder.info.n_layers + 1), sites_of_family(encoder.info.name)
    about = Path("none"), encoder.info, "float32", View("plain", tuple(TEXTS)), every, pooling
    collector = word_vectors(*about, sites=sites).collector
    assert isinstance(collector, WordVectors)
    return collected(encoder, TEXTS, collector.in_float32(), tokens)


def pooled(states: torch.Tensor, pooling: str) -> torch.Tensor:
    return {"mean": states.mean(0), "first": states[0], "last": states[-1]}[pooling]


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


def in_block(name: str, model: Any, block: int, *states: torch.Tensor) -> dict[str, torch.Tensor]:
    """What a block makes of the state before it and of the outputs of its attention and MLP."""
    before, attention, mlp = states
    its = block_of(model, name, block)
    if name in POST_NORMS:  # of what has been added
        first, second = map(its.get_submodule, POST_NORMS[name])
        mid = first(before + attention)
        return {"mid": mid, "": second(mid + mlp)}
    mid = before + attention
    if block < model.config.num_hidden_layers:
        return {"mid": mid, "": mid + mlp}
    return {"mid": mid, "unnormed": mid + mlp, "": model.get_submodule(NORMS[name])(mid + mlp)}


@pytest.mark.parametrize("name", [*MLP_NORMS, *POST_NORMS, "gpt-neox"])
def test_blocks_add_their_parts_to_the_stream(name):
    encoder = encoder_of(name)
    found = ours(encoder, "first")
    for block in range(1, encoder.info.n_layers + 1):
        states = (found[part] for part in (layer_part(block - 1), *parts_of(block)))
        wanted: dict[Any, torch.Tensor] = in_block(name, encoder.model, block, *states)
        if name == "deberta-v2" and block == 1:
            del wanted[""]  # a convolution is added
        if name == "gpt-neox":
            del wanted["mid"]
        for site, state in wanted.items():
            own = found[layer_part(block, site)]
            torch.testing.assert_close(own, state.detach(), rtol=1e-4, atol=1e-5)


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
    more = word_vectors(*about, sites=[None, "attention", "mlp"])
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
    assert [stored.of(site=site).derived("x", lambda: None) for site in EVERY] == [None] * 5


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
    collector = WordVectors([1, 2], "mean", "float32", EVERY[:-1])  # BERT has no final norm
    changes: list[list[Intervention]] = [[], [SkipBlock(2)], at_zero(Site("mlp", 2))]
    view = View("plain", tuple(dict.fromkeys(TEXTS)))
    untouched, skipped, zero = (x for _, x in read_changed(view, collector, encoder, changes))
    for part in parts_of(1):
        assert torch.equal(untouched[part], skipped[part])
    assert torch.equal(skipped["layer-02"], untouched["layer-01"])
    assert not zero[layer_part(2, "mlp")].any()


def test_a_model_without_the_site_is_refused():
    encoder = encoder_of("bert")
    encoder.require("mlp")
    message = r"BertModel: it has 2 blocks, and no mlp 3\."
    with pytest.raises(UserError, match=message):
        collected(encoder, [Text(("a",), (0, 1))], WordVectors([3], sites=["mlp"]))


OWN = "its attention cannot be changed head by head (it is computed in its own way)"
NO_MLP = "the output of its MLP cannot be changed (no module gives it)"
NO_MID = (
    "no state between its attention and its MLP is found (parallel blocks have none: there, both "
    "read the input of the block)"
)
NO_BLOCKS = "its blocks are not found; it cannot be changed layer by layer"
OWN_WAYS = product(
    ("Falcon", "Mpt", "Longformer", "BigBird"), ("maps", "heads", "attention", "mlp", "mid")
)
REFUSED = {("GraniteMoe", "mlp"): NO_MLP, **dict.fromkeys(OWN_WAYS, OWN)}
REFUSED |= {("gpt-neox", "mid"): NO_MID, ("GPTJ", "mid"): NO_MID}
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
        paths = (PLACES[name].output, *WRITES[name])
        for kind, path in zip(("heads", "attention", "mlp"), paths, strict=True):
            found = sites.calls[kind][layer - 1]  # type: ignore[index]
            assert found.module is block.get_submodule(path)
            assert found.number == (layer - 1 if name == "albert" else 0)
    assert sites.n_heads == 2
    norm = NORMS.get(name)
    assert sites.norm is (model.get_submodule(norm) if norm else None)
    assert sites_of(model) is sites
    assert sites.refused == ({"mid": NO_MID} if name == "gpt-neox" else {})
    assert sites.pre_norm is (name in MLP_NORMS)
    for layer, mid in enumerate(sites.calls.get("mid", ()), start=1):
        norm = MLP_NORMS[name] if sites.pre_norm else POST_NORMS[name][0]
        assert mid.module is block_of(model, name, layer).get_submodule(norm)


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


SUMS: dict[str, Callable[..., torch.Tensor]] = {
    "Granite": lambda _, x, attention, mlp: x + (attention + mlp) * 0.25,
    "bert": lambda its, x, attention, mlp: its.output.LayerNorm(
        its.attention.output.LayerNorm(x + attention) + mlp
    ),
}
"""What a block makes of its input and of what its parts write, if not their sum."""


@pytest.mark.parametrize("value", [0, 5])
@pytest.mark.parametrize("kind", ["attention", "mlp"])
@pytest.mark.parametrize(
    "name",
    [
        *("gemma2", "gemma3", "Olmo2", "Glm4", "llama-3", "gpt2", "bert", "gpt-neox", "Granite"),
        *("Mixtral", "DeepseekV3"),
    ],
)
def test_a_part_that_is_replaced_is_another_addend(name, kind, value):
    model = tiny(name)
    sites = sites_of(model)
    block = sites.blocks[1].module
    seen: dict[Any, torch.Tensor] = {}

    def keep(module, inputs, output):
        seen[module] = (output if isinstance(output, torch.Tensor) else output[0]).clone()
        seen["input", module] = inputs[0].clone()

    parts = [block.get_submodule(path) for path in WRITES[name]]
    change = Site(kind, 2), lambda x, _: torch.full_like(x, value)
    with changed_sites(model, sites, [change]), torch.no_grad():
        hooks = [x.register_forward_hook(keep) for x in (*parts, block)]
        model(input_ids=IDS, attention_mask=MASK)
    for hook in hooks:
        hook.remove()
    addends = [seen[part] for part in parts]
    assert (addends[kind == "mlp"] == value).all()
    assert addends[kind == "attention"].abs().max() > 1e-3
    total = SUMS.get(name, lambda _, *states: sum(states))
    expected = total(block, seen["input", block], *addends)
    torch.testing.assert_close(seen[block], expected, rtol=1e-5, atol=1e-5)


def test_pieces_are_changed_where_states_have_no_texts():
    encoder = encoder_of("bert")
    encoder.pieces = torch.tensor([[False, True, True], [True, False, False]])
    change = Custom("five", 1, Site("mlp", 1), lambda x: x * 0 + 5, positions="pieces")
    for shape in ((2, 3, 4), (6, 4), (2, 3, 2, 2)):
        states = _only_at_pieces(change, encoder)(torch.zeros(shape), torch.zeros(shape))
        assert states.reshape(6, 4).tolist() == [[5.0 * x] * 4 for x in (0, 1, 1, 1, 0, 0)]


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
        (Site("unnormed", 2), "it has no norm after its last block; read block instead"),
    ):
        with pytest.raises(UserError, match=f"^BertModel: {why}"):
            sites.require(site)
    with pytest.raises(UserError, match="GPT2Model: only the output of its last block has a norm"):
        sites_of(tiny("gpt2")).require(Site("unnormed", 1))


@pytest.mark.parametrize("name", ["gpt2", "llama-3", "opt", "bert"])
def test_the_state_between_is_what_is_read_and_what_the_rest_of_the_block_reads(name):
    encoder = encoder_of(name)
    with changed_passes(encoder, at_zero(Site("mid", 2))):
        found = collected(encoder, TEXTS, WordVectors([1, 2], "first", "float32", [None, "mid"]))
    assert not found["layer-02-mid"].any()
    assert len({tuple(x) for x in found["layer-02"].round(decimals=3).tolist()}) == 1
    assert len({tuple(x) for x in found["layer-01-mid"].tolist()}) > 1


@pytest.mark.parametrize("name", ["gpt2", "llama-3", "t5"])
def test_adding_to_the_state_between_is_adding_to_the_output_of_attention(name):
    model = tiny(name)
    steps, results = torch.randn(2, 16, generator=torch.Generator().manual_seed(3)), []
    for kind in ("mid", "attention"):
        step = steps.clone().requires_grad_()
        changes = [(Site(kind, k + 1), lambda x, _, k=k: x + step[k]) for k in range(2)]  # noqa: B023
        with changed_sites(model, sites_of(model), changes):  # type: ignore[arg-type]
            states = model(input_ids=IDS, attention_mask=MASK).last_hidden_state
        weights = torch.linspace(-1, 1, states.shape[-1])
        (gradient,) = torch.autograd.grad((states * weights).sum(), step)
        results.append((states.detach(), gradient))
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(
        results[0][0], model(input_ids=IDS, attention_mask=MASK)[0], atol=1e-2
    )


def test_the_last_block_is_changed_before_the_final_norm():
    encoder = encoder_of("gpt2")
    with changed_passes(encoder, [Custom("five", 1, Site("unnormed", 2), lambda x: x * 0 + 5)]):
        found = ours(encoder)
    assert (found["layer-02-unnormed"] == 5).all()
    assert torch.equal(found["layer-02"][0], encoder.model.ln_f.bias)
