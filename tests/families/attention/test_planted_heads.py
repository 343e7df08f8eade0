"""The measurement as a whole, on heads of which a test says what they attend to."""

import numpy as np
import pytest
import scipy.stats
from planted_heads import (
    HEADS,
    TO_DEPENDENT,
    TO_HEAD,
    at_random,
    chosen,
    compute,
    maps_of,
    on_dev,
    onto,
    random_corpus,
    share,
    to_first,
    to_head,
    to_next,
    where,
)

from probes.data.sentence import ROOT
from probes.examples.examples import NotServedError
from probes.extraction.reading.views import plain_text
from probes.families.attention.heads import TOKENS
from probes.measurements.measurement import get_measurement


@pytest.fixture(scope="module")
def toy():
    return random_corpus()


@pytest.fixture(scope="module")
def findings(toy):
    return compute(toy)


def values(found, *of, **more):
    return found.heads.of(*of, **more).values


def offset(train, counts):
    """The distance at which heads are most often, in loops."""
    distances = [head - i for of in train for i, head in enumerate(of.heads) if counts(of, i)]
    return max((x for x in range(-10, 11) if x), key=lambda x: (distances.count(x), -abs(x), x))


def named(*names):
    return lambda of, i: of.deprels[i] in names


COUNTS = {
    "all": lambda of, i: of.heads[i] != ROOT,
    "all but punct": named("nsubj", "obj"),
    "nsubj": named("nsubj"),
    "obj": named("obj"),
    "punct": named("punct"),
}


@pytest.mark.parametrize("relation", COUNTS)
def test_the_head_that_attends_to_gold_heads_is_chosen(findings, toy, relation):
    test, counts = toy.splits["test"], COUNTS[relation]
    choice = chosen(findings, "relation", relation)
    assert where(choice) == (1, 2, TO_HEAD)
    assert on_dev(findings, choice) == choice.test.value == 1
    assert choice.test.interval == (1, 1)
    best = offset(toy.splits["train"], counts)
    assert choice.kind == f"offset {best:+d}"
    baseline = share(test, lambda of, i: of.heads[i] == i + best, counts)
    assert choice.baseline.value == pytest.approx(baseline)
    low, high = choice.baseline.interval
    assert low < baseline < high
    assert choice.difference.value == pytest.approx(1 - baseline)
    assert choice.difference.interval == pytest.approx((1 - high, 1 - low))
    assert choice.difference.p == pytest.approx(1 / 2001)
    others = [
        len(s) - 1 for s in test for i in range(len(s)) if s.heads[i] != ROOT and counts(s, i)
    ]
    assert choice.chance.value == pytest.approx(np.mean([1 / n for n in others]))
    assert choice.test.n == sum(counts(of, i) for of in test for i in range(len(of)))
    n_dev = findings.heads.of("relation", relation, TO_HEAD, "dev").n
    assert n_dev == sum(counts(of, i) for of in toy.splits["dev"] for i in range(len(of)))


@pytest.mark.parametrize("relation", COUNTS)
@pytest.mark.parametrize("split", ["dev", "test"])
def test_scores_of_other_heads(findings, toy, relation, split):
    sentences, counts = toy.splits[split], COUNTS[relation]
    forward = values(findings, "relation", relation, TO_HEAD, split)
    back = values(findings, "relation", relation, TO_DEPENDENT, split)
    assert (forward[0, 1], back[0, 1]) == (1, 0)
    assert (forward[1, 0], back[1, 0]) == (0, 1)

    def of(right):
        return pytest.approx(share(sentences, right, counts), abs=1e-6)

    assert forward[1, 1] == of(lambda s, i: s.heads[i] == i + 1)
    assert back[1, 1] == of(lambda s, i: s.heads[i] == i - 1)
    # The first word attends to itself alone, and is attended to most by the first of the others.
    assert forward[0, 2] == of(lambda s, i: i > 0 and s.heads[i] == 0)
    assert back[0, 2] == of(lambda s, i: i == 0 and s.heads[i] == 1)
    same = values(findings, "relation", relation, TO_HEAD, split)[2, 1:]
    assert same[0] == same[1]


