"""Batched probes against scikit-learn and closed forms on the same numbers."""

import math
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import islice
from multiprocessing import get_context

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge

from probes.compute.precision import Rounding
from probes.records.probe_spec import PROBES
from probes.training.adam import Adam
from probes.training.batches import Batches, batch_bounds, bootstrap_weights
from probes.training.features import Held, Streamed, mapped_tensor
from probes.training.fit import fit, predict
from probes.training.fits import Fit, mean_loss
from probes.training.linear import Linear
from probes.training.losses import CrossEntropy, SquaredError
from probes.training.mlp import MLP
from probes.training.prefixes import fit_prefixes
from probes.training.scratch import Scratch
from probes.training.search import best_fit, between, likely_strengths
from probes.training.trainer import Schedule, Trainer, shuffled_batches

N_LAYERS, N_FEATURES, N_CLASSES = 2, 12, 4


def make(n, seed, regression=False):
    """Sentences of 1 to 9 words; layer 1 carries the label better than layer 0."""
    torch.manual_seed(seed)
    truth = torch.Generator().manual_seed(99)
    x = torch.randn(N_LAYERS, n, N_FEATURES)
    w = torch.randn(N_FEATURES, N_CLASSES, generator=truth)
    y = (x[1] @ w + torch.randn(n, N_CLASSES)).argmax(1)
    if regression:
        y = x[1] @ w[:, 0] + 3 + 0.5 * torch.randn(n)
    sentences = torch.arange(n) // 5
    return one_cell(x, y, sentences)


def one_cell(x, y, sentences, n_cells=1):
    """Examples with the same labels for all cells, all of weight 1."""
    weights = torch.ones(n_cells, len(y))
    bounds = batch_bounds(sentences)
    return Batches(Held(x), y.expand(n_cells, -1), weights, sentences, bounds)


def cells(data, n_cells):
    """The same data for more cells."""
    return replace(
        data, labels=data.labels.expand(n_cells, -1), weights=data.weights.expand(n_cells, -1)
    )


@pytest.fixture(scope="module")
def data():
    return make(3000, 1), make(500, 2)


def torch_cross_entropy(logits, y, weights):
    cells = logits.flatten(0, 1)
    labels = y.expand(*logits.shape[:2], -1).flatten(0, 1)
    loss = torch.nn.functional.cross_entropy(cells, labels, reduction="none")
    return (loss.view(*logits.shape[:2], -1) * weights).sum()


def torch_squared_error(outputs, y, weights):
    return 0.5 * ((outputs[:, :, 0] - y) ** 2 * weights).sum()


theirs_of = {CrossEntropy: torch_cross_entropy, SquaredError: torch_squared_error}


@pytest.mark.parametrize("head", [Linear(), MLP(5)], ids=["linear", "mlp"])
@pytest.mark.parametrize("loss", [CrossEntropy, SquaredError], ids=["ce", "mse"])
def test_hand_written_gradients_are_autograds(head, loss):
    torch.manual_seed(0)
    n_outputs = 3 if loss is CrossEntropy else 1
    x = torch.randn(2, 11, 6)
    y = torch.randint(3, (2, 11)) if n_outputs == 3 else torch.randn(2, 11)
    weights = torch.rand(2, 11)
    parameters = [p + 0.1 * torch.randn_like(p) for p in head.initial(2, [0, 1], 6, n_outputs)]
    leaves = [p.clone().requires_grad_() for p in parameters]
    value = theirs_of[loss](head.outputs(leaves, x), y, weights)
    expected = torch.autograd.grad(value, leaves)
    gradients = head.gradient(parameters, x, lambda o: loss().errors(o, y, weights))
    for ours, theirs in zip(gradients, expected, strict=True):
        torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(
        loss().total(head.outputs(parameters, x), y, weights).sum(), value.detach()
    )


def test_cross_entropy_is_torchs_on_logits():
    torch.manual_seed(0)
    logits, y = torch.randn(1, 1, 4, 50), torch.randint(4, (1, 50))
    ours = CrossEntropy().total(logits, y, torch.ones(1, 50))
    assert ours.item() == pytest.approx(
        torch.nn.functional.cross_entropy(logits[0, 0].T, y[0], reduction="sum").item()
    )


