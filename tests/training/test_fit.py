"""Fits of all cells at once against scikit-learn on the same numbers."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from planted_examples import N_CLASSES, N_FEATURES, N_LAYERS, one_cell, planted, with_cells
from sklearn.linear_model import LogisticRegression

from probes.records.probe_spec import PROBES
from probes.training.family import Linear
from probes.training.features import Held
from probes.training.fit import Draw, fit, predict
from probes.training.fitted import mean_loss
from probes.training.losses import CrossEntropy
from probes.training.trainer import Trainer


@pytest.fixture(scope="module")
def data():
    return planted(3000, 1), planted(500, 2)


def correlated(n, seed):
    """Features of which most of the variance is common, as that of a model's vectors."""
    data = planted(n, seed)
    mixing = torch.linspace(1, 4, N_FEATURES) * torch.ones(N_FEATURES, 1) / N_FEATURES
    x = data.features.values @ (mixing + torch.eye(N_FEATURES) * torch.linspace(0.1, 1, N_FEATURES))
    return replace(data, features=Held(x))


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
    fitted = fit(train, dev, N_CLASSES, spec, [Draw()])
    assert fitted.strength.flatten().tolist() == pytest.approx([30 / n] * N_LAYERS)
    given = predict(fitted, dev.features, N_CLASSES, spec)[:, 0]
    for layer in range(N_LAYERS):
        model = scikit_learn(train, layer, 30, train.weights[0])
        expected = dev_loss(model, dev, layer)
        assert fitted.dev_loss[layer, 0].item() == pytest.approx(expected, rel=0.005)
        differ = given[layer].numpy() != model.predict(dev.features.values[layer])
        # Layer 0 says nothing about the label: all classes are about as probable.
        assert layer == 0 or differ.sum() <= (5 if n == 3000 else 15)


def test_fitted_parameters_are_those_of_the_features_as_they_are_given():
    train, dev = correlated(3000, 1), correlated(500, 2)
    fitted = fit(train, dev, N_CLASSES, PROBES["linear"], [Draw()])
    model = scikit_learn(train, 1, 30)
    weight = fitted.parameters[0][1, 0].numpy()
    np.testing.assert_allclose(weight - weight.mean(0), model.coef_, atol=0.03)
    exact = mean_loss(Linear(), CrossEntropy(), fitted.parameters, dev)
    torch.testing.assert_close(exact, fitted.dev_loss)


def test_mlp_learns_what_a_linear_probe_cannot():
    def xor(n, seed):
        torch.manual_seed(seed)
        x = torch.randn(1, n, 4)
        y = ((x[0, :, 0] > 0) ^ (x[0, :, 1] > 0)).long()
        return one_cell(x, y, torch.arange(n))

    train, dev = xor(2000, 1), xor(500, 2)
    accuracy = {}
    for family in ("linear", "mlp"):
        spec = PROBES[family].model_copy(update={"min_steps": 200, "learning_rate": 0.01})
        fitted = fit(train, dev, 2, spec, [Draw()])
        given = predict(fitted, dev.features, 2, spec)[0, 0]
        accuracy[family] = (given == dev.labels[0]).float().mean().item()
    assert accuracy["linear"] < 0.6
    assert accuracy["mlp"] > 0.95


@pytest.mark.parametrize("family", ["linear", "mlp"])
def test_predictions_do_not_depend_on_the_layers_fitted_together(data, family):
    train, dev = data
    spec = PROBES[family].model_copy(update={"min_steps": 60, "hidden": 32})
    together = fit(
        with_cells(train, 2), with_cells(dev, 2), N_CLASSES, spec, [Draw(0, 0), Draw(1, 1)]
    )
    top = [replace(b, features=Held(b.features.values[1:])) for b in (train, dev)]
    alone = fit(*top, N_CLASSES, spec, [Draw()])
    torch.testing.assert_close(together.dev_loss[1:, :1], alone.dev_loss, rtol=1e-3, atol=0)
    a = predict(together, dev.features, N_CLASSES, spec)[1, 0]
    b = predict(alone, Held(dev.features.values[1:]), N_CLASSES, spec)[0, 0]
    assert (a != b).sum() <= 2


def test_a_fit_whose_dev_loss_was_never_finite_has_an_infinite_one(data):
    """It would otherwise be recorded with the loss of its start."""

    class Diverging(Linear):
        def gradient(self, parameters, x, errors):
            gradients = super().gradient(parameters, x, errors)
            gradients[0][1] = torch.nan  # one layer of them
            return gradients

    train, dev = data
    spec = PROBES["linear"].model_copy(update={"epochs": 1, "min_steps": 20, "checks": 4})
    trainer = Trainer(train, dev, Diverging(), CrossEntropy(), spec)
    start = trainer.family.initial(N_LAYERS, [0], N_FEATURES, N_CLASSES)
    start[0] += 0.01  # the loss of all zeros is that of a layer which says nothing
    strengths = torch.full((N_LAYERS, 1), 1e-3)
    found = trainer.run(start, strengths).dev_loss[:, 0]
    assert found.isinf().tolist() == [layer == 1 for layer in range(N_LAYERS)]


def test_same_inputs_give_the_same_numbers(data):
    train, dev = (with_cells(part, 2) for part in data)
    first, second = (
        fit(train, dev, N_CLASSES, PROBES["linear"], [Draw(0, 0), Draw(1, 1)]) for _ in range(2)
    )
    assert torch.equal(first.dev_loss, second.dev_loss)
    assert torch.equal(first.parameters[0], second.parameters[0])


def test_constant_features_predict_the_majority():
    n = 600
    x = torch.zeros(1, n, 5)
    y = (torch.arange(n) % 3 == 0).long()
    data = one_cell(x, y, torch.arange(n))
    fitted = fit(data, data, 2, PROBES["linear"], [Draw()])
    assert predict(fitted, Held(x), 2, PROBES["linear"]).unique().tolist() == [0]
    entropy = -(1 / 3 * np.log(1 / 3) + 2 / 3 * np.log(2 / 3))
    assert fitted.dev_loss.item() == pytest.approx(entropy, rel=1e-3)
