"""The code with replay against uniform codes, entropies and the plain online code."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from probes.records.probe_spec import PROBES
from probes.training import replay_code as coding
from probes.training.batches import BATCH, Batches, batch_bounds
from probes.training.codes import block_ends, prior_block_bits, sentence_ends, uniform_bits
from probes.training.features import Held
from probes.training.replay_code import batch_ends, replay_code

SPEC = PROBES["mlp"].model_copy(update={"hidden": 16})


def examples(x, y, per_sentence=5):
    sentences = torch.arange(len(y)) // per_sentence
    return Batches(Held(x), y[None], torch.ones(1, len(y)), sentences, batch_bounds(sentences))


def exclusive_or(n=4000):
    """Layer 1 decides the label, but not linearly; layer 0 does not."""
    torch.manual_seed(0)
    x = torch.randn(2, n, 8)
    return examples(x, ((x[1, :, 0] > 0) ^ (x[1, :, 1] > 0)).long())


@pytest.fixture(scope="module")
def code():
    return replay_code(exclusive_or(), 2, SPEC)


def test_what_a_linear_probe_cannot_learn_shortens_the_code(code):
    noise, decided = code.bits.tolist()
    assert noise > 0.97 * 4000
    assert decided < 0.5 * 4000
    # It goes on learning: the last half costs less per label than the half before.
    per_label = code.block_bits[1] / torch.tensor(np.diff((0, *code.ends)))
    assert per_label[-1] < per_label[-2] < per_label[-3]


def test_the_first_batch_has_the_uniform_code_and_blocks_are_those_of_the_online_code(code):
    train = exclusive_or()
    assert code.ends == block_ends(train.sentences)
    assert code.block_bits[:, 0].tolist() == [uniform_bits(code.ends[0], 2)] * 2
    assert code.block_bits.shape == (2, len(code.ends))
    torch.testing.assert_close(code.bits, code.block_bits.sum(1))


def test_the_same_data_have_the_same_code_to_the_bit(code):
    again = replay_code(exclusive_or(), 2, SPEC)
    assert torch.equal(again.block_bits, code.block_bits)
    assert torch.equal(again.deviation, code.deviation)


def test_a_label_is_coded_before_it_is_learnt(code):
    """Other labels at the end change no block before them."""
    train = exclusive_or()
    labels = train.labels.clone()
    labels[:, code.ends[-2] :] = 1 - labels[:, code.ends[-2] :]
    other = replay_code(replace(train, labels=labels), 2, SPEC)
    assert torch.equal(other.block_bits[:, :-1], code.block_bits[:, :-1])
    assert other.block_bits[1, -1] > 2 * code.block_bits[1, -1]


def test_class_weights_and_further_label_sets_are_left_out(code):
    train = exclusive_or()
    labels, weights = torch.cat([train.labels, 1 - train.labels]), torch.rand(2, 4000)
    other = replay_code(replace(train, labels=labels, weights=weights), 2, SPEC)
    assert torch.equal(other.block_bits, code.block_bits)


def test_a_class_that_first_occurs_late_has_a_finite_cost():
    torch.manual_seed(0)
    y = torch.cat([torch.randint(2, (900,)), torch.full((100,), 2)])
    code = replay_code(examples(torch.randn(1, 1000, 4), y), 3, SPEC)
    assert code.bits.isfinite().all()
    assert code.bits.item() < 1.3 * sum(prior_block_bits(y, code.ends, 3))


def test_sets_of_labels_are_sent_label_by_label():
    torch.manual_seed(0)
    x = torch.randn(1, 3000, 6)
    held = x[0, :, :2] > 0  # each label is a feature's sign: two bits without the vectors
    sets = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]]).float()
    train = replace(examples(x, held.long() @ torch.tensor([2, 1])), sets=sets)
    code = replay_code(train, 2, SPEC)
    assert code.block_bits[0, 0] == 2 * code.ends[0]
    assert code.bits.item() < 0.35 * 2 * 3000


def test_too_few_examples_for_two_blocks_have_a_uniform_code():
    y = torch.tensor([0, 1, 2] * 10)
    code = replay_code(examples(torch.randn(2, 30, 4), y, 1), 3, SPEC)
    assert code.ends == (30,)
    assert code.bits.tolist() == pytest.approx([30 * math.log2(3)] * 2)


@pytest.mark.parametrize("n", [1, 30, 300, 3985, 204577])
def test_batches_consist_of_whole_sentences_and_grow_with_what_has_been_sent(n):
    lengths = np.random.default_rng(n).integers(1, 30, n)
    sentences = torch.from_numpy(np.repeat(np.arange(n), lengths)[:n])
    ends = batch_ends(sentences)
    assert ends[-1] == n
    assert set(block_ends(sentences)) <= set(ends) <= set(sentence_ends(sentences))
    starts, sizes = np.array(ends[:-1]), np.diff(ends)
    # A sentence has less than 30 words.
    assert (sizes < np.minimum(np.maximum(starts // 8, 1), BATCH) + 30).all()
    if n > 200_000:
        assert len(ends) < n / BATCH + 50


def test_steps_read_what_has_been_sent_and_nothing_else(monkeypatch):
    """Every example that was sent is replayed as often as any other."""
    train = exclusive_or(700)
    read = torch.zeros(700)
    values = train.features.values
    values[0, :, 0] = torch.arange(700)
    learner = coding._Learner(train, 2, SPEC, 20)
    monkeypatch.setattr(coding, "STEPS", 2001)
    real = learner.family.gradient

    def gradient(parameters, x, errors):
        assert x.shape[1] == BATCH
        read.index_add_(0, x[0, :, 0].long(), torch.ones(BATCH))
        return real(parameters, x, errors)

    monkeypatch.setattr(learner.family, "gradient", gradient)
    learner.learn(600)
    assert (read[600:] == 0).all()
    read[600 - BATCH : 600] -= 1
    expected = 2000 * BATCH / 600
    assert read[:600].mean().item() == pytest.approx(expected)
    assert ((read[:600] - expected).abs() < 0.06 * expected).all()