@pytest.mark.parametrize("balanced", [False, True])
def test_linear_probe_reaches_the_converged_solution(data, balanced):
    train, dev = data
    spec = PROBES["linear"]
    if balanced:
        count = torch.bincount(train.labels[0])
        of_class = len(train.labels[0]) / (len(count) * count)
        train, dev = (replace(b, weights=of_class[b.labels].float()) for b in data)
    fitted = fit(train, dev, N_CLASSES, spec, [0])
    for layer in range(N_LAYERS):
        best = np.inf
        for strength in (a * b for a in spec.strengths for b in spec.refinement):
            c = 1 / (strength * 3000)
            model = LogisticRegression(
                C=c, max_iter=2000, tol=1e-8, class_weight="balanced" if balanced else None
            ).fit(train.features.values[layer], train.labels[0])
            p = model.predict_proba(dev.features.values[layer])[np.arange(500), dev.labels[0]]
            best = min(best, float(-(np.log(p) * dev.weights[0].numpy()).sum() / dev.weights.sum()))
        assert fitted.dev_loss[layer, 0].item() == pytest.approx(best, rel=0.01)


def test_ridge_is_scikit_learns():
    train, dev = make(900, 1, regression=True), make(300, 2, regression=True)
    spec = PROBES["linear"]
    fitted = fit(train, dev, 0, spec, [0])
    for layer in range(N_LAYERS):
        losses = {}
        for strength in (a * b for a in spec.strengths for b in spec.refinement):
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


def test_bootstrap_seeds_are_weighted_fits():
    train, dev = make(900, 1, regression=True), make(300, 2, regression=True)
    weights = bootstrap_weights(train.sentences, 3)
    fitted = fit(cells(train, 2), cells(dev, 2), 0, PROBES["linear"], [0, 3])
    strength = fitted.strength[1, 1].item()
    model = Ridge(alpha=strength * weights.sum().item())
    model.fit(train.features.values[1], train.labels[0], sample_weight=weights)
    ours = predict(fitted, dev.features, 0, PROBES["linear"])[1, 1]
    np.testing.assert_allclose(ours, model.predict(dev.features.values[1]), atol=1e-3)
    assert not torch.equal(fitted.parameters[0][1, 0], fitted.parameters[0][1, 1])


def test_bootstrap_draws_whole_sentences_and_seed_0_draws_each_once():
    sentences = torch.tensor([4, 4, 4, 1, 1, 7, 9, 9])
    assert bootstrap_weights(sentences, 0).tolist() == [1] * 8
    weights = bootstrap_weights(sentences, 5)
    for number in (1, 4, 7, 9):
        assert len(weights[sentences == number].unique()) == 1
    per_sentence = sum(weights[sentences == n][0].item() for n in (1, 4, 7, 9))
    assert per_sentence == 4
    # Independent of the layout.
    order = torch.tensor([5, 0, 1, 2, 6, 7, 3, 4])
    assert torch.equal(bootstrap_weights(sentences[order], 5), weights[order])


def with_controls(data, seed):
    """Seeds 0 and 1 with the real labels, then the same seeds with random ones."""
    torch.manual_seed(seed)
    shape = (2, data.labels.shape[1])
    if data.labels.dtype == torch.int64:
        random, weights = torch.randint(N_CLASSES, shape), torch.rand(2, shape[1]) + 0.5
    else:
        random, weights = torch.randn(shape), torch.ones(shape)
    real = cells(data, 2)
    return replace(
        real,
        labels=torch.cat([real.labels, random]),
        weights=torch.cat([real.weights, weights]),
    )


@pytest.fixture(scope="module")
def controlled(data):
    return [with_controls(part, 3 + i) for i, part in enumerate(data)]


