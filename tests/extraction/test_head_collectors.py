"""What collectors find of heads, against plain hooks and scaled columns of W_O."""

from __future__ import annotations

import pytest
import torch
from tiny_models import build
from tiny_readings import collected, random_texts

from probes.extraction.encoder import Encoder
from probes.extraction.head_collectors import FOUND, HeadOutputs

# Some take several windows of 32 tokens.
TEXTS = [text for text in dict.fromkeys(random_texts(12, seed=5)) if text.size]
SIZE = 8
"""Of a head."""


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder(*build("bert", "BertForMaskedLM"), name="bert", device="cpu")


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
