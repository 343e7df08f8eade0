"""Agreement of clusters and labels against scikit-learn; clusters of planted clouds."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_mutual_info_score, normalized_mutual_info_score

from probes.families.geometry import MOST_SEED, GeometryOptions
from probes.families.geometry.labelled_words import LabelledGroup, LabelSet
from probes.families.geometry.layer import (
    STARTS,
    _group_agreement,
    agreement_in_resamples,
    cluster_agreement,
    clustering,
    kmeans,
)
from probes.statistics.partition import Partition


def noisy(n=200, k=4, seed=0):
    """Labels, and clusters that agree with about half of them."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    return labels, np.where(rng.random(n) < 0.5, labels, rng.integers(k + 1, size=n))


@pytest.mark.parametrize("n", [12, 200])
def test_agreement_is_that_of_scikit_learn(n):
    labels, clusters = noisy(n)
    expected = (
        normalized_mutual_info_score(labels, clusters),
        adjusted_mutual_info_score(labels, clusters),
    )
    assert cluster_agreement(labels, clusters) == pytest.approx(expected, abs=1e-9)


def test_one_cluster_says_nothing_and_the_labels_themselves_say_all():
    labels, _ = noisy()
    assert cluster_agreement(labels, np.zeros(200, int)) == pytest.approx([0, 0], abs=1e-12)
    assert cluster_agreement(labels, 3 - labels) == pytest.approx([1, 1])


def test_a_resample_has_the_agreement_of_its_items_as_often_as_they_are_drawn():
    labels, clusters = noisy()
    document = np.random.default_rng(1).integers(5, size=200)
    drawn = np.array([[1, 1, 1, 1, 1], [2, 0, 1, 2, 0]])
    found = agreement_in_resamples(labels, clusters, document, drawn.astype(float))
    assert found[0] == pytest.approx(cluster_agreement(labels, clusters))
    items = np.repeat(np.arange(200), drawn[1][document])
    expected = normalized_mutual_info_score(labels[items], clusters[items])
    assert found[1, 0] == pytest.approx(expected)


def clouds(distance, n=240, k=3, seed=0):
    """Gaussian clouds, one of each label."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % k
    return (distance * np.eye(8)[labels] + rng.normal(size=(n, 8))).astype(np.float32), labels


def label_set(labels, n_groups=1, by_lemma=False):
    rows = np.arange(len(labels)).reshape(-1, 1)
    parts = np.array_split(np.arange(len(labels)), n_groups)
    groups = [LabelledGroup(rows[part], labels[part], part) for part in parts]
    return LabelSet(tuple(groups), len(labels), left_out=0, by_lemma=by_lemma)


SENTENCES = Partition("sentences", np.arange(240))


def test_far_clouds_are_found_and_one_cloud_has_nothing_to_do_with_labels():
    for distance, low, high in ((30, 0.999, 1.001), (0, -0.03, 0.03)):
        vectors, labels = clouds(distance)
        nmi, ami = clustering(label_set(labels), vectors, SENTENCES, 0)
        assert low < ami.value < high
        assert nmi.interval is not None


def test_agreement_is_the_mean_over_starts_of_scikit_learns_k_means():
    vectors, labels = clouds(1.5)
    nmi, _ = clustering(label_set(labels), vectors, SENTENCES, 0)
    runs = [KMeans(3, n_init=1, random_state=s).fit_predict(vectors) for s in range(STARTS)]
    scores = [normalized_mutual_info_score(labels, run) for run in runs]
    assert len({round(score, 6) for score in scores}) > 1
    assert nmi.value == pytest.approx(np.mean(scores))
    low, high = nmi.interval
    assert low < nmi.value < high


def test_intervals_hold_what_samples_of_the_same_size_have_on_average():
    """Percentiles alone lay above it: agreement is greater in resamples than in samples."""
    rng = np.random.default_rng(0)
    partition, found = Partition("sentences", np.arange(120)), []
    for _ in range(80):
        labels = rng.integers(8, size=120)
        clusters = np.where(rng.random(120) < 0.3, labels, rng.integers(8, size=120))
        group = LabelledGroup(np.arange(120)[:, None], labels, np.arange(120))
        found.append(_group_agreement(group, np.tile(clusters, (STARTS, 1)), partition, 0))
    for each in zip(*found, strict=True):
        mean = np.mean([x.value for x in each])
        below = np.mean([x.interval[1] < mean for x in each])
        above = np.mean([x.interval[0] > mean for x in each])
        assert max(below, above) <= 0.08, (below, above)
        assert all(x.interval[0] <= x.value <= x.interval[1] for x in each)


def test_intervals_stay_within_what_agreement_can_be():
    labels = np.arange(120) % 4
    group = LabelledGroup(np.arange(120)[:, None], labels, np.arange(120))
    partition, unrelated = Partition("sentences", np.arange(120)), np.arange(120) // 4 % 3
    nmi, ami = _group_agreement(group, np.tile(unrelated, (STARTS, 1)), partition, 0)
    assert nmi.interval[0] == 0
    assert ami.interval[0] < 0
    nmi, _ = _group_agreement(group, np.tile(labels, (STARTS, 1)), partition, 0)
    assert nmi.interval == pytest.approx((1, 1))


def test_senses_are_averaged_over_lemmas_with_an_interval_over_these():
    vectors, labels = clouds(1.5, n=720)
    partition = Partition("sentences", np.arange(720))
    amis = [
        clustering(label_set(labels[part]), vectors[part], partition, 0)[1]
        for part in np.array_split(np.arange(720), 24)
    ]
    _, ami = clustering(label_set(labels, 24, by_lemma=True), vectors, partition, 0)
    assert ami.value == pytest.approx(np.mean([x.value for x in amis]))
    low, high = ami.interval
    sd = np.std([x.value for x in amis]) / np.sqrt(24)
    assert (high - low) / 2 == pytest.approx(1.96 * sd, rel=0.1)
    _, few = clustering(label_set(labels, 6, by_lemma=True), vectors, partition, 0)
    assert (few.interval, few.missing) == (None, "fewer than 20 lemmas")


def test_few_sentences_have_no_interval():
    vectors, labels = clouds(30)
    partition = replace(SENTENCES, of_sentence=np.arange(240) % 19)
    nmi, _ = clustering(label_set(labels), vectors, partition, 0)
    assert nmi.value == pytest.approx(1)
    assert (nmi.interval, nmi.missing) == (None, "fewer than 20 sentences")


def test_clusters_depend_on_the_seed_alone():
    vectors, _ = clouds(1)
    first, again, other = (kmeans(vectors, 3, seed) for seed in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).any()
    assert first.shape == (STARTS, 240)


def test_vectors_that_are_all_the_same_are_one_cluster_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (kmeans(np.ones((30, 4), dtype=np.float32), 3, 0) == 0).all()


def test_the_highest_seed_that_can_be_asked_for_is_one_that_k_means_takes():
    vectors = clouds(9, n=30)[0]
    found = kmeans(vectors, 3, MOST_SEED)
    assert len(np.unique(found)) == 3
    with pytest.raises(ValidationError, match=f"less than or equal to {MOST_SEED}"):
        GeometryOptions(seed=MOST_SEED + 1)
