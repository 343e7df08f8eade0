"""The steps that are foretold against those that are taken."""

from dataclasses import replace

import pytest
import torch
from planted_examples import N_CLASSES, planted, with_cells

from probes.common.terminal import progress
from probes.records.probe_spec import PROBES
from probes.training.fit import Draw, fit
from probes.training.online_code import online_code
from probes.training.scalar_mix import layer_overlap, learn_mixes
from probes.training.steps import code_steps, fit_steps, mix_steps

DRAWS = [Draw(), Draw(1, 1), Draw(), Draw(2, 1)]


@pytest.fixture
def taken(monkeypatch):
    """The number of steps that have advanced the bar."""
    advanced = []
    monkeypatch.setattr(progress, "advance", lambda n=1: advanced.append(n))
    return lambda: sum(advanced)


@pytest.mark.parametrize("at_once", [1, 10])
@pytest.mark.parametrize(("family", "n"), [("linear", 1000), ("linear", 3000), ("mlp", 3000)])
def test_of_fits(taken, family, n, at_once, monkeypatch):
    monkeypatch.setattr("probes.training.trainer.fits_at_once", lambda device: at_once)
    monkeypatch.setattr("probes.training.fit.FEW", 1000)
    spec = PROBES[family].model_copy(
        update={"epochs": 2, "min_steps": 7, "hidden": 4 * bool(PROBES[family].hidden)}
    )
    train, dev = planted(n, 1), planted(100, 2)
    fit(train, dev, N_CLASSES, spec, DRAWS)
    assert fit_steps(spec, train.sentences, N_CLASSES, DRAWS) == taken() > 0
    if (family, n) == ("linear", 1000):
        assert taken() == 2 * 2


@pytest.mark.parametrize("n", [1000, 3000])
def test_of_fits_that_converge(taken, n, monkeypatch):
    monkeypatch.setattr("probes.training.fit.FEW", 1000)
    spec = PROBES["linear"].model_copy(update={"epochs": 2})
    train, dev = planted(n, 1), planted(100, 2)
    fit(train, dev, N_CLASSES, spec, DRAWS, converge=True)
    assert fit_steps(spec, train.sentences, N_CLASSES, DRAWS, converge=True) == taken() >= 16


def test_of_label_sets(taken):
    train, dev = (
        replace(planted(n, n), sets=torch.eye(N_CLASSES)[:, :3].contiguous()) for n in (300, 100)
    )
    fit(train, dev, 3, PROBES["linear"], DRAWS)
    assert fit_steps(PROBES["linear"], train.sentences, 3, DRAWS) == taken() == 40


def test_of_ridge_regression(taken):
    train, dev = planted(300, 1, regression=True), planted(100, 2, regression=True)
    fit(train, dev, 0, PROBES["linear"], DRAWS)
    assert fit_steps(PROBES["linear"], train.sentences, 0, DRAWS) == taken() == 2


def test_of_ridge_regressions_on_parts_of_the_examples(taken):
    train, dev = planted(300, 1, regression=True), planted(100, 2, regression=True)
    kept = torch.arange(300) >= torch.tensor([[0], [100], [100], [200]])
    parts = replace(train, weights=kept.float())
    fit(parts, dev, 0, PROBES["linear"], [Draw()] * 4)
    draws = [Draw()] * 4
    assert fit_steps(PROBES["linear"], train.sentences, 0, draws, kept.numpy()) == taken() == 3


def test_of_mixes(taken):
    train, dev = planted(3000, 1), planted(100, 2)
    overlap = layer_overlap(train.features)
    learn_mixes(train, dev, N_CLASSES, PROBES["linear"], overlap, [0, 1, 1], [0, 0, 1])
    assert mix_steps(train.sentences) == taken() > 0


@pytest.mark.parametrize("n", [15, 45, 2000])
def test_of_codes(taken, n):
    train = planted(n, 1)
    online_code(train, N_CLASSES, PROBES["linear"])
    assert code_steps(train.sentences) == taken()
    assert (n > 40) == (taken() > 0)


def test_steps_do_not_depend_on_the_layers_or_cells_of_a_convex_fit(taken):
    train, dev = planted(300, 1), planted(100, 2)
    spec = PROBES["linear"].model_copy(update={"epochs": 1})
    fit(with_cells(train, 3), with_cells(dev, 3), N_CLASSES, spec, [Draw()] * 3)
    assert fit_steps(spec, train.sentences, N_CLASSES, [Draw()]) == taken()
