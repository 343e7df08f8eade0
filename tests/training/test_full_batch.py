"""Fits whose steps read all examples, against scikit-learn and optima in float64."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from planted_examples import N_CLASSES, N_FEATURES, N_LAYERS, one_cell, planted
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression

from probes.records.probe_spec import PROBES
from probes.training.batches import EVALUATION, bootstrap_weights
from probes.training.family import Linear
from probes.training.features import InMemory
from probes.training.fit import FitSeed, fit, predict
from probes.training.full_batch import fit_full_batch
from probes.training.losses import CrossEntropy
from probes.training.preconditioning import diagonal

LINEAR = PROBES["linear"]
LONG = LINEAR.model_copy(update={"epochs": 150})
"""Enough steps for what float32 can tell."""


def objective(point, x, y, weights, strength):
    """The loss of a probe, as the method page has it, and its gradient."""
    weight, bias = np.split(point.reshape(N_CLASSES, -1), [-1], axis=1)
    logits, share = x @ weight.T + bias.T, weights / weights.sum()
    value = -(share * log_softmax(logits, 1)[np.arange(len(y)), y]).sum()
    errors = share[:, None] * (softmax(logits, 1) - np.eye(N_CLASSES)[y])
    gradient = np.concatenate([errors.T @ x + strength * weight, errors.sum(0)[:, None]], 1)
    return value + strength / 2 * (weight**2).sum(), gradient.ravel()


def optimum(x, y, weights, strength):
    """Weight and bias (centred, since softmax ignores their mean) and the value, in float64."""
    given = [np.asarray(part, dtype=np.float64) for part in (x, weights)]
    found = minimize(
        objective,
        np.zeros(N_CLASSES * (x.shape[1] + 1)),
        (given[0], np.asarray(y), given[1], strength),
        jac=True,
        method="BFGS",
        options={"gtol": 1e-9, "maxiter": 5000},
    )
    assert np.abs(found.jac).max() < 1e-7
    weight, bias = np.split(found.x.reshape(N_CLASSES, -1), [-1], axis=1)
    return weight, bias[:, 0] - bias.mean(), found.fun


def different_cells(n):
    """Examples of three cells: plain, weighted with other labels, and a sample of sentences."""
    train = planted(n, 1)
    torch.manual_seed(5)
    others = torch.randint(N_CLASSES, (n,))
    # Classes of very unequal frequency.
    skewed = torch.where(torch.rand(n) < 0.9, torch.zeros_like(others), others)
    weights = torch.stack([torch.ones(n), 7 * torch.rand(n), bootstrap_weights(train.sentences, 1)])
    labels = torch.stack([train.labels[0], skewed, train.labels[0]])
    return replace(train, labels=labels, weights=weights)


@pytest.mark.parametrize("n_steps", [40, 300])
def test_cells_of_different_labels_weights_and_strengths_reach_their_optima(n_steps):
    train = different_cells(2 * EVALUATION + 300)
    strengths = torch.tensor([[1e-3, 0.1, 0.03], [0.01, 0.003, 0.3]])
    start = Linear().initial(N_LAYERS, [0] * 3, N_FEATURES, N_CLASSES)
    loss = CrossEntropy()
    precondition = diagonal(train, loss, start[1], strengths)
    found = fit_full_batch(train, Linear(), loss, start, strengths, precondition, n_steps)
    for layer, x in enumerate(train.features.values):
        for cell, strength in enumerate(strengths[layer].tolist()):
            given = x.double().numpy(), train.labels[cell].numpy(), train.weights[cell].numpy()
            weight, bias, least = optimum(*given, strength)
            ours = [p[layer, cell].double().numpy() for p in found]
            point = np.concatenate([ours[0], ours[1][:, None]], 1).ravel()
            value, _ = objective(point, *given, strength)
            assert value == pytest.approx(least, rel=1e-6)
            np.testing.assert_allclose(ours[0], weight, atol=2e-3)
            np.testing.assert_allclose(ours[1] - ours[1].mean(), bias, atol=2e-3)


def test_cells_fitted_together_are_those_fitted_alone():
    train, dev = different_cells(1500), different_cells(400)
    draws = [FitSeed(), FitSeed(1, 2), FitSeed(2, 3)]
    together = fit(train, dev, N_CLASSES, LINEAR, draws)
    assert together.dev_loss.shape == (N_LAYERS, 3)
    for cell, draw in enumerate(draws):
        alone = fit(*(part.of_cells([cell]) for part in (train, dev)), N_CLASSES, LINEAR, [draw])
        torch.testing.assert_close(together.dev_loss[:, cell], alone.dev_loss[:, 0])
        for ours, theirs in zip(together.parameters, alone.parameters, strict=True):
            torch.testing.assert_close(ours[:, cell], theirs[:, 0], rtol=1e-3, atol=1e-3)


def correlated(n, seed):
    """Features of which most of the variance is common, as that of a model's vectors."""
    data = planted(n, seed)
    mixing = torch.linspace(1, 4, N_FEATURES) * torch.ones(N_FEATURES, 1) / N_FEATURES
    x = data.features.values @ (mixing + torch.eye(N_FEATURES) * torch.linspace(0.1, 1, N_FEATURES))
    return replace(data, features=InMemory(x))


