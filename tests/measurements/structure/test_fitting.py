"""Gradients and fits of structural probes, on vectors that embed trees."""

import numpy as np
import pytest
import torch
from planted_trees import device, embedded, planted

from probes.measurements.structure.batches import exact_batches, training_batches
from probes.measurements.structure.contributions import contributions
from probes.measurements.structure.fitting import fit, mean_losses
from probes.measurements.structure.probe import Probe, losses, slopes
from probes.measurements.structure.trees import trees_of

PROBES = [
    Probe("distance", 3),
    Probe("depth", 2),
    Probe("distance", 2, control=True),
    Probe("depth", 1, sample=1),
    Probe("distance", 4, sample=1),
]


@pytest.fixture(scope="module")
def context():
    return planted(n_train=80, n_dev=20, n_test=30)


def of_split(context, split, make=exact_batches, **more):
    sentences = context.corpus.splits[split]
    trees = trees_of(sentences, context.in_several_windows(split))
    return trees, make(trees, context.rows(split), device=device, **more)


def test_gradients_are_autograds_and_finite_differences(context):
    _, batches = of_split(context, "train", training_batches, seed=0)
    batch = max(batches, key=lambda x: int(x.lengths.max() - x.lengths.min()))
    assert batch.lengths.min() < batch.lengths.max()  # some padding
    n_rows = sum(probe.rank for probe in PROBES)
    torch.manual_seed(0)
    projected = torch.randn(*batch.rows.shape, n_rows, dtype=torch.float64, requires_grad=True)
    weights = {0: torch.ones(len(batch.sentences)), 1: torch.rand(len(batch.sentences)) * 2}

    def total(values):
        found = losses(PROBES, values, batch)
        return sum((found[i] * weights[p.sample]).sum() for i, p in enumerate(PROBES))

    (expected,) = torch.autograd.grad(total(projected), projected)
    given = slopes(PROBES, projected.detach(), batch, weights)
    torch.testing.assert_close(given, expected, rtol=1e-6, atol=1e-9)
    step = 1e-6
    for index in ((0, 0, 0), (1, 2, 4), (-1, 1, n_rows - 1)):
        moved = torch.zeros_like(projected)
        moved[index] = step
        with torch.no_grad():
            slope = (total(projected + moved) - total(projected - moved)) / (2 * step)
        assert float(slope) == pytest.approx(float(given[index]), rel=1e-4, abs=1e-7)


def test_vectors_that_embed_trees_need_no_probe():
    context = planted(n_train=2, n_dev=2, n_test=40, noise=0)
    trees, batches = of_split(context, "test")
    found = contributions(context.vectors.layer(0), batches, trees, [(None, None)])
    assert found.hits[0].sum() == trees.edges.sum() > 100
    assert found.dspr == pytest.approx(1)
    assert found.roots.all()
    assert found.nspr == pytest.approx(1)


def test_a_fitted_probe_finds_the_trees_of_other_sentences(context, monkeypatch):
    monkeypatch.setattr("probes.measurements.structure.fitting.FEWEST_STEPS", 600)
    _, train = of_split(context, "train", training_batches, seed=0)
    _, dev = of_split(context, "dev")
    probes = [Probe("distance", 12), Probe("depth", 12), Probe("distance", 1)]
    layer = context.vectors.layer(1)  # rotated, stretched, with noise in other dimensions
    fitted = fit(layer, train, dev, probes, {0: torch.ones(80)})
    trees, test = of_split(context, "test")
    pair = fitted.matrices[probes[0]], fitted.matrices[probes[1]]
    narrow = fitted.matrices[probes[2]], fitted.matrices[probes[1]]
    found = contributions(layer, test, trees, [pair, (None, None), narrow])
    uuas = found.hits.sum((1, 2)) / trees.edges.sum()
    assert uuas[0] > 0.95
    assert uuas[0] > uuas[1] + 0.1
    assert uuas[0] > uuas[2] + 0.2
    assert found.dspr[0].mean() > 0.9
    assert found.roots[0].mean() > 0.9
    assert found.nspr[0].mean() > 0.9
    # What is returned is the state of the least dev loss, for the model's own vectors.
    rows = torch.cat([torch.from_numpy(fitted.matrices[probe]) for probe in probes])
    again = mean_losses(layer, dev, probes, rows)
    assert again.tolist() == pytest.approx([fitted.dev_losses[x] for x in probes], rel=1e-4)


def test_no_probe_depends_on_the_others(context, monkeypatch):
    monkeypatch.setattr("probes.measurements.structure.fitting.FEWEST_STEPS", 30)
    _, train = of_split(context, "train", training_batches, seed=0)
    _, dev = of_split(context, "dev")
    counts = torch.from_numpy(np.random.default_rng(0).multinomial(80, [1 / 80] * 80)).float()
    weights = {0: torch.ones(80), 1: counts}
    layer = context.vectors.layer(1)
    together = fit(layer, train, dev, PROBES, weights)
    for probe in PROBES:
        alone = fit(layer, train, dev, [probe], weights).matrices[probe]
        np.testing.assert_allclose(together.matrices[probe], alone, rtol=1e-3, atol=1e-5)


def test_a_sentence_that_is_drawn_twice_counts_twice(context):
    _, batches = of_split(context, "train")
    batch = max(batches, key=lambda x: len(x.sentences))
    probe, n = Probe("distance", 3, sample=1), len(batch.sentences)
    assert n > 2
    projected = torch.randn(*batch.rows.shape, 3)
    twice = torch.ones(n)
    twice[0], twice[1] = 2, 0
    found = slopes([probe], projected, batch, {1: twice})
    once = slopes([probe], projected, batch, {1: torch.ones(n)})
    torch.testing.assert_close(found[0], 2 * once[0])
    assert not found[1].any()
    torch.testing.assert_close(found[2:], once[2:])


def test_embedded_trees_are_what_the_definition_says():
    vectors = embedded((1, -1, 1, 2))
    gaps = ((vectors[:, None] - vectors[None]) ** 2).sum(-1)
    assert gaps.round(6).tolist() == [[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0]]
