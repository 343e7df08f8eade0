"""Collectors of attention heads, and language-model heads of unusual shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from places import PLACES, block_of
from slow_scores import left_to_right
from tiny_models import build
from tiny_readings import collected, encoder_of, random_texts
from transformers import GPT2LMHeadModel

from probes.common.errors import UserError
from probes.extraction.changing.head_collectors import BY_HEAD, LossGradients
from probes.extraction.changing.sites import Site, changed_sites, sites_of
from probes.extraction.models.lm_head import Lens
from probes.extraction.models.loaded_module import short_states, short_text
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.encoding import read
from probes.extraction.reading.token_scores import LossOfWords, TokenScores
from probes.extraction.reading.views import Text, View

# Some take several windows of 32 tokens.
TEXTS = [text for text in dict.fromkeys(random_texts(12, seed=5)) if text.size]
SIZE = 8
"""Of a head."""


@pytest.mark.parametrize("batch_tokens", [16, 300])
@pytest.mark.parametrize(
    ("name", "kind"), [("bert", "BertForMaskedLM"), ("gpt2", "GPT2LMHeadModel")]
)
def test_gradients_of_the_loss_are_finite_differences(name, kind, batch_tokens, monkeypatch):
    """As each head's columns of the output projection grow; texts may have several windows."""
    its = encoder_of(name, kind)
    monkeypatch.setattr("probes.extraction.models.lm_head._LOGITS", 600)  # a few positions at once
    kept = [text for text in TEXTS if text.kept_span[1] > text.kept_span[0]]
    words = {text: np.arange(text.kept_span[0], text.kept_span[1], 2) for text in kept}
    found = collected(its, kept, LossGradients(words), batch_tokens)[BY_HEAD]
    assert max(len(pieces.ids) for pieces in its.split(kept)) > its.capacity

    def losses() -> torch.Tensor:
        """Mean surprisal of the scored pieces of each text."""
        scores = collected(its, kept, LossOfWords(words))
        counts = [text.kept_span[1] - text.kept_span[0] for text in kept]
        pieces = [int(part.sum()) for part in scores["pieces"].split(counts)]
        parts = scores["log_p"].double().split(pieces)
        return torch.stack([-part.nanmean() if len(part) else torch.tensor(0.0) for part in parts])

    for number in range(2):
        linear = block_of(its.model, name, number + 1).get_submodule(PLACES[name].output)
        weight = linear.weight.T if name == "gpt2" else linear.weight
        for head in range(2):
            columns = weight.data[:, SIZE * head : SIZE * (head + 1)]
            plain, moved = columns.clone(), []
            for factor in (1.02, 0.98):
                columns[:] = plain * factor
                moved.append(losses())
            columns[:] = plain
            expected = ((moved[0] - moved[1]) / 0.04).float()
            torch.testing.assert_close(found[:, number, head], expected, rtol=0.02, atol=1e-3)
    assert found.abs().max() > 0.05


CLASSES = "OPTForCausalLM", "Llama4ForCausalLM", "BartForCausalLM", "Gemma3ForCausalLM"
HEADS = dict(zip(("opt", "llama4", "bart", "gemma3"), CLASSES, strict=True))
"""The first and the third call the decoder inside their base; the base of the second is named wrong.
The last has a tied head, soft-capped logits, and a window of attention shorter than the text."""

TEXT = "the birds sing near the house, and the keeper counts the old boats"


@pytest.fixture(params=HEADS.items(), ids=HEADS)
def loaded(request):
    name, kind = request.param
    model, tokenizer = build(name, kind)
    if name == "gemma3":
        model.config.final_logit_softcapping = 2.0
        assert model.config.tie_word_embeddings
        assert model.config.sliding_window < len(tokenizer(TEXT)["input_ids"])
    return model, tokenizer, Encoder(model, tokenizer, name=name, device="cpu")


def test_log_probabilities_are_those_of_plain_passes(loaded):
    model, tokenizer, encoder = loaded
    view = View("written", (Text((TEXT,), (0, 1), written=True),))
    ((_, found),) = read(view, TokenScores(), encoder, 64)
    expected = left_to_right(model, tokenizer, TEXT)
    np.testing.assert_allclose(found["log_p"].numpy(), expected, atol=1e-4)


def test_the_lens_gives_the_logits_of_the_model_at_the_last_layer_alone(loaded):
    model, _, encoder = loaded
    states = short_states(encoder.model)
    with torch.no_grad():
        logits = model(**short_text(encoder.model)).logits[0]
    lens = Lens.of(model, encoder.model)
    torch.testing.assert_close(lens(states[-1][0], lens.n_layers), logits)
    assert (lens(states[0][0], 0) - logits).abs().max() > 0.1


def test_the_head_is_applied_to_a_few_positions_at_once(loaded, monkeypatch):
    model, _, encoder = loaded
    view = View("written", (Text((TEXT,), (0, 1), written=True),))
    ((_, whole),) = read(view, TokenScores(), encoder, 64)
    head, sizes = model.get_output_embeddings(), []
    monkeypatch.setattr("probes.extraction.models.lm_head._LOGITS", 3 * head.weight.shape[0])
    with head.register_forward_hook(lambda _, given, logits: sizes.append(given[0].shape[1])):
        ((_, found),) = read(view, TokenScores(), encoder, 64)
    assert max(sizes) == 3
    for name in ("log_p", "word_ends"):
        torch.testing.assert_close(found[name], whole[name], atol=1e-5, rtol=0)


def test_changes_act_in_the_passes_of_the_head(loaded):
    model, _, encoder = loaded
    sites, given = sites_of(encoder.model), short_text(encoder.model)
    with torch.no_grad():
        plain = model(**given).logits
        with changed_sites(
            encoder.model, sites, [(Site("mlp", 1), lambda x, _: torch.zeros_like(x))]
        ):
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


def test_a_head_that_reads_more_than_the_last_layer_has_no_lens():
    model, _ = build("gpt2", "GPT2LMHeadModel")
    model.__class__ = TwoLayers
    with pytest.raises(UserError, match="TwoLayers does not apply its language-model head to"):
        Lens.of(model, model.transformer)
