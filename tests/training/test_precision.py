"""Rounded products in training, exact losses and predictions."""

from dataclasses import replace

import pytest
import torch
from planted_examples import N_CLASSES, planted

from probes.records.probe_spec import PROBES
from probes.training.features import Held
from probes.training.fit import Draw, fit, predict
from probes.training.fitted import mean_loss
from probes.training.losses import CrossEntropy
from probes.training.mlp import MLP


@pytest.fixture(scope="module")
def data():
    return planted(3000, 1), planted(500, 2)


def in_bf16(data):
    return replace(data, features=Held(data.features.values, torch.bfloat16))


@pytest.mark.parametrize("family", ["linear", "mlp"])
def test_bf16_products_in_training_give_nearly_the_same_probe(data, family):
    train, dev = data
    spec = PROBES[family].model_copy(update={"min_steps": 300})
    a = fit(in_bf16(train), in_bf16(dev), N_CLASSES, spec, [Draw()])
    b = fit(train, dev, N_CLASSES, spec, [Draw()])
    assert not torch.equal(a.dev_loss, b.dev_loss)
    torch.testing.assert_close(a.dev_loss, b.dev_loss, rtol=1e-2, atol=0)
    ours, exact = (predict(f, dev.features, N_CLASSES, spec) for f in (a, b))
    # Layer 0 has nothing to tell, and predicts by what is left of noise.
    assert (ours[1] != exact[1]).sum() <= 10  # of 500


def test_the_reported_dev_loss_is_exact_even_if_rounded_ones_chose_where_to_stop(data):
    train, dev = map(in_bf16, data)
    fitted = fit(train, dev, N_CLASSES, PROBES["mlp"], [Draw()])
    family, loss = MLP(PROBES["mlp"].hidden), CrossEntropy()
    exact = mean_loss(family, loss, fitted.parameters, dev)
    rounded = mean_loss(family, loss, fitted.parameters, dev, rounded=True)
    torch.testing.assert_close(fitted.dev_loss, exact, rtol=1e-6, atol=0)
    assert (rounded != exact).all()
    torch.testing.assert_close(rounded, exact, rtol=5e-3, atol=0)
