"""Statistics, patterns and features of planted heads, and what is counted at all."""

import numpy as np
import pytest
import scipy.stats
from planted_heads import (
    compute,
    context,
    corpus,
    maps_of,
)

from probes.examples.examples import NotServedError
from probes.extraction.views import plain_text
from probes.families.attention.heads import TOKENS


def test_statistics_are_means_over_sentences(found, toy):
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
        its = found.heads.of(*of)
        each = np.array([statistic(maps_of(s)) for s in toy.splits["test"]])
        assert its.n == 120
        assert its.values == pytest.approx(each.mean(0), abs=1e-6)
        expected = np.full((3, 3), np.mean([*map(statistic, uniform)]))
        assert its.baseline == pytest.approx(expected, abs=1e-6)
        assert its.high - its.low == pytest.approx(
            2 * 1.96 * each.std(0) / np.sqrt(120), rel=0.1, abs=1e-6
        )
    assert found.heads.of("separators") is None


def test_patterns_of_planted_heads():
    found = compute(corpus(30, range(12, 16)))
    classes = found.heads.classes
    assert len(classes) == 9
    assert classes[1, 3] == "vertical"
    assert (classes[2, 2], classes[2, 3]) == ("diagonal", "vertical + diagonal")
    assert (classes[3, 2], classes[3, 3]) == ("heterogeneous",) * 2


def test_features_are_attention_to_the_word_that_gets_most(found, toy):
    conditions = {
        "punctuation": lambda s, i: s.upos[i] == "PUNCT",
        "nouns": lambda s, i: s.upos[i] == "NOUN",
        "subjects": lambda s, i: s.deprels[i] == "nsubj",
        "objects": lambda s, i: s.deprels[i] == "obj",
    }
    test = toy.splits["test"]
    for name, has in conditions.items():
        its, each, uniform = found.heads.of("feature", name), [], []
        for s in test:
            columns = [i for i in range(len(s)) if has(s, i)]
            if columns:
                each.append(maps_of(s).mean(2)[..., columns].max(-1))
                uniform.append(1 / len(s))
        assert its.n == len(each)
        assert its.values == pytest.approx(np.mean(each, 0), abs=1e-6)
        assert its.baseline == pytest.approx(np.full((3, 3), np.mean(uniform)), abs=1e-6)
    assert found.heads.of("feature", "verbs") is None
    assert found.heads.of("feature", "objects").n < 120


def test_special_tokens_and_punctuation_get_what_other_words_do_not(found, toy):
    """There are no special tokens in planted maps: what is left is the share of punctuation."""
    its, each, uniform = found.heads.of("special"), [], []
    for s in toy.splits["test"]:
        marks = [i for i, tag in enumerate(s.upos) if tag == "PUNCT"]
        each.append(maps_of(s).mean(2)[..., marks].sum(-1))
        uniform.append(len(marks) / len(s))
    assert its.n == len(each)
    assert its.values == pytest.approx(np.mean(each, 0), abs=1e-6)
    assert its.baseline == pytest.approx(np.full((3, 3), np.mean(uniform)), abs=1e-6)
    assert its.low == pytest.approx(its.high, abs=0.2)


def test_mean_maps_are_those_of_texts_of_one_length():
    of = corpus(6, [12, TOKENS])
    found = compute(of, texts_per_shard=8)
    sentences = [s for split in ("dev", "test") for s in of.splits[split] if len(s) == TOKENS]
    assert 0 < found.facts["mean_map_texts"] == len(sentences) < 12
    expected = np.mean([maps_of(s) for s in sentences], axis=0)
    assert found.arrays["mean_maps"] == pytest.approx(expected, abs=6e-4)
    none = compute(corpus(6, [5, 7]), texts_per_shard=3)
    assert none.facts["mean_map_texts"] == 0
    assert "mean_maps" not in none.arrays


@pytest.mark.slow
def test_sentences_beyond_the_window_count_nowhere(toy):
    """As if they were not there."""
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


def test_texts_that_no_split_may_lack(toy):
    with pytest.raises(NotServedError, match="no text of dev fits into the model's window"):
        compute(toy, long={s.id for s in toy.splits["dev"]})


def test_the_view_holds_dev_and_test_alone(toy):
    view = context(toy, maps_of).view
    expected = [plain_text(s) for split in ("dev", "test") for s in toy.splits[split]]
    assert list(view.texts) == expected
