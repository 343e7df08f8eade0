"""Fits of all cells at once against scikit-learn on the same numbers."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from planted_examples import N_CLASSES, N_FEATURES, N_LAYERS, one_cell, planted, with_cells
from sklearn.linear_model import LogisticRegression

from probes.records.probe_spec import PROBES
from probes.training.features import InMemory
from probes.training.fit import FitSeed, fit, predict


@pytest.fixture(scope="module")
def data():
    return planted(3000, 1), planted(500, 2)


def correlated(n, seed):
    """Features of which most of the variance is common, as that of a model's vectors."""
    data = planted(n, seed)
    mixing = torch.linspace(1, 4, N_FEATURES) * torch.ones(N_FEATURES, 1) / N_FEATURES
    x = data.features.values @ (mixing + torch.eye(N_FEATURES) * torch.linspace(0.1, 1, N_FEATURES))
    return replace(data, features=InMemory(x))


def scikit_learn(train, layer, c, weights=None):
    """scikit-learn's solution for the first cell's labels, to tight tolerance."""
    model = LogisticRegression(C=1 / c, max_iter=10_000, tol=1e-8)
    return model.fit(train.features.values[layer].double(), train.labels[0], weights)


def dev_loss(model, dev, layer):
    p = model.predict_proba(dev.features.values[layer])[torch.arange(500), dev.labels[0]]
    return np.average(-np.log(p), weights=dev.weights[0])


@pytest.mark.parametrize("make", [planted, correlated])
@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("n", [300, 3000])
def test_linear_probes_converge_to_scikit_learns_solution(n, balanced, make):
    train, dev = make(n, 1), make(500, 2)
    spec = PROBES["linear"]
    if balanced:
        count = torch.bincount(train.labels[0])
        of_class = n / (len(count) * count)
        train, dev = (replace(b, weights=of_class[b.labels].float()) for b in (train, dev))
    fitted = fit(train, dev, N_CLASSES, spec, [FitSeed()])
    assert fitted.strength.flatten().tolist() == pytest.approx([30 / n] * N_LAYERS)
    given = predict(fitted, dev.features, N_CLASSES, spec)[:, 0]
    for layer in range(N_LAYERS):
        model = scikit_learn(train, layer, 30, train.weights[0])
        expected = dev_loss(model, dev, layer)
        assert fitted.dev_loss[layer, 0].item() == pytest.approx(expected, rel=0.005)
        differ = given[layer].numpy() != model.predict(dev.features.values[layer])
        # Layer 0 says nothing about the label: all classes are about as probable.
        assert layer == 0 or differ.sum() <= (5 if n == 3000 else 15)


@pytest.mark.parametrize("family", ["linear", "mlp"])
def test_predictions_do_not_depend_on_the_layers_fitted_together(data, family):
    train, dev = data
    spec = PROBES[family].model_copy(update={"min_steps": 60, "hidden": 32})
    together = fit(
        with_cells(train, 2), with_cells(dev, 2), N_CLASSES, spec, [FitSeed(0, 0), FitSeed(1, 1)]
    )
    top = [replace(b, features=InMemory(b.features.values[1:])) for b in (train, dev)]
    alone = fit(*top, N_CLASSES, spec, [FitSeed()])
    torch.testing.assert_close(together.dev_loss[1:, :1], alone.dev_loss, rtol=1e-3, atol=0)
    a = predict(together, dev.features, N_CLASSES, spec)[1, 0]
    b = predict(alone, InMemory(dev.features.values[1:]), N_CLASSES, spec)[0, 0]
    assert (a != b).sum() <= 2


def test_constant_features_predict_the_majority():
    n = 600
    x = torch.zeros(1, n, 5)
    y = (torch.arange(n) % 3 == 0).long()
    data = one_cell(x, y)
    fitted = fit(data, data, 2, PROBES["linear"], [FitSeed()])
    assert predict(fitted, InMemory(x), 2, PROBES["linear"]).unique().tolist() == [0]
    entropy = -(1 / 3 * np.log(1 / 3) + 2 / 3 * np.log(2 / 3))
    assert fitted.dev_loss.item() == pytest.approx(entropy, rel=1e-3)
