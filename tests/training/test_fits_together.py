"""Fits that take their steps together against fits alone, and the plan of their memory."""

from dataclasses import replace

import pytest
import torch

from probes.records.probe_spec import PROBES
from probes.training.batches import Batches, batch_bounds
from probes.training.families import family_of
from probes.training.features import InMemory
from probes.training.fit import FitSeed, fit
from probes.training.losses import log_loss
from probes.training.memory_plan import Work, group_layers
from probes.training.trainer import MinibatchFit, Trainer, run_fits

N_LAYERS, N_FEATURES, N_CLASSES = 3, 12, 4
SETS = torch.tensor([[0.0, 0, 0, 0], [1, 0, 0, 1], [0, 1, 0, 0], [1, 1, 1, 0]])


def make(n, seed, n_cells):
    """Sentences of five words; a cell's labels are its own, and so are its weights."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(N_LAYERS, n, N_FEATURES, generator=generator)
    noise = torch.randn(n_cells, n, N_CLASSES, generator=generator)
    labels = (x[0, :, :N_CLASSES] + noise).argmax(2)
    weights = torch.rand(n_cells, n, generator=generator) + 0.5
    sentences = torch.arange(n) // 5
    return Batches(InMemory(x), labels, weights, sentences, batch_bounds(sentences, 64))


def fit_prefixes(prefixes, spec, strengths):
    """Fits of the first examples, each at strengths of its own."""

    def fit_of(train, given):
        dev = make(300, 2, n_cells=given.shape[1])
        trainer = Trainer(train, dev, family_of(spec), log_loss(train.sets), spec)
        return MinibatchFit(trainer, trainer.initial([0], N_CLASSES), given)

    for found in run_fits(map(fit_of, prefixes, strengths)):
        yield found.parameters


@pytest.fixture
def both(monkeypatch):
    """The results of a function with fits one after another, and together."""

    def both(function, at_once=10):
        found = []
        for n in (1, at_once):
            monkeypatch.setattr("probes.training.trainer.fits_at_once", lambda device, n=n: n)
            found.append(function())
        return found

    return both


@pytest.mark.parametrize("sets", [None, SETS], ids=["classes", "label sets"])
@pytest.mark.parametrize("family", ["linear", "mlp"])
@pytest.mark.parametrize("at_once", [2, 10])
def test_prefixes_fitted_together_equal_those_fitted_alone(both, family, sets, at_once):
    train = replace(make(2000, 1, n_cells=2), sets=sets)
    # In no order of length, of less than a batch and of several, and of as many steps and more.
    prefixes = [train.part(slice(0, n)) for n in (40, 2000, 7, 300, 1100)]
    spec = PROBES[family].model_copy(update={"hidden": 8, "epochs": 10, "min_steps": 25})
    strengths = [torch.full((N_LAYERS, 2), 0.1 / (1 + i)) for i in range(5)]
    alone, together = both(lambda: list(fit_prefixes(prefixes, spec, strengths)), at_once)
    assert len(alone) == len(together) == 5
    for one, other in zip(alone, together, strict=True):
        for a, b in zip(one, other, strict=True):
            assert a.shape[:2] == (N_LAYERS, 2)
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(alone[1][0], alone[4][0], atol=1e-2)


@pytest.mark.parametrize("n_sets", [1, 2])
@pytest.mark.parametrize("n_outputs", [N_CLASSES, 0])
def test_seeds_of_an_mlp_fitted_together_equal_those_fitted_alone(both, n_sets, n_outputs):
    draws = n_sets * [FitSeed(seed, seed) for seed in (0, 1, 2, 5)]
    train, dev = (make(n, n, len(draws)) for n in (1000, 300))
    if not n_outputs:
        train, dev = (replace(part, labels=part.labels.float()) for part in (train, dev))
    spec = PROBES["mlp"].model_copy(update={"hidden": 8, "epochs": 2, "min_steps": 40})
    alone, together = both(lambda: fit(train, dev, n_outputs, spec, draws))
    assert together.dev_loss.shape == (N_LAYERS, len(draws))
    assert together.dev_loss[0].unique().numel() == len(draws)
    torch.testing.assert_close(alone.dev_loss, together.dev_loss, rtol=1e-4, atol=0)
    torch.testing.assert_close(alone.stopped, together.stopped)
    for a, b in zip(alone.parameters, together.parameters, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)


CPU = torch.device("cpu")


def test_more_memory_never_means_fewer_layers_at_once():
    work = Work(PROBES["mlp"], 384, 384, 10**6, 17, 3)
    plans = [group_layers(1 << b, CPU, work) for b in range(10, 36)]
    for held in (False, True):
        sizes = [size for size, room in plans if bool(room) == held]
        assert sizes[0] == 1
        assert sizes == sorted(sizes)
    assert plans[-1][0] > 7
    # Of a million examples of 384 features.
    assert {room % (4 * 384 * 10**6) for _, room in plans} == {0}
    assert all(room < 1 << b for (_, room), b in zip(plans, range(10, 36), strict=True))


@pytest.mark.parametrize(("width", "layers"), [(384, 67), (1536, 6), (3072, 1)])
def test_the_plan_allows_for_the_memory_of_the_closed_form(width, layers):
    budget = 1 << 30
    work = Work(PROBES["linear"], width, width, 10**6, 0, 3)
    assert group_layers(budget, CPU, work)[0] == layers
    # Gram matrix, eigenvectors, and LAPACK's two copies and workspace of twice their size.
    assert layers * 6 * 8 * width**2 < budget
