"""Statistics of maps: planted ones with exact masses, and random ones against scipy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import torch

from probes.families.attention.collector import Layout, statistics, uniform
from probes.families.attention.heads import OFFSETS, STATISTICS

T = 6
"""Tokens of the planted maps: a special token, four words' tokens, and another special token."""


def layout(word: list[list[int]]) -> Layout:
    """The layout of texts, given by the word of each token: -1 for special tokens, -2 for padding."""
    words = torch.tensor(word)
    return Layout(
        window=torch.arange(len(words)),
        text=torch.arange(len(words)),
        real=words > -2,
        word=words.clamp(min=-1),
        n_words=words.max(1).values + 1,
    )


PLAIN = layout([[-1, 0, 1, 2, 3, -1]])


def of(maps: torch.Tensor, at: Layout = PLAIN, causal: bool = False) -> dict[str, float]:
    """The statistics of the only head of the only text."""
    length = maps.shape[-1]
    seen = torch.arange(1, length + 1) if causal else torch.full((length,), length)
    found = statistics(maps.view(1, 1, length, length), at, seen[None])
    return dict(zip(STATISTICS, found[0, 0].tolist(), strict=True))


def shifted(offset: int) -> torch.Tensor:
    """Every token attends to that at an offset; where there is none, to itself."""
    maps = torch.zeros(T, T)
    for i in range(T):
        maps[i, i + offset if 0 <= i + offset < T else i] = 1
    return maps


def column(place: int) -> torch.Tensor:
    maps = torch.zeros(T, T)
    maps[:, place] = 1
    return maps


@pytest.mark.parametrize("offset", [-5, -1, 1, 3])
def test_a_head_that_looks_at_one_distance(offset: int) -> None:
    found = of(shifted(offset))
    there = (T - abs(offset)) / T
    assert found[f"offset {offset:+d}"] == pytest.approx(there)
    assert found["offset +0"] == pytest.approx(1 - there)
    others = sum(found[f"offset {x:+d}"] for x in OFFSETS if x not in (0, offset))
    assert others == found["entropy"] == 0
    assert found["diagonal"] == pytest.approx(1.0 if abs(offset) == 1 else 1 - there)


@pytest.mark.parametrize(("place", "first", "separators"), [(0, 1, 0), (T - 1, 0, 1), (2, 0, 0)])
def test_a_head_that_looks_at_one_token(place: int, first: float, separators: float) -> None:
    found = of(column(place))
    assert (found["first"], found["separators"], found["vertical"]) == (first, separators, 1)
    near = sum(0 <= place + x < T for x in (-1, 0, 1)) / T
    assert found["diagonal"] == pytest.approx(near)


@pytest.mark.parametrize("offset", [-1, 1, 2])
def test_a_head_that_looks_at_one_distance_has_no_columns(offset: int) -> None:
    """On the rows that two columns are chosen on, they have two of the six tokens' attention."""
    n, maps = 8, torch.eye(8).roll(offset, 1)  # the last attends to the first, and so on
    found = of(maps, layout([[-1, *range(n - 2), -1]]))
    assert (found["vertical"], found[f"offset {offset:+d}"]) == (0, (n - abs(offset)) / n)


def test_columns_of_one_token_have_all_of_its_attention() -> None:
    padded = torch.zeros(1, 1, 3, 3)
    padded[..., 0] = 1
    found = statistics(padded, layout([[0, -2, -2]]), torch.ones(1, 3))
    assert found[0, 0, STATISTICS.index("vertical")] == 1


def test_uniform_attention() -> None:
    found = of(torch.full((T, T), 1 / T))
    assert found["entropy"] == pytest.approx(1)
    assert found["first"] == found["separators"] == pytest.approx(1 / T)
    assert found["vertical"] == pytest.approx(2 / T)
    assert found["diagonal"] == pytest.approx((3 * T - 2) / T**2)
    for offset in OFFSETS:
        assert found[f"offset {offset:+d}"] == pytest.approx((T - abs(offset)) / T**2)


def test_a_mixture_has_the_mixture_of_masses() -> None:
    """A quarter to the first token, the rest to the one before."""
    found = of(0.25 * column(0) + 0.75 * shifted(-1))
    assert found["first"] == pytest.approx(0.25 + 0.75 * 2 / T)
    assert found["offset -1"] == pytest.approx(0.25 / T + 0.75 * (T - 1) / T)
    rows = [0.0, 0.0, *[scipy.stats.entropy([0.25, 0.75])] * (T - 2)]
    assert found["entropy"] == pytest.approx(np.mean(rows) / np.log(T))


def test_a_text_without_special_tokens_has_no_separators() -> None:
    found = of(torch.full((3, 3), 1 / 3), layout([[0, 1, 2]]))
    assert np.isnan(found["separators"])
    assert found["first"] == pytest.approx(1 / 3)


def test_a_text_of_one_token_has_no_entropy() -> None:
    found = of(torch.ones(1, 1), layout([[0]]))
    assert np.isnan(found["entropy"])
    assert (found["offset +0"], found["offset +1"], found["vertical"]) == (1, 0, 1)


def test_entropy_of_a_decoder_is_a_share_of_what_each_token_sees() -> None:
    maps = torch.tril(torch.ones(T, T))
    maps /= maps.sum(-1, keepdim=True)
    assert of(maps, causal=True)["entropy"] == pytest.approx(1)
    assert of(maps)["entropy"] < 0.8


def test_a_uniform_map_is_spread_over_what_is_visible() -> None:
    visible = torch.tensor([[[True, False, False], [True, True, False], [False, True, True]]])
    expected = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]])
    torch.testing.assert_close(uniform(visible)[0, 0], expected)
