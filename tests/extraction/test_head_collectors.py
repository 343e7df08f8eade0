"""What collectors find of heads, against plain hooks and scaled columns of W_O."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from tiny_models import build
from tiny_readings import collected, random_texts

from probes.extraction.collectors import WordVectors
from probes.extraction.encoder import Encoder
from probes.extraction.head_collectors import FOUND, HeadOutputs, ProbeGradients, SurprisalGradients
from probes.extraction.token_scores import LossOfWords
from probes.extraction.vectors import layer_part
from probes.extraction.views import Text

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
