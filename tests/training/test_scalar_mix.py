"""Scalar mixes against formulas written out, and against scikit-learn on the same mixes."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from planted_examples import one_cell
from sklearn.linear_model import LogisticRegression
from torch.nn import functional

from probes.records.probe_spec import PROBES
from probes.training import scalar_mix as mixing
from probes.training.family import Linear
from probes.training.features import InMemory
from probes.training.fit import FitSeed, fit, predict
from probes.training.losses import CrossEntropy, SquaredError
from probes.training.scalar_mix import Mixed, even_logits, layer_overlap, learn_mixes, mix_scales

N_LAYERS, N_FEATURES, N_CLASSES = 3, 10, 4


def make(n, seed):
    """Layers 0 and 2 each carry a part of the label, layer 1 nothing."""
    torch.manual_seed(seed)
    truth = torch.randn(N_FEATURES, N_CLASSES, generator=torch.Generator().manual_seed(9))
    x = torch.randn(N_LAYERS, n, N_FEATURES)
    y = ((x[0] + 2 * x[2]) @ truth + torch.randn(n, N_CLASSES)).argmax(1)
    return one_cell(x, y, per_sentence=5)


@pytest.fixture(scope="module")
def data():
    return make(4000, 1), make(800, 2), make(800, 3)


@pytest.fixture(scope="module")
def learnt(data):
    train, dev, _ = data
    reach, samples = [0, 1, 2, 2], [0, 0, 0, 1]
    overlap = layer_overlap(train.features)
    return learn_mixes(train, dev, N_CLASSES, PROBES["linear"], overlap, reach, samples), overlap


def test_a_mix_is_the_weighted_sum_scaled_to_the_variance_of_its_layers():
    torch.manual_seed(0)
    layers = torch.randn(3, 5000, 6)
    layers[1] = 0.8 * layers[0] + 0.6 * layers[1]
    weights = torch.tensor([[1.0, 0, 0], [0.3, 0.7, 0], [0.2, 0.5, 0.3]])
    scales = mix_scales(weights, layer_overlap(InMemory(layers)))
    found = Mixed(InMemory(layers), scales).block(slice(10, 4000))
    assert torch.equal(found[0], layers[0, 10:4000])
    for row, made in zip(weights, found, strict=True):
        plain = sum(w * x[10:4000] for w, x in zip(row, layers, strict=True))
        gamma = (made / plain).flatten()
        assert gamma.min().item() == pytest.approx(gamma.max().item(), rel=1e-3)
        assert made.square().mean().item() == pytest.approx(1, abs=0.03)


def loss_of_cell(loss, p, logits, reach, overlap, x, y, w):
    """The loss of one cell, every formula written out once more."""
    s = torch.exp(logits[: reach + 1]) / torch.exp(logits[: reach + 1]).sum()
    inner = sum(s[i] * s[j] * overlap[i, j] for i in range(reach + 1) for j in range(reach + 1))
    gamma = (sum(s[j] * overlap[j, j] for j in range(reach + 1)) / inner).sqrt()
    z = gamma * sum(s[j] * x[j] for j in range(reach + 1))
    z = functional.linear(z, *p)
    if loss is CrossEntropy:
        return (functional.cross_entropy(z, y, reduction="none") * w).sum()
    return 0.5 * ((z.squeeze(1) - y) ** 2 * w).sum()


@pytest.mark.parametrize("loss", [CrossEntropy, SquaredError], ids=["ce", "mse"])
def test_gradients_are_those_of_the_formulas(loss):
    torch.manual_seed(0)
    family = Linear()
    n_outputs = 3 if loss is CrossEntropy else 1
    reach = [0, 1, 2, 2]
    x, weights = torch.randn(3, 11, 6), torch.rand(4, 1, 11)
    y = torch.randint(3, (11,)) if n_outputs == 3 else torch.randn(11)
    overlap = torch.tensor([[1, 0.5, 0.2], [0.5, 0.9, 0.3], [0.2, 0.3, 1]])
    drawn = family.initial(4, [0], 6, n_outputs)
    leaves = [(p + 0.3 * torch.randn_like(p)).requires_grad_() for p in drawn]
    logits = (torch.randn(4, 3) + even_logits(reach, 3)).requires_grad_()
    errors = partial(loss().errors, labels=y[None], weights=weights)
    ours = mixing._mix_gradients(family, leaves, logits, overlap, x, errors)
    value = sum(
        loss_of_cell(
            loss, [p[c, 0] for p in leaves], logits[c], reach[c], overlap, x, y, weights[c, 0]
        )
        for c in range(4)
    )
    theirs = torch.autograd.grad(value, [*leaves, logits])
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)
    # A layer beyond reach is not moved, nor is a mix of one layer.
    assert ours[-1][0].tolist() == pytest.approx([0, 0, 0], abs=1e-6)
    assert ours[-1][1, 2] == 0


def test_the_weights_of_layers_that_predict_the_label_are_learnt(learnt):
    weights, _ = learnt
    assert weights.sum(1).tolist() == pytest.approx([1] * 4)
    assert weights[0].tolist() == [1, 0, 0]
    assert weights[1, 2] == 0
    assert weights[1, 0] > 0.9
    # The label's score is made of layers 0 and 2, one to two.
    assert weights[2].tolist() == pytest.approx([1 / 3, 0, 2 / 3], abs=0.05)
    assert not torch.equal(weights[2], weights[3])


def test_scikit_learn_agrees_on_the_mixed_vectors(data, learnt):
    train, _, test = data
    weights, overlap = learnt
    scales = mix_scales(weights[:3], overlap)
    mixed = [replace(b, features=Mixed(b.features, scales)) for b in data]
    fitted = fit(mixed[0], mixed[1], N_CLASSES, PROBES["linear"], [FitSeed()])
    ours = predict(fitted, mixed[2].features, N_CLASSES, PROBES["linear"])[:, 0]
    for k in range(3):
        x, _, x_test = (np.asarray(b.features.block(slice(None))[k]) for b in mixed)
        theirs = LogisticRegression(C=1 / 30, max_iter=1000).fit(x, train.labels[0])
        accuracy = theirs.score(x_test, test.labels[0])
        assert (ours[k] == test.labels).float().mean().item() == pytest.approx(accuracy, abs=0.004)
    assert accuracy > 0.8


def test_mixes_are_learnt_with_convex_families_only(data):
    overlap = layer_overlap(data[0].features)
    with pytest.raises(ValueError, match="mlp: mixes are learnt with convex families only"):
        learn_mixes(*data[:2], N_CLASSES, PROBES["mlp"], overlap, [1], [0])


def test_a_mix_does_not_depend_on_the_cells_learnt_with_it(data, learnt):
    train, dev, _ = data
    weights, overlap = learnt
    alone = learn_mixes(train, dev, N_CLASSES, PROBES["linear"], overlap, [2], [1])
    torch.testing.assert_close(alone[0], weights[3], atol=2e-3, rtol=0)
