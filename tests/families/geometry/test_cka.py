"""Linear CKA, biased and unbiased, against its form with Gram matrices of words."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from probes.measurements.measurement import get_measurement
from probes.statistics.of_families.cka import cka_between, cka_within, linear_cka

N = 9_000
"""Rows; more than two blocks."""


def cloud(dimensions, seed, n=300):
    rng = np.random.default_rng(seed)
    mixed = rng.normal(size=(n, dimensions)) @ rng.normal(size=(dimensions, dimensions))
    return (mixed + rng.normal(size=dimensions)).astype(np.float32)


def by_gram(x, y):
    """Both estimates from n × n matrices: Kornblith et al. 2019, eq. 1; Song et al. 2012, eq. 5."""
    n = len(x)
    centre = np.eye(n) - 1 / n
    k, m = (centre @ (z @ z.T) @ centre for z in (x.astype(float), y.astype(float)))
    biased = np.trace(k @ m) / np.sqrt(np.trace(k @ k) * np.trace(m @ m))
    k, m = (z.astype(float) @ z.T.astype(float) * (1 - np.eye(n)) for z in (x, y))
    one = np.ones(n)

    def hsic(k, m):
        corner = (one @ k @ one) * (one @ m @ one) / ((n - 1) * (n - 2))
        return np.trace(k @ m) + corner - 2 / (n - 2) * (one @ k @ m @ one)

    return np.array([biased, hsic(k, m) / np.sqrt(hsic(k, k) * hsic(m, m))])


def related(seed=0):
    x = cloud(8, seed)
    return x, (x[:, :5] @ cloud(5, 2, 5) + 2 * cloud(5, 3)).astype(np.float32)


def test_it_is_the_form_of_the_paper_whatever_the_dimensions():
    x, y = related()
    assert linear_cka(x, y) == pytest.approx(by_gram(x, y), rel=1e-5)
    assert ((linear_cka(x, y) > 0.1) & (linear_cka(x, y) < 0.9)).all()


def test_rows_in_several_blocks_add_up():
    x = np.random.default_rng(0).normal(1, 1, (N, 3)).astype(np.float32)
    y = (x[:, :2] + np.random.default_rng(1).normal(0, 1, (N, 2))).astype(np.float32)
    a, b = (z - z.mean(0) for z in (x.astype(float), y.astype(float)))
    expected = np.linalg.norm(b.T @ a) ** 2 / (np.linalg.norm(a.T @ a) * np.linalg.norm(b.T @ b))
    assert linear_cka(x, y)[0] == pytest.approx(expected, rel=1e-5)


def test_uncorrelated_columns_have_none_and_constant_ones_no_value():
    x = np.array([[1], [1], [-1], [-1]], dtype=np.float32)
    y = np.array([[1], [-1], [1], [-1]], dtype=np.float32)
    assert linear_cka(x, y)[0] == 0
    assert np.isnan(linear_cka(x, np.full((4, 2), 0.3, dtype=np.float32))).all()
    assert np.isnan(linear_cka(x[:3], x[:3])[1])


def test_every_two_layers_are_compared_once_and_with_two_in_memory():
    layers = {0: cloud(6, 0), 2: cloud(6, 1), 5: related()[0][:, :6], 6: np.ones((300, 6))}
    steps = []
    found = cka_within(layers.get, [0, 2, 5, 6], lambda: steps.append(1))
    assert len(steps) == 4 * 5 // 2
    for i, one in enumerate([0, 2, 5]):
        for j, other in enumerate([0, 2, 5]):
            assert found[:, i, j] == pytest.approx(by_gram(layers[one], layers[other]), 1e-5, 1e-8)
    assert np.isnan(found[:, 3]).all()
    assert np.isnan(found[:, :, 3]).all()


def test_layers_of_two_models_may_differ_in_size():
    one, other = {0: cloud(6, 0), 1: cloud(6, 1)}, {0: cloud(4, 2), 3: related()[1], 4: cloud(9, 3)}
    steps = []
    found = cka_between(one.get, [0, 1], other.get, [0, 3, 4], lambda: steps.append(1))
    expected = [[by_gram(x, y) for y in other.values()] for x in one.values()]
    assert found == pytest.approx(np.moveaxis(expected, -1, 0), 1e-5, 1e-8)
    assert len(steps) == 6


def test_independent_layers_have_no_unbiased_similarity():
    """Means over 400 draws of 32 words; a biased mean of .198 was published for this case."""
    rng = np.random.default_rng(0)
    draws = [linear_cka(*rng.normal(size=(2, 32, 8))) for _ in range(400)]
    biased, unbiased = np.mean(draws, axis=0)
    assert biased == pytest.approx(0.198, abs=0.02)
    assert abs(unbiased) < 3 * np.std(draws, axis=0)[1] / 20


def context(name, *layers, base=None):
    return SimpleNamespace(
        layers=range(len(layers)),
        words=lambda split, layer: {"test": layers}[split][layer],
        rows=lambda split: np.arange(len(layers[0])),
        model=SimpleNamespace(hidden_size=layers[0].shape[1], name=name),
        bar=lambda n: nullcontext(SimpleNamespace(update=lambda n: None)),
        base=base,
    )


def test_both_estimates_of_two_models_are_measured():
    shared, own = related()
    ours, bases = (shared, cloud(8, 4)), (own, cloud(5, 6))
    found = get_measurement("model_similarity")(context("a", *ours, base=context("b", *bases)))
    expected = np.array([by_gram(x, y) for x in ours for y in bases])
    assert [row.metric for row in found.rows] == ["cka"] * 4 + ["unbiased_cka"] * 4
    assert [row.value for row in found.rows] == pytest.approx(expected.T.ravel(), 1e-5, 1e-8)
    assert expected[0, 0] > 2 * expected[1:, 0].max()
    assert found.facts == {"words": 300}
