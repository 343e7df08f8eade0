"""Every family: our word vectors against one plain forward pass per sentence, aligned by hand."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import every_architecture
import numpy as np
import pytest
import tiny_models
import torch
import transformers
from places import NORMS, PLACES
from tiny_models import FAMILIES, fast_tokenizer
from tiny_readings import vectors_by_layer
from tiny_tokenizers import Tiny
from transformers import AutoModel

from probes.common.errors import UserError
from probes.common.files import sha256
from probes.extraction.changing.module_calls import trace
from probes.extraction.changing.sites import Site, changed_sites, sites_of
from probes.extraction.models.loaded_module import base_model
from probes.extraction.models.loading import load_encoder
from probes.extraction.models.model_files import find_model
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.shards import single_shard
from probes.extraction.reading.views import Text, View

SENTENCES = [
    str.split("We saw the birds that the children had fed near the harbour ."),
    ["Yes"],
    ["the", "light"],
    # odd words: accents, emoji, zero width, names of special tokens, spaces within
    [
        "naïve",
        "cafe\u0301",
        "🙂",
        "👩‍👩‍👧",
        "\u200b",
        "x\u200by",
        "\ufeff",
        "東京",
        "—",
        "do",
        "n't",
    ],
    ["a", "[SEP]", "</s>", "<s>", "<mask>", "[MASK]", "<|endoftext|>", "<bos>", "<unk>", "[UNK]"],
    ["10 000", "boats", "10\u00a0000", "tab\tbed", "x" * 130],
    # longer than the window, twice over
    ("the keeper of the light counts the boats , one by one , and writes " * 2).split(),
    # a word longer than the window, among others
    ["a", "word", "like", "qzxj" * 12, "is", "longer", "than", "windows"],
    ["zq" * 30],
]
TEXTS = [Text(tuple(words), (0, len(words))) for words in SENTENCES]
MASKED = "mask_token"
Vectors = dict[Text, list[torch.Tensor]]
"""Of each layer, (words, hidden size)."""
IDS = torch.arange(20, 28)[None]
INPUTS = {"input_ids": IDS, "attention_mask": torch.ones_like(IDS)}


@dataclass(eq=False)
class Case:
    """One family: its tokenizer by hand, our encoder, and transformers' own model."""

    name: str
    folder: Path
    tiny: Tiny
    encoder: Encoder
    model: Any

    @cache  # noqa: B019 (a case lives as long as its module's tests)
    def states(self, ids: tuple[int, ...]) -> list[torch.Tensor]:
        """All layers of one plain forward pass. Each of shape (len(ids), hidden size)."""
        given = torch.tensor([ids])
        with torch.no_grad():
            output = self.model(
                input_ids=given, attention_mask=torch.ones_like(given), output_hidden_states=True
            )
        return [state[0] for state in output.hidden_states]

    def by_hand(self, text: Text, pooling: str) -> list[torch.Tensor]:
        """Word vectors of every layer, by the documented rules, without our code."""
        pieces = [self.tiny.split(word) or [self.tiny.unknown] for word in text.words]
        if text.mask is not None:
            pieces[text.mask] = [self.tiny.backend.token_to_id(self.tiny.named[MASKED])]
        flat = [i for word in pieces for i in word]
        prefix, suffix = self.tiny.around()
        room = FAMILIES[self.name].window - len(prefix) - len(suffix)
        starts = [0]
        while starts[-1] + room < len(flat):
            starts.append(min(starts[-1] + room // 2, len(flat) - room))
        read = [self.states((*prefix, *flat[s : s + room], *suffix)) for s in starts]
        layers: list[list[torch.Tensor]] = [[] for _ in read[0]]
        first = 0
        for w, word in enumerate(pieces):
            places = list(range(first, first + len(word)))
            first += len(word)
            if not text.kept_span[0] <= w < text.kept_span[1]:
                continue
            chosen = {"mean": places, "first": places[:1], "last": places[-1:]}[pooling]
            for layer in range(len(layers)):
                vectors = []
                for place in chosen:
                    # the whole word's margin; a word in no window whole goes piece by piece
                    whole = [self.margin(places[0] - s, s + room - places[-1] - 1) for s in starts]
                    alone = [self.margin(place - s, s + room - place - 1) for s in starts]
                    margins = whole if max(whole) >= 0 else alone
                    best = margins.index(max(margins))
                    vectors.append(read[best][layer][len(prefix) + place - starts[best]])
                layers[layer].append(torch.stack(vectors).mean(0))
        return [torch.stack(vectors) for vectors in layers]

    def margin(self, left: int, right: int) -> int:
        """The context that a window gives: a decoder loses nothing at its right edge."""
        if self.name.startswith(("gpt", "llama", "opt", "qwen", "gemma")) and right >= 0:
            return left
        return min(left, right)

    def ours(self, texts: list[Text], pooling: Any, batch_tokens: int) -> Vectors:
        """Vectors from the encoder, by text."""
        layers = vectors_by_layer(self.encoder, texts, pooling, batch_tokens)
        starts = single_shard(View("plain", tuple(texts))).starts
        ends = [*starts[1:], len(layers[0])]
        return {
            text: [layer[start:end] for layer in layers]
            for text, start, end in zip(texts, starts, ends, strict=True)
        }


@pytest.fixture(scope="module", params=FAMILIES)
def case(request, tmp_path_factory):
    name = request.param
    folder = tmp_path_factory.mktemp(name)
    tiny = tiny_models.save(name, folder)
    model = AutoModel.from_pretrained(folder).eval()
    if model.config.is_encoder_decoder:
        model = model.get_encoder()
    encoder = load_encoder(find_model(str(folder)), device="cpu")
    return Case(name, folder, tiny, encoder, model)


def assert_close(ours: Vectors, expected: Vectors) -> None:
    """Every word, every layer: ‖a−b‖/‖b‖ ≤ 1e-3 after storage in fp16."""
    for text, layers in expected.items():
        assert len(ours[text]) == len(layers)
        for layer, (found, wanted) in enumerate(zip(ours[text], layers, strict=True)):
            stored = torch.from_numpy(found.numpy().astype(np.float16).astype(np.float32))
            error = (stored - wanted).norm(dim=1) / wanted.norm(dim=1)
            worst = int(error.argmax())
            assert error[worst] <= 1e-3, (text.words[text.kept_span[0] + worst], layer)


@pytest.mark.parametrize("pooling", ["mean", "first", "last"])
def test_word_vectors_are_those_of_a_plain_forward_pass(case, pooling):
    expected = {text: case.by_hand(text, pooling) for text in TEXTS}
    assert_close(case.ours(TEXTS, pooling, batch_tokens=256), expected)


def test_texts_in_a_batch_do_not_change_each_other(case):
    together = case.ours(TEXTS, "mean", batch_tokens=4096)
    for text in TEXTS:
        alone = case.ours([text], "mean", batch_tokens=1)[text]
        for one, other in zip(alone, together[text], strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_a_hidden_word_is_one_mask_or_cut_away(case):
    words = tuple(str.split("the keeper of the lights counts the boats before dark"))
    masks = MASKED in case.tiny.named and not case.name.startswith("gemma")
    assert (case.encoder.words.mask_id is not None) is masks
    if masks:
        text = Text(words, (5, 6), mask=5)
        long = Text(words * 4, (25, 26), mask=25)
        mask = case.tiny.backend.token_to_id(case.tiny.named[MASKED])
        for hidden in (text, long):
            (pieces,) = case.encoder.split([hidden])
            (start, end) = pieces.bounds[hidden.kept_span[0] : hidden.kept_span[0] + 2]
            assert pieces.ids[start:end].tolist() == [mask]
            assert pieces.ids.tolist().count(mask) == 1
    else:
        text = Text(words[:5], (4, 5))
        long = Text((words * 4)[:25], (24, 25))
    expected = {t: case.by_hand(t, "mean") for t in (text, long)}
    assert_close(case.ours([text, long], "mean", batch_tokens=256), expected)


# What layer 0 is, per family, from its submodules by hand; `m` the model, `ids` (1, n).
def _absolute(m: Any, ids: torch.Tensor) -> torch.Tensor:
    """Words + positions (after the padding index) + segment 0, normed: BERT and RoBERTa."""
    table = m.embeddings
    offset = 0 if table.position_embeddings.padding_idx is None else 2
    positions = table.position_embeddings.weight[offset : offset + ids.shape[1]]
    total = table.word_embeddings.weight[ids] + positions
    if hasattr(table, "token_type_embeddings"):
        total = total + table.token_type_embeddings.weight[0]
    return table.LayerNorm(total)


def _opt_input(model: Any, ids: torch.Tensor) -> torch.Tensor:
    """Its table of positions begins with two rows for none."""
    decoder = model.decoder
    return decoder.embed_tokens(ids) + decoder.embed_positions.weight[2 : 2 + ids.shape[1]]


def _bart_input(m: Any, ids: torch.Tensor) -> torch.Tensor:
    words = m.embed_tokens.weight[ids] * m.config.d_model**0.5  # scale_embedding is on here
    return m.layernorm_embedding(words + m.embed_positions.weight[2 : 2 + ids.shape[1]])


def _scaled(m: Any, ids: torch.Tensor) -> torch.Tensor:
    return m.embed_tokens.weight[ids] * m.config.hidden_size**0.5


def _words(m: Any, ids: torch.Tensor) -> torch.Tensor:
    return m.get_input_embeddings().weight[ids]


def _projected(m: Any, ids: torch.Tensor) -> torch.Tensor:
    albert = hasattr(m.encoder, "embedding_hidden_mapping_in")
    return (m.encoder.embedding_hidden_mapping_in if albert else m.embeddings_project)(
        _absolute(m, ids)
    )


LAYER_0 = {
    **dict.fromkeys(["bert", "distilbert", "roberta", "xlm-roberta", "mpnet"], _absolute),
    **dict.fromkeys(["albert", "electra"], _projected),
    **dict.fromkeys(["gpt-neox", "llama-2", "llama-3", "llama4", "qwen2", "qwen3", "t5"], _words),
    **dict.fromkeys(["gemma", "gemma2", "gemma3"], _scaled),
    "deberta-v2": lambda m, ids: m.embeddings.LayerNorm(m.embeddings.word_embeddings.weight[ids]),
    "modernbert": lambda m, ids: m.embeddings.norm(m.embeddings.tok_embeddings.weight[ids]),
    "gpt2": lambda m, ids: m.wte(ids) + m.wpe.weight[: ids.shape[1]],
    "opt": _opt_input,
    "bart": _bart_input,
}
BLOCKS = {name: its.blocks for name, its in PLACES.items()}
BLOCKS |= {"llama4": "layers", "opt": "decoder.layers"}
FINAL_NORM = NORMS | {"llama4": "norm", "opt": "decoder.final_layer_norm"}


def _first(output: Any) -> torch.Tensor:
    return (output[0] if isinstance(output, tuple) else output).detach()


def test_layers_are_what_the_table_says(case):
    """docs/architectures.md, row by row: layer 0, the blocks' outputs, the final norm."""
    text = Text(("nobody", "knows", "why"), (0, 3))
    (pieces,) = case.encoder.split([text])
    prefix, suffix = case.tiny.around()
    ids = torch.tensor([[*prefix, *pieces.ids, *suffix]])
    outputs: list[torch.Tensor] = []
    blocks = list(case.model.get_submodule(BLOCKS[case.name]))  # ALBERT has one
    hooks = [
        block.register_forward_hook(lambda _m, _i, output: outputs.append(_first(output)))
        for block in blocks
    ]
    with torch.no_grad():
        last = case.model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
        zero = LAYER_0[case.name](case.model, ids)
        for hook in hooks:
            hook.remove()
        if case.name == "deberta-v2":  # a convolution over the input joins the first block
            convolved = case.model.encoder.conv(zero, outputs[0], torch.ones_like(ids))
            assert not torch.allclose(convolved, outputs[0], atol=1e-2)
            last = outputs[-1]  # of the block that read it
            outputs[0] = convolved
        assert len(outputs) == case.encoder.info.n_layers
        if case.name in FINAL_NORM:
            raw, norm = outputs[-1], case.model.get_submodule(FINAL_NORM[case.name])
            outputs[-1] = norm(raw)
            assert not torch.allclose(raw, outputs[-1], atol=1e-2)
    torch.testing.assert_close(outputs[-1], last)
    ours = case.ours([text], "first", batch_tokens=64)[text]
    places = len(prefix) + torch.from_numpy(pieces.bounds[:-1])
    for found, expected in zip(ours, [zero, *outputs], strict=True):
        torch.testing.assert_close(found, expected[0, places], rtol=1e-4, atol=1e-5)


# -- every class of transformers ----------------------------------------------------------

USUAL = [
    *("Mamba", "Mamba2", "FalconMamba", "Rwkv", "Jamba", "Zamba", "RecurrentGemma", "Albert"),
    *("DebertaV2", "XLNet", "XLM", "OPT", "T5", "Bart", "Gemma3Text", "GptOss", "Llama"),
    *("ModernBert", "SqueezeBert", "HrmText"),
]
UNSEEN = {
    "XLNet": "blocks read (length, texts, size)",
    "CpmAnt": "blocks read prompts before the text",
    "XLM": "blocks are no modules",
    "Flaubert": "blocks are no modules",
    "SqueezeBert": "blocks are called without hooks",
}
"""Classes whose blocks cannot be compared with layers; why."""


def layers_of_class(name: str) -> bool | None:
    """Whether layers are the input and outputs of some row of modules; None if a class is refused.

    Raises:
        LookupError: no model of the class can be built, or run on a text.
    """
    tokenizer = fast_tokenizer("bert")
    transformers.logging.set_verbosity_error()
    for model in every_architecture.built(name):
        try:
            base = base_model(model)
            with torch.no_grad():
                output = base(input_ids=IDS, output_hidden_states=True)
            n_states, last = len(output.hidden_states), output.last_hidden_state
        except Exception:  # noqa: BLE001 (of images and sound, or of sizes that do not fit)
            continue
        try:
            encoder = Encoder(model, tokenizer, name=name, device="cpu")
        except UserError:
            return None
        with torch.no_grad(), trace(base) as events:
            states = encoder.states(INPUTS)
        torch.testing.assert_close(states[-1], last, rtol=1e-3, atol=1e-4)
        assert len(states) == n_states == encoder.info.n_layers + 1
        modules = list(base.modules())
        rows = [list(x) for x in modules if isinstance(x, torch.nn.ModuleList)]
        rows += [[x for x in modules if type(x) is kind] for kind in map(type, modules)]
        for row in rows:
            calls = [x for x in events if x.inputs and any(x.call.module is y for y in row)]
            if len(calls) == len(states) - 1 and torch.equal(calls[0].inputs[0], states[0]):
                pairs = [(x.output, y) for x, y in zip(calls, states[1:], strict=True)][:-1]
                if all(isinstance(x, torch.Tensor) and torch.equal(x, y) for x, y in pairs):
                    return True
        return False
    raise LookupError(name)


@pytest.mark.parametrize("name", USUAL)
def test_layers_of_any_class_are_the_input_and_the_outputs_of_its_blocks(name):
    assert layers_of_class(name) is (name not in UNSEEN)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", every_architecture.CLASSES)
def test_layers_of_every_class_that_can_be_built(name):
    try:
        found = layers_of_class(name)
    except LookupError:
        pytest.skip("no tiny model of it reads a text")
    assert found in (None, name not in UNSEEN)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("Mamba", {"state_size": 4, "num_hidden_layers": 1}),
        ("Mamba", {"state_size": 4, "num_hidden_layers": 3}),
        ("Rwkv", {"attention_hidden_size": 16, "num_hidden_layers": 8}),  # halved after block 6
    ],
)
def test_layers_from_blocks_are_changed_and_read_by_the_head(name, sizes):
    tokenizer = fast_tokenizer("bert")
    config = every_architecture.CLASSES[name](
        vocab_size=len(tokenizer), hidden_size=16, pad_token_id=0, **sizes
    )
    torch.manual_seed(7)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    encoder = Encoder(model, tokenizer, name=name, device="cpu")
    states = encoder.states(INPUTS)
    assert torch.equal(states[0], encoder.model.get_input_embeddings()(IDS))
    assert len(states) == encoder.info.n_layers + 1 == config.num_hidden_layers + 1
    with torch.no_grad():
        logits = model(IDS).logits[0]
    torch.testing.assert_close(encoder.lens().logits(states[-1][0]), logits)
    if name == "Mamba":
        for layer in range(len(states)):
            change = (Site("layer", layer), lambda x, _: x * 0 + 5)
            with changed_sites(encoder.model, sites_of(encoder.model), [change]):
                after = encoder.states(INPUTS)
            assert (after[layer] == 5).all()
            assert all(map(torch.equal, after[:layer], states))


@pytest.mark.parametrize("name", ["Mamba", "Mamba2", "FalconMamba", "Rwkv", "Jamba"])
def test_only_models_whose_layers_were_shifted_have_another_key(name, tmp_path):
    next(every_architecture.built(name)).save_pretrained(tmp_path)
    tiny_models.save_tokenizer("bert", tmp_path)
    source = find_model(str(tmp_path))
    files = {path.name: sha256(path) for path in source.files}
    before = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
    assert (source.digest == before) is (name == "Jamba")


class Shifted(transformers.BertModel):
    """Its hidden states are normed copies of what its blocks return."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        output = super().forward(*args, **kwargs)
        if output.hidden_states:
            first, *others = output.hidden_states
            output.hidden_states = (first, *(x.softmax(-1) for x in others))
        return output


class Early(transformers.XLMModel):
    """Its layer 0 has read other tokens, and none of its modules is a block."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        output = super().forward(*args, **kwargs)
        if output.hidden_states:
            output.hidden_states = (output.hidden_states[1], *output.hidden_states[1:])
        return output


@pytest.mark.parametrize("kind", [Shifted, Early])
def test_layers_that_are_not_those_of_blocks_are_refused(kind):
    tokenizer = fast_tokenizer("bert")
    sizes = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2}
    config = kind.config_class(vocab_size=len(tokenizer), **sizes)
    torch.manual_seed(7)
    with pytest.raises(UserError, match="not the input and the outputs of its blocks") as error:
        Encoder(kind(config), tokenizer, name="m", device="cpu")
    assert "\n" not in str(error.value)


