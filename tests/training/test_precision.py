"""Rounded products in training, exact losses and predictions."""

import pytest
import torch
from planted_examples import N_CLASSES, planted

from probes.compute.precision import Rounding
from probes.records.probe_spec import PROBES
from probes.training.fit import fit, predict
from probes.training.fitted import mean_loss
from probes.training.losses import CrossEntropy
from probes.training.mlp import MLP


@pytest.fixture(scope="module")
def data():
    return planted(3000, 1), planted(500, 2)


@pytest.mark.parametrize("family", ["linear", "mlp"])
def test_bf16_products_in_training_give_nearly_the_same_probe(data, family, monkeypatch):
    train, dev = data
    spec = PROBES[family].model_copy(update={"min_steps": 300})
    fitted = {}
    for dtype in (torch.bfloat16, torch.float32):
        types = Rounding(dtype, dtype)
        monkeypatch.setattr("probes.training.features.rounding", lambda device, to=types: to)
        fitted[dtype] = fit(train, dev, N_CLASSES, spec, [0])
    a, b = fitted.values()
    assert not torch.equal(a.dev_loss, b.dev_loss)
    torch.testing.assert_close(a.dev_loss, b.dev_loss, rtol=2e-3, atol=0)
    ours, exact = (predict(f, dev.features, N_CLASSES, spec) for f in (a, b))
    assert (ours != exact).sum() <= 4  # of 2 layers × 500


def test_the_reported_dev_loss_is_exact_even_if_the_stopping_point_was_chosen_by_rounded_ones(
    data, monkeypatch
):
    types = Rounding(torch.bfloat16, torch.bfloat16)
    monkeypatch.setattr("probes.training.features.rounding", lambda device: types)
    train, dev = data
    fitted = fit(train, dev, N_CLASSES, PROBES["mlp"], [0])
    family, loss = MLP(PROBES["mlp"].hidden), CrossEntropy()
    exact = mean_loss(family, loss, fitted.parameters, dev)
    rounded = mean_loss(family, loss, fitted.parameters, dev, rounded=True)
    torch.testing.assert_close(fitted.dev_loss, exact, rtol=1e-6, atol=0)
    assert (rounded != exact).all()
    torch.testing.assert_close(rounded, exact, rtol=5e-3, atol=0)