@pytest.mark.parametrize("family", ["linear", "mlp"])
def test_control_cells_have_the_real_ones_strength_and_leave_them_alone(controlled, family):
    spec = PROBES[family].model_copy(update={"min_steps": 300, "hidden": 16})
    train, dev = controlled
    together = fit(train, dev, N_CLASSES, spec, [0, 1])
    assert together.dev_loss.shape == (N_LAYERS, 4)
    assert predict(together, dev.features, N_CLASSES, spec).shape == (N_LAYERS, 4, 500)
    assert torch.equal(together.strength[:, :2], together.strength[:, 2:])
    real = fit(*(part.of_cells(slice(0, 2)) for part in controlled), N_CLASSES, spec, [0, 1])
    torch.testing.assert_close(together.dev_loss[:, :2], real.dev_loss, rtol=1e-3, atol=0)
    assert (together.dev_loss[1, 2:] > together.dev_loss[1, :2] + 0.2).all()


def test_a_linear_control_cell_is_scikit_learns_on_its_labels_and_sample(controlled):
    train, dev = controlled
    fitted = fit(train, dev, N_CLASSES, PROBES["linear"], [0, 3])
    for cell, seed in ((2, 0), (3, 3)):
        weights = train.weights[cell] * bootstrap_weights(train.sentences, seed)
        strength = fitted.strength[1, cell].item()
        model = LogisticRegression(C=1 / (strength * weights.sum().item()), tol=1e-8)
        model.fit(train.features.values[1], train.labels[cell], weights)
        # A shift of all classes alike changes no probability.
        weight = fitted.parameters[0][1, cell]
        ours, theirs = (w - w.mean(0) for w in (weight.numpy(), model.coef_))
        np.testing.assert_allclose(ours, theirs, atol=0.01)


def test_an_mlps_control_cell_is_a_fit_of_its_own(controlled, monkeypatch):
    spec = PROBES["mlp"].model_copy(update={"min_steps": 300, "hidden": 16})
    together = fit(*controlled, N_CLASSES, spec, [0, 1])
    monkeypatch.setattr("probes.training.search._MOVES", 0)
    for seed in (0, 1):
        only = [part.of_cells(slice(2 + seed, 3 + seed)) for part in controlled]
        for layer in range(N_LAYERS):
            chosen = {
                "strengths": (together.strength[layer, 0].item(),),
                "step": together.step[layer, 0].item(),
            }
            alone = fit(*only, N_CLASSES, spec.model_copy(update=chosen), [seed])
            torch.testing.assert_close(
                together.dev_loss[layer, 2 + seed], alone.dev_loss[layer, 0], rtol=1e-3, atol=0
            )


def test_a_control_cell_of_a_regression_is_scikit_learns_at_the_real_cells_strength():
    train, dev = (with_controls(make(n, n, regression=True), n) for n in (900, 300))
    fitted = fit(train, dev, 0, PROBES["linear"], [0, 3])
    assert torch.equal(fitted.strength[:, :2], fitted.strength[:, 2:])
    counts = bootstrap_weights(train.sentences, 3)
    x = train.features.values[1]
    for cell in (1, 3):
        model = Ridge(alpha=fitted.strength[1, cell].item() * counts.sum().item())
        model.fit(x, train.labels[cell], sample_weight=counts)
        np.testing.assert_allclose(fitted.parameters[0][1, cell, 0], model.coef_, atol=1e-4)
        error = model.predict(dev.features.values[1]) - dev.labels[cell].numpy()
        assert fitted.dev_loss[1, cell].item() == pytest.approx(0.5 * (error**2).mean(), rel=1e-3)


@pytest.mark.parametrize("n", [20, 500])
def test_a_prefix_is_fitted_at_given_strengths_and_gives_its_code_length(data, n):
    train, spec = data[0], PROBES["linear"]
    strengths = torch.tensor([[0.01], [0.1]])
    [parameters] = fit_prefixes(
        [train.part(slice(0, n))], N_CLASSES, spec, [strengths], [spec.step] * N_LAYERS
    )
    block = train.part(slice(n, 2 * n))
    given = mean_loss(Linear(), CrossEntropy(), parameters, block)
    for layer, x in enumerate(train.features.values):
        model = LogisticRegression(C=1 / (strengths[layer, 0].item() * n), tol=1e-8, max_iter=1000)
        model.fit(x[:n], train.labels[0, :n])
        p = model.predict_proba(x[n : 2 * n])[np.arange(n), train.labels[0, n : 2 * n]]
        assert given[layer, 0].item() == pytest.approx(-np.log(p).mean(), rel=0.01)


