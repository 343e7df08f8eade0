"""Divergences of heads against scipy, and where the heads then lie."""

import numpy as np
import pytest
import torch
from planted_maps import PlantedModel, context_of, eager_maps
from scipy.spatial.distance import jensenshannon, pdist, squareform

from probes.data.sentence import Corpus, Sentence
from probes.examples.examples import NotServedError
from probes.extraction.loading import load_encoder
from probes.extraction.model_files import find_model
from probes.extraction.views import plain_text
from probes.measurements.attention.divergence import divergences, summed_divergence
from probes.measurements.attention.head_clusters import clusters, distances

WORDS = ["the", "old", "dog", "seesaw", "cat", "near", "housecat", "birdsong"]


def sentences(n, seed, longest=12):
    draws = np.random.default_rng(seed)
    return tuple(
        Sentence(f"{seed}-{i}", "en", tuple(map(str, draws.choice(WORDS, size))))
        for i, size in enumerate(draws.integers(4, longest, n))
    )


CORPUS = Corpus(
    "c",
    "1",
    "",
    {"train": (), "dev": sentences(9, 1), "test": (*sentences(9, 2), *sentences(9, 1))},
)
TEXTS = {plain_text(s) for split in ("dev", "test") for s in CORPUS.splits[split]}


# -- divergence -----------------------------------------------------------------------------


def test_divergence_is_that_of_scipy_on_slow_maps(tiny_bert, monkeypatch):
    """Also with elements compared in several parts."""
    monkeypatch.setattr("probes.measurements.attention.divergence._AT_ONCE", 100)
    encoder = load_encoder(find_model(str(tiny_bert)), device="cpu")
    found = divergences(context_of(CORPUS, encoder))
    maps = [eager_maps(encoder, text).reshape(4, -1, m) for text, m in _with_lengths(encoder)]
    rows = [[row for text in maps for row in text[head]] for head in range(4)]
    expected = [
        [np.mean([jensenshannon(p, q) ** 2 for p, q in zip(a, b, strict=True)]) for b in rows]
        for a in rows
    ]
    assert found.texts == len(TEXTS) == 18  # those of dev occur in test too
    assert found.tokens == len(rows[0])
    np.testing.assert_allclose(found.mean, expected, rtol=1e-4, atol=1e-7)
    assert min(expected[0][1:]) > 1e-6


def _with_lengths(encoder):
    specials = len(encoder.words.prefix) + len(encoder.words.suffix)
    return [
        (text, len(pieces.ids) + specials) for text in TEXTS for pieces in encoder.split([text])
    ]


def one_hot(n):
    return np.eye(n)


def uniform(n):
    return np.full((n, n), 1 / n)


def test_uniform_and_one_hot_rows_have_their_closed_form():
    """Of maps with zeros: H(m) - H(p)/2, with m = 1/2n + 1/2 at one place and 1/2n elsewhere."""

    def maps(text):
        n = len(text.words) + 2
        heads = [one_hot(n), uniform(n), uniform(n), np.roll(one_hot(n), 1, axis=1)]
        return np.array(heads, dtype=np.float32).reshape(2, 2, n, n)

    found = divergences(context_of(CORPUS, PlantedModel(maps)))
    lengths = np.array([len(text.words) + 2 for text in TEXTS])

    def expected(n):
        rest, peak = 1 / (2 * n), 1 / (2 * n) + 0.5
        mixture = -peak * np.log(peak) - (n - 1) * rest * np.log(rest)
        return mixture - np.log(n) / 2

    mean = (lengths * expected(lengths)).sum() / lengths.sum()
    assert found.tokens == lengths.sum()
    assert found.mean[0, 1] == pytest.approx(mean, abs=1e-6)
    assert found.mean[3, 2] == pytest.approx(mean, abs=1e-6)
    assert found.mean[0, 3] == pytest.approx(np.log(2), abs=1e-6)  # nothing in common
    assert found.mean[1, 2] == pytest.approx(0, abs=1e-6)
    assert np.diag(found.mean).tolist() == [0] * 4
    np.testing.assert_array_equal(found.mean, found.mean.T)


def test_texts_that_do_not_fit_are_counted():
    found = divergences(
        context_of(CORPUS, PlantedModel(lambda text: np.ones((1, 2, 64, 64), "f4"), window=8))
    )
    whole = [text for text in TEXTS if len(text.words) <= 6]
    assert (found.texts, found.left_out) == (len(whole), len(TEXTS) - len(whole))
    assert 0 < found.texts < len(TEXTS)
    with pytest.raises(NotServedError, match="no sentence of dev and test fits"):
        divergences(
            context_of(CORPUS, PlantedModel(lambda text: np.ones((1, 2, 64, 64), "f4"), window=4))
        )


def test_sums_do_not_depend_on_what_is_compared_at_once(monkeypatch):
    heads = torch.from_numpy(np.random.default_rng(0).dirichlet(np.ones(10), (5, 40))).float()
    whole = summed_divergence(heads.flatten(1))
    monkeypatch.setattr("probes.measurements.attention.divergence._AT_ONCE", 7)
    np.testing.assert_allclose(summed_divergence(heads.flatten(1)), whole, rtol=1e-5, atol=1e-5)
    assert whole.max() > 1


# -- clusters -------------------------------------------------------------------------------


def test_heads_in_a_plane_are_found_again():
    points = np.random.default_rng(1).uniform(0, 0.3, (12, 2))
    far = squareform(pdist(points))
    found = clusters(far**2, 3)
    placed = np.concatenate([np.array(layer) for layer in found.positions])
    assert [len(layer) for layer in found.positions] == [4, 4, 4]
    np.testing.assert_allclose(squareform(pdist(placed)), far, atol=1e-3)
    assert found.stress < 0.01
    np.testing.assert_allclose(distances(far**2), far)


def test_distances_within_and_between_layers():
    """Two layers of two heads on a line, at 0 and 1, 5 and 8."""
    place = np.array([0.0, 1.0, 5.0, 8.0])
    found = clusters((place[:, None] - place) ** 2, 2)
    assert found.within_layers == (1.0, 3.0)
    assert found.within == 2.0
    assert found.between == np.mean([5, 8, 4, 7])
    assert found.nearest_in_layer == 1.0
    assert found.nearest_by_chance == pytest.approx(1 / 3)
    mixed = clusters((place[[0, 2, 1, 3], None] - place[[0, 2, 1, 3]]) ** 2, 2)
    assert mixed.nearest_in_layer == 0.0


def test_of_heads_that_are_all_the_same_nothing_is_drawn():
    found = clusters(np.zeros((4, 4)), 2)
    assert len(found.positions) == 0
    assert (found.stress, found.within, found.between) == (None, 0.0, 0.0)
    assert found.nearest_in_layer == found.nearest_by_chance == pytest.approx(1 / 3)


def test_of_a_single_head_nothing_is_said():
    found = clusters(np.zeros((1, 1)), 1)
    assert found.within is found.between is found.nearest_in_layer is found.stress is None
