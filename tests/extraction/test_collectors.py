"""Collectors that compute attention or read logits, against plain passes of one text each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest
import torch
import transformers
from tiny_models import build, fast_tokenizer
from tiny_readings import Maps, collected, encoder_of, plain_input, random_texts, vectors_by_layer

from probes.common.errors import UserError
from probes.extraction.models.loading import load_encoder
from probes.extraction.models.model_files import find_model
from probes.extraction.reading.alignment import Pieces
from probes.extraction.reading.attention_maps import AttentionCollector
from probes.extraction.reading.collectors import (
    Collector,
    NotFiniteError,
    OutOfRangeError,
    WordVectors,
    layer_states,
)
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.padding import PaddedWindows
from probes.extraction.reading.shards import Shard
from probes.extraction.reading.views import Text
from probes.records.header import ModelRecord

# Of at most 32 tokens, the window of tiny models, and of many lengths.
TEXTS = [text for text in random_texts(40, seed=3) if len("".join(text.words)) < 24]


class Toy(Collector):
    """A collector whose parts, by text, are put together here."""

    name = "toy"

    @property
    def parts(self) -> tuple[str, ...]:
        return ("found",)

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        return 0

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        self.found: dict[int, list[torch.Tensor]] = {text: [] for text in range(len(shard.texts))}

    def finish(self) -> dict[str, torch.Tensor]:
        return {str(text): torch.stack(parts) for text, parts in self.found.items()}


# -- attention ----------------------------------------------------------------------------


def entropy(weights: torch.Tensor) -> torch.Tensor:
    """Entropy of each distribution along the last dimension, in nats."""
    return torch.special.entr(weights).sum(-1)


class Entropies(Toy, AttentionCollector):
    """The entropy of every head of every block, summed over the tokens of a text."""

    model_arguments: ClassVar[Mapping[str, Any]] = {"output_hidden_states": True}

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        super().start(shard, pieces)
        self.states: dict[int, list[torch.Tensor]] = {}
        self.visible: dict[int, list[list[int]]] = {}

    def prepare(self, windows: PaddedWindows) -> None:
        self.windows = windows
        self.blocks: list[int] = []

    def take(self, block: int, maps: torch.Tensor, visible: torch.Tensor) -> None:
        self.blocks.append(block)
        real = self.windows.inputs["attention_mask"][:, None]
        for row, sums in enumerate((entropy(maps) * real).sum(-1)):
            text = int(self.windows.text[row])
            self.found[text].append(sums)
            seen = visible[row].sum(-1)[: int(real[row].sum())].tolist()
            self.visible.setdefault(text, []).append(seen)

    def add(self, windows: PaddedWindows, output: Any) -> None:
        assert self.blocks == [1, 2]
        lengths = windows.inputs["attention_mask"].sum(1)
        for row, text in enumerate(windows.text):
            self.states[int(text)] = [x[row, : lengths[row]] for x in layer_states(output)]


@pytest.mark.parametrize(
    "name", ["bert", "distilbert", "gpt2", "llama-3", "t5", "mpnet", "deberta-v2"]
)
@pytest.mark.parametrize("batch_tokens", [1, 200])
def test_attention_is_that_of_eager_maps(name, batch_tokens):
    """Also that of T5, with its bias, and of models that compute attention in their own way."""
    encoder = encoder_of(name, "T5EncoderModel" if name == "t5" else "")
    config = encoder.model.config
    assert name != "llama-3" or config.num_key_value_heads < config.num_attention_heads
    before = vectors_by_layer(encoder, TEXTS, batch_tokens=batch_tokens)
    used = config._attn_implementation
    collector = Entropies()
    found = collected(encoder, TEXTS, collector, batch_tokens)
    assert config._attn_implementation == used
    after = vectors_by_layer(encoder, TEXTS, batch_tokens=batch_tokens)
    assert all(map(torch.equal, before, after))
    encoder.model.set_attn_implementation("eager")
    for number, text in enumerate(TEXTS):
        with torch.no_grad():
            plain = encoder.model(
                **plain_input(encoder, text), output_attentions=True, output_hidden_states=True
            )
        expected = torch.stack([entropy(maps[0]).sum(-1) for maps in plain.attentions])
        n_tokens = plain.attentions[0].shape[-1]
        seen = [i + 1 if encoder.info.causal else n_tokens for i in range(n_tokens)]
        assert collector.visible[number] == [seen, seen]
        assert expected.shape == (2, 2)
        torch.testing.assert_close(found[str(number)], expected, rtol=1e-4, atol=1e-4)
        for ours, theirs in zip(collector.states[number], layer_states(plain), strict=True):
            torch.testing.assert_close(ours, theirs[0], rtol=1e-4, atol=1e-5)


def test_rows_of_a_sliding_window_see_its_tokens_alone():
    """The first block of Gemma 2 has one, the second has not."""
    model, tokenizer = build("gemma2", "Gemma2Model")
    model.config.sliding_window = 3
    encoder = Encoder(model, tokenizer, name="gemma2", device="cpu")
    collector = Entropies()
    collected(encoder, TEXTS, collector)
    for local, every in collector.visible.values():
        assert local == [min(x, 3) for x in every]
        assert every == list(range(1, len(every) + 1))


# -- logits -------------------------------------------------------------------------------


class Logits(Toy):
    """Predictions at the last and at the first piece of each text."""

    reads_logits: ClassVar[bool] = True
    model_arguments: ClassVar[Mapping[str, Any]] = {"output_hidden_states": True}

    def positions(self, windows: PaddedWindows) -> torch.Tensor:
        length = windows.inputs["input_ids"].shape[1]
        first = torch.arange(len(windows.text)) * length + windows.n_prefix
        return torch.stack([first + windows.n_pieces - 1, first], dim=1).flatten()

    def add(self, windows: PaddedWindows, output: Any) -> None:
        assert all(len(state) == len(windows.text) for state in output.hidden_states)
        for text, both in zip(windows.text, output.logits.unflatten(0, (-1, 2)), strict=True):
            self.found[int(text)].extend(both)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("bert", "BertForMaskedLM"),
        ("roberta", "RobertaForMaskedLM"),
        ("distilbert", "DistilBertForMaskedLM"),
        ("gpt2", "GPT2LMHeadModel"),
        ("llama-3", "LlamaForCausalLM"),
    ],
)
def test_logits_where_they_are_wanted_are_those_of_a_full_pass(name, kind):
    model, tokenizer = build(name, kind)
    encoder = Encoder(model, tokenizer, name=name, device="cpu")
    found = collected(encoder, TEXTS, Logits(), 200)
    first = len(encoder.words.prefix)
    for number, text in enumerate(TEXTS):
        given = plain_input(encoder, text)
        with torch.no_grad():
            everywhere = model(**given).logits[0]
        assert len(everywhere) == given["input_ids"].shape[1]
        last = len(everywhere) - len(encoder.words.suffix) - 1
        expected = everywhere[[last, first]]
        torch.testing.assert_close(found[str(number)], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "kind"), [("bert", "BertForMaskedLM"), ("gpt2", "GPT2LMHeadModel")]
)
def test_a_head_is_loaded_from_a_folder_around_the_same_base(name, kind, tmp_path):
    """Also around that of a random twin, whose word vectors are those of the twin without it."""
    model, tokenizer = build(name, kind)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    source, twin = find_model(str(tmp_path)), find_model(f"random:{tmp_path}")
    encoder = load_encoder(source, device="cpu", lm_head=True)
    found = collected(encoder, TEXTS, Logits(), 200)
    expected = collected(Encoder(model, tokenizer, name=name, device="cpu"), TEXTS, Logits(), 200)
    for number, logits in expected.items():
        torch.testing.assert_close(found[number], logits, rtol=1e-5, atol=1e-5)
    vectors = vectors_by_layer(load_encoder(source, device="cpu"), TEXTS)
    assert all(map(torch.equal, vectors_by_layer(encoder, TEXTS), vectors))
    of_twin = load_encoder(twin, device="cpu", lm_head=True)
    vectors = vectors_by_layer(load_encoder(twin, device="cpu"), TEXTS)
    assert all(map(torch.equal, vectors_by_layer(of_twin, TEXTS), vectors))
    collected(of_twin, TEXTS, Logits())


# -- word vectors -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "storage", "error"),
    [
        (65504.0, "float16", None),
        (-65520.0, "float16", OutOfRangeError),
        (65520.0, "float32", None),
        (float("inf"), "float32", NotFiniteError),
        (float("nan"), "float16", NotFiniteError),
    ],
)
def test_vectors_are_stored_if_they_are_finite_and_in_range(value, storage, error):
    encoder = encoder_of("gpt2")
    texts = [Text(("a", "b"), (0, 2)), Text(("b", "c", "a"), (1, 3))]
    (piece,) = encoder.split([Text(("c",), (0, 1))])[0].ids
    with torch.no_grad():
        encoder.model.wte.weight[piece] = 0
        encoder.model.wpe.weight.zero_()
        encoder.model.wte.weight[piece, 3] = value
    collector = WordVectors([0], storage=storage)
    if error is None:
        vectors = collected(encoder, texts, collector)["layer-00"]
        assert (vectors.dtype, vectors[2, 3]) == (getattr(torch, storage), value)
        return
    with pytest.raises(error) as caught:
        collected(encoder, texts, collector)
    if error is NotFiniteError:
        assert (caught.value.layer, caught.value.row) == (0, 2)
    else:
        assert str(caught.value) == "layer 0 reaches 65520, beyond fp16's range"


_CODER = {"layers": 2, "attention_heads": 2, "ffn_dim": 32}
_BAND = {"attention_window": [8, 8]}
_BERT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}  # fmt: skip
_PARTS = {f"{part}_{name}": n for part in ("encoder", "decoder") for name, n in _CODER.items()}
ODD: dict[str, dict[str, Any]] = {
    "Longformer": {**_BERT, **_BAND},
    "LED": {**_PARTS, **_BAND, "d_model": 16, "max_encoder_position_embeddings": 64},
    "LongT5": {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2, "local_radius": 4},
    "Mamba": {"hidden_size": 16, "num_hidden_layers": 2, "state_size": 4},
    "Rwkv": {"hidden_size": 16, "num_hidden_layers": 2, "attention_hidden_size": 16},
    "BigBird": _BERT,
}  # fmt: skip
"""Local attention in bands and blocks, no attention, and sparse attention of its own."""


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("n_words", [3, 12, 30])
def test_maps_that_cannot_be_read_are_refused(kind, n_words):
    tokenizer = fast_tokenizer("bert")
    ids = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    torch.manual_seed(7)
    config = getattr(transformers, f"{kind}Config")(**ids, **ODD[kind])
    model = transformers.AutoModel.from_config(config)
    encoder = Encoder(model, tokenizer, name=kind.lower(), device="cpu")
    used = encoder.model.config._attn_implementation
    with pytest.raises(UserError, match=r"computes attention in its own way, which cannot be obse"):
        collected(encoder, [Text(("the",) * n_words, (0, n_words))], Maps())
    assert encoder.model.config._attn_implementation == used
