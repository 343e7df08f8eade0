"""Fits of all probes of a layer: what they find, what they keep, and on what they do not depend."""

import numpy as np
import pytest
import torch
from planted_trees import loss_in_loops, planted, random_trees, trees
from scipy.stats import ortho_group
from sklearn.preprocessing import StandardScaler

from probes.extraction.reading.vectors import Sharded
from probes.families.structure import fitting
from probes.families.structure.fitting import StructuralProbe, exact_batches, training_batches
from probes.families.structure.sentence_scores import (
    Contributions,
    gold_edges,
    sentence_contributions,
)
from probes.families.structure.structure_rows import (
    SCORES,
    ScoredSplit,
    mean_share,
    share_difference,
)

CPU, LONGEST, NOISE = torch.device("cpu"), 9, 3
ONES = {0: torch.ones(10_000)}


class Split:
    """Sentences, and vectors in which their trees lie.

    Args:
        mixed: whether vectors are rotated with other dimensions, whose units then differ.
    """

    def __init__(self, n, seed, mixed=True):
        self.trees = trees(*random_trees(n, LONGEST, seed, shortest=4))
        exact = np.concatenate([planted(heads, LONGEST) for heads in self.trees.heads])
        self.vectors = exact
        if mixed:
            rng = np.random.default_rng(seed)
            noise = rng.normal(size=(len(exact), NOISE))
            rotation = ortho_group.rvs(LONGEST + NOISE, random_state=0)
            units = np.geomspace(0.1, 10, LONGEST + NOISE)
            self.vectors = np.hstack([exact, noise]) @ rotation * units
        joined(self)

    def training(self):
        return training_batches(self.trees, self.rows, 0, CPU)

    def exact(self):
        return exact_batches(self.trees, self.rows, CPU)

    def scores(self, pair):
        edges, n = gold_edges(self.trees, self.exact()), len(self.trees.lengths)
        found = sentence_contributions(self.layer, self.exact(), self.trees, [pair])
        found = Contributions(*(part[None] for part in found))
        split = ScoredSplit("test", self.trees, np.arange(n), n, edges, edges, found, edges[None])
        return {metric: split.score(metric, 0, 0) for metric in SCORES}


def joined(*splits):
    """One layer with the vectors of several splits, and the batches of each."""
    layer = Sharded([split.vectors.astype(np.float32) for split in splits])
    for first, split in zip(layer.bounds, splits, strict=False):
        split.rows = first + np.arange(len(split.vectors))
        split.layer = layer
    return layer


def fit(train, dev, probes, weights=ONES):
    layer = joined(train, dev)
    return fitting.fit_structural_probes(layer, train.training(), dev.exact(), probes, weights)


def test_vectors_that_are_trees_need_no_probe():
    scores = Split(60, 0, mixed=False).scores((None, None))
    # Roots that are punctuation cannot be found.
    roots = trees(*random_trees(60, LONGEST, 0, shortest=4))
    expected = 1 - roots.punctuation_roots / 60
    assert 0.5 < expected < 1
    assert scores == pytest.approx(
        {"uuas": 1, "dspr": 1, "nspr": 1, "root_accuracy": expected}, abs=1e-6
    )


def test_rows_with_noise_of_draws_end_where_their_number_does():
    n, noise = 60, 5 * np.random.default_rng(0).standard_normal(2000)
    split = ScoredSplit("test", None, np.arange(n), n, None, None, None, None)
    half = np.tile([1.0, 2.0], (n, 1))
    row = split.row("control_uuas", 0, half, mean_share, noise)
    assert (row.value, row.interval) == (0.5, (0, 1))
    row = split.row("selectivity", 0, np.hstack([half, half]), share_difference, noise)
    assert (row.value, row.interval) == (0, (-1, 1))


def test_trees_in_a_subspace_are_found(monkeypatch):
    monkeypatch.setattr(fitting, "FEWEST_STEPS", 1000)  # of 300 sentences in the place of 12,000
    train, dev, test = Split(300, 1), Split(50, 2), Split(100, 3)
    probes = [StructuralProbe(*x) for x in (("distance", 12), ("depth", 12), ("distance", 1))]
    found = fit(train, dev, probes).matrices
    full, depth, single = map(found.get, probes)
    scores = test.scores((full, depth))
    assert scores["uuas"] > 0.95
    # Gold distances and depths have ties, which the least noise breaks.
    assert scores["dspr"] > 0.9
    assert scores["nspr"] > 0.9
    reachable = 1 - test.trees.punctuation_roots / 100
    assert scores["root_accuracy"] > 0.95 * reachable
    assert test.scores((None, None))["uuas"] < 0.8
    assert test.scores((single, single))["uuas"] < 0.8


def test_matrices_are_for_raw_vectors_and_have_the_dev_loss_that_is_named(few_steps):
    train, dev = Split(60, 1), Split(30, 2)
    probes = [StructuralProbe("distance", 4), StructuralProbe("depth", 2)]
    found = fit(train, dev, probes)
    for probe in probes:
        given = dev.trees, dev.vectors, probe, found.matrices[probe].astype(float)
        losses = [loss_in_loops(*given, sentence) for sentence in range(len(dev.trees.lengths))]
        assert found.dev_losses[probe] == pytest.approx(np.mean(losses), rel=1e-4)
        assert found.matrices[probe].shape == (probe.rank, LONGEST + NOISE)


