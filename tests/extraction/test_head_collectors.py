"""Collectors of attention heads, and language-model heads of unusual shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from slow_scores import left_to_right
from tiny_models import build
from tiny_readings import collected, random_texts
from transformers import GPT2LMHeadModel

from probes.common.errors import UserError
from probes.extraction.collectors import WordVectors
from probes.extraction.encoder import Encoder
from probes.extraction.encoding import read
from probes.extraction.head_collectors import FOUND, HeadOutputs, ProbeGradients, SurprisalGradients
from probes.extraction.inspection import short_states, short_text
from probes.extraction.lm_head import Lens
from probes.extraction.sites import Site, changed, sites_of
from probes.extraction.token_scores import LossOfWords, TokenScores
from probes.extraction.vectors import layer_part
from probes.extraction.views import Text, View

# Some take several windows of 32 tokens.
TEXTS = [text for text in dict.fromkeys(random_texts(12, seed=5)) if text.size]
SIZE = 8
"""Of a head."""


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder(*build("bert", "BertForMaskedLM"), name="bert", device="cpu")


def by_hand(encoder: Encoder, values: Callable[[], torch.Tensor]) -> torch.Tensor:
    """Derivatives of values (n,) as each head's columns of W_O grow. Shape (n, 2, 2)."""
    found = []
    for block in encoder.model.encoder.layer:
        weight = block.attention.output.dense.weight.data
        for head in range(2):
            columns = weight[:, SIZE * head : SIZE * (head + 1)]
            plain, moved = columns.clone(), []
            for factor in (1.02, 0.98):
                columns[:] = plain * factor
                moved.append(values().double())
            columns[:] = plain
            found.append((moved[0] - moved[1]) / 0.04)
    return torch.stack(found, 1).unflatten(1, (2, 2))


def word_sums(values: torch.Tensor) -> torch.Tensor:
    """Sums over the kept words of each text."""
    counts = [text.keep[1] - text.keep[0] for text in TEXTS]
    return torch.stack([part.sum() for part in values.split(counts)])


@pytest.mark.parametrize("batch_tokens", [16, 300])
def test_gradients_of_probes_are_finite_differences(encoder: Encoder, batch_tokens: int) -> None:
    generator = torch.Generator().manual_seed(0)
    maps = torch.randn(2, 16, generator=generator)

    def vectors() -> torch.Tensor:
        return collected(encoder, TEXTS, WordVectors([2], "mean", "float32"))[layer_part(2)]

    def losses(map_: torch.Tensor) -> torch.Tensor:
        return word_sums((vectors() @ map_).square())

    plain = vectors()
    errors = torch.stack([2 * (plain @ map_)[:, None] * map_ for map_ in maps])
    counts = [text.keep[1] - text.keep[0] for text in TEXTS]
    of_text = dict(zip(TEXTS, errors.split(counts, dim=1), strict=True))
    found = collected(encoder, TEXTS, ProbeGradients(of_text, "mean"), batch_tokens)[FOUND]
    assert found.shape == (len(TEXTS), 2, 2, 2)
    assert max(len(x.ids) for x in encoder.split(TEXTS)) > encoder.capacity
    for number, map_ in enumerate(maps):
        wanted = by_hand(encoder, lambda map_=map_: losses(map_)).float()
        torch.testing.assert_close(found[:, number], wanted, rtol=0.01, atol=0.01)
    assert found.abs().max() > 0.5


@pytest.mark.parametrize(
    ("name", "kind"), [("bert", "BertForMaskedLM"), ("gpt2", "GPT2LMHeadModel")]
)
def test_gradients_of_surprisal_are_finite_differences(name: str, kind: str) -> None:
    its = Encoder(*build(name, kind), name=name, device="cpu")
    texts = [Text(("she", " counts", " the", " lightkeepers"), (3, 4), written=True)]
    texts.append(Text(("the", " boats"), (1, 2), written=True))
    words = {texts[0]: np.array([3]), texts[1]: np.array([1])}
    found = collected(its, texts, SurprisalGradients(words))[FOUND][:, 0]

    def surprisal() -> torch.Tensor:
        scores = collected(its, texts, LossOfWords(words))
        assert scores["pieces"][0] > 1
        parts = scores["log_p"].double().split(scores["pieces"].tolist())
        return -torch.stack([part.mean() for part in parts])

    if name == "bert":
        wanted = by_hand(its, surprisal)
    else:  # whose weights are (in, out)
        wanted = []
        for block in its.model.h:
            weight = block.attn.c_proj.weight.data
            for rows in (slice(0, SIZE), slice(SIZE, 2 * SIZE)):
                plain, moved = weight[rows].clone(), []
                for factor in (1.02, 0.98):
                    weight[rows] = plain * factor
                    moved.append(surprisal())
                weight[rows] = plain
                wanted.append((moved[0] - moved[1]) / 0.04)
        wanted = torch.stack(wanted, 1).unflatten(1, (2, 2))
    torch.testing.assert_close(found, wanted.float(), rtol=0.02, atol=2e-4)
    assert found.abs().max() > 1e-3