def test_trees_of_planted_heads(findings, toy):
    test, counts = toy.splits["test"], COUNTS["all but punct"]

    def of(right, split="test"):
        return share(toy.splits[split], right, counts)

    right = of(lambda s, i: s.heads[i] == i - 1)
    left = of(lambda s, i: s.heads[i] == i + 1)
    beside = of(lambda s, i: abs(s.heads[i] - i) == 1)
    chains = [row for row in findings.rows if row.layer is None and row.axes.keys() == {"baseline"}]
    assert {(row.metric, row.axes["baseline"]): row.value for row in chains} == pytest.approx(
        {
            ("uas", "right-branching"): right,
            ("uas", "left-branching"): left,
            ("uuas", "neighbours"): beside,
        }
    )
    better = max((-1, 1), key=lambda x: of(lambda s, i: s.heads[i] == i + x, "train"))
    uas, uuas = chosen(findings, "uas"), chosen(findings, "uuas")
    assert where(uas) == (1, 2, TO_HEAD)
    assert where(uuas) == (1, 2, "undirected")
    assert on_dev(findings, uas) == uas.test.value == on_dev(findings, uuas) == uuas.test.value == 1
    assert uas.kind == {-1: "right-branching", 1: "left-branching"}[better]
    assert uas.baseline.value == pytest.approx({-1: right, 1: left}[better])
    assert uuas.baseline.value == pytest.approx(beside)
    lengths = [len(s) for s in test for i in range(len(s)) if s.heads[i] != ROOT and counts(s, i)]
    assert uas.chance.value == pytest.approx(np.mean([1 / n for n in lengths]))
    assert uuas.chance.value == pytest.approx(2 * uas.chance.value)
    assert uas.test.n == uuas.test.n == sum(counts(s, i) for s in test for i in range(len(s)))
    # Who attends to whom is turned round, and trees are still those of the annotation.
    assert values(findings, "uas", None, TO_DEPENDENT)[1, 0] == 1
    assert values(findings, "uuas", None, "undirected")[1, 0] == 1
    # A head that attends to the next word is a chain.
    assert values(findings, "uas", None, TO_HEAD)[1, 1] == pytest.approx(left, abs=1e-6)
    assert values(findings, "uas", None, TO_DEPENDENT)[1, 1] == pytest.approx(right, abs=1e-6)
    assert values(findings, "uuas", None, "undirected")[1, 1] == pytest.approx(beside, abs=1e-6)


def test_heads_are_chosen_on_dev_and_scored_on_test():
    """Heads that are right on test alone are not chosen, and the one chosen is not spared."""

    def wrong(of):
        others = [[j for j in range(len(of)) if j not in (i, of.heads[i])] for i in range(len(of))]
        return onto([each[0] for each in others])

    def misleading(of):
        dev = of.id.startswith("dev")
        others = to_next if dev else to_head
        return maps_of(of, ((others, to_head if dev else wrong, others), (others,) * 3))

    found = compute(random_corpus(60), misleading, (1, 2))
    for measure, feature in (("relation", "all"), ("uas", ""), ("uuas", "")):
        choice = chosen(found, measure, feature)
        assert (*where(choice)[:2], on_dev(found, choice)) == (1, 2, 1)
        assert choice.difference.interval[1] < 0
        assert choice.difference.p < 0.05
    choice = chosen(found, "relation", "all")
    assert choice.test.value == 0
    assert choice.difference.value == -choice.baseline.value
    assert values(found, "relation", "all", TO_HEAD).tolist() == [[1, 0, 1], [1, 1, 1]]


def test_relations_have_heads_and_directions_of_their_own():
    """Objects are found by the reversed head alone."""

    def not_to_objects(of):
        heads = [
            i if head == ROOT or of.deprels[i] == "obj" else head for i, head in enumerate(of.heads)
        ]
        return onto(heads)

    heads = ((at_random, not_to_objects, to_first), *HEADS[1:])
    found = compute(random_corpus(60), lambda of: maps_of(of, heads))
    subjects, objects = (chosen(found, "relation", name) for name in ("nsubj", "obj"))
    assert where(subjects) == (1, 2, TO_HEAD)
    assert where(objects) == (2, 1, TO_DEPENDENT)
    assert objects.test.value == 1


def test_arrays_have_the_scores_of_the_choices(findings):
    arrays, choices = findings.arrays, findings.heads.choices
    scores = arrays["test_sums"].sum(1) / arrays["test_counts"].sum(1)
    baselines = arrays["test_baseline_sums"].sum(1) / arrays["test_counts"].sum(1)
    assert scores == pytest.approx([x.test.value for x in choices], rel=1e-5)
    assert baselines == pytest.approx([x.baseline.value for x in choices], rel=1e-5)
    assert arrays["test_clusters"].tolist() == list(range(120))
    assert findings.facts["resampled"] == "sentences"


def test_documents_are_resampled(findings):
    of = random_corpus(documents=24)
    by_document = compute(of)
    assert by_document.facts["resampled"] == "documents"
    assert by_document.arrays["test_clusters"].tolist() == [i % 24 for i in range(120)]
    for one, other in zip(by_document.heads.choices, findings.heads.choices, strict=True):
        assert one.test.value == other.test.value
    one, other = (chosen(x, "relation", "all").baseline for x in (by_document, findings))
    assert one.interval != other.interval


