"""The online code against hand computations, entropies and long fits."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from probes.records.probe_spec import PROBES
from probes.training import online_code as coding
from probes.training.batches import Batches, batch_bounds
from probes.training.family import Linear
from probes.training.features import Held
from probes.training.online_code import (
    block_ends,
    decisions,
    online_code,
    prior_block_bits,
    uniform_bits,
)

SETS = torch.tensor([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 1]]).float()


def examples(x, y, per_sentence=1):
    """Examples of weight 1 with features (L, N, H)."""
    sentences = torch.arange(len(y)) // per_sentence
    return Batches(Held(x), y[None], torch.ones(1, len(y)), sentences, batch_bounds(sentences))


def says(monkeypatch, bias_of):
    """Instead of fitting: probes that see nothing and have the biases `bias_of(prefix, k)`."""
    seen = []

    def fit(prefix, family, loss, start, strengths, n_steps):
        seen.append((prefix, strengths))
        n_layers, n_cells = strengths.shape
        bias = torch.stack([bias_of(prefix, k) for k in range(n_cells)])
        return [torch.zeros_like(start[0]), bias.expand(n_layers, -1, -1)]

    monkeypatch.setattr(coding, "fit_full_batch", fit)
    return seen


def test_codelength_is_a_hand_computation(monkeypatch):
    monkeypatch.setattr("probes.training.online_code.SHARES", (25.0, 50.0, 100.0))
    y = torch.tensor([0, 1] * 40)
    # Four probes that say 1/2, 3/4, 1/8 and 1/2 for class 0.
    said = [torch.tensor([p, 1 - p]).log() for p in (0.5, 0.75, 0.125, 0.5)]
    seen = says(monkeypatch, lambda prefix, k: said[k])
    code = online_code(examples(torch.zeros(1, 80, 3), y, 4), 2, PROBES["linear"])
    assert code.ends == (20, 40, 80)

    def block(prefix, n):  # half of the labels are 0; a share 2 / (2n + 2) is uniform.
        e = 1 / (prefix + 1)
        pairs = [
            ((1 - e) * a + e / 2) * ((1 - e) * (1 - a) + e / 2) for a in (0.5, 0.75, 0.125, 0.5)
        ]
        return -math.log2(sum(p ** (n / 2) for p in pairs) / 4)

    expected = [20, block(20, 20), block(40, 40)]
    assert expected == pytest.approx([20, 20.9454, 40.9969], abs=1e-4)
    assert code.block_bits[0].tolist() == pytest.approx(expected, rel=1e-6)
    assert code.bits.item() == pytest.approx(81.9422, abs=1e-3)
    # The prior on the weights stays the same: its strength falls as 1 / n.
    (first, a), (second, b) = seen
    assert (first.features.shape[1], second.features.shape[1]) == (20, 40)
    torch.testing.assert_close(a, 2 * b)
    assert a[0].tolist() == pytest.approx([3 / v / 20 for v in Linear.logit_variances])


def test_zero_logits_give_the_uniform_code(monkeypatch):
    y = torch.from_numpy(np.random.default_rng(0).choice(3, 500, p=[0.8, 0.1, 0.1]))
    says(monkeypatch, lambda prefix, k: torch.zeros(3))
    code = online_code(examples(torch.randn(2, 500, 4), y, 5), 3, PROBES["linear"])
    assert code.bits.tolist() == pytest.approx([uniform_bits(500, 3)] * 2, rel=1e-6)
    assert code.deviation.tolist() == pytest.approx([0, 0], abs=1e-3)


def test_too_few_examples_for_two_blocks_have_a_uniform_code():
    y = torch.tensor([0, 1, 2] * 10)
    code = online_code(examples(torch.randn(2, 30, 4), y), 3, PROBES["linear"])
    assert code.ends == (30,)
    assert code.bits.tolist() == pytest.approx([uniform_bits(30, 3)] * 2)


def test_a_probe_that_knows_label_frequencies_gives_the_prior_code(monkeypatch):
    y = torch.from_numpy(np.random.default_rng(0).choice(3, 500, p=[0.9, 0.08, 0.02]))

    def frequencies(prefix, k):
        return torch.bincount(prefix.labels[0], minlength=3).float().log()  # log 0 included

    says(monkeypatch, frequencies)
    data = examples(torch.randn(1, 500, 4), y)
    code = online_code(data, 3, PROBES["linear"])
    expected = sum(prior_block_bits(y, code.ends, 3))
    assert code.bits.item() == pytest.approx(expected, rel=1e-6)
    assert uniform_bits(500, 3) == 500 * math.log2(3)


def test_the_prior_code_is_a_hand_computation():
    y = torch.tensor([0, 0, 1, 0, 1])
    # Block 1: 3 labels of 1 bit. Block 2: one 0 and one 1 after two 0 and one 1.
    expected = [3, -math.log2(2.5 / 4) - math.log2(1.5 / 4)]
    assert prior_block_bits(y, (3, 5), 2) == pytest.approx(expected)


def test_class_weights_are_left_out(monkeypatch):
    seen = says(monkeypatch, lambda prefix, k: torch.zeros(2))
    y = torch.tensor([0, 0, 0, 1] * 20)
    data = examples(torch.zeros(1, 80, 3), y)
    data.weights[:] = torch.where(y == 0, 2 / 3, 2.0)
    online_code(data, 2, PROBES["linear"])
    assert all((prefix.weights == 1).all() for prefix, _ in seen)


def test_labels_independent_of_the_features_cost_little_more_than_their_entropy():
    share = torch.tensor([0.6, 0.3, 0.1])
    torch.manual_seed(0)
    y = torch.multinomial(share, 3000, replacement=True)
    code = online_code(examples(torch.randn(1, 3000, 64), y, 5), 3, PROBES["linear"])
    entropy = -(share * share.log2()).sum().item()
    deviation = (share * (-share.log2() - entropy) ** 2).sum().sqrt().item()
    low = 3000 * entropy - 3 * deviation * 3000**0.5
    assert low < code.bits.item() < 1.1 * sum(prior_block_bits(y, code.ends, 3))


def test_informative_features_give_a_far_shorter_code():
    torch.manual_seed(0)
    y = torch.randint(4, (3000,))
    x = torch.randn(2, 3000, 64)
    x[1, :, :4] = 2 * torch.nn.functional.one_hot(y, 4).float()
    code = online_code(examples(x, y, 5), 4, PROBES["linear"])
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


def test_the_code_of_sets_is_that_of_each_label_alone(monkeypatch):
    monkeypatch.setattr("probes.training.online_code.SHARES", (25.0, 100.0))
    labels = torch.tensor([1, 2, 2, 0] * 20)
    sent, outcomes = decisions(labels, 3, SETS)
    assert (len(sent), outcomes) == (3, 2)

    def prior(held, n=20, m=60):  # a share `held` of both blocks has the label
        yes = (held * n + 0.5) / (n + 1)
        return n - m * (held * math.log2(yes) + (1 - held) * math.log2(1 - yes))

    expected = prior(0.75) + prior(0.5) + prior(0)
    assert sum(sum(prior_block_bits(each, (20, 80), 2)) for each in sent) == pytest.approx(expected)
    says(monkeypatch, lambda prefix, k: SETS[prefix.labels[0]].mean(0).logit().clamp(-80, 80))
    code = online_code(
        replace(examples(torch.randn(1, 80, 4), labels), sets=SETS), 3, PROBES["linear"]
    )
    assert code.ends == (20, 80)
    assert code.bits.item() == pytest.approx(expected, rel=1e-6)


def hard():
    """Features with the spectrum of a model's vectors, which nearly separate the classes."""
    generator = torch.Generator().manual_seed(3)
    truth = torch.randn(96, 6, generator=generator)
    z = torch.randn(6000, 96, generator=generator)
    y = (z[:, :40] @ truth[:40] + 0.5 * torch.randn(6000, 6, generator=generator)).argmax(1)
    turn = torch.linalg.qr(torch.randn(96, 96, generator=generator))[0]
    x = (z * (6 / torch.arange(1, 97)).clamp_max(2)) @ turn
    return examples(x[None], y, 5)


def test_the_code_is_that_of_prefixes_fitted_to_the_end(monkeypatch):
    short = online_code(hard(), 6, PROBES["linear"])
    monkeypatch.setattr(coding, "PREFIX_STEPS", 300)
    long = online_code(hard(), 6, PROBES["linear"])
    assert short.ends == long.ends
    assert long.bits.item() < 0.7 * uniform_bits(6000, 6)
    assert short.bits.item() == pytest.approx(long.bits.item(), rel=0.005)
