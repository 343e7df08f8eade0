"""The choice of strengths and step sizes, on fits with a known dev loss."""

import math

import pytest
import torch
from planted_examples import N_CLASSES, N_FEATURES, N_LAYERS, planted

from probes.records.probe_spec import PROBES
from probes.training.batches import Batches
from probes.training.features import Held
from probes.training.fit import fit
from probes.training.fitted import FittedProbes
from probes.training.linear import Linear
from probes.training.losses import CrossEntropy
from probes.training.mlp import MLP
from probes.training.search import parabola_minimum, search_convex, search_full_fits
from probes.training.trainer import Schedule, Trainer


@pytest.fixture(scope="module")
def data():
    return planted(3000, 1), planted(500, 2)


def test_the_strength_is_the_minimum_of_a_parabola_through_the_three_best():
    grid = torch.tensor([1e-4, 1e-3, 1e-2, 1e-1])
    place = torch.log10(grid)
    losses = torch.stack([(place - x) ** 2 for x in (-2.6, -3.4, -9, 5)])
    expected = torch.tensor([10**-2.6, 10**-3.4, 1e-4, 1e-1])
    torch.testing.assert_close(parabola_minimum(grid, losses), expected, rtol=1e-3, atol=0)
    assert 1e-4 <= parabola_minimum(grid, torch.ones(1, 4)) <= 1e-1


class FakeFits:
    """Replaces `Trainer.run`: the dev loss of each layer is a given function of strength and step."""

    def __init__(self, losses, monkeypatch):
        self.asked = []
        n_layers = len(losses)
        data = Batches(Held(torch.zeros(n_layers, 4, 3)), *torch.zeros(3, 1, 4), [0, 4])
        # The features of a layer are its number.
        data.features.values[:] = torch.arange(n_layers)[:, None, None]
        spec = PROBES["mlp"].model_copy(update={"strengths": (1e-1, 1e-5, 1e-4, 1e-3, 1e-2)})
        fake = self

        def run(trainer, start, strengths, steps, schedule, order=0):
            assert (schedule, order) == (Schedule(checks=12), 7)
            features = trainer.train.features.block(slice(0, 1))
            layers = features[:, 0, 0].int().tolist()
            rows = zip(layers, strengths.tolist(), steps.tolist(), strict=True)
            found = torch.tensor([[losses[i](s, step) for s in some] for i, some, step in rows])
            fake.asked += zip(layers, strengths.tolist(), steps.tolist(), strict=True)
            # Each parameter is the loss at which it was found.
            wide = [found[:, :, None, None].expand(-1, -1, *p.shape[2:]).clone() for p in start]
            size = steps[:, None].expand_as(strengths).float()
            return FittedProbes(wide, strengths.clone(), size, torch.ones_like(found), found)

        monkeypatch.setattr(Trainer, "run", run)
        trainer = Trainer(data, data, Linear(), CrossEntropy(), spec)
        start = [torch.zeros(n_layers, 1, 2, 3), torch.zeros(n_layers, 1, 2, 1)]
        self.found = search_full_fits(trainer, start, order=7)


def valley(strength, step):
    """Decades from the best strength, and doublings from the best step."""
    return lambda s, t: abs(math.log10(s / strength)) + abs(math.log2(t / step))


def test_each_layer_finds_its_strength_and_step_size(monkeypatch):
    best = [(1e-5, 0.005), (1e-3, 0.02), (1e-1, 0.0025), (1e-4, 0.00125), (1e-2, 0.01)]
    found = FakeFits([valley(*at) for at in best], monkeypatch).found
    strengths, steps = map(torch.tensor, zip(*best, strict=True))
    torch.testing.assert_close(found.strength[:, 0], strengths)
    torch.testing.assert_close(found.step[:, 0], steps)
    torch.testing.assert_close(found.dev_loss, torch.zeros(5, 1), rtol=0, atol=1e-5)
    # The parameters kept for a layer are those of its best fit.
    for parameter in found.parameters:
        torch.testing.assert_close(parameter, found.dev_loss[..., None, None].expand_as(parameter))


