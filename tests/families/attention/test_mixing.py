"""The attention-only probe against scipy, planted maps, and slow maps of a model."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from heads_by_loops import between_words
from planted_maps import PlantedModel, context_of, eager_maps
from random_trees import random_heads
from scipy.optimize import minimize
from scipy.special import logsumexp

from probes.data.sentence import ROOT, Corpus, Sentence
from probes.examples.examples import NotServedError
from probes.extraction.loading import load_encoder
from probes.extraction.model_files import find_model
from probes.extraction.views import plain_text
from probes.families.attention.live import PAIRS, sample
from probes.families.attention.mixing import (
    NO_HEAD,
    PRIOR,
    MixedHeads,
    fit,
    heads_to_predict,
    mixing,
)

rng = np.random.default_rng(5)


def sentences(n, seed, longest=9):
    draws = np.random.default_rng(seed)
    return tuple(
        Sentence(
            f"{seed}-{i}",
            "en",
            (f"{seed}x{i}", *(f"w{j}" for j in range(1, size))),
            deprels=tuple(draws.choice(["nsubj", "punct"], size, p=[0.8, 0.2])),
            heads=random_heads(size, np.random.default_rng(100 * seed + i)),
        )
        for i, size in enumerate(draws.integers(1, longest, n))
    )


SPLITS = {"train": sentences(40, 1), "dev": sentences(12, 2), "test": sentences(15, 3)}
CORPUS = Corpus("c", "1", "", SPLITS)
OF_WORDS = {s.words: s for split in SPLITS.values() for s in split}


def noise(*shape):
    return rng.dirichlet(np.ones(shape[-1]), shape[:-1]).astype(np.float32)


# -- the fit --------------------------------------------------------------------------------


def objective(flat, groups):
    """Loss by numpy, in float64, word by word; weights of attention as it is."""
    w, u = flat.reshape(2, -1)
    total = n = 0
    squares, pairs = 0.0, 0
    for maps, heads in groups:
        maps = maps.astype(np.float64)
        for s in range(len(heads)):
            for i in range(heads.shape[1]):
                others = [j for j in range(heads.shape[1]) if j != i]
                squares = squares + (maps[:, s, i, others] ** 2).sum(1)
                pairs += len(others)
                if heads[s, i] != NO_HEAD:
                    scores = {j: w @ maps[:, s, i, j] + u @ maps[:, s, j, i] for j in others}
                    total += logsumexp(list(scores.values())) - scores[heads[s, i]]
                    n += 1
    scaled = np.stack([w, u]) * np.sqrt(squares / pairs)
    return total / n + PRIOR / (2 * n) * (scaled**2).sum()


def test_weights_are_those_of_scipy():
    groups = []
    for n, count in ((3, 9), (5, 6)):
        # Of the same precision as groups keep, so that both read the same numbers.
        maps = noise(3, count, n, n).astype(np.float16)
        heads = np.array([heads_to_predict(s) for s in sentences(200, 9) if len(s) == n][:count])
        assert len(heads) == count
        groups.append((maps, heads))
    assert any((heads == NO_HEAD).sum() > len(heads) for _, heads in groups)  # punctuation
    expected = minimize(objective, np.zeros(6), args=(groups,), method="BFGS", tol=1e-9)
    found = fit([MixedHeads(torch.from_numpy(m), torch.from_numpy(h)) for m, h in groups])
    assert np.abs(expected.x).max() > 0.5
    np.testing.assert_allclose(found.numpy().ravel(), expected.x, rtol=1e-3, atol=1e-3)


# -- planted maps ---------------------------------------------------------------------------


def planted(backward, attention_head=1, block=1):
    """One head of one block attends from words to their heads, or from heads to their words."""

    def maps(text):
        gold = OF_WORDS[text.words].heads
        n = len(gold)
        found = np.random.default_rng(n).dirichlet(np.ones(n + 2), (2, 3, n + 2))
        exact = np.full((n + 2, n + 2), 1e-3)
        for word, head in enumerate(gold):
            if head != ROOT:
                i, j = (head, word) if backward else (word, head)
                exact[i + 1, j + 1] = 1.0
        found[block, attention_head] = exact / exact.sum(1, keepdims=True)
        return found.astype(np.float32)

    return PlantedModel(maps)


@pytest.mark.parametrize("backward", [False, True])
def test_a_head_that_finds_every_head_is_given_the_weight(backward):
    found = mixing(context_of(CORPUS, planted(backward)))
    for split in ("dev", "test"):
        expected = [(heads_to_predict(s) != NO_HEAD).sum() for s in SPLITS[split]]
        assert found.counts[split].tolist() == expected
        assert found.hits[split][1].tolist() == expected
        assert found.uas(split)[0] < 0.7
    assert (found.uas("test")[1], found.uas("test")[2]) == (1.0, 1.0)
    assert found.words == sum((heads_to_predict(s) != NO_HEAD).sum() for s in SPLITS["train"])
    for weights in (found.weights[1], found.all_weights[1]):
        assert weights[int(backward), 1] == weights.max() > 5
        assert weights[1 - int(backward), 1] < 0.5 * weights.max()


def test_long_sentences_are_left_out_and_counted():
    model = planted(backward=False)
    short = PlantedModel(model.maps, window=7)
    found = mixing(context_of(CORPUS, short))
    fits = {split: [len(s) <= 5 for s in each] for split, each in SPLITS.items()}
    assert found.left_out == sum(not x for x in fits["train"]) > 5
    assert found.long == {x: sum(not ok for ok in fits[x]) for x in ("dev", "test")}
    assert found.counts["test"][~np.array(fits["test"])].tolist() == [0] * found.long["test"]
    assert found.uas("test")[1] == 1.0


def test_without_annotation_there_is_nothing_to_fit():
    bare = {split: tuple(Sentence(s.id, "en", s.words) for s in x) for split, x in SPLITS.items()}
    with pytest.raises(NotServedError, match="no sentence of train"):
        mixing(context_of(Corpus("c", "1", "", bare), planted(backward=False)))


def test_punctuation_is_what_has_that_relation():
    """As for trees, so that tags are not needed and both count the same words."""
    deprels, upos = ("root", "punct", "nsubj", "punct:x"), ("PUNCT", "SYM", "PUNCT", "NOUN")
    given = Sentence("s", "en", tuple("abcd"), heads=(ROOT, 0, 0, 2), deprels=deprels)
    expected = [NO_HEAD, NO_HEAD, 0, NO_HEAD]
    assert heads_to_predict(given).tolist() == expected
    assert heads_to_predict(replace(given, upos=upos)).tolist() == expected
    without = replace(given, deprels=())
    assert heads_to_predict(without).tolist() == [NO_HEAD, 0, 0, 2]
    assert heads_to_predict(Sentence("s", "en", ("a", "b"))).tolist() == [NO_HEAD] * 2


# -- a model --------------------------------------------------------------------------------


def test_predictions_are_those_of_slow_maps(tiny_bert):
    """Of a model with words of several pieces; batches are padded."""
    words = ["the", "old", "dog", "seesaw", "cat", "near", "housecat", "birdsong"]
    draws = np.random.default_rng(0)

    def own(sentence):
        return Sentence(
            sentence.id,
            "en",
            tuple(map(str, draws.choice(words, len(sentence)))),
            deprels=sentence.deprels,
            heads=sentence.heads,
        )

    splits = {split: tuple(map(own, each)) for split, each in SPLITS.items()}
    encoder = load_encoder(find_model(str(tiny_bert)), device="cpu")
    found = mixing(context_of(Corpus("c", "1", "", splits), encoder))
    hits = np.zeros((3, len(splits["test"])), dtype=int)
    margins = []
    for place, sentence in enumerate(splits["test"]):
        text, gold = plain_text(sentence), heads_to_predict(sentence)
        (pieces,) = encoder.split([text])
        assert len(sentence) == 1 or len(pieces.ids) >= len(sentence)
        blocks = [
            np.array([between_words(a, list(pieces.bounds), 1) for a in block])
            for block in eager_maps(encoder, text).astype(np.float64)
        ]
        weights = [[found.weights[0]], [found.weights[1]], found.all_weights]
        used = [[blocks[0]], [blocks[1]], blocks]
        for probe in range(3):
            scores = sum(
                np.einsum("h,hij->ij", w, maps) + np.einsum("h,hji->ij", u, maps)
                for (w, u), maps in zip(weights[probe], used[probe], strict=True)
            )
            np.fill_diagonal(scores, -np.inf)
            predicted = scores.argmax(1)
            hits[probe, place] = (predicted == gold).sum()
            if len(gold) > 2:
                top = np.sort(scores, axis=1)[:, -2:]
                margins.extend((top[:, 1] - top[:, 0])[gold != NO_HEAD])
    assert min(margins) > 1e-6  # or rounding might decide
    np.testing.assert_array_equal(found.hits["test"], hits)
    assert 0 < hits.sum() < 3 * found.counts["test"].sum()


# -- the sample -----------------------------------------------------------------------------


def test_a_sample_is_seeded_in_order_and_part_of_a_larger_one():
    every = SPLITS["train"]
    few, more = sample(every, 10, 0), sample(every, 20, 0)
    assert len(few) == 10
    assert few == sorted(few)
    assert set(few) < set(more)
    assert few == sample(every, 10, 0) != sample(every, 10, 1)
    assert sample(every, 1000, 0) == list(range(len(every)))


def test_long_sentences_make_a_sample_small():
    side = int(PAIRS**0.5)
    long = [Sentence(str(i), "en", ("w",) * (side // 2)) for i in range(9)]
    too_long = Sentence("too long", "en", ("w",) * (side + 1))
    found = sample([*long, too_long], 9, 0)
    assert len(found) == 4
    assert 9 not in found
