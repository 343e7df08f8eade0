"""Features: gathered, standardised, projected and kept, against plain numpy."""

import numpy as np
import pytest
import torch
from sklearn.preprocessing import StandardScaler

from probes.common.errors import UserError
from probes.training.cached_features import CachedOnce, Memory
from probes.training.family import shared_input
from probes.training.features import CACHED_ROWS, Concatenated, InMemory, Slice, Subset
from probes.training.standardisation import (
    SpanRows,
    Streamed,
    gather,
    mapped_tensor,
    projected,
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


def test_chosen_examples_equal_those_of_the_whole():
    whole = InMemory(torch.randn(2, 30, 3))
    index = torch.tensor([0, 1, 4, 9, 10, 11, 29])
    chosen = Subset(whole, index)
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
    rotated, axes = InMemory(x).in_principal_axes
    torch.testing.assert_close(axes @ axes.mT, torch.eye(6).expand(2, 6, 6))
    values = rotated.block(slice(None))
    torch.testing.assert_close(values, x @ axes)
    gram = values.mT @ values / 500
    off = gram - torch.diag_embed(gram.diagonal(dim1=1, dim2=2))
    assert off.abs().max() < 1e-4 * gram.max()
    assert (x.mT @ x / 500).abs().min() > 1e-2


def test_a_layers_axes_do_not_depend_on_the_layers_beside_it_unless_they_are_common():
    x = correlated(3, 500, 6)
    together, alone = InMemory(x), InMemory(x[1:2])
    assert torch.equal(together.in_principal_axes.axes[1], alone.in_principal_axes.axes[0])
    assert together.in_common_axes.axes.shape == (1, 6, 6)
    total = sum(layer.T @ layer for layer in x)
    axes = together.in_common_axes.axes[0]
    spread = axes.T @ total @ axes
    assert (spread - spread.diagonal().diag()).abs().max() < 1e-4 * spread.max()


def test_rotated_weights_have_the_same_outputs_for_rotated_features():
    x, parameters = InMemory(correlated(2, 50, 6)), [torch.randn(2, 3, 4, 6), torch.randn(2, 3, 4)]
    for axes in (x.in_principal_axes, x.in_common_axes):
        expected = shared_input(x.values, *parameters)
        rotated = axes.rotated(parameters)
        found = shared_input(axes.features.block(slice(None)), *rotated)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
        for back, original in zip(axes.rotated_back(rotated), parameters, strict=True):
            torch.testing.assert_close(back, original)


def test_standardised_features_are_those_of_scikit_learn():
    n = 2 * CACHED_ROWS + 100
    vectors = torch.randn(n + 10, 4) * torch.tensor([1.0, 5.0, 0.1, 100.0]) + 20
    scaler = StandardScaler().fit(vectors[:n].double())
    for spans in (words(0, n), words(n, n + 10)):
        rows = slice(spans[0][0, 0], spans[0][-1, 1])
        ours = standardised(vectors, spans, words(0, n)).block(slice(None))[0]
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
    joined = Concatenated(InMemory(x))
    assert joined.shape == (2, 5, 4)
    block = joined.block(slice(1, 3))
    assert block[0].tolist() == [[2, 3, 12, 13], [4, 5, 14, 15]]
    assert block[1].tolist() == [[2, 3, 22, 23], [4, 5, 24, 25]]


def test_principal_axes_of_two_layers_are_those_of_all_their_features_together():
    torch.manual_seed(0)
    x = torch.randn(2, 400, 3)
    x[1, :, 0] += 2 * x[0, :, 1]
    features, axes = Concatenated(InMemory(x)).in_principal_axes
    both = np.concatenate([x[0], x[1]], axis=1)
    values = features.block(slice(None)).numpy()[0]
    np.testing.assert_allclose(values, both @ axes[0].numpy(), atol=1e-5)
    products = values.T @ values
    np.testing.assert_allclose(products, np.diag(np.linalg.eigvalsh(both.T @ both)), atol=1e-3)


def test_the_vector_of_every_span_is_projected_alike_and_standardised_again():
    generator = torch.Generator().manual_seed(1)
    values = torch.randn(2, 3000, 8, generator=generator) @ torch.randn(8, 8, generator=generator)
    values = (values - values.mean(1, keepdim=True)) / values.std(1, keepdim=True)
    # The second span is the first one again.
    pair = torch.cat([values, values], 2)
    found = projected({"train": InMemory(pair), "dev": InMemory(pair[:, :10])}, 5, spans=2)
    train = found["train"].block(slice(None))
    assert found["train"].shape == train.shape == (2, 3000, 10)
    torch.testing.assert_close(train[..., :5], train[..., 5:])
    torch.testing.assert_close(train.square().mean(1), torch.ones(2, 10))
    torch.testing.assert_close(found["dev"].block(slice(2, 7)), train[:, 2:7])


def test_distances_survive_a_projection():
    """Johnson and Lindenstrauss: within a factor near 1, if the width is large enough."""
    values = torch.randn(1, 400, 1000, generator=torch.Generator().manual_seed(2))
    found = projected({"train": InMemory(values)}, 300, spans=1)["train"].block(slice(None))
    before = torch.cdist(values[0, :50], values[0, 50:100]) / 1000**0.5
    after = torch.cdist(found[0, :50], found[0, 50:100]) / 300**0.5
    assert (after / before).mean() == pytest.approx(1, abs=0.02)
    assert (after / before).std() < 0.06


@pytest.fixture
def whole():
    return InMemory(torch.randn(3, 2100, 5, generator=torch.Generator().manual_seed(0)))


def require_the_same(kept, whole):
    for part in (slice(0, 7), slice(1000, 1100), slice(2090, 2100), slice(None)):
        exact = whole.values[:, part]
        assert torch.equal(kept.block(part), exact)
        assert torch.equal(kept.kept_block(part), exact)
        rows = torch.tensor([1, 2, 5])
        assert torch.equal(kept.kept_rows(part, rows), exact[:, rows])
    inner = Slice(kept, slice(50, 90)).kept_block(slice(3, 9))
    assert torch.equal(inner, whole.values[:, 53:59])


@pytest.fixture(params=["in memory", "in a file"])
def place(request, tmp_path):
    return Memory(1 << 20) if request.param == "in memory" else tmp_path


def test_features_are_the_same_wherever_they_are(whole, place, tmp_path):
    kept = CachedOnce(whole, place)
    require_the_same(kept, whole)
    assert not list(tmp_path.iterdir())  # the file has no name


def test_rotated_features_are_kept_too(whole, place):
    kept = CachedOnce(whole, place)
    rotated, axes = kept.in_principal_axes
    torch.testing.assert_close(axes, whole.in_principal_axes.axes)
    expected = whole.values[:, 40:50] @ axes
    torch.testing.assert_close(rotated.kept_block(slice(40, 50)), expected)
    whole.values.zero_()  # it is not read again
    torch.testing.assert_close(rotated.kept_block(slice(40, 50)), expected)
    assert kept.in_principal_axes.features is rotated


def test_a_folder_that_cannot_be_written_to_is_named(whole, tmp_path):
    with pytest.raises(UserError, match=f"{tmp_path / 'gone'}: cannot be written"):
        CachedOnce(whole, tmp_path / "gone").kept_block(slice(0, 5))


def test_what_was_read_longest_ago_makes_room(whole):
    """Memory for two of three features of 3 × 2,100 × 5 numbers of four bytes."""
    size = 3 * 2100 * 5 * 4
    memory = Memory(2 * size + 1)
    first, second, third = (CachedOnce(whole, memory) for _ in range(3))
    for features, n in ((first, 1), (second, 2), (first, 2), (third, 2), (second, 2)):
        require_the_same(features, whole)
        assert memory.n_bytes == size * n
    del features, first, second, third
    assert memory.n_bytes == 0


class Counted(InMemory):
    """Features elsewhere, without values, that count the readings of each example."""

    def __init__(self):
        super().__init__(torch.empty(2, 2100, 5, device="meta"))
        self.n_readings = torch.zeros(2100)

    def block(self, part):
        self.n_readings[part] += 1
        return super().block(part)

    held = None


def test_on_another_device_everything_is_computed_once():
    """On a CPU, single blocks are computed anew: only passes of training are kept."""
    source, memory = Counted(), Memory(1 << 20)
    kept = CachedOnce(source, memory)
    for part in (slice(0, 7), slice(None), slice(2090, 2100)):
        assert kept.block(part).device.type == kept.kept_block(part).device.type == "meta"
        assert kept.kept_rows(part, torch.tensor([1, 5], device="meta")).shape == (2, 2, 5)
    assert (source.n_readings == 1).all()
    turned = kept.rotated(torch.empty(2, 5, 5, device="meta"))
    assert turned.block(slice(0, 9)).shape == (2, 9, 5)
    assert memory.n_bytes == 2 * kept.held.nbytes