def test_statistics_are_means_over_sentences(findings, toy):
    """Entropy, by scipy, of heads that see all words; the first word; both neighbours and itself."""
    statistics = {
        ("entropy",): lambda a: scipy.stats.entropy(a, axis=-1).mean(-1) / np.log(a.shape[-1]),
        ("first",): lambda a: a[..., 0].mean(-1),
        ("offset", 1): lambda a: np.trace(a, 1, -2, -1) / a.shape[-1],
        ("pattern", "diagonal"): lambda a: (
            sum(np.trace(a, x, -2, -1) for x in (-1, 0, 1)) / a.shape[-1]
        ),
    }
    uniform = [np.full((len(s), len(s)), 1 / len(s)) for s in toy.splits["test"]]
    for of, statistic in statistics.items():
        its = findings.heads.of(*of)
        each = np.array([statistic(maps_of(s)) for s in toy.splits["test"]])
        assert its.n == 120
        assert its.values == pytest.approx(each.mean(0), abs=1e-6)
        expected = np.full((3, 3), np.mean([*map(statistic, uniform)]))
        assert its.baseline == pytest.approx(expected, abs=1e-6)
        assert its.high - its.low == pytest.approx(
            2 * 1.96 * each.std(0) / np.sqrt(120), rel=0.1, abs=1e-6
        )
    assert findings.heads.of("separators") is None


def test_patterns_of_planted_heads():
    found = compute(random_corpus(30, range(12, 16)))
    classes = found.heads.classes
    assert len(classes) == 9
    assert classes[1, 3] == "vertical"
    assert (classes[2, 2], classes[2, 3]) == ("diagonal", "vertical + diagonal")
    assert (classes[3, 2], classes[3, 3]) == ("heterogeneous",) * 2


FEATURES = {
    ("feature", "punctuation"): lambda s, i: s.upos[i] == "PUNCT",
    ("feature", "nouns"): lambda s, i: s.upos[i] == "NOUN",
    ("feature", "subjects"): lambda s, i: s.deprels[i] == "nsubj",
    ("feature", "objects"): lambda s, i: s.deprels[i] == "obj",
    ("special",): lambda s, i: s.upos[i] == "PUNCT",
}
"""Planted maps have no special tokens: what `special` has left is the sum over punctuation."""


@pytest.mark.parametrize("of", FEATURES)
def test_features_are_attention_to_the_word_that_gets_most(findings, toy, of):
    its, shares, uniform = findings.heads.of(*of), [], []
    for s in toy.splits["test"]:
        columns = [i for i in range(len(s)) if FEATURES[of](s, i)]
        weights = maps_of(s).mean(2)[..., columns]
        if of == ("special",):
            shares.append(weights.sum(-1))
            uniform.append(len(columns) / len(s))
        elif columns:
            shares.append(weights.max(-1))
            uniform.append(1 / len(s))
    assert its.n == len(shares)
    assert its.values == pytest.approx(np.mean(shares, 0), abs=1e-6)
    assert its.baseline == pytest.approx(np.full((3, 3), np.mean(uniform)), abs=1e-6)
    assert its.low == pytest.approx(its.high, abs=0.2)


def test_features_that_some_or_all_sentences_lack(findings):
    assert findings.heads.of("feature", "objects").n < 120
    assert findings.heads.of("feature", "verbs") is None


def test_mean_maps_are_those_of_texts_of_one_length():
    of = random_corpus(6, [12, TOKENS])
    found = compute(of, texts_per_shard=8)
    sentences = [s for split in ("dev", "test") for s in of.splits[split] if len(s) == TOKENS]
    assert 0 < found.facts["mean_map_texts"] == len(sentences) < 12
    expected = np.mean([maps_of(s) for s in sentences], axis=0)
    assert found.arrays["mean_maps"] == pytest.approx(expected, abs=6e-4)
    none = compute(random_corpus(6, [5, 7]), texts_per_shard=3)
    assert none.facts["mean_map_texts"] == 0
    assert "mean_maps" not in none.arrays


@pytest.mark.slow
def test_sentences_beyond_the_window_count_nowhere(toy):
    """Numbers are those of a corpus without these sentences."""
    long = {"dev3", "dev77", "test0", "test50", "test51"}
    kept = {x: tuple(s for s in toy.splits[x] if s.id not in long) for x in toy.splits}
    with_long, without = compute(toy, long=long), compute(type(toy)("toy", "1", "MIT", kept))
    assert with_long.facts["test_too_long"] == 3
    assert with_long.facts["dev_too_long"] == 2
    assert without.facts["test_texts"] == 117
    assert "test: 120 sentences, " in with_long.notes[1]
    assert "; 3 left out, longer than the model's window." in with_long.notes[1]

    for one, other in zip(with_long.rows, without.rows, strict=True):
        assert (one.metric, one.layer, one.split, one.n) == other[0:1] + other[2:3] + other[5:7]
        assert one.axes == other.axes
        assert one.value == pytest.approx(other.value, nan_ok=True)


def test_texts_that_no_split_may_lack():
    of = random_corpus(20)
    with pytest.raises(NotServedError, match="no text of dev fits into the model's window"):
        compute(of, long={s.id for s in of.splits["dev"]}, texts_per_shard=20)


def test_the_view_holds_dev_and_test_alone(toy):
    expected = [plain_text(s) for split in ("dev", "test") for s in toy.splits[split]]
    assert list(get_measurement("attention").reads(toy, None).texts) == expected
