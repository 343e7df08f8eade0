"""Resamples and intervals: against data resampled by hand, closed forms, and simulated truths."""

import hashlib
import struct
from dataclasses import replace
from itertools import count, islice

import numpy as np
import pytest
from gold_by_hand import gold_of
from planted_context import tagged_corpus
from scipy.sparse import csr_array
from scipy.stats import binom, multinomial, norm
from statistics_simulation import (
    DESIGNS,
    LARGER,
    METRICS,
    POOLED,
    coverage,
    false_separations,
    few_documents,
    shared_samples,
    simulate,
)

from probes.data.sentence import SPLITS
from probes.examples.examples import collect_examples
from probes.examples.scoring import Scorer, count_examples
from probes.statistics.bootstrap import (
    MOST,
    RESAMPLES,
    all_resampled_sums,
    cluster_sums,
    draws_of,
    influence,
    interval,
    replicates,
    resample,
    resample_blocks,
    resampled_sums,
)
from probes.statistics.gold import Gold
from probes.statistics.metrics import metrics
from probes.statistics.partition import Partition, by_sentence, has_few, partition
from probes.statistics.significance import ALPHA, Errors, all_pairs, borderline, max_t, printed_p
from probes.tasks.builtin import tasks


def repeated(gold, predicted, draw):
    """The sentences of `gold` as often as `draw` has their clusters, as new sentences."""
    order = np.repeat(np.arange(gold.n_sentences), draw[gold.clusters].astype(int))
    parts = [np.arange(gold.bounds[s], gold.bounds[s + 1]) for s in order]
    rows = np.concatenate(parts)
    unseen = dict(zip(np.flatnonzero(gold.labels < 0), gold.unseen, strict=True))
    return (
        Gold(
            labels=gold.labels[rows],
            sentence=np.repeat(np.arange(len(parts)), [len(part) for part in parts]),
            classes=gold.classes,
            punctuation=gold.punctuation[rows],
            unseen=tuple(unseen[row] for row in rows if row in unseen),
        ),
        predicted[:, rows],
    )


def in_documents(gold, n_documents, rng):
    """The same examples in every second sentence of a split, which is cut into documents."""
    of_sentence = rng.integers(0, n_documents, 2 * gold.n_sentences)
    of_sentence[:n_documents] = np.arange(n_documents)
    return replace(
        gold, sentence=2 * gold.sentence_index, partition=Partition("documents", of_sentence)
    )


@pytest.mark.parametrize("clusters", ["documents", "sentences"])
@pytest.mark.parametrize("name", [*metrics])
def test_a_replicate_is_the_metric_of_what_is_resampled(name, clusters):
    rng = np.random.default_rng(3)
    gold, predicted = simulate(name, 60, rng)
    predicted = np.stack([predicted, predicted[::-1]])
    if clusters == "documents":
        gold = in_documents(gold, 25, rng)
    draws = resample(gold.n_clusters, 8)
    found = replicates(metrics.get(name), gold, predicted, draws)
    for i, draw in enumerate(draws):
        expected = metrics.get(name)(*repeated(gold, predicted, draw))
        # Spearman over all examples keeps the ranks of the whole sample.
        assert found[:, i] == pytest.approx(
            expected, abs=5e-3 if name == "corpus_spearman" else 1e-9
        )


def test_the_influence_on_a_mean_in_closed_form():
    """A ratio r = Σ s / Σ n has the influences (s − r n) / Σ n."""
    right, n = np.array([[3, 0, 1, 6], [5, 2, 1, 8]], dtype=float)
    found = influence(metrics.get("accuracy"), csr_array(np.stack([right, n], axis=1)))
    assert found == pytest.approx((right - right.sum() / n.sum() * n) / n.sum(), abs=1e-6)
    # Of a mean, where a jackknife leaves out one: with n − 1 in the place of n.
    mean = influence(metrics.get("accuracy"), csr_array(np.stack([right, np.ones(4)], axis=1)))
    without = (right.sum() - right) / 3
    assert mean == pytest.approx((right.mean() - without) * 3 / 4, abs=1e-6)