def test_mlp_learns_what_a_linear_probe_cannot():
    def xor(n, seed):
        torch.manual_seed(seed)
        x = torch.randn(1, n, 4)
        y = ((x[0, :, 0] > 0) ^ (x[0, :, 1] > 0)).long()
        return one_cell(x, y, torch.arange(n))

    train, dev = xor(2000, 1), xor(500, 2)
    accuracy = {}
    for family in ("linear", "mlp"):
        spec = PROBES[family].model_copy(update={"min_steps": 200, "step": 0.01})
        fitted = fit(train, dev, 2, spec, [0])
        given = predict(fitted, dev.features, 2, spec)[0, 0]
        accuracy[family] = (given == dev.labels[0]).float().mean().item()
    assert accuracy["linear"] < 0.6
    assert accuracy["mlp"] > 0.95


def test_scores_do_not_depend_on_the_layers_fitted_beside(data):
    train, dev = data
    spec = PROBES["mlp"].model_copy(update={"min_steps": 60, "hidden": 32})
    together = fit(cells(train, 2), cells(dev, 2), N_CLASSES, spec, [0, 1])
    top = [replace(b, features=Held(b.features.values[1:])) for b in (train, dev)]
    alone = fit(*top, N_CLASSES, spec, [0])
    a = predict(together, dev.features, N_CLASSES, spec)[1, 0]
    b = predict(alone, Held(dev.features.values[1:]), N_CLASSES, spec)[0, 0]
    assert (a != b).sum() <= 2


@pytest.mark.parametrize("family", ["linear", "mlp"])
def test_rounded_products_in_training_give_the_same_probe(data, family, monkeypatch):
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


def test_the_strength_is_where_a_parabola_through_the_three_best_is_least():
    grid = torch.tensor([1e-4, 1e-3, 1e-2, 1e-1])
    place = torch.log10(grid)
    losses = torch.stack([(place - x) ** 2 for x in (-2.6, -3.4, -9, 5)])
    expected = torch.tensor([10**-2.6, 10**-3.4, 1e-4, 1e-1])
    torch.testing.assert_close(between(grid, losses), expected, rtol=1e-3, atol=0)
    assert 1e-4 <= between(grid, torch.ones(1, 4)) <= 1e-1


class Valleys:
    """Stands in for fits: the dev loss of each layer is least at a strength and a step."""

    def __init__(self, losses, monkeypatch):
        self.asked = []
        n_layers = len(losses)
        data = Batches(Held(torch.zeros(n_layers, 4, 3)), *torch.zeros(3, 1, 4), [0, 4])
        # The features of a layer tell which one it is.
        data.features.values[:] = torch.arange(n_layers)[:, None, None]
        spec = PROBES["mlp"].model_copy(update={"strengths": (1e-1, 1e-5, 1e-4, 1e-3, 1e-2)})
        valleys = self

        def run(trainer, start, strengths, steps, schedule, order=0):
            assert (schedule, order) == (Schedule(checks=12), 7)
            features = trainer.train.features.block(slice(0, 1))
            layers = features[:, 0, 0].int().tolist()
            rows = zip(layers, strengths.tolist(), steps.tolist(), strict=True)
            found = torch.tensor([[losses[i](s, step) for s in some] for i, some, step in rows])
            valleys.asked += zip(layers, strengths.tolist(), steps.tolist(), strict=True)
            # Each parameter is the loss at which it was found.
            wide = [found[:, :, None, None].expand(-1, -1, *p.shape[2:]).clone() for p in start]
            size = steps[:, None].expand_as(strengths).float()
            return Fit(wide, strengths.clone(), size, torch.ones_like(found), found)

        monkeypatch.setattr(Trainer, "run", run)
        trainer = Trainer(data, data, Linear(), CrossEntropy(), spec)
        start = [torch.zeros(n_layers, 1, 2, 3), torch.zeros(n_layers, 1, 2, 1)]
        self.found = best_fit(trainer, start, order=7)


def valley(strength, step):
    """Decades from the best strength, and doublings from the best step."""
    return lambda s, t: abs(math.log10(s / strength)) + abs(math.log2(t / step))


