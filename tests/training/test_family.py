"""Gradients of probe families against autograd; batches and bootstrap samples."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from planted_examples import N_CLASSES, SETS, planted

from probes import ProbeFamily, ProbeSpec, probe_family
from probes.records.probe_spec import PROBES
from probes.statistics.partition import Partition
from probes.training.batches import batch_bounds, bootstrap_batches, bootstrap_weights, rebatched
from probes.training.families import probe_families
from probes.training.family import MLP, Linear, shared_input
from probes.training.fit import FitSeed, fit, predict
from probes.training.losses import BinaryCrossEntropy, CrossEntropy, SquaredError


def torch_cross_entropy(logits, y, weights):
    cells = logits.flatten(0, 1)
    labels = y.expand(*logits.shape[:2], -1).flatten(0, 1)
    loss = torch.nn.functional.cross_entropy(cells, labels, reduction="none")
    return (loss.view(*logits.shape[:2], -1) * weights).sum()


def torch_squared_error(outputs, y, weights):
    return 0.5 * ((outputs[:, :, 0] - y) ** 2 * weights).sum()


def torch_binary_cross_entropy(outputs, y, weights):
    held = SETS[y].movedim(-1, 1).expand(2, -1, -1, -1)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(outputs, held, reduction="none")
    return (loss.sum(2) * weights).sum()


LOSSES = {
    "ce": (CrossEntropy(), torch_cross_entropy, 3),
    "mse": (SquaredError(), torch_squared_error, 1),
    "bce": (BinaryCrossEntropy(SETS), torch_binary_cross_entropy, 3),
}


@pytest.mark.parametrize("family", [Linear(), MLP(5)], ids=["linear", "mlp"])
@pytest.mark.parametrize(("loss", "theirs", "n_outputs"), LOSSES.values(), ids=LOSSES)
def test_hand_written_and_inherited_gradients_are_those_of_torch(family, loss, theirs, n_outputs):
    torch.manual_seed(0)
    x = torch.randn(2, 11, 6)
    classes = len(SETS) if isinstance(loss, BinaryCrossEntropy) else 3
    y = torch.randint(classes, (2, 11)) if n_outputs == 3 else torch.randn(2, 11)
    weights = torch.rand(2, 11)
    parameters = [p + 0.1 * torch.randn_like(p) for p in family.initial(2, [0, 1], 6, n_outputs)]
    leaves = [p.clone().requires_grad_() for p in parameters]
    value = theirs(family.outputs(leaves, x), y, weights)
    expected = torch.autograd.grad(value, leaves)
    # The same formula, with the inherited `backward`.
    plain = type("Plain", (type(family),), {"backward": ProbeFamily.backward})
    without = plain.__new__(plain)
    without.__dict__.update(family.__dict__)
    for each in (family, without):
        gradients = each.gradient(parameters, x, lambda o: loss.errors(o, y, weights))
        for ours, wanted in zip(gradients, expected, strict=True):
            torch.testing.assert_close(ours, wanted)
    torch.testing.assert_close(
        loss.total(family.outputs(parameters, x), y, weights).sum(), value.detach()
    )


def test_the_first_class_of_equal_logits_is_predicted():
    logits = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [0.0, 1.0, 5.0]]).T[None, None]
    assert CrossEntropy().decide(logits).tolist() == [[[1, 0, 2]]]


SPEC = ProbeSpec(family="cosine", l2=(1.0,), learning_rate=0.2, epochs=2, min_steps=60, checks=3)


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
    del probe_families._entries["cosine"], PROBES["cosine"]


@pytest.mark.usefixtures("registered")
def test_a_family_without_a_gradient_of_its_own_is_trained():
    train, dev = planted(1500, 1), planted(400, 2)
    fitted = fit(train, dev, N_CLASSES, SPEC, [FitSeed()])
    right = predict(fitted, dev.features, N_CLASSES, SPEC)[:, 0] == dev.labels
    linear = fit(train, dev, N_CLASSES, PROBES["linear"], [FitSeed()])
    reached = predict(linear, dev.features, N_CLASSES, PROBES["linear"])[:, 0] == dev.labels
    # Layer 1 predicts the labels, layer 0 does not.
    assert right[0].float().mean() < 0.45
    assert right[1].float().mean() > reached[1].float().mean() - 0.05 > 0.5


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


def test_batches_never_split_a_sentence():
    sentences = torch.tensor([3] * 300 + [1] * 300 + [2] * 700 + [5] * 10)
    assert batch_bounds(sentences, 500) == [0, 600, 1300, 1310]
    assert batch_bounds(torch.tensor([0])) == [0, 1]
    # Near equal: no small rest whose examples would be stepped on more often.
    bounds = batch_bounds(torch.arange(3985), 512)
    assert set(np.diff(bounds)) == {498, 499}


@pytest.mark.parametrize(("n", "size", "bounds"), [(9, 64, [0, 9]), (100, 30, [0, 35, 70, 100])])
def test_examples_are_cut_into_batches_again(n, size, bounds):
    train = planted(n, 1)
    again = rebatched(replace(train, bounds=[0, n]), size)
    assert again.bounds == bounds
    assert all(
        getattr(again, field.name) is getattr(train, field.name)
        for field in fields(train)
        if field.name != "bounds"
    )


def test_bootstrap_samples_draw_whole_sentences_and_seed_0_draws_each_once():
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


DOCUMENTS = np.arange(200) % 25
"""Of 200 sentences; those of a document do not stand together."""


def test_bootstrap_samples_keep_documents_whole():
    train = replace(planted(1000, 1), partition=Partition("documents", DOCUMENTS))
    of_example = DOCUMENTS[train.sentences]
    assert train.clusters.tolist() == of_example.tolist()
    drawn = torch.randint(25, (25,), generator=torch.Generator().manual_seed(3))
    expected = np.bincount(drawn, minlength=25)[of_example]
    none, sample = bootstrap_batches(train, [0, 3]).weights
    assert (none == 1).all()
    assert sample.tolist() == expected.tolist()
    # Sentences of their own, where the corpus names no documents.
    alone = bootstrap_batches(replace(train, partition=None), [3]).weights[0]
    per_document = [len(alone[of_example == document].unique()) for document in range(25)]
    assert min(per_document) > 1


def test_samples_of_documents_are_those_of_the_split_whatever_is_left_of_it():
    train = replace(planted(1000, 1), partition=Partition("documents", DOCUMENTS))
    part = train.part(slice(100, 600))
    assert part.clusters.tolist() == train.clusters[100:600].tolist()
    sample = bootstrap_batches(train, [3])
    lean = sample.without_unused()
    assert lean.clusters.tolist() == train.clusters[sample.weights[0] > 0].tolist()