def test_a_layer_is_refitted_only_while_its_dev_loss_falls(monkeypatch):
    asked = FakeFits([valley(1e-5, 0.005), valley(1e-3, 0.04)], monkeypatch).asked
    rounded = [(i, [float(f"{s:.0e}") for s in some], round(t, 6)) for i, some, t in asked]
    assert rounded == [
        (0, [1e-5, 1e-4], 0.005),
        (1, [1e-5, 1e-4], 0.005),
        (1, [1e-3], 0.005),
        (1, [1e-2], 0.005),
        # Two doublings at most.
        (0, [1e-5], 0.01),
        (1, [1e-3], 0.01),
        (1, [1e-3], 0.02),
        (0, [1e-5], 0.0025),
    ]


def test_strengths_beyond_a_rise_of_the_dev_loss_are_not_tried(monkeypatch):
    hidden = {1e-5: 2.0, 1e-4: 3.0, 1e-3: 0.5, 1e-2: 0.1, 1e-1: 0.0}

    def past_a_hill(s, t):
        return hidden[float(f"{s:.0e}")] + abs(t / 0.005 - 1)

    # Together with a layer whose dev loss falls all the way.
    found = FakeFits([past_a_hill, valley(1e-1, 0.005)], monkeypatch).found
    torch.testing.assert_close(found.strength[:, 0], torch.tensor([1e-5, 1e-1]))


def test_a_fit_whose_dev_loss_is_nan_is_not_chosen(monkeypatch):
    def beyond(s, t):
        return math.nan if t > 0.005 else abs(math.log10(s / 1e-4))

    found = FakeFits([beyond], monkeypatch).found
    torch.testing.assert_close(found.step, torch.full((1, 1), 0.005))
    assert found.dev_loss.item() == pytest.approx(0, abs=1e-5)


@pytest.fixture
def convex_search(monkeypatch):
    """Searches of a linear probe whose dev loss is least at a strength and a step for each layer."""
    asked = []

    def search(best, n_features):
        # The features of a layer are its number.
        values = torch.arange(len(best)).float()[:, None, None].expand(-1, 4, n_features)
        data = Batches(Held(values.clone()), *torch.zeros(3, 1, 4), [0, 4])

        def run(trainer, start, strengths, steps, schedule, order=0):
            assert schedule == Schedule(share=PROBES["linear"].search)
            layers = trainer.train.features.block(slice(0, 1))[:, 0, 0].int().tolist()
            asked.extend(zip(layers, [round(x, 9) for x in steps.tolist()], strict=True))
            found = []
            for layer, some, step in zip(layers, strengths, steps, strict=True):
                strength, at = best[layer]
                # With steps that are too large, the best strength seems to be larger.
                seen = math.log10(strength) + max(0, math.log2(step / at)) / 2
                found.append((some.log10() - seen) ** 2 + 10 * abs(math.log2(step / at)) + 1)
            losses = torch.stack(found)
            wide = [
                losses.view(*losses.shape, *[1] * (p.dim() - 2)).expand(-1, -1, *p.shape[2:])
                for p in start
            ]
            size = steps[:, None].expand_as(strengths).float()
            return FittedProbes(wide, strengths.clone(), size, torch.ones_like(losses), losses)

        monkeypatch.setattr(Trainer, "run", run)
        trainer = Trainer(data, data, Linear(), CrossEntropy(), PROBES["linear"])
        start = Linear().initial(len(best), [0], n_features, 2)
        return *search_convex(trainer, start), asked

    return search


