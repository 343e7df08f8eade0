"""Statistics, patterns and features of planted heads, and what is counted at all."""

import numpy as np
import pytest
from planted_heads import TO_DEPENDENT, chosen, compute, context, corpus, maps_of, statistics

from probes.examples.examples import NotServedError
from probes.extraction.views import plain_text
from probes.measurements.attention.names import STATISTICS, TOKENS


def test_statistics_are_means_over_sentences(found, toy):
    each = np.array(
        [[[statistics(a) for a in row] for row in maps_of(s)] for s in toy.splits["test"]]
    )
    for place, name in enumerate(STATISTICS):
        measure, _, feature = name.partition(" ")
        of = (measure, feature) if feature else (name, "")
        if name in ("vertical", "diagonal"):
            of = "pattern", name
        if name in ("separators", "block"):
            assert found.payload.of(*of) is None
            continue
        its = found.payload.of(*of)
        assert its.n == 120
        expected = each[..., place]
        assert np.array(its.values) == pytest.approx(expected.mean(0), abs=1e-6)
        spread = expected.std(0) / np.sqrt(120)
        width = np.array(its.high) - np.array(its.low)
        assert width == pytest.approx(2 * 1.96 * spread, rel=0.1, abs=1e-6)
    uniform = [statistics(np.full((len(s), len(s)), 1 / len(s))) for s in toy.splits["test"]]
    entropy, vertical = found.payload.of("entropy"), found.payload.of("pattern", "vertical")
    assert np.array(entropy.baseline) == pytest.approx(np.ones((3, 1)))
    expected = np.mean(uniform, 0)[STATISTICS.index("vertical")]
    assert np.array(vertical.baseline) == pytest.approx(np.full((3, 1), expected), abs=1e-6)


def test_patterns_of_planted_heads():
    found = compute(corpus(30, range(12, 16)))
    assert found.payload.patterns[0][2] == "vertical"
    assert found.payload.patterns[1][1:] == ("diagonal", "vertical + diagonal")
    assert found.payload.patterns[2][1:] == ("heterogeneous",) * 2


def test_features_are_attention_to_the_word_that_gets_most(found, toy):
    conditions = {
        "punctuation": lambda s, i: s.upos[i] == "PUNCT",
        "nouns": lambda s, i: s.upos[i] == "NOUN",
        "subjects": lambda s, i: s.deprels[i] == "nsubj",
        "objects": lambda s, i: s.deprels[i] == "obj",
    }
    test = toy.splits["test"]
    for name, has in conditions.items():
        its, each, uniform = found.payload.of("feature", name), [], []
        for s in test:
            columns = [i for i in range(len(s)) if has(s, i)]
            if columns:
                each.append(maps_of(s).mean(2)[..., columns].max(-1))
                uniform.append(1 / len(s))
        assert its.n == len(each)
        assert np.array(its.values) == pytest.approx(np.mean(each, 0), abs=1e-6)
        assert np.array(its.baseline) == pytest.approx(np.full((3, 1), np.mean(uniform)), abs=1e-6)
    assert found.payload.of("feature", "verbs") is None
    assert found.payload.of("feature", "objects").n < 120


def test_special_tokens_and_punctuation_get_what_other_words_do_not(found, toy):
    """There are no special tokens in planted maps: what is left is the share of punctuation."""
    its, each, uniform = found.payload.of("special"), [], []
    for s in toy.splits["test"]:
        marks = [i for i, tag in enumerate(s.upos) if tag == "PUNCT"]
        each.append(maps_of(s).mean(2)[..., marks].sum(-1))
        uniform.append(len(marks) / len(s))
    assert its.n == len(each)
    assert np.array(its.values) == pytest.approx(np.mean(each, 0), abs=1e-6)
    assert np.array(its.baseline) == pytest.approx(np.full((3, 1), np.mean(uniform)), abs=1e-6)
    assert np.array(its.low) == pytest.approx(np.array(its.high), abs=0.2)


def test_mean_maps_are_those_of_texts_of_one_length():
    of = corpus(6, [12, TOKENS])
    found = compute(of, words_per_shard=50)
    sentences = [s for split in ("dev", "test") for s in of.splits[split] if len(s) == TOKENS]
    assert 0 < found.payload.mean_maps.texts == len(sentences) < 12
    expected = np.mean([maps_of(s) for s in sentences], axis=0)
    assert np.array(found.payload.mean_maps.maps) == pytest.approx(expected, abs=6e-4)
    none = compute(corpus(6, [5, 7]), words_per_shard=20).payload.mean_maps
    assert (none.texts, none.maps) == (0, ())


def test_some_layers_have_the_numbers_that_they_have_among_all(found, toy):
    some = compute(toy, layers=(2,))
    assert some.payload.layers == (2,)
    assert some.payload.patterns == found.payload.patterns[1:2]
    for one, other in zip(some.payload.numbers, found.payload.numbers, strict=True):
        assert one.values == other.values[1:2]
        assert one.low == other.low[1:2]
    choice = chosen(some, "relation", "all")
    assert (choice.layer, choice.head, choice.direction) == (2, 1, TO_DEPENDENT)


def test_sentences_beyond_the_window_count_nowhere(toy):
    """As if they were not there."""
    long = {"dev3", "dev77", "test0", "test50", "test51"}
    kept = {x: tuple(s for s in toy.splits[x] if s.id not in long) for x in toy.splits}
    with_long, without = compute(toy, long=long), compute(type(toy)("toy", "1", "MIT", kept))
    assert with_long.payload.splits["test"].too_long == 3
    assert with_long.payload.splits["dev"].too_long == 2
    assert without.payload.splits["test"].texts == 117
    for one, other in zip(with_long.payload.numbers, without.payload.numbers, strict=True):
        assert (one.values, one.baseline, one.n) == (other.values, other.baseline, other.n)
    for one, other in zip(with_long.payload.choices, without.payload.choices, strict=True):
        assert (one.dev, one.test.value) == (other.dev, other.test.value)
        assert one.baseline.value == pytest.approx(other.baseline.value)
        assert (one.layer, one.head, one.n_test) == (other.layer, other.head, other.n_test)
    assert with_long.payload.chains == pytest.approx(without.payload.chains)
    assert with_long.payload.without_controls == 0


def test_links_without_controls_are_counted():
    """In sentences of three words, the argument and its predicate are all there is."""
    of = corpus(60, [3, 6])
    found = compute(of)
    short = {x: sum(len(s) == 3 for s in of.splits[x]) for x in ("dev", "test")}
    assert found.payload.without_controls == sum(short.values()) > 0
    assert chosen(found, "role", "core").n_test == 60 - short["test"]


def test_texts_that_no_split_may_lack(toy):
    with pytest.raises(NotServedError, match="no text of dev fits into the model's window"):
        compute(toy, long={s.id for s in toy.splits["dev"]})


def test_the_view_holds_dev_and_test_alone(toy):
    view = context(toy, maps_of).view
    expected = [plain_text(s) for split in ("dev", "test") for s in toy.splits[split]]
    assert list(view.texts) == expected
