"""Gathering and standardising against plain numpy."""

import numpy as np
import pytest
import torch
from sklearn.preprocessing import StandardScaler

from probes.training.family import shared_input
from probes.training.features import Chosen, Concatenated, Held
from probes.training.standardisation import (
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


def test_a_span_is_the_mean_of_its_words_and_two_spans_are_concatenated(vectors):
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


def test_features_do_not_depend_on_the_size_of_blocks(vectors, monkeypatch):
    spans = [np.array([[i, j] for i in range(0, 50, 3) for j in range(i + 1, 51, 4)])]
    whole = standardised(vectors, spans, spans).block(slice(None))
    monkeypatch.setattr("probes.training.standardisation.CACHED_ROWS", 5)
    parts = standardised(vectors, spans, spans)
    n = parts.shape[1]
    blocks = [parts.block(slice(i, i + 13)) for i in range(0, n, 13)]
    torch.testing.assert_close(torch.cat(blocks, 1), whole)


def test_chosen_examples_equal_those_of_the_whole():
    whole = Held(torch.randn(2, 30, 3))
    index = torch.tensor([0, 1, 4, 9, 10, 11, 29])
    chosen = Chosen(whole, index)
    assert chosen.shape == (2, 7, 3)
    for part in (slice(0, 2), slice(2, 7), slice(None)):
        assert torch.equal(chosen.block(part), whole.values[:, index[part]])
        assert torch.equal(chosen.kept_block(part), whole.values[:, index[part]])


def correlated(n_layers, n, n_features):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n_layers, n, n_features, generator=generator)
    return x @ torch.randn(n_layers, n_features, n_features, generator=generator)


def test_principal_axes_are_orthonormal_and_make_features_uncorrelated():
    x = correlated(2, 500, 6)
    rotated, axes = Held(x).in_principal_axes
    torch.testing.assert_close(axes @ axes.mT, torch.eye(6).expand(2, 6, 6))
    values = rotated.block(slice(None))
    torch.testing.assert_close(values, x @ axes)
    gram = values.mT @ values / 500
    off = gram - torch.diag_embed(gram.diagonal(dim1=1, dim2=2))
    assert off.abs().max() < 1e-4 * gram.max()
    assert (x.mT @ x / 500).abs().min() > 1e-2


def test_a_layers_axes_do_not_depend_on_the_layers_beside_it_unless_they_are_common():
    x = correlated(3, 500, 6)
    together, alone = Held(x), Held(x[1:2])
    assert torch.equal(together.in_principal_axes.axes[1], alone.in_principal_axes.axes[0])
    assert together.in_common_axes.axes.shape == (1, 6, 6)
    total = sum(layer.T @ layer for layer in x)
    axes = together.in_common_axes.axes[0]
    spread = axes.T @ total @ axes
    assert (spread - spread.diagonal().diag()).abs().max() < 1e-4 * spread.max()


def test_rotated_weights_have_the_same_outputs_for_rotated_features():
    x, parameters = Held(correlated(2, 50, 6)), [torch.randn(2, 3, 4, 6), torch.randn(2, 3, 4)]
    for axes in (x.in_principal_axes, x.in_common_axes):
        expected = shared_input(x.values, *parameters)
        rotated = axes.rotated(parameters)
        found = shared_input(axes.features.block(slice(None)), *rotated)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
        for back, original in zip(axes.rotated_back(rotated), parameters, strict=True):
            torch.testing.assert_close(back, original)


def test_standardised_features_are_those_of_scikit_learn(monkeypatch):
    monkeypatch.setattr("probes.training.standardisation.CACHED_ROWS", 7)
    vectors = torch.randn(110, 4) * torch.tensor([1.0, 5.0, 0.1, 100.0]) + 20
    scaler = StandardScaler().fit(vectors[:100].double())
    for spans in (words(0, 100), words(100, 110)):
        rows = slice(spans[0][0, 0], spans[0][-1, 1])
        ours = standardised(vectors, spans, words(0, 100)).block(slice(None))[0]
        expected = scaler.transform(vectors[rows].double())
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4)


def test_a_constant_feature_becomes_zero_even_if_its_last_stored_bit_varies():
    vectors = torch.full((103, 2), 3.0)
    vectors[7, 0] = float(np.nextafter(np.float16(3), np.float16(4)))
    vectors[:, 1] += torch.randn(103)
    vectors[100:] = 5.0
    ours = standardised(vectors, words(0, 103), words(0, 100)).block(slice(None))[0]
    assert (ours[:, 0] == 0).all()
    assert ours[:100, 1].std() == pytest.approx(1, abs=0.02)


def test_the_first_layer_is_concatenated_with_each_other():
    x = torch.arange(3 * 5 * 2.0).view(3, 5, 2)
    joined = Concatenated(Held(x))
    assert joined.shape == (2, 5, 4)
    block = joined.block(slice(1, 3))
    assert block[0].tolist() == [[2, 3, 12, 13], [4, 5, 14, 15]]
    assert block[1].tolist() == [[2, 3, 22, 23], [4, 5, 24, 25]]


def test_principal_axes_of_two_layers_are_those_of_all_their_features_together():
    torch.manual_seed(0)
    x = torch.randn(2, 400, 3)
    x[1, :, 0] += 2 * x[0, :, 1]
    features, axes = Concatenated(Held(x)).in_principal_axes
    both = np.concatenate([x[0], x[1]], axis=1)
    values = features.block(slice(None)).numpy()[0]
    np.testing.assert_allclose(values, both @ axes[0].numpy(), atol=1e-5)
    products = values.T @ values
    np.testing.assert_allclose(products, np.diag(np.linalg.eigvalsh(both.T @ both)), atol=1e-3)
