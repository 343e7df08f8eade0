"""Statistics of planted maps, by hand; those of models' maps are in `test_collector`."""

import numpy as np
import pytest
import scipy.stats
import torch

from probes.families.attention.collector import Layout, statistics, uniform
from probes.families.attention.heads import OFFSETS, STATISTICS

T = 6
"""Tokens of the planted maps: a special token, four words' tokens, and another special token."""


def layout(word):
    """The layout of texts, given by the word of each token: -1 for special tokens, -2 for padding."""
    words = torch.tensor(word)
    return Layout(
        window=torch.arange(len(words)),
        text=torch.arange(len(words)),
        real=words > -2,
        word=words.clamp(min=-1),
        n_words=words.max(1).values + 1,
    )


def of(maps, words=(-1, 0, 1, 2, 3, -1), causal=False):
    """The statistics of the only head of the only text."""
    length = maps.shape[-1]
    seen = torch.arange(1, length + 1) if causal else torch.full((length,), length)
    found = statistics(maps.view(1, 1, length, length), layout([words]), seen[None])
    return dict(zip(STATISTICS, found[0, 0].tolist(), strict=True))


def shifted(offset):
    """Every token attends to that at an offset; where there is none, to itself."""
    places = [i + offset if 0 <= i + offset < T else i for i in range(T)]
    return torch.eye(T)[places]


def column(place):
    return torch.eye(T)[[place] * T]


def same(value):
    """The share of every distance, if all cells have the same."""
    return {f"offset {x:+d}": (T - abs(x)) * value for x in OFFSETS}


EVEN = torch.full((T, T), 1 / T)
ENTROPY_OF_A_QUARTER = scipy.stats.entropy([0.25, 0.75]) / np.log(T)
PLANTED = {
    "five back": (shifted(-5), {"offset -5": 1 / 6, "offset +0": 5 / 6, "diagonal": 5 / 6}),
    "one back": (shifted(-1), {"offset -1": 5 / 6, "offset +0": 1 / 6, "diagonal": 1}),
    "three on": (shifted(3), {"offset +3": 3 / 6, "offset +0": 3 / 6, "diagonal": 3 / 6}),
    "no other distance": (shifted(3), {"entropy": 0, "offset +1": 0, "offset -3": 0}),
    "first": (column(0), {"first": 1, "separators": 0, "vertical": 1, "diagonal": 2 / 6}),
    "last": (column(5), {"first": 0, "separators": 1, "vertical": 1, "diagonal": 2 / 6}),
    "third": (column(2), {"first": 0, "separators": 0, "vertical": 1, "diagonal": 3 / 6}),
    "even": (EVEN, {"entropy": 1, "first": 1 / 6, "separators": 1 / 6, "vertical": 2 / 6}),
    "even, by distance": (EVEN, {"diagonal": 16 / 36, **same(1 / 36)}),
    # The first two rows have one token alone.
    "a quarter to the first, the rest one back": (
        0.25 * column(0) + 0.75 * shifted(-1),
        {"first": 0.25 + 0.75 * 2 / 6, "offset -1": 4 / 6, "entropy": ENTROPY_OF_A_QUARTER * 4 / 6},
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_statistics_of_planted_heads(name):
    maps, expected = PLANTED[name]
    found = of(maps)
    assert {x: found[x] for x in expected} == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("offset", [-1, 1, 2])
def test_a_head_that_looks_at_one_distance_has_no_columns(offset):
    """On the rows that two columns are chosen on, they have two of the six tokens' attention."""
    n, maps = 8, torch.eye(8).roll(offset, 1)  # the last attends to the first, and so on
    found = of(maps, [-1, *range(n - 2), -1])
    assert (found["vertical"], found[f"offset {offset:+d}"]) == (0, (n - abs(offset)) / n)


def test_columns_of_one_token_have_all_of_its_attention():
    padded = torch.zeros(1, 1, 3, 3)
    padded[..., 0] = 1
    found = statistics(padded, layout([[0, -2, -2]]), torch.ones(1, 3))
    assert found[0, 0, STATISTICS.index("vertical")] == 1


def test_texts_without_special_tokens_or_of_one_token():
    found = of(torch.full((3, 3), 1 / 3), [0, 1, 2])
    assert np.isnan(found["separators"])
    assert found["first"] == pytest.approx(1 / 3)
    found = of(torch.ones(1, 1), [0])
    assert np.isnan(found["entropy"])
    assert (found["offset +0"], found["offset +1"], found["vertical"]) == (1, 0, 1)


def test_entropy_of_a_decoder_is_a_share_of_what_each_token_sees():
    seen = torch.tril(torch.ones(T, T))
    maps = seen / seen.sum(-1, keepdim=True)
    assert of(maps, causal=True)["entropy"] == pytest.approx(1)
    assert of(maps)["entropy"] < 0.8


def test_a_uniform_map_is_spread_over_what_is_visible():
    visible = torch.tensor([[[True, False, False], [True, True, False], [False, True, True]]])
    expected = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]])
    torch.testing.assert_close(uniform(visible)[0, 0], expected)
