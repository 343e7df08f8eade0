"""Metrics against scikit-learn and examples by hand; numbers on two sets of answers."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    recall_score,
    roc_auc_score,
    roc_curve,
)
from statistics_simulation import simulate
from stratified_kappa import stratified_kappa

from probes.statistics.bootstrap import interval, resample
from probes.statistics.gold import Gold, chunk_spans
from probes.statistics.metrics import metrics, printed_score, printed_sd
from probes.statistics.of_families.two_answers import (
    TwoAnswers,
    agreement_rates,
    fitted_threshold,
    p_values_of_answers,
)
from probes.statistics.partition import partition
from probes.statistics.rank_correlation import nspr_sentences, spearman
from probes.statistics.ranking_metrics import RANKING, ranking_scores, rate_curves


def gold(labels, sentence=None, classes=(), punctuation=None, unseen=()):
    labels = np.asarray(labels)
    n = len(labels)
    return Gold(
        labels=labels,
        sentence=np.zeros(n, dtype=np.int64) if sentence is None else np.asarray(sentence),
        classes=tuple(classes),
        punctuation=np.zeros(n, dtype=bool) if punctuation is None else np.asarray(punctuation),
        unseen=tuple(unseen),
    )


def score(name, g, *rows):
    return metrics.get(name)(g, np.asarray(rows)).tolist()


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(1)
    truth = rng.choice(5, size=400, p=[0.5, 0.3, 0.15, 0.04, 0.01])
    rows = np.stack(
        [np.where(rng.random(400) < p, truth, rng.integers(0, 5, 400)) for p in (0.2, 0.8)]
    )
    return gold(truth, classes="abcde"), rows


@pytest.mark.parametrize(
    ("value", "metric", "text"),
    [
        (-0.037, "accuracy", "−3.7"),
        (-0.25, "spearman", "−.250"),
        (-0.0001, "spearman", ".000"),
        (-1.5, "mae", "−1.500"),
        (None, "accuracy", "–"),
    ],
)
def test_scores_are_shown_with_a_minus_sign(value, metric, text):
    assert printed_score(value, metric) == text


def test_deviations_are_shown_with_one_more_digit():
    assert (printed_sd(0.0012, "accuracy"), printed_sd(0.0031, "spearman")) == ("0.12", ".0031")


def test_accuracy_counts_exact_matches():
    assert score("accuracy", gold([0, 1, 1, 0], classes="ab"), [0, 1, 0, 0], [1, 0, 0, 1]) == [
        0.75,
        0.0,
    ]


def test_balanced_accuracy_is_scikit_learns(noisy):
    g, rows = noisy
    expected = [balanced_accuracy_score(g.labels, row) for row in rows]
    assert metrics.get("balanced_accuracy")(g, rows) == pytest.approx(expected)


def test_narrow_integers_hold_many_classes():
    labels = np.array([0, 11_999, 16_383, 16_383], dtype=np.int16)
    given = np.array([0, 11_999, 16_383, 0], dtype=np.int16)
    g = gold(labels, classes=map(str, range(16_384)))
    assert score("balanced_accuracy", g, given) == [pytest.approx((1 + 1 + 0.5) / 3)]


def test_macro_f1_is_scikit_learns_over_labels_in_gold(noisy):
    g, rows = noisy
    present = np.unique(g.labels)
    expected = [f1_score(g.labels, row, labels=present, average="macro") for row in rows]
    assert metrics.get("macro_f1")(g, rows) == pytest.approx(expected)


def test_macro_f1_20_leaves_rare_labels_out(noisy):
    g, rows = noisy
    frequent = np.flatnonzero(np.bincount(g.labels) >= 20)
    assert len(frequent) < 5
    expected = [f1_score(g.labels, row, labels=frequent, average="macro") for row in rows]
    assert metrics.get("macro_f1_20")(g, rows) == pytest.approx(expected)


@pytest.mark.parametrize("name", [*metrics])
def test_a_metric_says_whether_its_sums_count_examples_or_labels(name):
    gold, given = simulate(name, 80, np.random.default_rng(6))
    sums, counts = metrics.get(name).parts(gold, given).sum(0), metrics.get(name).counts
    n, of_labels = len(gold.labels), np.bincount(gold.labels.astype(int))
    assert [column for column, each in enumerate(sums) if each == n] == (
        [counts] if isinstance(counts, int) else []
    )
    assert np.array_equal(sums[: len(of_labels)], of_labels) == (counts == "labels")


def test_a_label_unseen_in_train_is_an_error_everywhere():
    g = gold([0, -1, 1, -1], classes="ab", unseen=("c", "c"))
    assert score("accuracy", g, [0, 0, 1, 1]) == [0.5]
    # a: P 1/2 R 1 → 2/3; b the same; c: 0
    assert score("macro_f1", g, [0, 0, 1, 1]) == [pytest.approx((2 / 3 + 2 / 3 + 0) / 3)]


TAGS = ("B-NP", "B-VP", "I-NP", "I-VP", "O")


def tags(text):
    return [TAGS.index(tag) for tag in text.split()]


@pytest.mark.parametrize(
    ("text", "sentence", "spans"),
    [
        ("B-NP I-NP O B-VP", [0, 0, 0, 0], {(0, 2, "NP"), (3, 4, "VP")}),
        ("B-NP B-NP I-NP", [0, 0, 0], {(0, 1, "NP"), (1, 3, "NP")}),
        # conlleval: I- begins a chunk after O, after another type, and at a sentence's start.
        ("O I-NP I-VP", [0, 0, 0], {(1, 2, "NP"), (2, 3, "VP")}),
        ("B-NP I-NP", [0, 1], {(0, 1, "NP"), (1, 2, "NP")}),
        ("O O", [0, 0], set()),
    ],
)
def test_chunk_spans_by_hand(text, sentence, spans):
    first = np.diff(sentence, prepend=-1) != 0
    names, tags = np.unique(text.split(), return_inverse=True)
    assert chunk_spans(names.tolist(), tags, first) == spans


def test_span_f1_by_hand():
    # gold: NP(0,2) VP(2,3) NP(3,5); given: NP(0,2) VP(2,4) NP(4,5) → 1 of 3 and 3.
    g = gold(tags("B-NP I-NP B-VP B-NP I-NP"), classes=TAGS)
    given = tags("B-NP I-NP B-VP I-VP B-NP")
    assert score("span_f1", g, given, g.labels) == [pytest.approx(1 / 3), 1.0]
    assert score("accuracy", g, given) == [0.6]


def test_span_f1_is_one_sided_by_precision_and_recall():
    # gold two chunks, one given and right: P 1, R 1/2 → 2/3.
    g = gold(tags("B-NP O B-VP"), classes=TAGS)
    assert score("span_f1", g, tags("B-NP O O")) == [pytest.approx(2 / 3)]


def test_span_f1_without_any_chunk_is_zero_as_in_conlleval():
    assert score("span_f1", gold(tags("O O"), classes=TAGS), tags("O O")) == [0.0]


def test_span_f1_counts_a_gold_chunk_of_unseen_type_as_missed():
    g = gold([tags("B-NP")[0], -1], classes=TAGS, unseen=("B-LST",))
    assert score("span_f1", g, tags("B-NP O")) == [pytest.approx(2 / 3)]


@pytest.fixture(scope="module")
def trees():
    """Sentences of 1 to 60 words with depths; noise for predictions."""
    rng = np.random.default_rng(2)
    lengths = [1, 2, 4, 5, 5, 9, 9, 9, 50, 51, 60]
    depths = np.concatenate(
        [np.concatenate([[0], rng.integers(1, 6, n - 1)]) for n in lengths]
    ).astype(np.float32)
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    return gold(depths, sentence), lengths, depths + rng.normal(0, 1.5, len(depths))


def test_nspr_averages_within_lengths_5_to_50_then_over_them(trees):
    g, lengths, given = trees
    rho = {}
    for number, length in enumerate(lengths):
        if 5 <= length <= 50:
            part = g.sentence == number
            rho.setdefault(length, []).append(spearmanr(g.labels[part], given[part])[0])
    expected = np.mean([np.mean(rho[length]) for length in (5, 9, 50)])
    assert score("nspr", g, given) == [pytest.approx(expected)]
    assert nspr_sentences(g) == 6


def test_plain_spearman_averages_all_sentences_of_two_words_or_more(trees):
    g, lengths, given = trees
    rho = [
        spearmanr(g.labels[g.sentence == i], given[g.sentence == i])[0]
        for i, length in enumerate(lengths)
        if length > 1
    ]
    assert score("spearman", g, given) == [pytest.approx(np.mean(rho))]


def test_a_constant_prediction_scores_zero_not_nan(trees):
    g, _, given = trees
    assert score("nspr", g, np.full_like(given, 3.0)) == [0.0]
    assert score("nspr", g, g.labels) == [pytest.approx(1.0)]


def test_root_accuracy_ignores_punctuation():
    # The full stop is predicted least deep, but is punctuation; sentence 1 is only punctuation.
    g = gold(
        [1, 0, 2, 0, 1, 0],
        [0, 0, 0, 1, 2, 2],
        punctuation=[False, False, True, True, False, False],
    )
    assert score("root_accuracy", g, [1.0, 0.5, 0.1, 3.0, 0.2, 0.4]) == [pytest.approx(2 / 3)]


def test_mae_by_hand():
    assert score("mae", gold([0.0, 2.0]), [1.0, 2.5]) == [0.75]


def theirs(positive, margins):
    false, true, _ = roc_curve(positive, margins, drop_intermediate=False)
    return {
        "auroc": roc_auc_score(positive, margins),
        "average_precision": average_precision_score(positive, margins),
        "recall_at_5_fpr": true[false <= 0.05].max(),
    }


def drawn(seed, n=90, ties=False):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.3
    margins = rng.normal(size=n) + positive
    return positive, np.round(margins) if ties else margins


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_values_and_weights_are_those_of_scikit_learn(seed, ties):
    positive, margins = drawn(seed, ties=ties)
    counts = np.stack([np.ones(90), np.random.default_rng(9).integers(0, 4, 90)]).astype(int)
    found = rate_curves(margins, positive, counts.astype(float))
    for row, count in enumerate(counts):
        wanted = theirs(np.repeat(positive, count), np.repeat(margins, count))
        for name, metric in RANKING.items():
            assert metric(*found)[row] == pytest.approx(wanted[name])


def test_without_one_of_the_classes_nothing_is_defined():
    for positive in (np.zeros(4, bool), np.ones(4, bool)):
        found = rate_curves(np.arange(4.0), positive, np.ones((1, 4)))
        assert np.isnan([metric(*found)[0] for metric in RANKING.values()]).any()
        assert np.isnan(RANKING["auroc"](*found)[0])


@pytest.mark.parametrize("only", [0, 1])
def test_a_test_split_of_one_class_has_no_ranking_and_says_why(only):
    gold = Gold(np.full(40, only), np.arange(40), ("a", "b"), np.zeros(40, bool))
    for estimates in ranking_scores(gold, np.random.default_rng(0).normal(size=(2, 40))).values():
        assert [(x.value, x.interval) for x in estimates] == [(None, None)] * 2
        assert estimates[0].missing == "one class in test"


def test_intervals_resample_groups():
    positive, margins = drawn(3)
    groups = [str(i // 3) for i in range(90)]
    gold = Gold(positive.astype(int), np.arange(90), ("a", "b"), np.zeros(90, bool),
                partition=partition(groups))  # fmt: skip
    found = ranking_scores(gold, np.stack([margins, -margins]))
    counts = resample(30)[:40][:, np.arange(90) // 3].astype(int)
    many = resample(30)[:, np.arange(90) // 3].astype(float)
    for name, (estimate, other) in found.items():
        replicates = RANKING[name](*rate_curves(margins, positive, many))
        assert estimate.value == pytest.approx(theirs(positive, margins)[name])
        assert estimate.interval == pytest.approx(tuple(interval(replicates)))
        assert other.value < estimate.value
        for count, value in zip(counts, replicates, strict=False):
            wanted = theirs(np.repeat(positive, count), np.repeat(margins, count))
            assert value == pytest.approx(wanted[name])


def test_few_groups_give_no_interval():
    positive, margins = drawn(4, n=12)
    gold = Gold(positive.astype(int), np.arange(12), ("a", "b"), np.zeros(12, bool))
    (estimate,) = ranking_scores(gold, margins[None])["auroc"]
    assert estimate.interval is None
    assert estimate.missing == "fewer than 20 clusters"


def answers(seed, n=600):
    """Answers to four times as many examples of one class, most of which one's prior gets right."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.8
    one = rng.random(n) < 0.7
    other = np.where(rng.random(n) < 0.5, one, rng.random(n) < np.where(positive, 0.9, 0.3))
    return one, other, positive, np.sort(rng.integers(0, 60, n))