def test_each_layer_finds_its_strength_and_its_step(monkeypatch):
    best = [(1e-5, 0.005), (1e-3, 0.02), (1e-1, 0.0025), (1e-4, 0.00125), (1e-2, 0.01)]
    found = Valleys([valley(*at) for at in best], monkeypatch).found
    strengths, steps = map(torch.tensor, zip(*best, strict=True))
    torch.testing.assert_close(found.strength[:, 0], strengths)
    torch.testing.assert_close(found.step[:, 0], steps)
    torch.testing.assert_close(found.dev_loss, torch.zeros(5, 1), rtol=0, atol=1e-5)
    # What is kept of a layer belongs to its best fit.
    for parameter in found.parameters:
        torch.testing.assert_close(parameter, found.dev_loss[..., None, None].expand_as(parameter))


def test_a_layer_is_fitted_again_only_as_long_as_that_makes_it_better(monkeypatch):
    asked = Valleys([valley(1e-5, 0.005), valley(1e-3, 0.04)], monkeypatch).asked
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


def test_what_lies_past_a_rise_is_not_tried_nor_taken(monkeypatch):
    hidden = {1e-5: 2.0, 1e-4: 3.0, 1e-3: 0.5, 1e-2: 0.1, 1e-1: 0.0}

    def past_a_hill(s, t):
        return hidden[float(f"{s:.0e}")] + abs(t / 0.005 - 1)

    # Beside a layer that goes all the way.
    found = Valleys([past_a_hill, valley(1e-1, 0.005)], monkeypatch).found
    torch.testing.assert_close(found.strength[:, 0], torch.tensor([1e-5, 1e-1]))


@pytest.fixture
def convex_search(monkeypatch):
    """Searches of a linear probe, whose dev loss is least at a strength and a step by layer."""
    asked = []

    def search(best, n_features):
        # The features of a layer tell which one it is.
        values = torch.arange(len(best)).float()[:, None, None].expand(-1, 4, n_features)
        data = Batches(Held(values.clone()), *torch.zeros(3, 1, 4), [0, 4])

        def run(trainer, start, strengths, steps, schedule, order=0):
            assert schedule == Schedule(share=PROBES["linear"].search)
            layers = trainer.train.features.block(slice(0, 1))[:, 0, 0].int().tolist()
            asked.extend(zip(layers, [round(x, 9) for x in steps.tolist()], strict=True))
            found = []
            for layer, some, step in zip(layers, strengths, steps, strict=True):
                strength, at = best[layer]
                # The strength looks stronger than it is while steps are too large.
                seen = math.log10(strength) + max(0, math.log2(step / at)) / 2
                found.append((some.log10() - seen) ** 2 + 10 * abs(math.log2(step / at)) + 1)
            losses = torch.stack(found)
            wide = [
                losses.view(*losses.shape, *[1] * (p.dim() - 2)).expand(-1, -1, *p.shape[2:])
                for p in start
            ]
            size = steps[:, None].expand_as(strengths).float()
            return Fit(wide, strengths.clone(), size, torch.ones_like(losses), losses)

        monkeypatch.setattr(Trainer, "run", run)
        trainer = Trainer(data, data, Linear(), CrossEntropy(), PROBES["linear"])
        start = Linear().initial(len(best), [0], n_features, 2)
        return *likely_strengths(trainer, start), asked

    return search


def test_steps_of_wide_features_are_halved_as_long_as_that_is_better(convex_search):
    best = [(10**-2.5, 0.02), (10**-3.5, 0.005), (10**-1.5, 0.01), (10**-4.5, 0.001)]
    found, likely, steps, asked = convex_search(best, 4 * 384)
    assert steps.dtype == torch.float64
    assert steps.tolist() == pytest.approx([0.02, 0.005, 0.01, 0.005])
    torch.testing.assert_close(found.step[:, 0].double(), steps, rtol=1e-6, atol=0)
    # The parabola is that of the step which was taken.
    expected = torch.tensor([10**-2.5, 10**-3.5, 10**-1.5, 10 ** (-4.5 + math.log2(5) / 2)])
    torch.testing.assert_close(likely, expected, rtol=2e-3, atol=0)
    # Parameters go with it; as many halvings as the width is doublings of 384, and no more.
    torch.testing.assert_close(found.parameters[0][:, :, 0, 0], found.dev_loss)
    assert asked == [
        *((layer, 0.02) for layer in range(4)),
        *((layer, 0.01) for layer in range(4)),
        *((layer, 0.005) for layer in (1, 2, 3)),
    ]


