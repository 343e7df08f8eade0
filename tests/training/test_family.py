"""Gradients of probe families against autograd, and a family that leaves its own to autograd."""

import pytest
import torch
from planted_examples import N_CLASSES, planted

from probes import ProbeFamily, ProbeSpec, probe_family
from probes.records.probe_spec import PROBES
from probes.training.families import families
from probes.training.family import MLP, Linear, shared_input
from probes.training.fit import Draw, fit, predict
from probes.training.losses import CrossEntropy, SquaredError


def torch_cross_entropy(logits, y, weights):
    cells = logits.flatten(0, 1)
    labels = y.expand(*logits.shape[:2], -1).flatten(0, 1)
    loss = torch.nn.functional.cross_entropy(cells, labels, reduction="none")
    return (loss.view(*logits.shape[:2], -1) * weights).sum()


def torch_squared_error(outputs, y, weights):
    return 0.5 * ((outputs[:, :, 0] - y) ** 2 * weights).sum()


TORCH_LOSSES = {CrossEntropy: torch_cross_entropy, SquaredError: torch_squared_error}


@pytest.mark.parametrize("family", [Linear(), MLP(5)], ids=["linear", "mlp"])
@pytest.mark.parametrize("loss", [CrossEntropy, SquaredError], ids=["ce", "mse"])
def test_hand_written_and_inherited_gradients_are_those_of_torch(family, loss):
    torch.manual_seed(0)
    n_outputs = 3 if loss is CrossEntropy else 1
    x = torch.randn(2, 11, 6)
    y = torch.randint(3, (2, 11)) if n_outputs == 3 else torch.randn(2, 11)
    weights = torch.rand(2, 11)
    parameters = [p + 0.1 * torch.randn_like(p) for p in family.initial(2, [0, 1], 6, n_outputs)]
    leaves = [p.clone().requires_grad_() for p in parameters]
    value = TORCH_LOSSES[loss](family.outputs(leaves, x), y, weights)
    expected = torch.autograd.grad(value, leaves)
    # The same formula, with the inherited `backward`.
    plain = type("Plain", (type(family),), {"backward": ProbeFamily.backward})
    without = plain.__new__(plain)
    without.__dict__.update(family.__dict__)
    for each in (family, without):
        gradients = each.gradient(parameters, x, lambda o: loss().errors(o, y, weights))
        for ours, theirs in zip(gradients, expected, strict=True):
            torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(
        loss().total(family.outputs(parameters, x), y, weights).sum(), value.detach()
    )


def test_the_first_class_of_equal_logits_is_predicted():
    logits = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [0.0, 1.0, 5.0]]).T[None, None]
    assert CrossEntropy().decide(logits).tolist() == [[[1, 0, 2]]]


SPEC = ProbeSpec(
    family="cosine",
    l2=(1.0,),
    learning_rate=0.2,
    epochs=2,
    min_steps=60,
    checks=3,
)


class Cosine(ProbeFamily):
    """Logits are scaled cosines of the features and a vector for each class."""

    def __init__(self, spec):
        self.scale = 5

    def initial(self, n_layers, seeds, n_features, n_outputs):
        drawn = [
            torch.randn(n_outputs, n_features, generator=torch.Generator().manual_seed(s))
            for s in seeds
        ]
        return [
            torch.stack(drawn).repeat(n_layers, 1, 1, 1),
            torch.zeros(n_layers, len(seeds), n_outputs),
        ]

    def outputs(self, parameters, features):
        weight, bias = parameters
        normed = features / features.norm(dim=-1, keepdim=True)
        return self.scale * shared_input(normed, weight / weight.norm(dim=-1, keepdim=True), bias)


@pytest.fixture
def registered():
    probe_family(SPEC)(Cosine)
    yield
    del families._entries["cosine"], PROBES["cosine"]


@pytest.mark.usefixtures("registered")
def test_a_family_without_a_gradient_of_its_own_is_trained():
    train, dev = planted(1500, 1), planted(400, 2)
    fitted = fit(train, dev, N_CLASSES, SPEC, [Draw()])
    right = predict(fitted, dev.features, N_CLASSES, SPEC)[:, 0] == dev.labels
    linear = fit(train, dev, N_CLASSES, PROBES["linear"], [Draw()])
    reached = predict(linear, dev.features, N_CLASSES, PROBES["linear"])[:, 0] == dev.labels
    # Layer 1 predicts the labels, layer 0 does not.
    assert right[0].float().mean() < 0.45
    assert right[1].float().mean() > reached[1].float().mean() - 0.05 > 0.5


@pytest.mark.parametrize("few", [0, 1500])
def test_a_convex_family_with_a_start_of_its_own_and_no_gradient_ends_where_others_do(
    few, monkeypatch
):
    monkeypatch.setattr("probes.training.fit.FEW", few)
    train, dev = planted(1500, 1), planted(400, 2)
    spec = PROBES["linear"].model_copy(update={"epochs": 100, "batch": 64})
    expected = fit(train, dev, N_CLASSES, spec, [Draw()])
    drawn = torch.randn(2, 1, N_CLASSES, 12), torch.randn(2, 1, N_CLASSES)
    monkeypatch.setattr(Linear, "initial", lambda *given: [p.clone() for p in drawn])
    monkeypatch.setattr(Linear, "backward", ProbeFamily.backward)
    found = fit(train, dev, N_CLASSES, spec, [Draw()])
    torch.testing.assert_close(found.dev_loss, expected.dev_loss, rtol=0.002, atol=0)
    torch.testing.assert_close(found.parameters[0], expected.parameters[0], rtol=0, atol=0.01)


def test_a_convex_family_without_a_closed_form_fits_regressions(monkeypatch):
    monkeypatch.setattr(Linear, "closed_form", False)
    train, dev = planted(1500, 1, regression=True), planted(400, 2, regression=True)
    update = {"learning_rate": 0.1, "min_steps": 600, "ridge_l2": (30 / 1500,)}
    spec = PROBES["linear"].model_copy(update=update)
    iterative = fit(train, dev, 0, spec, [Draw()])
    monkeypatch.undo()
    exact = fit(train, dev, 0, spec, [Draw()])
    torch.testing.assert_close(iterative.dev_loss, exact.dev_loss, rtol=0.005, atol=0)


@pytest.mark.parametrize("inherited", [False, True])
def test_a_family_that_writes_to_its_features_is_refused(inherited):
    class Careless(Linear):
        backward = ProbeFamily.backward if inherited else Linear.backward

        def outputs(self, parameters, features):
            return super().outputs(parameters, features.mul_(2))

    family, x = Careless(), torch.randn(1, 5, 3)
    parameters = family.initial(1, [0], 3, 2)
    with pytest.raises(ValueError, match="Careless writes to its features"):
        family.gradient(parameters, x, torch.ones_like)
    with pytest.raises(ValueError, match="Careless writes to its features"):
        family.checked_outputs(parameters, x)
