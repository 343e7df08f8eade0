"""The online code against hand computations, entropies and long fits."""

import numpy as np
import pytest
import torch
from planted_examples import one_cell

from probes.records.probe_spec import PROBES
from probes.training import online_code as coding
from probes.training.online_code import (
    OnlineCode,
    block_ends,
    online_code,
    prior_block_bits,
    uniform_bits,
)


def test_too_few_examples_for_two_blocks_have_a_uniform_code():
    y = torch.tensor([0, 1, 2] * 10)
    code = online_code(one_cell(torch.randn(2, 30, 4), y), 3, PROBES["linear"])
    assert code.ends == (30,)
    assert code.bits.tolist() == pytest.approx([uniform_bits(30, 3)] * 2)


def test_labels_independent_of_the_features_cost_little_more_than_their_entropy():
    share = torch.tensor([0.6, 0.3, 0.1])
    torch.manual_seed(0)
    y = torch.multinomial(share, 3000, replacement=True)
    code = online_code(one_cell(torch.randn(1, 3000, 64), y, per_sentence=5), 3, PROBES["linear"])
    entropy = -(share * share.log2()).sum().item()
    deviation = (share * (-share.log2() - entropy) ** 2).sum().sqrt().item()
    low = 3000 * entropy - 3 * deviation * 3000**0.5
    assert low < code.bits.item() < 1.1 * sum(prior_block_bits(y, code.ends, 3))


def test_informative_features_give_a_far_shorter_code():
    torch.manual_seed(0)
    y = torch.randint(4, (3000,))
    x = torch.randn(2, 3000, 64)
    x[1, :, :4] = 2 * torch.nn.functional.one_hot(y, 4).float()
    code = online_code(one_cell(x, y, per_sentence=5), 4, PROBES["linear"])
    noise, planted = code.bits.tolist()
    assert noise > 0.95 * 6000
    assert planted < 0.15 * 6000


@pytest.mark.parametrize("n", [1, 30, 45, 300, 3985, 204577])
def test_blocks_consist_of_whole_sentences_and_are_not_tiny(n):
    lengths = np.random.default_rng(n).integers(1, 30, n)
    sentences = torch.from_numpy(np.repeat(np.arange(n), lengths)[:n])
    ends = block_ends(sentences)
    assert ends[-1] == n
    assert all(sentences[end - 1] != sentences[end] for end in ends[:-1])
    assert min(np.diff((0, *ends))) >= min(n, 20)
    if n > 200_000:
        assert len(ends) == 11
        assert [100 * end / n for end in ends] == pytest.approx(
            [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.25, 12.5, 25, 50, 100], abs=0.02
        )


def hard():
    """Features with the spectrum of a model's vectors, which nearly separate the classes."""
    generator = torch.Generator().manual_seed(3)
    truth = torch.randn(96, 6, generator=generator)
    z = torch.randn(6000, 96, generator=generator)
    y = (z[:, :40] @ truth[:40] + 0.5 * torch.randn(6000, 6, generator=generator)).argmax(1)
    turn = torch.linalg.qr(torch.randn(96, 96, generator=generator))[0]
    x = (z * (6 / torch.arange(1, 97)).clamp_max(2)) @ turn
    return one_cell(x[None], y, per_sentence=5)


def test_the_code_is_that_of_prefixes_fitted_to_the_end(monkeypatch):
    short = online_code(hard(), 6, PROBES["linear"])
    monkeypatch.setattr(coding, "PREFIX_STEPS", 300)
    long = online_code(hard(), 6, PROBES["linear"])
    assert short.ends == long.ends
    assert long.bits.item() < 0.7 * uniform_bits(6000, 6)
    assert short.bits.item() == pytest.approx(long.bits.item(), rel=0.005)


def test_intervals_of_codelengths_end_at_0():
    code = OnlineCode((20,), torch.tensor([[10.0], [10.0]]), torch.tensor([1.0, 8.0]))
    assert code.intervals[0] == pytest.approx((8.04, 11.96))
    assert code.intervals[1] == pytest.approx((0, 25.68))