@pytest.mark.parametrize(("n_features", "halvings"), [(12, 0), (384, 0), (385, 1), (1024, 2)])
def test_how_often_steps_are_halved_follows_from_the_width(convex_search, n_features, halvings):
    *_, steps, asked = convex_search([(1e-3, 1e-4)], n_features)
    assert steps.tolist() == [0.02 / 2**halvings]
    assert len(asked) == 1 + halvings


def test_a_linear_fit_goes_on_with_the_step_of_its_search(monkeypatch):
    train, dev = make(400, 0), make(200, 1)
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


def test_a_fit_that_comes_to_nothing_is_not_taken(monkeypatch):
    def beyond(s, t):
        return math.nan if t > 0.005 else abs(math.log10(s / 1e-4))

    found = Valleys([beyond], monkeypatch).found
    torch.testing.assert_close(found.step, torch.full((1, 1), 0.005))
    assert found.dev_loss.item() == pytest.approx(0, abs=1e-5)


def test_a_fit_that_no_look_finds_finite_has_no_dev_loss(data):
    """It would otherwise be recorded with the loss of its start."""

    class Diverging(Linear):
        def gradient(self, parameters, x, errors):
            gradients = super().gradient(parameters, x, errors)
            gradients[0][1] = torch.nan  # one layer of them
            return gradients

    train, dev = data
    spec = PROBES["linear"].model_copy(update={"passes": 1, "min_steps": 20})
    trainer = Trainer(train, dev, Diverging(), CrossEntropy(), spec)
    start = trainer.head.initial(N_LAYERS, [0], N_FEATURES, N_CLASSES)
    start[0] += 0.01  # the loss of all zeros is that of a layer which says nothing
    strengths = torch.full((N_LAYERS, 1), 1e-3)
    found = trainer.run(start, strengths, trainer.steps(0.01), Schedule(checks=4)).dev_loss[:, 0]
    assert found.isinf().tolist() == [layer == 1 for layer in range(N_LAYERS)]


def test_the_search_of_an_mlp_is_its_fit_and_no_other_layer_has_a_say(data):
    """Seed 0's cell is one whole fit at what was chosen, and the best of those beside it."""
    train, dev = data
    spec = PROBES["mlp"].model_copy(update={"hidden": 8, "passes": 1, "min_steps": 60})
    found = fit(train, dev, N_CLASSES, spec, [0])
    head, loss = MLP(8), CrossEntropy()
    start = head.initial(N_LAYERS, [0], N_FEATURES, N_CLASSES)
    trainer = Trainer(train, dev, head, loss, spec)
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


def test_steps_are_those_of_torch_s_adam():
    start = [torch.randn(2, 3, 4), torch.randn(2, 3)]
    ours = [p.clone() for p in start]
    theirs = [p.clone().requires_grad_() for p in start]
    adam = Adam(ours, [0.1, 0.1])
    reference = torch.optim.Adam(theirs, betas=(0.9, 0.99))
    for step in range(1, 6):
        gradients = [torch.randn_like(p) for p in start]
        adam.step(gradients, 1 / step)
        for parameter, gradient in zip(theirs, gradients, strict=True):
            parameter.grad = gradient
        reference.param_groups[0]["lr"] = 0.1 / step
        reference.step()
    for a, b, before in zip(ours, theirs, start, strict=True):
        torch.testing.assert_close(a, b.detach())
        assert (a - before).abs().min() > 1e-4


def test_every_layer_has_steps_of_its_own_size():
    sizes = [0.1, 0.1, 0.02, 0.1]
    start = [torch.randn(4, 3, 5), torch.randn(4, 3)]
    ours = [p.clone() for p in start]
    adam = Adam(ours, sizes)
    theirs = [[p[i].clone().requires_grad_() for p in start] for i in range(4)]
    references = [
        torch.optim.Adam(of, lr=size, betas=(0.9, 0.99))
        for of, size in zip(theirs, sizes, strict=True)
    ]
    for share in (1.0, 0.5, 0.25):
        gradients = [torch.randn_like(p) for p in start]
        adam.step(gradients, share)
        for i, reference in enumerate(references):
            reference.param_groups[0]["lr"] = sizes[i] * share
            for parameter, gradient in zip(theirs[i], gradients, strict=True):
                parameter.grad = gradient[i]
            reference.step()
    for i in range(4):
        for a, b in zip(ours, theirs[i], strict=True):
            torch.testing.assert_close(a[i], b.detach())


