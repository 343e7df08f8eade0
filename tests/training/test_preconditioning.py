"""Estimates of the inverse Hessian, against the Hessian of all examples in numpy."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from planted_examples import N_CLASSES, N_FEATURES, N_LAYERS, planted
from scipy.special import softmax

from probes.training import preconditioning
from probes.training.batches import bootstrap_weights
from probes.training.family import Linear
from probes.training.losses import CrossEntropy
from probes.training.preconditioning import DRAWS, output_blocks


def some_parameters(n_cells):
    generator = torch.Generator().manual_seed(3)
    weight = torch.randn(N_LAYERS, n_cells, N_CLASSES, N_FEATURES, generator=generator)
    return [weight, torch.randn(N_LAYERS, n_cells, N_CLASSES, generator=generator)]


def hessian_block(x, weights, parameters, output, strength):
    """The second derivative of the mean loss by an output's weights and bias, in float64."""
    weight, bias = (p.double().numpy() for p in parameters)
    x, share = x.double().numpy(), (weights / weights.sum()).double().numpy()
    p = softmax(x @ weight.T + bias, 1)[:, output]
    x = np.column_stack([x, np.ones(len(x))])
    penalty = np.diag([strength] * N_FEATURES + [0])
    return (x * (share * p * (1 - p))[:, None]).T @ x + penalty


def centred(values):
    return values - values.mean(2, keepdims=True)


def expected_steps(train, parameters, strengths, gradient, n_cells):
    """Inverse blocks times the gradient, both without their mean over outputs."""
    steps, given = np.empty(gradient.shape), centred(gradient.double().numpy())
    for layer, x in enumerate(train.features.values):
        for cell in range(gradient.shape[1]):
            estimate = cell if n_cells > 1 else 0
            at = [p[layer, estimate] for p in parameters]
            weights = train.weights[cell if len(train.weights) > 1 else 0]
            for output in range(N_CLASSES):
                block = hessian_block(x, weights, at, output, strengths[layer, estimate].item())
                steps[layer, cell, output] = np.linalg.solve(block, given[layer, cell, output])
    return centred(steps)


@pytest.fixture
def no_shrinkage(monkeypatch):
    monkeypatch.setattr(preconditioning, "_SHRINKAGE", 0.0)


@pytest.mark.parametrize(("n_cells", "n"), [(2, 700), (1, 700), (2, 40_000), (1, 40_000)])
def test_steps_are_those_of_each_outputs_own_block(no_shrinkage, n_cells, n):
    train = planted(n, 1)
    weights = torch.stack([1 + torch.rand(n), bootstrap_weights(train.sentences, 1)])
    train = replace(train, weights=weights[:n_cells])
    strengths = torch.tensor([[0.01, 0.3], [0.1, 0.02]])
    parameters = some_parameters(n_cells)
    gradient = torch.randn(N_LAYERS, 2, N_CLASSES, N_FEATURES + 1)
    precondition = output_blocks(train, Linear(), CrossEntropy(), parameters, strengths)
    steps = precondition(gradient).double().numpy()
    expected = expected_steps(train, parameters, strengths, gradient, n_cells)
    # Without draws only float32 differs; with draws of 2,048 examples, some per cent.
    largest = np.abs(expected).max()
    np.testing.assert_allclose(steps, expected, atol=(1e-4 if n <= DRAWS else 0.1) * largest)


def test_a_rare_class_is_represented_by_its_own_examples(no_shrinkage):
    train = planted(40_000, 1)
    parameters = [torch.zeros_like(p) for p in some_parameters(1)]
    # Class 0 is improbable but for one example in a thousand, far out on the first feature.
    x = train.features.values
    x[:, :, 0] = 0
    x[:, ::1000, 0] = 6
    parameters[0][:, 0, 0, 0], parameters[1][:, 0, 0] = 2, -12
    strengths = torch.full((N_LAYERS, 1), 1e-4)
    gradient = torch.zeros(N_LAYERS, 1, N_CLASSES, N_FEATURES + 1)
    gradient[:, :, 0] = 1
    steps = output_blocks(train, Linear(), CrossEntropy(), parameters, strengths)(gradient)
    expected = expected_steps(train, parameters, strengths, gradient, 1)
    np.testing.assert_allclose(steps, expected, atol=0.2 * np.abs(expected).max())


def test_features_beyond_the_widest_have_their_diagonal(no_shrinkage, monkeypatch):
    monkeypatch.setattr(preconditioning, "WIDEST", N_FEATURES - 2)
    train, parameters = planted(700, 1), some_parameters(1)
    strengths = torch.full((N_LAYERS, 1), 0.1)
    gradient = torch.zeros(N_LAYERS, 1, N_CLASSES, N_FEATURES + 1)
    gradient[..., :2] = torch.randn(N_LAYERS, 1, N_CLASSES, 2)
    steps = output_blocks(train, Linear(), CrossEntropy(), parameters, strengths)(gradient)
    given, expected = centred(gradient.numpy()), np.zeros(gradient.shape)
    for layer, x in enumerate(train.features.values):
        for output in range(N_CLASSES):
            at = [p[layer, 0] for p in parameters]
            block = hessian_block(x, train.weights[0], at, output, 0.1)
            expected[layer, 0, output] = given[layer, 0, output] / block.diagonal().clip(1e-9)
    np.testing.assert_allclose(steps, centred(expected), atol=1e-4 * np.abs(expected).max())