@pytest.mark.parametrize("seed", range(3))
def test_numbers_are_those_of_scikit_learn_with_balanced_weights(seed):
    one, other, positive, cluster = answers(seed)
    its = TwoAnswers(one.astype(float), other.astype(float), positive, cluster, 60)
    scores = [balanced_accuracy_score(positive, positive == right) for right in (one, other)]
    assert [its.estimate(x)[0] for x in ("one", "other")] == pytest.approx(scores)
    assert its.estimate("difference")[0] == pytest.approx(scores[0] - scores[1])
    assert its.estimate("kappa")[0] == pytest.approx(stratified_kappa(one, other, positive))


def test_independent_answers_have_no_kappa_however_right_they_are():
    """Nine of ten are right, a tenth of them at random; κ of one with itself is 1."""
    rng, n = np.random.default_rng(0), 20_000
    one, other = (rng.random((2, n)) < 0.9).astype(float)
    half, cluster = np.arange(n) % 2 == 0, np.arange(n) // 100
    value, (low, high) = TwoAnswers(one, other, half, cluster, n // 100).estimate("kappa")
    assert low < 0 < high
    assert abs(value) < 0.03
    assert TwoAnswers(one, one, half, cluster, n // 100).estimate("kappa")[0] == pytest.approx(1)
    assert np.isnan(agreement_rates(np.tile([5.0, 5, 5, 5], 2))["kappa"])
    # Independent of each other in each class, of which both get one right more often: κ of both
    # classes together would be .19.
    assert agreement_rates(np.array([90.0, 90, 81, 100, 50, 50, 25, 100]))[
        "kappa"
    ] == pytest.approx(0)


def test_a_threshold_undoes_a_prior_and_nothing_else():
    positive = np.array([1, 1, 1, 1, 0, 0, 0, 0], dtype=bool)
    log_odds = np.array([5.0, 4, 3, 2, 1.5, 0.5, -1, -3])
    assert fitted_threshold(log_odds, positive) == 1.75
    assert fitted_threshold(log_odds - 1.7, positive) == 0  # already right there
    # One singular verb stands out, of the others nothing is known: most answers are not the same.
    nothing_known = np.array([9.0, 1.8, 1.2, 0.6, 1.9, 1.3, 0.7, 0.5])
    above = nothing_known > fitted_threshold(nothing_known, positive)
    assert recall_score(positive, above) == recall_score(~positive, ~above) == 0.5


def test_differences_are_tested_where_enough_clusters_differ():
    one, other, positive, cluster = answers(0)
    its = TwoAnswers(one.astype(float), other.astype(float), positive, cluster, 60)
    alike = TwoAnswers(its.other.copy(), its.other, positive, cluster, 60)
    better = TwoAnswers(np.maximum(its.other, cluster % 2), its.other, positive, cluster, 60)
    p = p_values_of_answers([alike, better])
    assert p[0] is None
    assert p[1] is not None
    assert p[1] < 0.01
    in_one_document = TwoAnswers(its.one, its.other, positive, cluster * 0, 1)
    assert np.isnan(in_one_document.estimate("kappa")[1]).all()


def test_correlations_within_sentences_are_scipys():
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 4, (6, 5))
    labels[:, 0] = 9
    predicted = np.round(rng.random((3, 5, 1, 5)), 1)  # with ties
    correlations = spearman(predicted, labels)
    assert correlations.shape == (3, 5, 6)
    for place in np.ndindex(correlations.shape):
        expected = spearmanr(predicted[place[0], place[1], 0], labels[place[2]]).statistic
        assert correlations[place] == pytest.approx(expected)


def test_correlations_of_constants():
    labels = np.array([[1.0, 1.0, 1.0], [0.0, 1.0, 2.0]])
    predicted = np.array([[3.0, 2.0, 1.0], [5.0, 5.0, 5.0]])
    assert np.isnan(spearman(predicted, labels)[0])
    assert spearman(predicted, labels)[1] == 0
