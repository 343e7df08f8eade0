"""Gathering and standardising against plain numpy."""

import numpy as np
import pytest
import torch
from sklearn.preprocessing import StandardScaler
from torch.nn.functional import embedding_bag

from probes.training.features import Chosen, Held, Part
from probes.training.projection import projected
from probes.training.scalar_mix import Mixed
from probes.training.streamed import SpanRows, Streamed, gather, mapped_tensor, standard_scale


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
    monkeypatch.setattr("probes.training.streamed.CACHED_ROWS", 5)
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
        assert torch.equal(chosen.rounded(part), whole.rounded(slice(None))[:, index[part]])


HELD = Held(torch.randn(3, 30, 4, generator=torch.Generator().manual_seed(0)))


class Unread(torch.Tensor):
    """A layer that must not be read."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise AssertionError("read")


def streamed(*layers):
    scale = torch.tensor([[1.0], [2.0], [3.0]]).expand(3, 4)
    return Streamed(layers, words(0, 30), scale + 1, scale, torch.device("cpu"))


@pytest.mark.parametrize(
    "whole",
    [
        HELD,
        Part(HELD, slice(5, 25)),
        Chosen(HELD, torch.arange(0, 30, 2)),
        streamed(*HELD.values),
        Mixed(HELD, torch.rand(3, 3)),
        *projected({"train": HELD, "dev": HELD}, 2, spans=2).values(),
    ],
    ids=lambda whole: type(whole).__name__,
)
def test_some_layers_equal_those_of_the_whole(whole):
    some = whole.of_layers([2, 0])
    assert some.shape == (2, *whole.shape[1:])
    for part in (slice(2, 9), slice(None)):
        torch.testing.assert_close(some.block(part), whole.block(part)[[2, 0]])
        torch.testing.assert_close(some.rounded(part), whole.rounded(part)[[2, 0]])
    rows = torch.tensor([1, 4])
    expected = whole.rounded_rows(slice(2, 9), rows)[[2, 0]]
    torch.testing.assert_close(some.rounded_rows(slice(2, 9), rows), expected)


@pytest.mark.parametrize("of", [lambda x: x, lambda x: Part(x, slice(3, 20))])
def test_no_other_layer_is_read(of):
    first, *others = HELD.values
    whole = of(streamed(first, *(x.as_subclass(Unread) for x in others)))
    assert torch.equal(
        whole.of_layers([0]).block(slice(4)), of(streamed(*HELD.values)).block(slice(4))[:1]
    )
    with pytest.raises(AssertionError, match="read"):
        whole.of_layers([0, 1]).block(slice(4))


def test_only_a_few_long_spans_are_averaged_at_once(monkeypatch):
    vectors = torch.randn(4000, 6, generator=torch.Generator().manual_seed(0)).half()
    ends = torch.randint(1, 60, (100,), generator=torch.Generator().manual_seed(1)).cumsum(0)
    spans = SpanRows.of(np.stack([np.r_[0, ends[:-1]], ends], axis=1))
    expected = spans.means(vectors)
    sizes = []

    def average(rows, values, offsets, mode):
        sizes.append(len(values))
        return embedding_bag(rows, values, offsets, mode=mode)

    monkeypatch.setattr("probes.training.streamed.embedding_bag", average)
    monkeypatch.setattr("probes.training.streamed.CACHED_ROWS", 200)
    torch.testing.assert_close(spans.means(vectors), expected)
    assert sum(sizes) == ends[-1]
    assert max(sizes) < 400


def test_standardised_features_are_those_of_scikit_learn(monkeypatch):
    monkeypatch.setattr("probes.training.streamed.CACHED_ROWS", 7)
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