def leaving_out_one(metric, gold, given):
    """Change by each sentence: the delete-one jackknife (Efron & Tibshirani 1993, chapter 11)."""
    rest = (repeated(gold, given[None], times) for times in 1 - np.eye(gold.n_sentences, dtype=int))
    without = np.array([metric(*data)[0] for data in rest])
    return metric(gold, given[None])[0] - without


# Recall at a rate has steps, so that nothing changes when most sentences are left out.
@pytest.mark.parametrize("name", [x for x in metrics if metrics.get(x).smooth is None])
def test_influences_are_those_of_leaving_out_one_sentence(name):
    n, metric = 150, metrics.get(name)
    gold, given = simulate(name, n, np.random.default_rng(4))
    found = influence(metric, cluster_sums(metric.parts(gold, given), gold))
    changes = leaving_out_one(metric, gold, given)
    changes -= changes.mean()
    # Only NSpr averages over groups, of the same length, that one sentence is a good part of.
    correlation, within = (0.99, 0.25) if name == "nspr" else (0.998, 0.015)
    assert np.corrcoef(found, changes)[0, 1] > correlation
    error = np.sqrt((n - 1) / n * (changes**2).sum())
    assert np.sqrt((found**2).sum()) == pytest.approx(error, rel=within)


@pytest.mark.parametrize("name", [*metrics])
def test_influences_of_constant_predictions_are_those_of_leaving_out_one_sentence(name):
    """Weighted sums of a constant may not be exactly constant; no metric may magnify that."""
    metric, (gold, given) = metrics.get(name), simulate(name, 80, np.random.default_rng(6))
    constant = np.full_like(given, 2)
    with np.errstate(all="raise"):
        found = influence(metric, cluster_sums(metric.parts(gold, constant), gold))
    changes = leaving_out_one(metric, gold, constant)
    assert found == pytest.approx(changes, abs=5e-4, nan_ok=True)


def test_the_interval_of_a_share_is_the_normal_one():
    n, p = 2000, 0.7
    right = (np.arange(n) < n * p).astype(np.int64)
    gold = gold_of(np.ones(n, dtype=np.int64))
    values = replicates(metrics.get("accuracy"), gold, right[None], resample(n))
    half = norm.ppf(0.975) * np.sqrt(p * (1 - p) / n)
    assert interval(values)[0] == pytest.approx([p - half, p + half], abs=0.002)


def test_an_undefined_metric_has_no_interval():
    values = np.array([[np.nan, np.nan], [0.5, np.nan]])
    found = interval(values)
    assert np.isnan(found[0]).all()
    assert found[1].tolist() == [0.5, 0.5]


def ones(sentence, partition=None):
    """One-word sentences, all with the label 1."""
    return gold_of(np.ones(len(sentence), dtype=np.int64), sentence, partition=partition)


def test_tasks_with_examples_in_other_sentences_share_their_resamples():
    """Accuracy by hand: sentence 70 alone is right, among 100 of the 150 of the split."""
    draws = resample(150)
    for first in (0, 50):
        gold = ones(np.arange(first, first + 100), by_sentence(150))
        right = (gold.sentence == 70).astype(np.int64)
        found = replicates(metrics.get("accuracy"), gold, right[None], draws_of(gold))[0]
        expected = draws[:, 70] / draws[:, first : first + 100].sum(1)
        assert found == pytest.approx(expected)


@pytest.mark.parametrize(("n", "enough"), [(19, False), (20, True)])
def test_examples_in_fewer_than_twenty_clusters_are_not_resampled(n, enough):
    of_sentence = np.arange(100) // 2
    # Two sentences to a document, fifty documents, of which n have examples.
    gold = ones(np.arange(2 * n), Partition("documents", of_sentence))
    assert (draws_of(gold) is not None) == enough
    if enough:
        assert draws_of(gold).shape == (2000, 50)


