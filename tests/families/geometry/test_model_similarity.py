"""CKA between two models against its n × n form, and what becomes of it."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from corpus_records import corpus_record, record_of

from probes.measurements.measurement import get_measurement

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
    found = get_measurement("model_similarity")(context(OURS, 8, context(BASES, 5)))
    base = corpus_record("geometry", {}, 1, model="of 5").model
    return record_of("model_similarity", found, 1, model="of 8", base=base)


def test_similarities_are_those_of_gram_matrices(record):
    expected = [by_grams(x, y) for x in OURS for y in BASES]
    assert record.rows.value[:4] == pytest.approx(expected, rel=1e-6)
    assert list(record.rows.metric) == ["cka"] * 4 + ["unbiased_cka"] * 4
    assert expected[0] > 2 * expected[1]
    assert record.facts == {"words": 60}
