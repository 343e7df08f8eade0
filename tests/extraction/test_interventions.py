"""Changed passes against copies of the model whose weights were changed by hand."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from places import IDS, LENGTHS, MASK, NORMS, PLACES, POST_NORMS, block_of, layers, n_hooks, tiny
from tiny_models import build
from tiny_readings import Maps, collected, encoder_of, random_texts
from transformers import BertForMaskedLM, Gemma3nForCausalLM, Gemma3nTextConfig

import probes
from probes.common.errors import UserError
from probes.extraction.changing.head_collectors import head_gradients
from probes.extraction.changing.interventions import (
    Add,
    Custom,
    DisableAttention,
    DisableHead,
    Erase,
    Intervention,
    OwnAttention,
    SkipBlock,
    changed_passes,
)
from probes.extraction.changing.prefixes import Prefixes
from probes.extraction.changing.sites import Site
from probes.extraction.reading.collectors import WordVectors
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.token_scores import LossOfWords
from probes.extraction.reading.views import Text

UNUSUAL = ["Bloom", "GPTJ", "GPTNeo", "OpenAIGPT"]
"""Attention that is not transformers' common one, like MPNet's and DeBERTa's."""


def assert_same(found: list[torch.Tensor], wanted: list[torch.Tensor]) -> None:
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def equal(found: list[torch.Tensor], wanted: list[torch.Tensor]) -> bool:
    return all(torch.equal(*pair) for pair in zip(found, wanted, strict=True))


def silence(model: Any, name: str, layer: int, head: int) -> None:
    """Let all scores of a head be 0."""
    query = block_of(model, name, layer).get_submodule(PLACES[name].query)
    rows = torch.arange(8 * (head - 1), 8 * head)
    if name == "gpt-neox":  # query, key and value of a head side by side
        rows = rows + 16 * (head - 1)
    with torch.no_grad():
        for weight in query.parameters():
            (weight.mT if name == "gpt2" and weight.ndim == 2 else weight)[rows] = 0


def without_bias(model: Any) -> Any:
    """A bias of positions is shared by all blocks; it would be added to scores of 0."""
    for name, weight in model.named_parameters():
        if "relative_attention_bias" in name:
            torch.nn.init.zeros_(weight)
    return model


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("layer", [1, 2])
def test_a_uniform_head_has_no_query(name, layer):
    model = without_bias(tiny(name))
    n = model.config.num_hidden_layers
    blocks = range(1, n + 1) if name == "albert" else [layer]
    other = copy.deepcopy(model)
    silence(other, name, layer, 2)
    with changed_passes(model, [DisableHead(k, 2) for k in blocks]):
        found = layers(model)
    assert_same(found, layers(other))
    assert not equal(found, layers(model))
    silence(other, name, layer, 1)
    with changed_passes(model, [DisableAttention(k) for k in blocks]):
        assert_same(layers(model), layers(other))


def output_map(model: Any, name: str, layer: int) -> tuple[torch.Tensor, torch.Tensor | None]:
    """W_O, of shape (hidden size, heads × size), and its bias."""
    linear = block_of(model, name, layer).get_submodule(PLACES[name].output)
    weight = linear.weight.data.T if name == "gpt2" else linear.weight.data
    return weight, None if linear.bias is None else linear.bias.data


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("layer", [1, 2])
def test_the_output_of_a_head_is_zero(name, layer):
    model = tiny(name)
    blocks = range(1, model.config.num_hidden_layers + 1) if name == "albert" else [layer]
    other = copy.deepcopy(model)
    weight, _ = output_map(other, name, layer)
    weight[:, 8:] = 0
    with changed_passes(model, [DisableHead(k, 2, "zero") for k in blocks]):
        assert_same(layers(model), layers(other))
    weight[:] = 0
    with changed_passes(model, [DisableAttention(k, "zero") for k in blocks]):
        assert_same(layers(model), layers(other))