def test_same_inputs_give_the_same_numbers(data):
    train, dev = (cells(part, 2) for part in data)
    first, second = (fit(train, dev, N_CLASSES, PROBES["linear"], [0, 1]) for _ in range(2))
    assert torch.equal(first.dev_loss, second.dev_loss)
    assert torch.equal(first.parameters[0], second.parameters[0])


@pytest.mark.parametrize("family", ["linear", "mlp"])
def test_a_group_of_cells_can_be_fitted_in_another_process(data, family, tmp_path):
    spec = PROBES[family].model_copy(update={"min_steps": 40, "hidden": 8})
    parts = []
    for name, part in zip(("train", "dev"), data, strict=True):
        np.save(tmp_path / f"{name}.npy", part.features.values.numpy())
        mapped = [mapped_tensor(x) for x in np.load(tmp_path / f"{name}.npy", mmap_mode="r")]
        first = np.arange(len(part.sentences))
        spans = [np.stack([first, first + 1], 1)]
        mean, scale = torch.zeros(N_LAYERS, N_FEATURES), torch.ones(N_LAYERS, N_FEATURES)
        streamed = Streamed(mapped, spans, mean, scale, torch.device("cpu"))
        parts.append(replace(cells(part, 2), features=Scratch(streamed, tmp_path)))
    work = partial(fit, *parts, N_CLASSES, spec, [0, 1])
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        elsewhere = pool.submit(work).result()
    torch.testing.assert_close(work().dev_loss, elsewhere.dev_loss, rtol=1e-2, atol=0)
    assert torch.isfinite(elsewhere.dev_loss).all()


def test_a_constant_feature_set_gives_the_majority():
    n = 600
    x = torch.zeros(1, n, 5)
    y = (torch.arange(n) % 3 == 0).long()
    data = one_cell(x, y, torch.arange(n))
    fitted = fit(data, data, 2, PROBES["linear"], [0])
    assert predict(fitted, Held(x), 2, PROBES["linear"]).unique().tolist() == [0]
    entropy = -(1 / 3 * np.log(1 / 3) + 2 / 3 * np.log(2 / 3))
    assert fitted.dev_loss.item() == pytest.approx(entropy, rel=1e-3)


def test_batches_never_split_a_sentence():
    sentences = torch.tensor([3] * 300 + [1] * 300 + [2] * 700 + [5] * 10)
    assert batch_bounds(sentences, 500) == [0, 600, 1300, 1310]
    assert batch_bounds(torch.tensor([0])) == [0, 1]
    # Near equal: no small rest whose examples would be stepped on more often.
    bounds = batch_bounds(torch.arange(3985), 512)
    assert set(np.diff(bounds)) == {498, 499}


def test_seeds_of_an_mlp_have_orders_of_their_own_and_do_not_meet(data):
    train, dev = data[0].of_cells(slice(0, 1)), data[1].of_cells(slice(0, 1))
    orders = (islice(shuffled_batches(train, order), 8) for order in (0, 1))
    first, second = ([part.start for part, _ in order] for order in orders)
    assert first != second
    spec = PROBES["mlp"].model_copy(update={"hidden": 8, "passes": 1, "min_steps": 40})
    alone = fit(train, dev, N_CLASSES, spec, [0])
    both = fit(twice(train), twice(dev), N_CLASSES, spec, [0, 1])
    for one, two in zip(alone.parameters, both.parameters, strict=True):
        torch.testing.assert_close(one[:, 0], two[:, 0])
        assert not torch.allclose(two[:, 0], two[:, 1], atol=1e-3)


