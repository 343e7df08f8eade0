"""Cells with the labels of a control task, fitted together with the real ones."""

import numpy as np
import pytest
import torch
from planted_examples import N_CLASSES, N_LAYERS, planted, with_controls
from sklearn.linear_model import LogisticRegression

from probes.records.probe_spec import PROBES
from probes.training.batches import bootstrap_weights
from probes.training.fit import Draw, fit, predict


@pytest.fixture(scope="module")
def controlled():
    return [with_controls(planted(3000, 1), 3), with_controls(planted(500, 2), 4)]


@pytest.mark.parametrize("family", ["linear", "mlp"])
def test_control_cells_share_the_strength_of_real_cells_and_do_not_change_them(controlled, family):
    spec = PROBES[family].model_copy(update={"min_steps": 300, "hidden": 16})
    train, dev = controlled
    together = fit(train, dev, N_CLASSES, spec, 2 * [Draw(0, 0), Draw(1, 1)])
    assert together.dev_loss.shape == (N_LAYERS, 4)
    assert predict(together, dev.features, N_CLASSES, spec).shape == (N_LAYERS, 4, 500)
    assert torch.equal(together.strength[:, :2], together.strength[:, 2:])
    real = fit(
        *(part.of_cells(slice(0, 2)) for part in controlled),
        N_CLASSES,
        spec,
        [Draw(0, 0), Draw(1, 1)],
    )
    torch.testing.assert_close(together.dev_loss[:, :2], real.dev_loss, rtol=1e-3, atol=0)
    assert (together.dev_loss[1, 2:] > together.dev_loss[1, :2] + 0.2).all()


def test_a_linear_control_cell_is_scikit_learns_fit_to_its_labels_and_sample(controlled):
    train, dev = controlled
    draws = 2 * [Draw(0, 0), Draw(3, 3)]
    fitted = fit(train, dev, N_CLASSES, PROBES["linear"], draws)
    for cell, seed in ((2, 0), (3, 3)):
        weights = train.weights[cell] * bootstrap_weights(train.sentences, seed)
        strength = fitted.strength[1, cell].item()
        model = LogisticRegression(C=1 / (strength * weights.sum().item()), tol=1e-8)
        model.fit(train.features.values[1], train.labels[cell], weights)
        # A shift of all classes alike changes no probability.
        weight = fitted.parameters[0][1, cell]
        ours, theirs = (w - w.mean(0) for w in (weight.numpy(), model.coef_))
        np.testing.assert_allclose(ours, theirs, atol=0.01)
