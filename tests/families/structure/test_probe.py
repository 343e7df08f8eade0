"""Losses and gradients of probes against loops, autograd and finite differences."""

import numpy as np
import pytest
import torch
from planted_trees import loss_in_loops, random_trees, trees

from probes.extraction.reading.vectors import Sharded
from probes.families.structure import fitting
from probes.families.structure.fitting import (
    StructuralProbe,
    exact_batches,
    losses,
    slopes,
    training_batches,
)

PROBES = [
    StructuralProbe("distance", 1),
    StructuralProbe("depth", 3),
    StructuralProbe("distance", 3, sample=1),
    StructuralProbe("distance", 2, control=1),
    StructuralProbe("depth", 2, control=3, sample=1),
]
SIZE, RANKS = 6, [probe.rank for probe in PROBES]


@pytest.fixture(scope="module")
def trees_and_vectors():
    """Sentences of 2 to 9 words, and vectors of the words."""
    its = trees(*random_trees(40, 9, seed=0))
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(its.lengths.sum(), SIZE)).astype(np.float32)
    return its, vectors


@pytest.fixture(scope="module")
def matrix():
    generator = torch.Generator().manual_seed(2)
    return torch.randn(sum(RANKS), SIZE, generator=generator, dtype=torch.float64)


def batches_of(its, how="padded"):
    rows = np.arange(its.lengths.sum())
    if how == "padded":
        return training_batches(its, rows, 0, torch.device("cpu"))
    return exact_batches(its, rows, torch.device("cpu"))


@pytest.mark.parametrize("how", ["padded", "exact"])
def test_losses_are_those_of_loops_whatever_the_batches(trees_and_vectors, matrix, how):
    its, vectors = trees_and_vectors
    parts = [each.numpy() for each in matrix.split(RANKS)]
    seen = []
    for batch in batches_of(its, how):
        projected = batch.vectors(Sharded([vectors])).double() @ matrix.T
        found = losses(PROBES, projected, batch)
        for place, sentence in enumerate(batch.sentences):
            for probe, b, loss in zip(PROBES, parts, found[:, place], strict=True):
                expected = loss_in_loops(its, vectors, probe, b, sentence)
                assert float(loss) == pytest.approx(expected, rel=1e-6)
        seen += batch.sentences.tolist()
        if how == "exact":
            assert len(set(batch.lengths.tolist())) == 1
    assert sorted(seen) == list(range(40))


def weights_of(batch):
    rng = np.random.default_rng(3)
    counts = torch.from_numpy(rng.integers(0, 4, len(batch.sentences))).double()
    return {0: torch.ones(len(counts), dtype=torch.float64), 1: counts}


def test_slopes_are_those_of_autograd(trees_and_vectors, matrix):
    its, vectors = trees_and_vectors
    padded = batches_of(its)
    assert any(len(set(batch.lengths.tolist())) > 1 for batch in padded)
    for batch in padded:
        h, weights = batch.vectors(Sharded([vectors])).double(), weights_of(batch)
        projected = (h @ matrix.T).requires_grad_()
        each = losses(PROBES, projected, batch)
        weighted = torch.stack([weights[probe.sample] for probe in PROBES]) * each
        (expected,) = torch.autograd.grad(weighted.sum(), projected)
        found = slopes(PROBES, projected.detach(), batch, weights)
        assert found.abs().max() > 0.1
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


def test_batches_of_long_sentences_are_smaller(trees_and_vectors, monkeypatch):
    its, _ = trees_and_vectors
    monkeypatch.setattr(fitting, "_PAIRS", 100)
    for how in ("padded", "exact"):
        found = batches_of(its, how)
        seen = np.concatenate([batch.sentences for batch in found])
        assert sorted(seen) == list(range(40))
        assert all(batch.rows.size * batch.rows.shape[1] <= 100 for batch in found)
        assert max(len(batch.sentences) for batch in found) > 1
    monkeypatch.setattr(fitting, "_PAIRS", 1)
    assert [len(batch.sentences) for batch in batches_of(its)] == [1] * 40


def test_training_batches_differ_with_the_seed_and_are_little_padded(trees_and_vectors):
    its, _ = trees_and_vectors
    rows, cpu = np.arange(its.lengths.sum()), torch.device("cpu")
    orders = [
        [b.sentences.tolist() for b in training_batches(its, rows, seed, cpu)] for seed in (0, 0, 1)
    ]
    assert orders[0] == orders[1] != orders[2]
    many = trees(*random_trees(400, 40, seed=4))
    for batch in training_batches(many, np.arange(many.lengths.sum()), 0, cpu):
        # 32 of 400 sentences are about three lengths of the 39 there are; four more are mixed in.
        assert batch.lengths.max() - batch.lengths.min() <= 10
        assert len(set(batch.lengths.tolist())) > 1