def test_intervals_over_sentences_are_too_short_where_documents_differ():
    """Documents of m sentences whose chance to be right is drawn uniformly.

    Two sentences of a document then correlate by 1/3, so that the variance of the accuracy is
    1 + (m − 1)/3 times that of independent sentences (Kish 1965): 4 times for m = 10.
    """
    n_documents, m, n_sets = 60, 10, 400
    rng = np.random.default_rng(5)
    documents = Partition("documents", np.repeat(np.arange(n_documents), m))
    covered, widths = {}, {}
    for each in (documents, by_sentence(n_documents * m)):
        gold, draws = ones(np.arange(n_documents * m), each), resample(each.n, 500)
        chance = np.repeat(rng.random((n_sets, n_documents)), m, axis=1)
        right = (rng.random(chance.shape) < chance).astype(np.int64)
        low, high = interval(replicates(metrics.get("accuracy"), gold, right, draws)).T
        covered[each.clusters] = np.mean((low <= 0.5) & (high >= 0.5))
        widths[each.clusters] = np.mean(high - low)
    # Three standard errors of a share over 400 sets.
    assert covered["documents"] == pytest.approx(0.95, abs=0.033)
    assert covered["sentences"] == pytest.approx(2 * norm.cdf(norm.ppf(0.975) / 2) - 1, abs=0.07)
    assert widths["documents"] / widths["sentences"] == pytest.approx(2, rel=0.05)


def test_a_small_simulation_covers_and_separates_about_as_it_should():
    # 120 test sets: 95 % ± 4.5 points; the long one is behind the slow marker.
    assert 0.89 <= coverage("accuracy", n_sets=120, n_sentences=100) <= 1.0
    few = "7 layers, linear, 20 documents"
    assert false_separations(few, ratio=1.0, n_sets=120) <= at_most(0.06, 120)


def at_most(rate, n):
    """A bound that a share of n with expectation `rate` exceeds in one of a thousand cases."""
    return binom.ppf(0.999, n, rate) / n


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", METRICS)
def test_intervals_cover_a_known_truth(name):
    low, high = METRICS[name]
    found = coverage(name, n_sets=1000, n_sentences=200)
    print(f"{name}: {found:.1%} of 1,000 intervals cover the truth")
    assert low <= found <= high


@pytest.mark.exhaustive
@pytest.mark.parametrize("ratio", [0.0, 1.0])
@pytest.mark.parametrize("name", DESIGNS)
def test_equal_layers_and_models_are_separated_one_time_in_twenty(name, ratio):
    found = false_separations(name, ratio=ratio, n_sets=400)
    print(f"{name}, training SD / SE {ratio:g}: {found:.1%} of 400 separated")
    assert found <= at_most(0.06, 400)


def test_drawn_sentences_of_few_documents_separate_equal_layers():
    separated, by_sentences, by_documents = few_documents(10, 0.1, 60)
    assert separated > 0.5
    assert by_sentences < by_documents < 0.99


def test_neither_estimate_of_training_noise_is_better_everywhere():
    """The larger variance finds more if samples act on all layers, and errs with heavy tails."""
    alike = shared_samples((7, 5, "equal", "normal", 0.0, "alike", 1.0), 3.0, n=500)
    assert alike[LARGER] > alike[POOLED] + 0.1
    heavy = shared_samples((7, 5, "equal", "t3", 0.8, "alike", 2.0), n=2000)
    assert heavy[POOLED] < 0.055 < heavy[LARGER]


def names(n):
    return [f"d{i}" for i in range(n)]


D = [f"d{i}" for i in range(40)]


@pytest.mark.parametrize(
    ("documents", "split", "clusters", "of_sentence"),
    [
        # Sentences of a document are one cluster wherever they stand.
        ([*D[:20], "d3", "d0"], "test", "documents", [*range(20), 3, 0]),
        ([*D[:20], "d3", "d0"], "train", "documents", [*range(20), 3, 0]),
        # Few documents of a test split leave too few clusters; of others, sentences are drawn.
        (D[:19] * 2, "test", "documents", [*range(19)] * 2),
        (D[:1] * 2, "test", "documents", [0, 0]),
        (D[:19] * 2, "train", "sentences", [*range(38)]),
        (D[:19] * 2, "dev", "sentences", [*range(38)]),
        # Few are few though some sentences name none.
        (["", "d1", "d0", "d1", "d2", ""], "test", "documents", [0, 0, 1, 0, 2, 0]),
        ([*D[:19], ""], "test", "documents", [*range(19), 0]),
        # One sentence without a document is enough for sentences.
        ([*D, "", "d0"], "test", "sentences", [*range(42)]),
        ([""] * 30, "test", "sentences", [*range(30)]),
        ([], "test", "sentences", []),
    ],
)
def test_clusters_are_documents_or_sentences(documents, split, clusters, of_sentence):
    found = partition(documents, split)
    assert (found.clusters, found.of_sentence.tolist()) == (clusters, of_sentence)
    assert found.n == len({*of_sentence})
    assert has_few(documents) == (0 < len({*documents} - {""}) < 20)


