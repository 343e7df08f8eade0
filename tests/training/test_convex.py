"""Fits of linear classifiers to their optimum: where they start, what they cost, how they end."""

from dataclasses import replace

import pytest
import torch
from planted_examples import N_CLASSES, N_LAYERS, one_cell, planted

from probes.common.terminal import progress
from probes.records.probe_spec import PROBES
from probes.training import full_batch
from probes.training.features import InMemory
from probes.training.fit import FitSeed, fit, fit_steps

LINEAR = PROBES["linear"]
SAMPLES = [FitSeed(sample=number) for number in (1, 2, 3)]


class NotHeld(InMemory):
    """Features that are computed anew, as on a GPU without room for them."""

    held = None

    def rotated(self, axes):
        return NotHeld(self.values @ axes)


@pytest.fixture
def evaluations(monkeypatch):
    """Number of cells at each evaluation of the loss on all examples."""
    seen, minimise = [], full_batch.minimise

    def counting(evaluate, *arguments):
        def counted(point, cells):
            seen.append(len(cells))
            return evaluate(point, cells)

        return minimise(counted, *arguments)

    monkeypatch.setattr(full_batch, "minimise", counting)
    return seen


def rare_class(n):
    """A class of one example in three hundred, of a third of the weight."""
    x = planted(n, 1).features.values
    y = (x[1, :, 0] > 2.7).long()
    weights = torch.where(y == 1, n / 3 / y.sum(), 1.0)
    return replace(one_cell(x, y, per_sentence=5), weights=weights[None])


def test_samples_that_start_from_the_full_fit_reach_the_optima_of_those_that_do_not(evaluations):
    for data in (planted(4000, 1), rare_class(4000)):
        n_outputs = int(data.labels.max()) + 1
        full = fit(data, data, n_outputs, LINEAR, [FitSeed()])
        evaluations.clear()
        near = fit(data, data, n_outputs, LINEAR, SAMPLES, None, full.parameters)
        assert sum(evaluations) <= 3 * N_LAYERS * 20
        far = fit(data, data, n_outputs, LINEAR, SAMPLES)
        for ours, theirs, start in zip(
            near.parameters, far.parameters, full.parameters, strict=True
        ):
            assert (ours - theirs).abs().mean() < 0.15 * (theirs - start).abs().mean()


def test_features_that_are_not_held_give_the_same_probes(capsys):
    held = rare_class(4000)
    not_held = replace(held, features=NotHeld(held.features.values))
    full = fit(held, held, 2, LINEAR, [FitSeed()])
    for start, seeds in ((None, [FitSeed()]), (full.parameters, SAMPLES)):
        ours, theirs = (fit(data, data, 2, LINEAR, seeds, None, start) for data in (not_held, held))
        torch.testing.assert_close(ours.dev_loss, theirs.dev_loss, rtol=0.03, atol=1e-4)
        if start is not None:
            weight, reported = ours.parameters[0], start[0]
            assert ((weight - reported).abs().amax((0, 2, 3)) > 1e-3).all()
    assert "not converged" not in capsys.readouterr().err


def test_labels_that_are_all_equal_end_at_once_and_delay_no_other_cell(evaluations, capsys):
    data = planted(600, 1)
    both = replace(data, labels=torch.cat([torch.zeros_like(data.labels), data.labels]))
    fitted = fit(both, both, N_CLASSES, LINEAR, [FitSeed()] * 2)
    alone = fit(data, data, N_CLASSES, LINEAR, [FitSeed()])
    assert evaluations.count(2) <= 10 * N_LAYERS
    assert (fitted.dev_loss[:, 0] < 1e-3).all()
    torch.testing.assert_close(fitted.dev_loss[:, 1], alone.dev_loss[:, 0])
    assert "not converged" not in capsys.readouterr().err


def test_a_cell_without_examples_costs_no_other():
    data = planted(600, 1)
    weights = torch.cat([torch.zeros_like(data.weights), data.weights])
    fitted = fit(replace(data, weights=weights), data, N_CLASSES, LINEAR, [FitSeed()] * 2)
    assert fitted.dev_loss.isfinite().tolist() == [[False, True]] * N_LAYERS
    alone = fit(data, data, N_CLASSES, LINEAR, [FitSeed()])
    torch.testing.assert_close(fitted.dev_loss[:, 1], alone.dev_loss[:, 0])


@pytest.mark.parametrize("start", [False, True])
def test_a_bar_ends_where_it_promised(monkeypatch, start):
    data, steps = planted(700, 1), []
    full = fit(data, data, N_CLASSES, LINEAR, [FitSeed()]).parameters if start else None
    monkeypatch.setattr(progress, "advance", lambda n=1: steps.append(n))
    fit(data, data, N_CLASSES, LINEAR, SAMPLES, None, full)
    assert sum(steps) == fit_steps(LINEAR, data.sentences, N_CLASSES, SAMPLES)
