"""Token types of a model whose tokenizer gives some to single texts."""

from __future__ import annotations

import torch
from tiny_models import FAMILIES
from tiny_readings import vectors_by_layer
from tokenizers import Tokenizer, processors
from transformers import PreTrainedTokenizerFast, XLNetConfig, XLNetModel

from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.views import Text

TEXTS = ("we saw the birds", "light", "she counts boats")


def by_hand(model, encoding, kinds):
    """Word vectors of every layer from a plain pass."""
    with torch.no_grad():
        inputs = {kind: torch.tensor([encoding[kind]]) for kind in kinds}
        states = model(**inputs, output_hidden_states=True).hidden_states
    words = encoding.word_ids(0)
    places = [[i for i, x in enumerate(words) if x == word] for word in range(max(words[:-2]) + 1)]
    return [torch.stack([state[0, at].mean(0) for at in places]) for state in states]


def test_xlnet_reads_the_token_types_of_its_tokenizer():
    """Type 2 for the last token; without types XLNet has no segment encoding."""
    backend = FAMILIES["xlm-roberta"].tokenizer().backend
    sep, cls = ((token, backend.token_to_id(token)) for token in ("</s>", "<s>"))
    backend = Tokenizer.from_str(backend.to_str())
    backend.post_processor = processors.TemplateProcessing(
        single=f"$A:0 {sep[0]}:0 {cls[0]}:2", special_tokens=[sep, cls]
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")
    rows = backend.get_vocab_size()
    torch.manual_seed(7)
    settings = {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32, "initializer_range": 0.5}
    model = XLNetModel(XLNetConfig(vocab_size=rows, **settings)).eval()
    given = [
        tokenizer(x.split(), is_split_into_words=True, return_token_type_ids=True) for x in TEXTS
    ]
    kinds = ("input_ids", "attention_mask", "token_type_ids")
    expected = [by_hand(model, each, kinds) for each in given]
    without = [by_hand(model, each, kinds[:2]) for each in given]
    texts = [Text(tuple(x.split()), (0, len(x.split()))) for x in TEXTS]
    ours = vectors_by_layer(Encoder(model, tokenizer, name="xlnet", device="cpu"), texts)
    for layer, found in enumerate(ours):
        wanted = torch.cat([each[layer] for each in expected])
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    wrong = torch.cat([each[-1] for each in without])
    assert (wrong - ours[-1]).norm() > 0.05 * ours[-1].norm()