def test_step_sizes_for_wide_features_are_halved_while_the_dev_loss_falls(convex_search):
    best = [(10**-2.5, 0.02), (10**-3.5, 0.005), (10**-1.5, 0.01), (10**-4.5, 0.001)]
    found, likely, steps, asked = convex_search(best, 4 * 384)
    assert steps.dtype == torch.float64
    assert steps.tolist() == pytest.approx([0.02, 0.005, 0.01, 0.005])
    torch.testing.assert_close(found.step[:, 0].double(), steps, rtol=1e-6, atol=0)
    # The parabola is that of the chosen step size.
    expected = torch.tensor([10**-2.5, 10**-3.5, 10**-1.5, 10 ** (-4.5 + math.log2(5) / 2)])
    torch.testing.assert_close(likely, expected, rtol=2e-3, atol=0)
    # So are the parameters. Steps are halved at most as often as the width is a doubling of 384.
    torch.testing.assert_close(found.parameters[0][:, :, 0, 0], found.dev_loss)
    assert asked == [
        *((layer, 0.02) for layer in range(4)),
        *((layer, 0.01) for layer in range(4)),
        *((layer, 0.005) for layer in (1, 2, 3)),
    ]


@pytest.mark.parametrize(("n_features", "halvings"), [(12, 0), (384, 0), (385, 1), (1024, 2)])
def test_the_number_of_halvings_follows_from_the_width(convex_search, n_features, halvings):
    *_, steps, asked = convex_search([(1e-3, 1e-4)], n_features)
    assert steps.tolist() == [0.02 / 2**halvings]
    assert len(asked) == 1 + halvings


def test_a_linear_fit_continues_with_the_step_size_of_its_search(monkeypatch):
    train, dev = planted(400, 0), planted(200, 1)
    taken, run = [], Trainer.run

    def recorded(trainer, start, strengths, steps, schedule, order=0):
        taken.append((schedule, steps.tolist()))
        return run(trainer, start, strengths, steps, schedule, order)

    monkeypatch.setattr(Trainer, "run", recorded)
    # As if 12 features were many.
    monkeypatch.setattr("probes.training.search._WIDTH", 3)
    spec = PROBES["linear"].model_copy(update={"min_steps": 20})
    found = fit(train, dev, N_CLASSES, spec, [0])
    chosen = found.step[:, 0].tolist()
    assert taken[-1] == (Schedule(join=2), pytest.approx([0.75 * step for step in chosen]))
    tried = [step for schedule, steps in taken if schedule.join == 1 for step in steps]
    assert [round(step, 6) in (0.02, 0.01, 0.005) for step in chosen] == [True] * N_LAYERS
    assert min(tried) < 0.02


def test_the_search_of_an_mlp_finds_for_each_layer_what_the_layer_alone_would(data):
    """The cell of seed 0 is one full fit at the chosen step size, and neighbouring ones are no better."""
    train, dev = data
    spec = PROBES["mlp"].model_copy(update={"hidden": 8, "passes": 1, "min_steps": 60})
    found = fit(train, dev, N_CLASSES, spec, [0])
    family, loss = MLP(8), CrossEntropy()
    start = family.initial(N_LAYERS, [0], N_FEATURES, N_CLASSES)
    trainer = Trainer(train, dev, family, loss, spec)
    schedule = Schedule(checks=12)
    for layer in range(N_LAYERS):
        strength, step = found.strength[[layer]], found.step[layer, 0].item()
        for factor in (1, 2, 0.5):
            if not 0.001 < step * factor < 0.03:
                continue
            alone = trainer.of_layers([layer])
            here = [p[[layer]] for p in start]
            again = alone.run(here, strength, alone.steps(step * factor), schedule)
            if factor == 1:
                assert again.dev_loss.item() == pytest.approx(found.dev_loss[layer, 0].item(), 1e-4)
                torch.testing.assert_close(
                    again.parameters[0][0], found.parameters[0][layer], rtol=1e-3, atol=1e-4
                )
            else:
                assert again.dev_loss.item() >= found.dev_loss[layer, 0].item() - 1e-5
