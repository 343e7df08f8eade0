"""Ridge regression against scikit-learn."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from planted_examples import N_LAYERS, planted, with_cells, with_controls
from sklearn.linear_model import Ridge

from probes.records.probe_spec import PROBES
from probes.training.batches import bootstrap_weights
from probes.training.fit import Draw, fit, predict


def test_ridge_regression_is_that_of_scikit_learn():
    train, dev = planted(900, 1, regression=True), planted(300, 2, regression=True)
    spec = PROBES["linear"]
    fitted = fit(train, dev, 0, spec, [Draw()])
    for layer in range(N_LAYERS):
        losses = {}
        for strength in spec.ridge_l2:
            model = Ridge(alpha=strength * 900).fit(train.features.values[layer], train.labels[0])
            error = model.predict(dev.features.values[layer]) - dev.labels[0].numpy()
            losses[strength] = 0.5 * (error**2).mean()
        best = min(losses, key=losses.get)
        assert fitted.strength[layer, 0].item() == pytest.approx(best)
        assert fitted.dev_loss[layer, 0].item() == pytest.approx(losses[best], rel=1e-4)
    model = Ridge(alpha=fitted.strength[1, 0].item() * 900).fit(
        train.features.values[1], train.labels[0]
    )
    ours = predict(fitted, dev.features, 0, spec)[1, 0]
    np.testing.assert_allclose(ours, model.predict(dev.features.values[1]), atol=1e-4)


def test_cells_that_lack_examples_are_fits_on_the_others():
    train, dev = planted(900, 1, regression=True), planted(300, 2, regression=True)
    kept = torch.stack([torch.arange(900) % 3 != 0, torch.arange(900) < 500])
    subsets = replace(with_cells(train, 2), weights=kept.float())
    strengths = torch.tensor([0.02, 0.02], dtype=torch.float64)
    fitted = fit(subsets, dev, 0, PROBES["linear"], [Draw(), Draw()], strengths)
    for cell in (0, 1):
        x, y = train.features.values[1][kept[cell]], train.labels[0][kept[cell]]
        model = Ridge(alpha=0.02 * len(y)).fit(x, y)
        np.testing.assert_allclose(fitted.parameters[0][1, cell, 0], model.coef_, atol=1e-4)


def test_a_control_cell_is_ridge_regression_at_the_strength_of_the_real_cell():
    train, dev = (with_controls(planted(n, n, regression=True), n) for n in (900, 300))
    fitted = fit(train, dev, 0, PROBES["linear"], 2 * [Draw(0, 0), Draw(3, 3)])
    assert torch.equal(fitted.strength[:, :2], fitted.strength[:, 2:])
    counts = bootstrap_weights(train.sentences, 3)
    x = train.features.values[1]
    for cell in (1, 3):
        model = Ridge(alpha=fitted.strength[1, cell].item() * counts.sum().item())
        model.fit(x, train.labels[cell], sample_weight=counts)
        np.testing.assert_allclose(fitted.parameters[0][1, cell, 0], model.coef_, atol=1e-4)
        error = model.predict(dev.features.values[1]) - dev.labels[cell].numpy()
        assert fitted.dev_loss[1, cell].item() == pytest.approx(0.5 * (error**2).mean(), rel=1e-3)
