"""Cells of a fit: draws, control labels, and ridge regression by scikit-learn."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from planted_examples import N_CLASSES, N_LAYERS, planted, with_cells, with_controls
from sklearn.linear_model import Ridge

from probes.records.probe_spec import PROBES
from probes.training.bags import Bags
from probes.training.batches import bootstrap_weights
from probes.training.families import FOR_CLASSES, READ_TOKENS
from probes.training.features import InMemory
from probes.training.fit import FitSeed, fit, predict

SPECS = {
    name: spec.model_copy(update={"epochs": 2, "min_steps": 60, "hidden": min(8, spec.hidden)})
    for name, spec in PROBES.items()
}


@pytest.fixture(scope="module")
def data():
    return planted(1500, 1), planted(300, 2)


def as_read_by(family, data):
    """The examples as bags of one token for families that read tokens."""
    if family not in READ_TOKENS:
        return data
    ones = torch.ones(len(data.sentences), dtype=torch.int64)
    return replace(data, features=Bags(data.features, ones))


def require_equal(one, other):
    torch.testing.assert_close(one.dev_loss, other.dev_loss, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(one.strength, other.strength)
    for a, b in zip(one.parameters, other.parameters, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=2e-3)


def some_of(fitted, cells):
    return replace(
        fitted,
        parameters=[p[:, cells] for p in fitted.parameters],
        strength=fitted.strength[:, cells],
        stopped=fitted.stopped[:, cells],
        dev_loss=fitted.dev_loss[:, cells],
    )


@pytest.mark.parametrize("family", SPECS)
@pytest.mark.parametrize("n_outputs", [N_CLASSES, 0])
def test_cells_are_returned_in_the_order_given(data, family, n_outputs):
    train, dev = data
    if not n_outputs and family in FOR_CLASSES:
        pytest.skip("has no probes for numbers")
    if not n_outputs:
        train, dev = (planted(len(b.sentences), i, True) for i, b in enumerate(data))
    train, dev = (as_read_by(family, with_controls(x, i)) for i, x in enumerate((train, dev)))
    draws = [FitSeed(0, 0), FitSeed(1, 2), FitSeed(0, 0), FitSeed(1, 2)]
    plain = fit(train, dev, n_outputs, SPECS[family], draws)
    order = [1, 0, 3, 2]
    turned = [part.of_cells(order) for part in (train, dev)]
    found = fit(*turned, n_outputs, SPECS[family], [draws[i] for i in order])
    require_equal(some_of(found, order), plain)
    assert (plain.dev_loss[1, :2] - plain.dev_loss[1, 2:]).abs().min() > 0.1


def test_the_seed_of_a_convex_fit_changes_nothing_and_that_of_an_mlp_its_end(data):
    draws = [FitSeed(0), FitSeed(7)]
    linear, mlp = (fit(*data, N_CLASSES, SPECS[name], draws) for name in ("linear", "mlp"))
    torch.testing.assert_close(linear.parameters[0][:, 0], linear.parameters[0][:, 1])
    assert not torch.allclose(mlp.parameters[0][:, 0], mlp.parameters[0][:, 1], atol=1e-2)


@pytest.mark.parametrize("family", SPECS)
def test_a_sample_is_a_fit_with_its_counts_as_weights(data, family):
    train, dev = (as_read_by(family, part) for part in data)
    drawn = fit(train, dev, N_CLASSES, SPECS[family], [FitSeed(3, 5)])
    counts = bootstrap_weights(train.sentences, 5)[None]
    weighted = fit(replace(train, weights=counts), dev, N_CLASSES, SPECS[family], [FitSeed(3)])
    require_equal(drawn, weighted)
    assert not torch.allclose(
        drawn.dev_loss, fit(train, dev, N_CLASSES, SPECS[family], [FitSeed(3)]).dev_loss
    )


def test_ridge_regression_takes_the_strength_of_the_first_cell_of_each_sample():
    train, dev = (planted(n, n, True) for n in (200, 100))
    noise = torch.Generator().manual_seed(0)
    train, dev = (
        replace(b, labels=torch.cat([b.labels, torch.randn(b.labels.shape, generator=noise)]))
        for b in (train, dev)
    )
    draws = [FitSeed(0, 0), FitSeed(0, 0), FitSeed(1, 6)]
    cells = [0, 1, 1]
    fitted = fit(*(b.of_cells(cells) for b in (train, dev)), 0, PROBES["linear"], draws)
    assert torch.equal(fitted.strength[:, 0], fitted.strength[:, 1])
    for cell, draw, labels in ((0, FitSeed(), 0), (2, FitSeed(5, 6), 1)):
        alone = fit(*(b.of_cells([labels]) for b in (train, dev)), 0, PROBES["linear"], [draw])
        require_equal(some_of(fitted, [cell]), alone)
    # Noise is best predicted by its mean, the label of layer 1 is not.
    assert fitted.strength[1, 2] > fitted.strength[1, 0]


@pytest.fixture(scope="module")
def controlled():
    return [with_controls(planted(3000, 1), 3), with_controls(planted(500, 2), 4)]


@pytest.mark.parametrize("family", ["linear", "mlp"])
def test_control_cells_share_the_strength_of_real_cells_and_do_not_change_them(controlled, family):
    spec = PROBES[family].model_copy(update={"min_steps": 300, "hidden": 16})
    train, dev = controlled
    together = fit(train, dev, N_CLASSES, spec, 2 * [FitSeed(0, 0), FitSeed(1, 1)])
    assert together.dev_loss.shape == (N_LAYERS, 4)
    assert predict(together, dev.features, N_CLASSES, spec).shape == (N_LAYERS, 4, 500)
    assert torch.equal(together.strength[:, :2], together.strength[:, 2:])
    real = fit(
        *(part.of_cells(slice(0, 2)) for part in controlled),
        N_CLASSES,
        spec,
        [FitSeed(0, 0), FitSeed(1, 1)],
    )
    torch.testing.assert_close(together.dev_loss[:, :2], real.dev_loss, rtol=1e-3, atol=0)
    assert (together.dev_loss[1, 2:] > together.dev_loss[1, :2] + 0.2).all()


def test_fits_of_an_mlp_do_not_depend_on_the_layers_and_cells_beside_them(data):
    spec, seeds = SPECS["mlp"], [FitSeed(0, 0), FitSeed(1, 1)]
    together = fit(*(with_cells(b, 2) for b in data), N_CLASSES, spec, seeds)
    top = [replace(b, features=InMemory(b.features.values[1:])) for b in data]
    alone = fit(*top, N_CLASSES, spec, seeds[:1])
    torch.testing.assert_close(together.dev_loss[1:, :1], alone.dev_loss, rtol=1e-3, atol=0)
    a = predict(together, data[1].features, N_CLASSES, spec)[1, 0]
    b = predict(alone, top[1].features, N_CLASSES, spec)[0, 0]
    assert (a != b).sum() <= 2


def test_cells_that_lack_examples_are_fits_on_the_others():
    train, dev = planted(900, 1, regression=True), planted(300, 2, regression=True)
    kept = torch.stack([torch.arange(900) % 3 != 0, torch.arange(900) < 500])
    subsets = replace(with_cells(train, 2), weights=kept.float())
    strengths = torch.tensor([0.02, 0.02], dtype=torch.float64)
    fitted = fit(subsets, dev, 0, PROBES["linear"], [FitSeed(), FitSeed()], strengths)
    for cell in (0, 1):
        x, y = train.features.values[1][kept[cell]], train.labels[0][kept[cell]]
        model = Ridge(alpha=0.02 * len(y)).fit(x, y)
        np.testing.assert_allclose(fitted.parameters[0][1, cell, 0], model.coef_, atol=1e-4)


def test_a_control_cell_is_ridge_regression_at_the_strength_of_the_real_cell():
    train, dev = (with_controls(planted(n, n, regression=True), n) for n in (900, 300))
    fitted = fit(train, dev, 0, PROBES["linear"], 2 * [FitSeed(0, 0), FitSeed(3, 3)])
    assert torch.equal(fitted.strength[:, :2], fitted.strength[:, 2:])
    counts = bootstrap_weights(train.sentences, 3)
    x = train.features.values[1]
    for cell in (1, 3):
        model = Ridge(alpha=fitted.strength[1, cell].item() * counts.sum().item())
        model.fit(x, train.labels[cell], sample_weight=counts)
        np.testing.assert_allclose(fitted.parameters[0][1, cell, 0], model.coef_, atol=1e-4)
        error = model.predict(dev.features.values[1]) - dev.labels[cell].numpy()
        assert fitted.dev_loss[1, cell].item() == pytest.approx(0.5 * (error**2).mean(), rel=1e-3)