@pytest.mark.parametrize("name", [*PLACES, "Bloom", "GPTJ", "OPT", "Falcon", "Mixtral"])
def test_a_skipped_block_is_not_there(name):
    model = tiny(name)
    n = model.config.num_hidden_layers
    # The first block of T5 has the bias of all; DeBERTa's is followed by a convolution.
    for layer in range(2 if name in ("t5", "deberta-v2") else 1, n + 1):
        other = copy.deepcopy(model)
        if name == "albert":
            other.config.num_hidden_layers = n - 1
        else:
            lists = (x for x in other.modules() if isinstance(x, torch.nn.ModuleList))
            del next(x for x in lists if len(x) == n)[layer - 1]
            for setting in ("num_hidden_layers", "n_layer", "num_layers"):
                if setting in vars(other.config):
                    setattr(other.config, setting, n - 1)
            if kinds := getattr(other.config, "layer_types", None):
                other.config.layer_types = kinds[: layer - 1] + kinds[layer:]
        with changed_passes(model, [SkipBlock(layer)]):
            found = layers(model)
        del found[min(layer, n - 1)]  # the last is what the norm gives, which stays
        assert equal(found, layers(other))


def eraser(size: int, rank: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A mean, and an oblique projection."""
    rng = np.random.default_rng(3)
    mean, left, right = (rng.normal(size=shape) for shape in (size, (size, rank), (rank, size)))
    return mean, left @ np.linalg.pinv(right @ left), right


@pytest.mark.parametrize("name", [*PLACES, *UNUSUAL])
def test_an_erased_subspace(name):
    model = tiny(name)
    plain = layers(model)
    size, n = plain[0].shape[1], len(plain) - 1
    mean, left, right = eraser(size, 3)
    for layer in range(n + 1):
        with changed_passes(model, [Erase(layer, mean, left[:, :0], right[:0])]):
            assert equal(layers(model), plain)
        with changed_passes(model, [Erase(layer, mean, left, right)]):
            found = layers(model)
        x = plain[layer].double().numpy()
        wanted = torch.from_numpy(x - (x - mean) @ left @ right).float()
        torch.testing.assert_close(found[layer], wanted, rtol=1e-4, atol=1e-4)
        assert equal(found[:layer], plain[:layer])
        if name in ("bert", "mpnet") and 0 < layer < n:

            def by_hand(_: Any, __: Any, output: Any) -> Any:
                states = output[0] if isinstance(output, tuple) else output
                kept = states - (states - torch.tensor(mean)) @ torch.tensor(left @ right)
                return (kept.float(), *output[1:]) if isinstance(output, tuple) else kept.float()

            hook = block_of(model, name, layer).register_forward_hook(by_hand)
            assert_same(found[layer + 1 :], layers(model)[layer + 1 :])
            hook.remove()


@pytest.mark.parametrize(("name", "kind"), [("gpt2", "GPT2LMHeadModel"), ("llama-2", "LlamaForCausalLM"), ("bert", "BertForMaskedLM")])  # fmt: skip
def test_an_added_vector_is_that_of_hooks(name, kind):
    """At layer 0, in the middle and at the last layer, after the final norm if there is one."""
    model = build(name, kind)[0].eval()
    base, vector = model.base_model, np.random.default_rng(4).normal(size=16)
    blocks = [block_of(base, name, k) for k in (1, 2)]
    norm = getattr(base, NORMS[name]) if name in NORMS else blocks[1]

    def before(_: Any, args: Any) -> Any:
        return (args[0] + torch.tensor(vector).float(), *args[1:])

    def after(_: Any, __: Any, output: Any) -> Any:
        states = output[0] if isinstance(output, tuple) else output
        changed = states + torch.tensor(vector).float()
        return (changed, *output[1:]) if isinstance(output, tuple) else changed

    def logits() -> torch.Tensor:
        with torch.no_grad():
            return model(input_ids=IDS, attention_mask=MASK).logits[MASK.bool()]

    plain = logits()
    for layer in range(3):
        hook = blocks[0].register_forward_pre_hook(before) if layer == 0 else (
            [blocks[0], norm][layer - 1].register_forward_hook(after)
        )  # fmt: skip
        wanted = logits()
        hook.remove()
        with changed_passes(model, [Add(layer, vector)]):
            torch.testing.assert_close(logits(), wanted, rtol=1e-5, atol=1e-6)
        with changed_passes(model, [Add(layer, 0 * vector)]):
            assert torch.equal(logits(), plain)
        assert (wanted - plain).abs().max() > 1e-3


@pytest.mark.parametrize("name", [*PLACES, *UNUSUAL])
def test_a_text_in_a_batch_is_changed_as_alone(name):
    model = tiny(name)
    mean, left, right = eraser(16, 2)
    changes: list[list[Intervention]] = [
        [DisableHead(2, 1)],
        [SkipBlock(1), Erase(2, mean, left, right)],
        [DisableHead(1, 2, "zero"), DisableHead(1, 1)],
    ]
    for each in changes:
        with changed_passes(model, each):
            together = layers(model)
            ends = np.cumsum(LENGTHS)
            for text, (end, length) in enumerate(zip(ends, LENGTHS, strict=True)):
                alone = layers(model, IDS[text : text + 1, :length], MASK[text : text + 1, :length])
                assert_same([x[end - length : end] for x in together], alone)


@pytest.mark.parametrize("name", ["bert", "mpnet", "gpt2", "modernbert"])
def test_collectors_of_attention_see_what_is_used(name):
    encoder = encoder_of(name)
    texts, collector = random_texts(6), Maps()
    prefixes = Prefixes(encoder.model)
    with changed_passes(encoder, [DisableHead(2, 1)], prefixes):
        collected(encoder, texts, collector)
        collected(encoder, texts, collector)
    assert {block for block, _, _ in collector.found} == {*range(1, encoder.info.n_layers + 1)}
    for block, maps, visible in collector.found:
        uniform = visible / visible.sum(-1, keepdim=True)
        rows = visible.diagonal(dim1=1, dim2=2)
        assert torch.equal(maps[:, 0][rows], uniform[rows]) is (block == 2)
        assert not torch.allclose(maps[:, 1][rows], uniform[rows])
        assert not maps[:, 0].masked_select(~visible).any()
    assert any(not visible.all() for _, _, visible in collector.found)


def vectors(encoder: Encoder, n: int = 12) -> list[torch.Tensor]:
    every = WordVectors(range(encoder.info.n_layers + 1), "mean", "float32")
    return list(collected(encoder, random_texts(n), every, 64).values())


def plain_module(model: Any, name: str, kind: str, layer: int) -> Any:
    """The module whose output is the state at a site."""
    own = PLACES[name]
    if kind == "layer" and layer == model.config.num_hidden_layers and name in NORMS:
        return model.get_submodule(NORMS[name])
    paths = {"attention": own.output, "mlp": own.mlp, "mid": POST_NORMS.get(name, ("",))[0]}
    if name in ("gemma2", "gemma3"):  # what a part writes is normed
        paths |= {"attention": "post_attention_layernorm", "mlp": "post_feedforward_layernorm"}
    block = block_of(model, name, layer)
    return block.get_submodule(paths[kind]) if paths.get(kind) else block


# ALBERT has one block; in DeBERTa, a convolution comes between block 1 and layer 1.
@pytest.mark.parametrize("name", [x for x in PLACES if x not in ("albert", "deberta-v2")])
def test_a_vector_added_at_a_site_is_a_hook_on_its_module(name):
    """Each site but maps and heads."""
    model, shift = tiny(name), torch.linspace(-1, 2, 16)
    kinds = ["layer", "block", "attention", "mlp"]
    sites = [Site(kind, layer) for kind in kinds for layer in (1, 2)]  # type: ignore[arg-type]
    sites += [Site("mid", 1)] if name in POST_NORMS else []
    sites += [Site("unnormed", model.config.num_hidden_layers)] if name in NORMS else []

    def by_hand(_: Any, __: Any, output: Any) -> Any:
        return (output[0] + shift, *output[1:]) if isinstance(output, tuple) else output + shift

    plain = layers(model)
    for site in sites:
        with changed_passes(model, [Custom("shift", 1, site, lambda x: x + shift)]):
            found = layers(model)
        module = plain_module(model, name, site.kind, site.layer)
        with module.register_forward_hook(by_hand):
            wanted = layers(model)
        assert_same(found[-1:], wanted[-1:])  # transformers records states before other hooks run
        assert not equal(found[-1:], plain[-1:])


def test_pieces_of_words_alone_are_erased():
    encoder = encoder_of("bert")
    model = encoder.model
    seen: list[torch.Tensor] = []

    def mark(states: torch.Tensor) -> torch.Tensor:
        return states * 0 + 7

    hook = model.encoder.layer[1].register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    with changed_passes(encoder, [Custom("mark", 1, Site("layer", 1), mark, "pieces")]):
        found = vectors(encoder, 4)
    hook.remove()
    assert (found[1] == 7).all()
    for states in seen:
        marked = (states == 7).all(-1)
        assert not marked[:, 0].any()  # [CLS]
        n_marked = marked.sum(1)
        for row, n in zip(marked, n_marked, strict=True):
            assert row[1 : n + 1].all()
            assert not row[n + 1 :].any()  # [SEP] and padding


def test_a_start_token_before_a_text_is_no_piece():
    """The tokenizer adds none; a decoder whose words are scored reads one all the same."""
    encoder = encoder_of("gpt2", "GPT2LMHeadModel")
    assert not encoder.words.prefix
    seen: list[torch.Tensor] = []
    texts = [Text(("dog", "sees", "cat"), (0, 3)), Text(("dog",), (0, 1))]
    words = {text: np.arange(len(text.words)) for text in texts}
    mark = Custom("mark", 1, Site("layer", 1), torch.zeros_like, "pieces")
    encoder.lens()  # checked in a pass of its own
    with changed_passes(encoder, [mark]):
        hook = encoder.model.h[1].register_forward_pre_hook(lambda _, args: seen.append(args[0]))
        collected(encoder, texts, LossOfWords(words))
    hook.remove()
    lengths = [len(pieces.ids) for pieces in encoder.split(texts)]
    marked = [row for states in seen for row in (states == 0).all(-1).tolist()]
    assert [sum(row) for row in marked] == sorted(lengths, reverse=True)
    assert not any(row[0] for row in marked)
    assert all(row[1] for row in marked)


def test_nothing_is_left_behind():
    model = tiny("bert")
    plain, hooks = layers(model), n_hooks(model)

    def fail(_: torch.Tensor) -> torch.Tensor:
        raise KeyError("mine")

    changes = [DisableHead(1, 1), SkipBlock(2), DisableHead(2, 2, "zero")]
    failing = Custom("fails", 1, Site("mlp", 2), fail)
    with pytest.raises(KeyError), changed_passes(model, changes), changed_passes(model, [failing]):
        layers(model)
    assert n_hooks(model) == hooks
    assert equal(layers(model), plain)
    assert model.config._attn_implementation == "sdpa"

    def never_finished() -> Iterator[None]:
        with changed_passes(model, changes, Prefixes(model)):
            yield

    begun = never_finished()
    next(begun)
    assert not equal(layers(model), plain)
    del begun
    gc.collect()
    assert n_hooks(model) == hooks
    assert not any("forward" in vars(module) for module in model.modules())
    assert equal(layers(model), plain)
    with changed_passes(model, []):
        assert n_hooks(model) == hooks + 2
        assert equal(layers(model), plain)


@pytest.mark.parametrize("name", [*PLACES, *UNUSUAL, "Falcon", "Mixtral"])
def test_blocks_below_a_change_are_computed_once(name):
    model = tiny(name)
    prefixes = Prefixes(model)
    assert prefixes.works
    runs: list[int] = []
    for block in dict.fromkeys(call.module for call in prefixes.sites.blocks):
        first = next(
            x for x in block.modules() if isinstance(x, torch.nn.Linear | torch.nn.LayerNorm)
        )
        first.register_forward_hook(lambda *_: runs.append(1))
    last = len(prefixes.sites.blocks)
    mean, left, right = eraser(16, 2)
    changes: list[list[Intervention]] = [
        [SkipBlock(last)],
        [Erase(last - 1, mean, left, right)],
        [],
    ]
    if name != "Falcon":
        changes += [[DisableHead(last, 2)], [OwnAttention()], [DisableAttention(last)]]
    for each in changes:
        with changed_passes(model, each):
            runs.clear()
            full, n_full = layers(model), len(runs)
        with changed_passes(model, each, prefixes):
            assert equal(layers(model), full)
            runs.clear()
            assert equal(layers(model), full)
            replayed = len(runs)
            text = layers(model, IDS[:1], MASK[:1])  # a pass that is not known
        with changed_passes(model, each):
            assert equal(layers(model, IDS[:1], MASK[:1]), text)
        below = 0 if each == [OwnAttention()] else n_full / last
        assert replayed <= n_full - below


SHORT = Custom("short", 1, Site("layer", 1), lambda states: states[:, 1:])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: changed_passes(tiny("XLNet"), [SkipBlock(1)]), "^XLNetModel: its blocks are not found; it cannot be changed layer by layer.$"),
        (lambda: changed_passes(encoder_of("bert"), [DisableHead(1, 3)]), "^--model bert: BertModel: it has 2 heads in each block, and no head 3.$"),
        (lambda: changed_passes(tiny("bert"), [Erase(1, *eraser(16, 1), "pieces")]), "BertModel: Erase at the pieces of words needs an Encoder"),
        (lambda: DisableHead(1, 1, "mean"), "DisableHead: how is 'uniform' or 'zero', not 'mean'"),
    ],
)  # fmt: skip
def test_what_cannot_be_changed_is_refused_by_name(change, message):
    with pytest.raises(UserError, match=message), change():
        pass


def test_a_function_that_changes_the_shape_is_refused():
    model, message = tiny("bert"), "Custom 'short': the function turned"
    with pytest.raises(UserError, match=message), changed_passes(model, [SHORT]):
        layers(model)


def doubled(states: torch.Tensor) -> torch.Tensor:
    return states * 2


VALUES: list[Intervention] = [
    *(DisableHead(*head) for head in ((1, 1), (1, 2), (2, 1))),
    DisableHead(1, 1, "zero"),
    *(kind(layer) for kind in (DisableAttention, SkipBlock) for layer in (1, 2)),
    OwnAttention(),
    *(Erase(layer, *eraser(4, rank)) for layer, rank in ((1, 1), (2, 1), (1, 2))),
    Erase(1, *eraser(4, 1), "pieces"),
    *(Add(layer, np.full(4, x)) for layer, x in ((1, 1.0), (2, 1.0), (1, 2.0))),
    Add(1, np.full(4, 1.0), "pieces"),
    *(Custom(name, n, Site("mlp", 1), doubled) for name, n in (("double", 1), ("double", 2), ("twice", 1))),
    Custom("double", 1, Site("attention", 1), doubled),
]  # fmt: skip


def test_values_are_plain_and_have_fingerprints():
    assert len({value.fingerprint for value in VALUES}) == len(VALUES)
    for value in VALUES:
        copied = pickle.loads(pickle.dumps(value))  # noqa: S301
        assert copied == value
        assert copied.fingerprint == value.fingerprint
        with pytest.raises(AttributeError):
            value.layer = 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["bert", "albert", "gpt2", "llama-2", "deberta-v2", "t5", "bart"])
def test_gradients_at_gates_are_finite_differences(name):
    """Scaling the columns of W_O by 1 ± e, for every text alone."""
    model = tiny(name).double()
    for module in model.modules():  # those that compute in float32 whatever they are given
        if type(module).__name__.endswith(("RMSNorm", "T5LayerNorm")):
            module.forward = partial(torch.rms_norm, normalized_shape=(16,), weight=module.weight)
    inputs = {"input_ids": IDS, "attention_mask": MASK}

    def losses(output: Any) -> torch.Tensor:
        return (output.last_hidden_state * MASK[..., None]).pow(3).sum((1, 2))

    with torch.inference_mode():
        model(**inputs)  # as encoders do, before
    found = head_gradients(model, inputs, losses)
    n = model.config.num_hidden_layers
    assert found.shape == (3, n, 2)
    for layer in [1] if name == "albert" else range(1, n + 1):
        for head in (1, 2):
            columns = output_map(model, name, layer)[0][:, 8 * (head - 1) : 8 * head]
            plain, moved = columns.clone(), []
            for factor in (1 + 1e-6, 1 - 1e-6):
                columns[:] = plain * factor
                with torch.no_grad():
                    moved.append(losses(model(**inputs)))
            columns[:] = plain
            wanted = (moved[0] - moved[1]) / 2e-6
            every = (
                found[:, :, head - 1].sum(1) if name == "albert" else found[:, layer - 1, head - 1]
            )
            torch.testing.assert_close(every, wanted, rtol=1e-4, atol=1e-4)


def test_from_python():
    model, _ = build("bert", "BertForMaskedLM")
    other, _ = build("bert", "BertForMaskedLM")
    assert isinstance(model, BertForMaskedLM)
    silence(other.bert, "bert", 2, 1)
    with torch.no_grad(), probes.intervene(model, probes.DisableHead(2, 1)):
        found = model(input_ids=IDS, attention_mask=MASK).logits
        wanted = other(input_ids=IDS, attention_mask=MASK).logits
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_in_a_model_of_several_streams_what_is_changed_is_exact():
    """Gemma 3n: skipped blocks, heads and attention; an MLP, which no module gives, is refused."""
    small = {"vocab_size": 64, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 4, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "sliding_window": 8}  # fmt: skip
    streams = {"vocab_size_per_layer_input": 64, "hidden_size_per_layer_input": 8, "laurel_rank": 4, "activation_sparsity_pattern": [0.0] * 4, "num_kv_shared_layers": 0, "layer_types": ["sliding_attention", "full_attention"] * 2}  # fmt: skip
    torch.manual_seed(3)
    config = Gemma3nTextConfig(**small, **streams, initializer_range=0.3)
    model = Gemma3nForCausalLM(config).eval()
    block, ids = model.model.layers[1], torch.arange(2, 9)[None]

    def logits(*changes: Intervention) -> torch.Tensor:
        with torch.no_grad(), probes.intervene(model, *changes):
            return model(input_ids=ids).logits

    def without_head(_: Any, given: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        return (given[0] * (torch.arange(16) >= 8),)

    none = Custom("none", 1, Site("attention", 2), torch.zeros_like)
    cases = {
        SkipBlock(2): block.register_forward_hook,
        DisableHead(2, 1, "zero"): block.self_attn.o_proj.register_forward_pre_hook,
        none: block.post_attention_layernorm.register_forward_hook,
    }
    by_hand = (lambda _, given, __: given[0], without_head, lambda _, __, output: output * 0)
    untouched = logits()
    for (change, register), hook in zip(cases.items(), by_hand, strict=True):
        found, handle = logits(change), register(hook)
        assert_same([found], [logits()])
        handle.remove()
        assert not torch.allclose(found, untouched, atol=0.1)
    for site in ("mid", "mlp"):
        with pytest.raises(UserError, match="Gemma3nTextModel: "):
            logits(Custom("none", 1, Site(site, 2), torch.zeros_like))
