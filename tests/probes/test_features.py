"""Gathering and standardising against plain numpy."""

import numpy as np
import pytest
import torch
from sklearn.preprocessing import StandardScaler

from probes.features import (
    Chosen,
    Held,
    SpanRows,
    Streamed,
    gather,
    mapped_tensor,
    standard_scale,
)


def gathered(vectors, spans):
    out = torch.full((len(spans[0]), vectors.shape[1] * len(spans)), torch.nan)
    gather(mapped_tensor(vectors), [SpanRows.of(span) for span in spans], out)
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


def standardised(vectors, spans, train_spans):
    """Both splits' features at one layer, as the engine reads them."""
    layer = torch.as_tensor(vectors)
    mean, scale = standard_scale(layer, train_spans, FP16)
    return Streamed([layer], spans, mean[None], scale[None], torch.device("cpu"))


def words(first, last):
    return [np.stack([np.arange(first, last), np.arange(first, last) + 1], axis=1)]


def test_blocks_do_not_change_what_is_read(vectors, monkeypatch):
    spans = [np.array([[i, j] for i in range(0, 50, 3) for j in range(i + 1, 51, 4)])]
    whole = standardised(vectors, spans, spans).block(slice(None))
    monkeypatch.setattr("probes.features._CACHED_ROWS", 5)
    parts = standardised(vectors, spans, spans)
    n = parts.shape[1]
    blocks = [parts.block(slice(i, i + 13)) for i in range(0, n, 13)]
    torch.testing.assert_close(torch.cat(blocks, 1), whole)


def test_chosen_examples_are_those_of_the_whole():
    whole = Held(torch.randn(2, 30, 3))
    index = torch.tensor([0, 1, 4, 9, 10, 11, 29])
    chosen = Chosen(whole, index)
    assert chosen.shape == (2, 7, 3)
    for part in (slice(0, 2), slice(2, 7), slice(None)):
        assert torch.equal(chosen.block(part), whole.values[:, index[part]])
        assert torch.equal(chosen.rounded(part), whole.rounded(slice(None))[:, index[part]])


def test_standardised_features_are_scikit_learns(monkeypatch):
    monkeypatch.setattr("probes.features._CACHED_ROWS", 7)
    vectors = torch.randn(110, 4) * torch.tensor([1.0, 5.0, 0.1, 100.0]) + 20
    scaler = StandardScaler().fit(vectors[:100].double())
    for spans in (words(0, 100), words(100, 110)):
        rows = slice(spans[0][0, 0], spans[0][-1, 1])
        ours = standardised(vectors, spans, words(0, 100)).block(slice(None))[0]
        expected = scaler.transform(vectors[rows].double())
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4)


def test_a_constant_feature_becomes_zero_even_if_its_last_stored_bit_wavers():
    vectors = torch.full((103, 2), 3.0)
    vectors[7, 0] = float(np.nextafter(np.float16(3), np.float16(4)))
    vectors[:, 1] += torch.randn(103)
    vectors[100:] = 5.0
    ours = standardised(vectors, words(0, 103), words(0, 100)).block(slice(None))[0]
    assert (ours[:, 0] == 0).all()
    assert ours[:100, 1].std() == pytest.approx(1, abs=0.02)
