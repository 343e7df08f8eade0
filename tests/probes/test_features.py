"""Gathering and standardising against plain numpy."""

import numpy as np
import pytest
import torch
from sklearn.preprocessing import StandardScaler

from probes.features import gather, standardise


def gathered(vectors, spans):
    out = torch.full((len(spans[0]), vectors.shape[1] * len(spans)), torch.nan)
    gather(vectors, spans, out)
    return out


FP16 = float(np.finfo(np.float16).eps) / 2


@pytest.fixture(scope="module")
def vectors():
    return np.random.default_rng(0).normal(3, 2, (50, 6)).astype(np.float16)


def test_a_span_is_the_mean_of_its_words_and_two_spans_stand_side_by_side(vectors):
    first = np.array([[3, 4], [10, 15], [49, 50]])
    second = np.array([[0, 2], [7, 8], [20, 50]])
    expected = [
        np.concatenate([vectors[a:b].astype(float).mean(0), vectors[c:d].astype(float).mean(0)])
        for (a, b), (c, d) in zip(first, second, strict=True)
    ]
    np.testing.assert_allclose(gathered(vectors, [first, second]), expected, rtol=1e-5)


def test_blocks_do_not_change_what_is_gathered(vectors, monkeypatch):
    spans = np.array([[i, j] for i in range(0, 50, 3) for j in range(i + 1, 51, 4)])
    whole = gathered(vectors, [spans])
    monkeypatch.setattr("probes.features._BLOCK_ROWS", 5)
    assert torch.equal(gathered(vectors, [spans]), whole)


def test_standardised_features_are_scikit_learns(monkeypatch):
    monkeypatch.setattr("probes.features._SUM_ROWS", 7)
    train = torch.randn(100, 4) * torch.tensor([1.0, 5.0, 0.1, 100.0]) + 20
    dev = torch.randn(10, 4)
    scaler = StandardScaler().fit(train.double())
    expected = scaler.transform(train.double()), scaler.transform(dev.double())
    standardise(train, [dev], FP16)
    np.testing.assert_allclose(train, expected[0], atol=1e-4)
    np.testing.assert_allclose(dev, expected[1], rtol=1e-4, atol=1e-4)


def test_a_constant_feature_becomes_zero_even_if_its_last_stored_bit_wavers():
    train = torch.full((100, 2), 3.0)
    train[7, 0] = float(np.nextafter(np.float16(3), np.float16(4)))
    train[:, 1] += torch.randn(100)
    dev = torch.full((3, 2), 5.0)
    standardise(train, [dev], FP16)
    assert (train[:, 0] == 0).all()
    assert (dev[:, 0] == 0).all()
    assert train[:, 1].std() == pytest.approx(1, abs=0.02)