@pytest.mark.parametrize("make", [planted, correlated])
@pytest.mark.parametrize("n", [300, 3000])
def test_the_steps_of_a_run_reach_scikit_learns_solution(n, make):
    train, dev = make(n, 1), make(500, 2)
    count = torch.bincount(train.labels[0])
    of_class = n / (len(count) * count)
    train, dev = (replace(b, weights=of_class[b.labels].float()) for b in (train, dev))
    fitted = fit(train, dev, N_CLASSES, LINEAR, [FitSeed()])
    predicted = predict(fitted, dev.features, N_CLASSES, LINEAR)[:, 0].numpy()
    for layer, x in enumerate(train.features.values):
        model = LogisticRegression(C=1 / 30, tol=1e-8, max_iter=10_000)
        model.fit(x.double(), train.labels[0], train.weights[0])
        p = model.predict_proba(dev.features.values[layer])
        loss = np.average(-np.log(p[np.arange(500), dev.labels[0]]), weights=dev.weights[0])
        assert fitted.dev_loss[layer, 0].item() == pytest.approx(loss, rel=0.005)
    # Layer 0 says nothing about the label: all classes are about as probable.
    assert (predicted[1] != p.argmax(1)).sum() <= (5 if n == 3000 else 15)


def test_constant_features_predict_the_majority():
    x, y = torch.zeros(1, 600, 5), (torch.arange(600) % 3 == 0).long()
    data = one_cell(x, y)
    fitted = fit(data, data, 2, LINEAR, [FitSeed()])
    assert predict(fitted, InMemory(x), 2, LINEAR).unique().tolist() == [0]
    entropy = -(1 / 3 * np.log(1 / 3) + 2 / 3 * np.log(2 / 3))
    assert fitted.dev_loss.item() == pytest.approx(entropy, rel=1e-3)


@pytest.mark.parametrize(("n", "c"), [(60, 1), (60, 30), (2000, 30), (2000, 300)])
def test_strength_is_scikit_learns_with_c_its_inverse(n, c):
    train, dev = planted(n, 1), planted(400, 2)
    fitted = fit(train, dev, N_CLASSES, LONG.model_copy(update={"l2": (c,)}), [FitSeed()])
    assert fitted.strength.flatten().tolist() == pytest.approx([c / n] * N_LAYERS)
    for layer, x in enumerate(train.features.values):
        model = LogisticRegression(C=1 / c, tol=1e-10, max_iter=10_000)
        model.fit(x.double(), train.labels[0])
        weight, bias = (p[layer, 0].numpy() for p in fitted.parameters)
        np.testing.assert_allclose(weight, model.coef_, atol=2e-3)
        np.testing.assert_allclose(bias - bias.mean(), model.intercept_, atol=2e-3)
        p = model.predict_proba(dev.features.values[layer])[np.arange(400), dev.labels[0]]
        assert fitted.dev_loss[layer, 0].item() == pytest.approx(-np.log(p).mean(), rel=1e-3)


def test_other_axes_and_other_layers_beside_it_change_no_fit():
    train, dev = planted(700, 1), planted(400, 2)
    turn = torch.linalg.qr(torch.randn(N_FEATURES, N_FEATURES))[0]
    turned = [
        replace(data, features=InMemory(data.features.values @ turn)) for data in (train, dev)
    ]
    top = [replace(data, features=InMemory(data.features.values[1:])) for data in (train, dev)]
    plain, rotated, alone = (
        fit(*data, N_CLASSES, LINEAR, [FitSeed()]) for data in ((train, dev), turned, top)
    )
    torch.testing.assert_close(rotated.dev_loss, plain.dev_loss, rtol=1e-4, atol=0)
    torch.testing.assert_close(
        rotated.parameters[0] @ turn.T, plain.parameters[0], atol=2e-3, rtol=0
    )
    torch.testing.assert_close(alone.dev_loss[0], plain.dev_loss[1], rtol=1e-4, atol=0)