class Block(torch.nn.Module):
    """Adds to its states, in place if asked; they may come in a tuple."""

    def __init__(self, size: int, kind: str) -> None:
        super().__init__()
        self.norm, self.inner = torch.nn.LayerNorm(size), torch.nn.Linear(size, size)
        torch.nn.init.normal_(self.inner.weight)
        self.kind = kind

    def forward(self, states: Any) -> Any:
        if "tuple" in self.kind:
            (states,) = states
        if "in place" in self.kind:
            states += self.inner(self.norm(states))
            return states
        return states + self.inner(self.norm(states))


class Odd(transformers.PreTrainedModel):
    """Its blocks read, or its hidden states are, what those of others are not."""

    config_class = transformers.BertConfig

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        size = config.hidden_size
        self.table = torch.nn.Embedding(config.vocab_size, size)
        self.norm = torch.nn.LayerNorm(size)
        blocks = [Block(size, config.kind) for _ in range(config.num_hidden_layers)]
        self.layers = torch.nn.ModuleList(blocks)
        self.post_init()

    def _init_weights(self, module: Any) -> None:
        pass

    def get_input_embeddings(self) -> Any:
        return self.table

    def forward(self, input_ids: Any = None, attention_mask: Any = None, **_: Any) -> Any:
        states = self.table(input_ids)
        kept = [states]
        states = states * 3 if "scaled" in self.config.kind else states + 1
        if "scaled" not in self.config.kind:
            kept = [states]
        for block in self.layers:
            states = block((states,) if "tuple" in self.config.kind else states)
            kept.append(states)
        if "normed" in self.config.kind:
            kept = [self.norm(x) for x in kept]
        return transformers.modeling_outputs.BaseModelOutput(kept[-1], tuple(kept))


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize(
    ("kind", "accepted"),
    [
        ("plain", True),
        ("tuple", True),
        ("in place", False),
        ("in place, tuple", False),
        ("scaled, normed", False),
        ("scaled, normed, tuple", False),
    ],
)
def test_blocks_in_code_of_others(kind, accepted, layers):
    tokenizer = fast_tokenizer("bert")
    torch.manual_seed(7)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=layers, kind=kind
    )
    if accepted:
        encoder = Encoder(Odd(config), tokenizer, name="m", device="cpu")
        states = encoder.states(INPUTS)
        assert torch.equal(states[0], encoder.model.table(IDS) + 1)
        assert len(states) == layers + 1
    else:
        with pytest.raises(UserError, match="not the input and the outputs of its blocks"):
            Encoder(Odd(config), tokenizer, name="m", device="cpu")


def test_a_changed_model_in_memory_is_read_anew():
    tokenizer = fast_tokenizer("bert")
    config = transformers.MambaConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=3, state_size=4, pad_token_id=0
    )
    model = transformers.MambaModel(config)
    first = Encoder(model, tokenizer, name="m", device="cpu")
    model.layers, config.num_hidden_layers = model.layers[:2], 2
    with pytest.raises(UserError, match="blocks were replaced"):
        first.states(INPUTS)
    again = Encoder(model, tokenizer, name="m", device="cpu")
    assert len(again.states(INPUTS)) == again.info.n_layers + 1 == 3
