"""CKA between two models against its n × n form, and what becomes of it."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from probes.measurements.geometry.model_similarity import ModelSimilarity

rng = np.random.default_rng(0)
SHARED = rng.standard_normal((60, 3))


def vectors(size):
    """Two layers: one that is shared in part, and one that is not."""
    mixed = SHARED @ rng.standard_normal((3, size)) + 0.3 * rng.standard_normal((60, size))
    return [mixed + 5.0, rng.standard_normal((60, size))]


OURS, BASES = vectors(8), vectors(5)


def by_grams(x, y):
    """Kornblith et al. 2019, equation 1, of centred n × n Gram matrices."""
    centring = np.eye(len(x)) - 1 / len(x)
    one, other = (centring @ z @ z.T @ centring for z in (x, y))
    return (one * other).sum() / np.sqrt((one**2).sum() * (other**2).sum())


def context(layers, size, base=None):
    return SimpleNamespace(
        layers=(0, 1),
        words=lambda split, layer: {"test": layers}[split][layer],
        rows=lambda split: np.arange(60),
        model=SimpleNamespace(hidden_size=size, name=f"of {size}"),
        bar=lambda n: nullcontext(SimpleNamespace(update=lambda n: None)),
        base=base,
    )


@pytest.fixture
def record():
    its, base = ModelSimilarity(), context(BASES, 5)
    return SimpleNamespace(
        payload=its.compute(context(OURS, 8, base)).payload,
        model=SimpleNamespace(name="ours"),
        base=SimpleNamespace(name="theirs"),
        corpus=SimpleNamespace(name="c", limited=False),
        dtype="float32",
    )


def test_similarities_are_those_of_gram_matrices(record):
    expected = [[by_grams(x, y) for y in BASES] for x in OURS]
    np.testing.assert_allclose(record.payload.cka, expected, rtol=1e-6)
    assert expected[0][0] > 2 * expected[0][1]
    assert record.payload.biased  # 60 words for 8 dimensions


def test_numbers_table_and_grid_say_which_layer_is_whose(record):
    its = ModelSimilarity()
    found = {(n.layer, n.axes["base_layer"]): n.value for n in its.numbers(record)}
    assert found[0, 1] == record.payload.cka[0][1]
    (table,) = its.tables(record)
    assert table.texts[1] == ("1", *(f"{x:.2f}" for x in record.payload.cka[1]))
    assert any("few words" in note for note in table.notes)
    (grid,) = its.charts({"ours": record})
    assert grid.panels["ours × theirs"].values == record.payload.cka