def test_the_digest_is_that_of_the_grouping():
    found = partition(D[:20] * 2)
    expected = hashlib.sha256(struct.pack("<40q", *range(20), *range(20))).hexdigest()
    assert found.digest == expected
    renamed = partition([f"other {name}" for name in D[:20] * 2])
    assert renamed.digest == expected
    assert by_sentence(40).digest != expected


DOCUMENTS = Partition("documents", np.array([0, 1, 1]))


def test_clusters_are_those_of_sentences_that_have_examples():
    gold = gold_of([0, 1, 1], [0, 0, 2], partition=DOCUMENTS)
    assert (gold.n_sentences, gold.clusters.tolist(), gold.n_clusters) == (2, [0, 1], 2)
    assert replace(gold, partition=None).clusters.tolist() == [0, 1]
    part = gold.part(np.array([False, False, True]))
    # Of a part, the whole split is still resampled.
    assert (part.clusters.tolist(), part.n_clusters) == ([1], 2)


def test_only_the_same_labels_in_the_same_sentences_and_clusters_have_the_same_digest():
    gold = gold_of([0, 1, 1], [0, 0, 2], partition=DOCUMENTS)
    others = [
        replace(gold, labels=np.array([0, 1, 0])),
        replace(gold, sentence=np.array([0, 2, 2])),
        replace(gold, partition=by_sentence(3)),
    ]
    assert gold.digest == replace(gold, classes=("a", "other")).digest
    assert len({gold.digest, *(other.digest for other in others)}) == 4


@pytest.mark.parametrize("n", [5, 25])
def test_a_task_s_counts_say_what_is_resampled(n):
    corpus = tagged_corpus(dict.fromkeys(SPLITS, [["w0", "w1", "w2"]] * 50))
    splits = {
        split: tuple(replace(s, document=f"d{i % n}") for i, s in enumerate(part))
        for split, part in corpus.splits.items()
    }
    examples = collect_examples(tasks.get("pos"), replace(corpus, splits=splits), "masked")
    scorer = Scorer(examples, "test")
    counts = count_examples(examples, scorer)
    assert (counts.resampled, counts.clusters) == ("documents", n)
    assert counts.test_digest == scorer.gold.digest


N = 8
"""Clusters: few enough for all 6,435 different resamples."""


def resamples(n, left):
    """All ways in which `left` draws fall on n clusters, as counts."""
    if n == 1:
        return [[left]]
    return [[k, *rest] for k in range(left + 1) for rest in resamples(n - 1, left - k)]


ALL = np.array(resamples(N, N), dtype=float)
SHARE = multinomial.pmf(ALL, N, np.full(N, 1 / N))


def differences(shift):
    """Differences of two cells that are means of the same eight clusters."""
    return np.array([-1.3, -0.7, -0.4, 0.1, 0.3, 0.6, 0.9, 1.6]) + shift


def statistics(items, draws):
    """|d* − d| / s* of each resample, by its definition."""
    times = draws.astype(int)
    drawn = [np.repeat(items, each) for each in times]
    moved = np.array([abs(x.mean() - items.mean()) for x in drawn])
    error = np.array([x.std(ddof=1) / N**0.5 for x in drawn])
    with np.errstate(divide="ignore"):
        return np.where(error > 1e-12, moved / np.maximum(error, 1e-300), np.inf)


def exact_p(items):
    """The p-value that infinitely many resamples would give."""
    size = abs(items.mean()) / (items.std(ddof=1) / N**0.5)
    return SHARE[statistics(items, ALL) >= size - 1e-12].sum()


def p_of(items, drawn):
    cells = np.stack([items, np.zeros(N)])
    influence = (cells - cells.mean(1, keepdims=True)) / N
    given = ((cells @ x.T / N, Errors(influence, np.zeros(2), x.astype(float))) for x in drawn)
    (p,) = max_t(cells.mean(1), given, all_pairs(2))
    return p