def test_mean_outputs_are_those_that_a_plain_hook_sees(encoder: Encoder) -> None:
    short = [text for text in TEXTS if len(encoder.split([text])[0].ids) <= encoder.capacity]
    found = collected(encoder, short, HeadOutputs(), 100)[FOUND]
    seen: list[list[torch.Tensor]] = [[], []]
    for text in short:
        (pieces,) = encoder.split([text])
        ids = torch.tensor([[*encoder.words.prefix, *pieces.ids, *encoder.words.suffix]])
        start, end = (pieces.bounds[i] + 1 for i in text.keep)
        handles = [
            block.attention.output.dense.register_forward_pre_hook(
                lambda _, args, own=own, start=start, end=end: own.append(args[0][0, start:end])
            )
            for block, own in zip(encoder.model.encoder.layer, seen, strict=True)
        ]
        with torch.no_grad():
            encoder.model(input_ids=ids)
        for handle in handles:
            handle.remove()
    every = torch.stack([torch.cat(own) for own in seen])
    torch.testing.assert_close(found[..., :-1].flatten(1), every.sum(1), rtol=1e-4, atol=1e-4)
    assert (found[..., -1] == every.shape[1]).all()


HEADS = {"opt": "OPTForCausalLM", "llama4": "Llama4ForCausalLM", "bart": "BartForCausalLM"}
"""The first and the last call the decoder inside their base; the base of the second is named wrong."""

TEXT = "the birds sing near the house"


@pytest.fixture(params=HEADS.items(), ids=HEADS)
def loaded(request: pytest.FixtureRequest) -> tuple[Any, Any, Encoder]:
    name, kind = request.param
    model, tokenizer = build(name, kind)
    return model, tokenizer, Encoder(model, tokenizer, name=name, device="cpu")


def test_log_probabilities_are_those_of_plain_passes(loaded: Any) -> None:
    model, tokenizer, encoder = loaded
    view = View("written", (Text((TEXT,), (0, 1), written=True),))
    ((_, found),) = read(view, TokenScores(), encoder, 64)
    expected = left_to_right(model, tokenizer, TEXT)
    np.testing.assert_allclose(found["log_p"].numpy(), expected, atol=1e-4)


def test_the_lens_gives_the_logits_of_the_model_at_the_last_layer_alone(loaded: Any) -> None:
    model, _, encoder = loaded
    states = short_states(encoder.model)
    with torch.no_grad():
        logits = model(**short_text(encoder.model)).logits[0]
    lens = Lens.of(model, encoder.model)
    torch.testing.assert_close(lens(states[-1][0], lens.n_layers), logits)
    assert (lens(states[0][0], 0) - logits).abs().max() > 0.1


def test_changes_act_in_the_passes_of_the_head(loaded: Any) -> None:
    model, _, encoder = loaded
    sites, given = sites_of(encoder.model), short_text(encoder.model)
    with torch.no_grad():
        plain = model(**given).logits
        with changed(encoder.model, sites, [(Site("mlp", 1), lambda x, _: torch.zeros_like(x))]):
            other = model(**given).logits
        again = model(**given).logits
    assert (plain - other).abs().max() > 1e-2
    torch.testing.assert_close(plain, again)


class TwoLayers(GPT2LMHeadModel):
    """A head that reads the first layer, too."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        found = super().forward(*args, **{**kwargs, "output_hidden_states": True})
        if found.hidden_states is not None:
            found.logits = found.logits + self.lm_head(found.hidden_states[1])
        return found


def test_a_head_that_reads_more_than_the_last_layer_has_no_lens() -> None:
    model, _ = build("gpt2", "GPT2LMHeadModel")
    model.__class__ = TwoLayers
    with pytest.raises(UserError, match="TwoLayers does not apply its language-model head to"):
        Lens.of(model, model.transformer)
