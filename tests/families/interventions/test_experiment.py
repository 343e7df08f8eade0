"""Effects with their intervals, against scipy and closed forms; changes that change nothing."""

from itertools import product

import numpy as np
import pytest
import torch
from scipy.stats import bootstrap, t
from tiny_readings import collected, encoder_of, random_texts

from probes.extraction.changing.interventions import changed_passes
from probes.extraction.reading.collectors import WordVectors
from probes.extraction.reading.encoding import read_changed
from probes.extraction.reading.views import Text, view_over
from probes.families.interventions.changes import erased, exchanged, projection
from probes.families.interventions.erasers import Moments, leace
from probes.families.interventions.experiment import (
    LOSS,
    ChangedPass,
    comparisons,
    mean_effect_rows,
    mean_rows_of_draws,
)
from probes.families.interventions.readouts import ContinuationLogits
from probes.records.row import Row
from probes.statistics.partition import partition

N = 120
AGAINST_UNTOUCHED = ((0, {}),)


def documents(n, size=1):
    """Sentences of documents of this size."""
    return partition([f"d{i // size}" for i in range(n)], "test")


def test_an_effect_is_a_ratio_of_sums_and_its_documents_are_resampled():
    """The interval is that of scipy's paired bootstrap of documents of three sentences."""
    rng = np.random.default_rng(0)
    sentence, counts = rng.integers(0, 3 * N, 1000), rng.integers(1, 5, 1000)
    shift = rng.normal(0.3, 1, N)[sentence // 3]
    before, after = rng.normal(5, 1, 1000), rng.normal(5, 1, 1000) + shift * counts
    compared = comparisons([ChangedPass(), ChangedPass((), 2, {"head": 1}, AGAINST_UNTOUCHED)])
    about = documents(3 * N, 3), "test"
    (row,) = mean_effect_rows(LOSS, compared, [before, after], sentence, counts, *about)
    sums = np.bincount(sentence // 3, before - after, N)
    sizes = np.bincount(sentence // 3, counts, N)
    plain = bootstrap(
        (sums, sizes), lambda x, n, axis: x.sum(axis) / n.sum(axis),
        paired=True, n_resamples=9999, method="percentile", rng=1,
    ).confidence_interval  # fmt: skip
    assert row.value == pytest.approx(sums.sum() / sizes.sum())
    assert (row.layer, row.n, row.axes) == (2, sizes.sum(), {"head": 1})
    assert row.interval == pytest.approx(plain, abs=0.06 * (plain.high - plain.low))


@pytest.mark.parametrize(("against", "share"), [(0, 1 / 4), (5, 1 / 4 + 1)])
def test_the_interval_of_effects_without_other_variance_is_that_of_their_draws(against, share):
    """Each draw moves all examples equally, so only Student's t of four draws remains."""
    moves = np.array([0.0, 0.25, 0.5, 0.125, 0.875, 0.75])  # without rounding
    passes = [ChangedPass()]
    passes += [ChangedPass((), 1, {}, ((against, {}),), 1) for _ in range(4)]
    passes += [ChangedPass((), 1, {"eraser": "labels"}, AGAINST_UNTOUCHED)]
    values = [np.full(N, -move) for move in moves]
    compared = comparisons(passes)
    args = values, np.arange(N), np.ones(N), documents(N), "test"
    row, constant = mean_effect_rows(LOSS, compared, *args)
    assert row.value == pytest.approx(moves[1:5].mean() - moves[against])
    half = t.ppf(0.975, 3) * np.std(moves[1:5], ddof=1) * share**0.5
    assert (row.high - row.low) / 2 == pytest.approx(half, rel=0.1)
    assert (constant.value, constant.low) == (0.75, None)


def test_draws_become_their_mean_and_range():
    draws = [
        Row("m", x, 1, 0.0, 1.0, p=0.2, axes={"at": 2, "draw": i}) for i, x in enumerate((3, 1, 8))
    ]
    other = Row("m", 5.0, 2, 4.0, 6.0, p=0.1, axes={"at": 2})
    mean = Row("m", 4.0, 1, 0.0, 1.0, p=0.2, axes={"at": 2})
    assert list(mean_rows_of_draws([*draws, other])) == [mean, other]
    with_range = mean._replace(low=1, high=8, p=None)
    assert list(mean_rows_of_draws([*draws, other], with_range=True)) == [with_range, other]


TEXTS = [Text(("".join(f" {word}" for word in words),), (0, 1), written=True)
         for words in (("ab", "cd", "ab"), ("cd", "cd", "ab"), ("ab", "ab", "ab"))]  # fmt: skip


@pytest.fixture(scope="module", params=[("gpt2", "GPT2LMHeadModel"), ("bert", "BertForMaskedLM")])
def prompts(request):
    """An encoder with a head, a view, and a reader of logits and states of its first tokens."""
    encoder, view = encoder_of(*request.param), view_over(TEXTS, "written")
    columns = np.tile(np.arange(5, 15), (len(TEXTS), 1))
    layers = range(encoder.info.n_layers + 1)
    return encoder, view, ContinuationLogits(2, columns, layers, range(3 - encoder.info.causal))


def read(prompts, changes):
    encoder, view, reader = prompts
    return [arrays for _, arrays in read_changed(view, reader, encoder, changes)]


def test_a_state_exchanged_with_itself_changes_nothing(prompts):
    """Whole or along any direction; with another text's state, it does."""
    (untouched,), (encoder, _, reader) = read(prompts, [()]), prompts
    states, rng = untouched["states"], np.random.default_rng(0)
    n_layers, last = encoder.info.n_layers, 2 - encoder.info.causal  # the place of the answer
    oblique = tuple(rng.standard_normal((2, 1, states.shape[-1])))
    for layer, place in product(range(n_layers + 1), range(last + 1)):
        own = states[:, layer, place]
        for direction in (None, projection(rng.standard_normal(states.shape[-1])), oblique):
            same = exchanged(reader, layer, place, own, direction).interventions
            other = exchanged(reader, layer, place, own.roll(1, 0), direction).interventions
            before, after, moved = (x["logits"] for x in read(prompts, [(), same, other]))
            torch.testing.assert_close(after, before, rtol=1e-5, atol=1e-6)
            is_mask = layer == 0 and place == 2  # in all texts
            reaches = place == last or layer < n_layers
            assert (reaches and not is_mask) == (not torch.allclose(moved, before, atol=1e-5))


@pytest.mark.parametrize("name", ["bert", "gpt2", "gemma3"])
def test_erased_twice_is_erased_once(name):
    encoder, rng = encoder_of(name), np.random.default_rng(0)

    def words(layer, *changes):
        with changed_passes(encoder, changes):
            reader = WordVectors([layer], "first", "float32")
            (vectors,) = collected(encoder, random_texts(40), reader).values()
        return vectors.double().numpy()

    for layer in range(encoder.info.n_layers + 1):
        x = words(layer)
        eraser = leace(Moments.of([(x[:, None], np.eye(3)[rng.integers(0, 3, len(x))])]))
        (once,) = erased({"labels": [eraser]}, layer, {}, 1)
        assert words(layer, *once.interventions) == pytest.approx(eraser(x), abs=1e-4)
        assert words(layer, *once.interventions * 2) == pytest.approx(eraser(x), abs=1e-4)
        assert abs(eraser(x) - x).max() > 0.1