def blocks_of(seed):
    """Blocks of other resamples than those that the suite draws."""
    return islice((resample(N, RESAMPLES, 1000 * seed + i) for i in count()), MOST)


@pytest.mark.parametrize(
    ("shift", "expected"), [(0.695, 0.0425), (0.68, 0.0456), (0.63, 0.0557), (0.4, 0.1473)]
)
def test_marks_no_longer_hang_on_the_seed_unless_they_are_called_borderline(shift, expected):
    items = differences(shift)
    exact = exact_p(items)
    assert exact == pytest.approx(expected, abs=5e-5)
    once = [p_of(items, [resample(N, RESAMPLES, 1000 * seed)]) for seed in range(40)]
    p_values = np.array([p_of(items, blocks_of(seed)) for seed in range(40)])
    separated = exact < ALPHA
    clear = ~borderline(p_values)
    assert ((p_values < ALPHA) == separated)[clear].all()
    if abs(exact - ALPHA) < 0.01:
        assert len({p < ALPHA for p in once}) == 2
        assert clear.mean() > 0.6
    else:
        # Clear from the first block on.
        assert clear.all()
        assert p_values.tolist() == once


def test_a_p_value_on_the_bound_is_called_borderline_by_most_seeds():
    exact = exact_p(differences(0.655))
    assert exact == pytest.approx(ALPHA, abs=4e-4)
    p_values = np.array([p_of(differences(0.655), blocks_of(seed)) for seed in range(40)])
    assert borderline(p_values).mean() > 0.8
    # Over all 40,000 resamples of those that are, three standard errors are .0033.
    assert p_values[borderline(p_values)] == pytest.approx(exact, abs=4 * 0.0011)
    assert printed_p(0.0468) == ".047 (borderline)"
    assert printed_p(0.0467) == ".047"
    assert printed_p(0.0533) == ".053"
    assert printed_p(0.0532) == ".053 (borderline)"


@pytest.mark.parametrize("density", [0.02, 0.5])
@pytest.mark.parametrize(
    "values",
    [
        lambda rng, shape: rng.integers(1, 30, shape),
        lambda rng, shape: rng.integers(1, 1 << 19, shape),  # too large for float32
        lambda rng, shape: rng.standard_normal(shape),
        lambda rng, shape: rng.integers(-3, 4, shape),
    ],
)
def test_matrices_are_resampled_together_as_one_by_one(values, density):
    """To the last bit, and in the layout in which metrics add them up."""
    rng = np.random.default_rng(2)
    dense = values(rng, (7, 60, 300)) * (rng.random((7, 60, 300)) < density)
    all_sums, draws = [csr_array(x.astype(np.float64)) for x in dense], resample(60)
    together = list(all_resampled_sums(all_sums, draws))
    assert len(together) == 7
    for sums, one, x in zip(all_sums, together, dense, strict=True):
        alone = resampled_sums(sums, draws)
        assert np.array_equal(one, alone)
        assert one.dtype == alone.dtype
        assert one.sum(-1).tolist() == alone.sum(-1).tolist()
        assert one == pytest.approx(draws.astype(np.float64) @ x)


def test_a_metric_of_no_class_has_nothing_to_sum():
    """As of `macro_f1_20`, if no class has so many examples."""
    together = list(all_resampled_sums([csr_array((60, 0))] * 3, resample(60)))
    assert [x.shape for x in together] == [(len(resample(60)), 0)] * 3


def test_the_first_block_is_that_of_intervals_and_all_are_bootstrap_resamples():
    found = list(resample_blocks(50))
    assert len(found) == MOST
    assert found[0] is resample(50)
    for one, again in zip(found, resample_blocks(50), strict=True):
        assert (one == again).all()
        assert (one.sum(1) == 50).all()
        # Binomial counts: mean 1, variance 1 − 1/50; those of two clusters have covariance −1/50.
        assert one.var() == pytest.approx(0.98, abs=0.02)
        assert np.cov(one[:, 0], one[:, 1])[0, 1] == pytest.approx(-0.02, abs=0.08)
    assert len({each.tobytes() for each in found}) == MOST