def test_the_best_of_several_starts_is_kept(few_steps, monkeypatch):
    train, dev = Split(60, 1), Split(30, 2)
    checked = []
    mean_losses = fitting.mean_losses

    def recorded(*given):
        checked.append((given[-1].clone(), mean_losses(*given)))
        return checked[-1][1]

    monkeypatch.setattr(fitting, "mean_losses", recorded)
    probe = StructuralProbe("depth", 1)
    found = fit(train, dev, [probe])
    losses = torch.stack([loss for _, loss in checked])
    assert losses.shape == (10, 4)
    assert len(set(losses.min(0).values.tolist())) == 4
    check, start = divmod(int(losses.argmin()), 4)
    assert found.dev_losses == {probe: float(losses.min())}
    assert np.array_equal(found.matrices[probe][0], checked[check][0][start].numpy())


def test_the_state_with_the_least_dev_loss_is_kept(few_steps, monkeypatch):
    train, dev = Split(60, 1), Split(30, 2)
    # With every training step dev gets worse, then better, then worse.
    checked, factors = [], iter([5, 4, 3, 1, 2, 3, 4, 1.5, 6, 7])
    mean_losses = fitting.mean_losses

    def worse(*given):
        loss = mean_losses(*given) * next(factors)
        checked.append((given[-1].clone(), loss))
        return loss

    monkeypatch.setattr(fitting, "mean_losses", worse)
    probes = [StructuralProbe("distance", 4), StructuralProbe("depth", 3)]
    found = fit(train, dev, probes)
    assert len(checked) == 10
    for place, probe in enumerate(probes):
        losses = [float(loss[place]) for _, loss in checked]
        assert found.dev_losses[probe] == min(losses)
        assert np.argmin(losses) == 3
        rows = checked[3][0][slice(0, 4) if place == 0 else slice(4, 7)]
        assert found.matrices[probe] == pytest.approx(rows.numpy(), rel=1e-5)


def test_probes_are_the_same_fitted_alone_and_together(few_steps):
    train, dev = Split(60, 1), Split(30, 2)
    weights = {**ONES, 1: torch.rand(60, generator=torch.Generator().manual_seed(0)) * 2}
    probes = [
        StructuralProbe("distance", 8),
        StructuralProbe("depth", 1),
        StructuralProbe("distance", 3, sample=1),
        StructuralProbe("distance", 3, control=2),
    ]
    together = fit(train, dev, probes, weights)
    for probe in probes:
        alone = fit(train, dev, [probe], weights)
        assert alone.matrices[probe] == pytest.approx(together.matrices[probe], abs=1e-4)
        assert alone.dev_losses[probe] == pytest.approx(together.dev_losses[probe], rel=1e-4)
    again = fit(train, dev, probes, weights)
    assert all((again.matrices[x] == together.matrices[x]).all() for x in probes)
    # Without what it is fitted to, it would be another one.
    (plain,) = fit(train, dev, [StructuralProbe("distance", 3)], weights).matrices.values()
    for probe in probes[2:]:
        assert abs(plain - together.matrices[probe]).max() > 0.01


def test_bootstrap_samples_are_repeated_sentences(few_steps, monkeypatch):
    train, dev = Split(12, 1), Split(30, 2)
    layer = joined(train, dev)
    # A sample has the scale of the whole.
    monkeypatch.setattr(fitting, "deviations", lambda *_: torch.ones(LONGEST + NOISE))
    counts = np.array([2, 0, 1, 1, 3, 0, 0, 1, 1, 1, 0, 2])
    repeated = np.repeat(np.arange(12), counts)
    assert len(repeated) == len(counts)
    probes = [StructuralProbe("distance", 3, sample=1), StructuralProbe("depth", 2, sample=1)]

    def fit_sample(sentences, weights):
        batch = fitting._batch(train.trees, train.rows, sentences, CPU)
        given = {1: torch.from_numpy(weights).float()}
        return fitting.fit_structural_probes(layer, [batch], dev.exact(), probes, given)

    found, expected = fit_sample(np.arange(12), counts), fit_sample(repeated, np.ones(12))
    unweighted = fit_sample(np.arange(12), np.ones(12))
    for probe in probes:
        assert found.matrices[probe] == pytest.approx(expected.matrices[probe], abs=1e-4)
        assert abs(found.matrices[probe] - unweighted.matrices[probe]).max() > 0.01


def test_deviations_are_scikit_learns():
    split = Split(20, 1)
    split.vectors[:, 2] = 3
    layer = Sharded([split.vectors[:40].astype(np.float32), split.vectors[40:].astype(np.float32)])
    found = fitting.deviations(layer, split.training())
    expected = StandardScaler().fit(split.vectors).scale_
    assert found[2] == 1
    assert found.numpy() == pytest.approx(expected, rel=1e-5)


def test_steps_and_starts():
    assert fitting.n_steps(1) == fitting.FEWEST_STEPS
    assert fitting.n_steps(10_000) == 10_000 * fitting.EPOCHS
    one, other = StructuralProbe("distance", 64), StructuralProbe("distance", 64, sample=1)
    start = fitting.initial_rows(one, 0, 300)
    assert torch.equal(start, fitting.initial_rows(one, 0, 300))
    assert not torch.equal(start, fitting.initial_rows(other, 0, 300))
    assert not torch.equal(start, fitting.initial_rows(one, 1, 300))
    # Rows are divided by √rank: ‖B(h − h′)‖² is 2 · .1 for standardised words.
    h = torch.randn(2, 500, 300, generator=torch.Generator().manual_seed(1))
    projected = (h[0] - h[1]) @ start.T / 8
    assert float(projected.square().sum(-1).mean()) == pytest.approx(0.2, rel=0.05)
