"""Means of cosines against double loops over pairs, and values known in advance."""

from itertools import permutations, product

import numpy as np
import pytest

from probes.families.geometry.cosines import (
    anisotropy,
    cosine_contributions,
    cosine_in_resamples,
    intra_sentence_similarity,
    norms,
    self_similarity,
    unit_vectors,
)


def vectors(n=40, dimensions=6, seed=0, mean=0.5):
    return np.random.default_rng(seed).normal(mean, 1, (n, dimensions)).astype(np.float32)


def cosine(a, b):
    return float(a @ b / np.sqrt((a @ a) * (b @ b))) if a.any() and b.any() else 0.0


def mean_cosine(rows):
    return np.mean([cosine(a, b) for a, b in permutations(rows.astype(float), 2)])


def expected_cosine(rows):
    return cosine_contributions(unit_vectors(rows)).sum()


def test_the_expected_cosine_of_three_vectors_is_that_computed_by_hand():
    rows = np.array([[3, 0], [0, 2], [1, 1]], dtype=np.float32)
    # 0 between the first two, 1/√2 between each of them and the third.
    assert expected_cosine(rows) == pytest.approx((0 + 2 / np.sqrt(2)) / 3, abs=1e-7)
    # Each dimension: the product of its parts, over the same pairs.
    shares = cosine_contributions(unit_vectors(rows))
    assert shares == pytest.approx([np.sqrt(0.5) / 3] * 2, abs=1e-7)


def test_the_closed_form_is_the_mean_over_all_pairs():
    rows = vectors()
    assert expected_cosine(rows) == pytest.approx(mean_cosine(rows), abs=1e-7)
    unit = unit_vectors(rows)
    by_dimension = np.mean([a * b for a, b in permutations(unit.astype(float), 2)], axis=0)
    assert cosine_contributions(unit) == pytest.approx(by_dimension, abs=1e-7)


def test_a_zero_vector_has_cosines_of_0():
    rows = vectors()
    rows[7] = 0
    assert expected_cosine(rows) == pytest.approx(mean_cosine(rows), abs=1e-7)
    assert norms(unit_vectors(rows))[7] == 0


def test_an_isotropic_cloud_has_none_and_a_shifted_one_what_its_mean_says():
    rows = np.random.default_rng(1).normal(size=(20_000, 50)).astype(np.float32)
    assert abs(expected_cosine(rows)) < 1e-3
    shifted = rows + 50 * np.eye(50, dtype=np.float32)[3]
    # x̂ ≈ (50 + z) / √(50² + 49): its square is the expected cosine.
    assert expected_cosine(shifted) == pytest.approx(2500 / 2549, abs=1e-3)
    assert cosine_contributions(unit_vectors(shifted)).argmax() == 3


def test_in_a_resample_a_document_is_never_paired_with_another_copy_of_itself():
    rows, document = vectors(14), np.array([0, 0, 0, 1, 1, 2, 3, 3, 3, 3, 4, 4, 0, 2])
    drawn = np.array([[1, 1, 1, 1, 1], [3, 0, 1, 1, 0], [0, 2, 2, 1, 0], [0, 0, 0, 5, 0]])

    def by_hand(weights):
        copies = [
            (d, copy, i)
            for d, w in enumerate(weights)
            for copy in range(w)
            for i in np.flatnonzero(document == d)
        ]
        pairs = [
            cosine(rows[i].astype(float), rows[j].astype(float))
            for (d, a, i), (e, b, j) in product(copies, repeat=2)
            if (d != e) or (a == b and i != j)
        ]
        return np.mean(pairs)

    found = cosine_in_resamples(unit_vectors(rows), document, drawn.astype(float))
    assert found == pytest.approx([by_hand(w) for w in drawn], abs=1e-6)
    assert found[0] == pytest.approx(expected_cosine(rows), abs=1e-7)


def test_intervals_over_documents_are_wider_than_over_words_where_documents_differ():
    rng = np.random.default_rng(4)
    document = np.repeat(np.arange(40), 25)
    topics = rng.normal(size=(40, 8))[document]
    rows = (topics + 0.3 * rng.normal(size=(1000, 8)) + 1).astype(np.float32)
    by_document = anisotropy(unit_vectors(rows), document, 40, "documents")
    by_word = anisotropy(unit_vectors(rows), np.arange(1000), 1000, "sentences")
    low, high = by_document.interval
    assert low < by_document.value < high
    assert high - low > 2 * (by_word.interval[1] - by_word.interval[0])


def test_the_interval_covers_the_true_value():
    """About 95 in 100 intervals, each from 40 documents, hold the value of a large sample."""

    def sample(rng, n_documents):
        document = np.repeat(np.arange(n_documents), 10)
        topics = rng.normal(size=(n_documents, 5))[document]
        rows = topics + rng.normal(size=(len(document), 5)) + 0.5
        return unit_vectors(rows), document, n_documents

    unit, *_ = sample(np.random.default_rng(5), 40_000)
    # Words of one document are a share of pairs that vanishes in the large sample.
    truth = cosine_contributions(unit).sum()
    covered = 0
    for seed in range(100):
        unit, document, n = sample(np.random.default_rng(100 + seed), 40)
        low, high = anisotropy(unit, document, n, "documents").interval
        covered += low <= truth <= high
    assert 85 <= covered <= 99


def test_without_two_words_or_enough_documents_the_reason_is_given():
    unit = unit_vectors(vectors())
    assert anisotropy(unit[:1], np.zeros(1, int), 1, "documents").missing == "fewer than two words"
    few = anisotropy(unit, np.arange(40) % 19, 19, "documents")
    assert few.value == pytest.approx(mean_cosine(vectors()), abs=1e-7)
    assert (few.interval, few.missing) == (None, "fewer than 20 documents")


def test_self_similarity_is_the_mean_over_pairs_of_occurrences():
    rows = vectors()
    rows[10:15] = rows[10]
    types = [np.array([0, 5, 7]), np.arange(10, 15), np.array([20, 21])]
    found = self_similarity(unit_vectors(rows), types)
    assert found == pytest.approx([mean_cosine(rows[x]) for x in types], abs=1e-6)
    assert found[1] == pytest.approx(1, abs=1e-6)


def test_intra_sentence_similarity_is_the_mean_cosine_with_the_mean():
    rows, sentence = vectors(9), np.array([0, 0, 0, 1, 2, 2, 2, 2, 3])
    found = intra_sentence_similarity(rows, unit_vectors(rows), sentence, 4)
    for number in (0, 2):
        its = rows[sentence == number].astype(float)
        assert found[number] == pytest.approx(np.mean([cosine(x, its.mean(0)) for x in its]))
    assert np.isnan(found[[1, 3]]).all()
