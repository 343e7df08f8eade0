"""Planted examples for tests of training: labels that are a noisy linear function of layer 1."""

from dataclasses import replace

import torch

from probes.training.batches import Batches, batch_bounds
from probes.training.features import InMemory

N_LAYERS, N_FEATURES, N_CLASSES = 2, 12, 4

SETS = torch.tensor([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 1]])
"""Four sets of three labels."""


def planted(n, seed, regression=False):
    """Sentences of five words; layer 1 predicts the label, layer 0 does not."""
    torch.manual_seed(seed)
    truth = torch.Generator().manual_seed(99)
    x = torch.randn(N_LAYERS, n, N_FEATURES)
    w = torch.randn(N_FEATURES, N_CLASSES, generator=truth)
    y = (x[1] @ w + torch.randn(n, N_CLASSES)).argmax(1)
    if regression:
        y = x[1] @ w[:, 0] + 3 + 0.5 * torch.randn(n)
    return one_cell(x, y, per_sentence=5)


def one_cell(x, y, sentences=None, n_cells=1, *, per_sentence=1):
    """Examples with the same labels for all cells, all of weight 1; features are (L, N, H)."""
    if sentences is None:
        sentences = torch.arange(len(y)) // per_sentence
    weights = torch.ones(n_cells, len(y))
    bounds = batch_bounds(sentences)
    return Batches(InMemory(x), y.expand(n_cells, -1), weights, sentences, bounds)


def with_cells(data, n_cells):
    """The same labels and weights for `n_cells` cells."""
    return replace(
        data, labels=data.labels.expand(n_cells, -1), weights=data.weights.expand(n_cells, -1)
    )


def with_controls(data, seed):
    """Seeds 0 and 1 with the real labels, then the same seeds with random ones."""
    torch.manual_seed(seed)
    shape = (2, data.labels.shape[1])
    if data.labels.dtype == torch.int64:
        random, weights = torch.randint(N_CLASSES, shape), torch.rand(2, shape[1]) + 0.5
    else:
        random, weights = torch.randn(shape), torch.ones(shape)
    real = with_cells(data, 2)
    return replace(
        real, labels=torch.cat([real.labels, random]), weights=torch.cat([real.weights, weights])
    )