def test_what_a_sample_lacks_is_not_read_and_makes_no_difference(data, monkeypatch):
    train, dev = twice(data[0]), twice(data[1])
    spec = PROBES["mlp"].model_copy(update={"hidden": 8, "passes": 1, "min_steps": 40})
    lean = fit(train, dev, N_CLASSES, spec, [0, 3])
    counts = bootstrap_weights(train.sentences, 3)
    sample = replace(data[0], weights=counts[None]).drawn()
    assert 0.55 < sample.features.shape[1] / len(counts) < 0.7
    assert torch.equal(sample.features.block(slice(None)), train.features.values[:, counts > 0])
    assert torch.equal(sample.sentences, train.sentences[counts > 0])
    ends = [int((counts[:bound] > 0).sum()) for bound in train.bounds]
    assert sample.bounds == ends
    asked = []
    monkeypatch.setattr(Batches, "drawn", lambda self: asked.append(self.weights) or self)
    whole = fit(train, dev, N_CLASSES, spec, [0, 3])
    assert torch.equal(torch.cat(asked), counts[None])
    for one, two in zip(lean.parameters, whole.parameters, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-2, atol=1e-3)


def test_a_batch_of_which_a_sample_has_nothing_changes_nothing():
    train, dev = make(100, 1), make(50, 2)
    weights = torch.cat([torch.zeros(50), torch.ones(50)])[None]
    train = replace(train, weights=weights, bounds=[0, 50, 100])
    assert train.drawn().bounds == [0, 0, 50]
    parts = list(islice(shuffled_batches(train.drawn()), 2))
    assert sorted(int(meant.sum()) for _, meant in parts) == [0, 50]
    spec = PROBES["mlp"].model_copy(update={"hidden": 8, "passes": 1, "min_steps": 40})
    head, loss = MLP(8), CrossEntropy()
    start = head.initial(N_LAYERS, [0], N_FEATURES, N_CLASSES)
    trainer = Trainer(train, dev, head, loss, spec)
    lean, whole = (
        trainer.run(start, torch.full((N_LAYERS, 1), 1e-3), trainer.steps(spec.step), Schedule())
        for trainer in (trainer.drawn(), trainer)
    )
    for one, two in zip(lean.parameters, whole.parameters, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-2, atol=1e-3)


def twice(batches):
    return replace(
        batches, labels=batches.labels.expand(2, -1), weights=batches.weights.expand(2, -1)
    )


@pytest.mark.parametrize(
    "gradient", [torch.ones(2, 1), torch.ones(6), torch.ones(2, 3, dtype=torch.float64)]
)
def test_a_gradient_of_another_shape_or_kind_is_refused(gradient):
    with pytest.raises(ValueError, match="for parameters of shape"):
        Adam([torch.zeros(2, 3)], [0.1] * 2).step([gradient], 1)


def test_gradients_may_be_laid_out_in_any_way():
    gradient = torch.arange(6.0).view(3, 2)
    one, other = torch.zeros(2, 3), torch.zeros(2, 3)
    Adam([one], [0.1] * len(one)).step([gradient.T], 1)
    Adam([other], [0.1] * len(other)).step([gradient.T.contiguous()], 1)
    assert torch.equal(one, other)
    assert one[0, 0] == 0 > one[0, 1]


def test_losses_that_choose_the_stopping_point_may_be_rounded_and_the_reported_one_is_not(
    data, monkeypatch
):
    types = Rounding(torch.bfloat16, torch.bfloat16)
    monkeypatch.setattr("probes.training.features.rounding", lambda device: types)
    train, dev = data
    fitted = fit(train, dev, N_CLASSES, PROBES["mlp"], [0])
    head, loss = MLP(PROBES["mlp"].hidden), CrossEntropy()
    exact = mean_loss(head, loss, fitted.parameters, dev)
    rounded = mean_loss(head, loss, fitted.parameters, dev, rounded=True)
    torch.testing.assert_close(fitted.dev_loss, exact, rtol=1e-6, atol=0)
    assert (rounded != exact).all()
    torch.testing.assert_close(rounded, exact, rtol=5e-3, atol=0)


def test_of_equal_logits_the_first_class_is_predicted():
    logits = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [0.0, 1.0, 5.0]]).T[None, None]
    assert CrossEntropy().decide(logits).tolist() == [[[1, 0, 2]]]
