"""Controls: changes and read-outs that know nothing of what an experiment is about.

| control | as the real one in | draws |
| --- | --- | --- |
| labels of the control task, erased | number of directions | `N_ERASER_DRAWS` |
| random subspace, erased | size of the change | `N_ERASER_DRAWS` |
| shuffled classes, exchanged along | the mean difference of as many pairs | one for each prompt |
| random directions, exchanged along | length of the step | one for each prompt |
| arbitrary tokens, read out | two log-probabilities | `N_ARBITRARY_PAIRS` for each prompt |
| random orders of heads, disabled | number of heads | `N_ORDERS` |

The variance between draws is part of intervals and p-values: as noise (`Comparison.spread`), or
since each prompt has draws of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from probes.families.interventions.changes import Direction, Head, projection
from probes.families.interventions.erasers import NEGLIGIBLE, Eraser, Moments

if TYPE_CHECKING:
    from probes.common.arrays import Floats, Ints

N_ERASER_DRAWS = 5

N_ARBITRARY_PAIRS = 20

N_ORDERS = 5


def random_subspace(moments: Moments, change: float, seed: int = 0) -> Eraser:
    """Erase random directions, as many as needed for a given change of vectors.

    Features that hardly vary are left alone, since probes would scale up any change of them.

    Args:
        change: see `Eraser.change`. The last direction is erased in part, to match it exactly.
    """
    variances = np.diag(moments.xx)
    (varying,) = np.nonzero(variances > variances.max() * NEGLIGIBLE)
    n = len(varying)
    basis = np.zeros((len(variances), n))
    basis[varying] = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    of_each = np.einsum("hr,hk,kr->r", basis, moments.shrunk, basis, optimize=True)
    cumulative = np.concatenate([[0.0], np.cumsum(of_each)])
    target = change * np.trace(moments.xx)
    rank = min(int(np.searchsorted(cumulative, target)), n)
    right = basis[:, :rank].T.copy()
    if rank:
        right[-1] *= np.sqrt(min((target - cumulative[rank - 1]) / of_each[rank - 1], 1.0))
    return Eraser(moments.mean, basis[:, :rank], right)


def half_signs(n: int, draws: int, rng: np.random.Generator) -> Floats:
    """Signs that exchange the classes of a random half of examples; they add up to 0. (draws, n).

    Otherwise, shuffled classes would keep a part of the class difference, and where nothing else
    differs, all of it.
    """
    signs = rng.permuted(np.tile(np.arange(n) % 2 * 2.0 - 1, (draws, 1)), axis=1)
    centred: Floats = signs - signs.mean(1, keepdims=True)
    return centred


def shuffled_halves(x: Floats, z: Ints, n: int, rng: np.random.Generator) -> Floats:
    """Mean differences, of any length, after a random half of each class has changed it. (n, H).

    Args:
        x: shape (examples, H).
        z: class of each, 0 or 1. Shape (examples,).
        n: number of draws.
    """
    draws: Floats = sum(half_signs((z == k).sum(), n, rng) @ x[z == k] for k in (0, 1))
    return draws


def random_directions(mean: Floats, n: int, rng: np.random.Generator) -> Direction:
    """Random directions of steps that are as long as those along a mean difference.

    Args:
        mean: shape (H,).
        n: number of draws.
    """
    return projection(mean)[0], projection(rng.standard_normal((n, len(mean))))[1]


def arbitrary_tokens(
    tokens: Iterable[int], answers: Sequence[Sequence[tuple[int, int]]], seed: int
) -> Ints:
    """Tokens whose logits are wanted for each prompt: draws of two arbitrary ones, the answers.

    Draws of all prompts are independent, so that resampled means vary as they do with other draws.

    Args:
        tokens: of all texts; arbitrary ones are those that are no answer.
        answers: of each prompt, pairs of tokens.

    Returns:
        shape (prompts, k); columns that a prompt lacks are 0.
    """
    arbitrary = sorted({*tokens} - {token for x in answers for two in x for token in two})
    rng = np.random.default_rng(seed)
    columns = np.zeros((len(answers), 2 * (N_ARBITRARY_PAIRS + max(map(len, answers)))), int)
    for row, of_prompt in zip(columns, answers, strict=True):
        draws = [rng.choice(arbitrary, 2, replace=False) for _ in range(N_ARBITRARY_PAIRS)]
        flat = np.concatenate([*draws, *of_prompt])
        row[: len(flat)] = flat
    return columns


def random_orders(heads: Sequence[Head]) -> list[list[Head]]:
    """Orders in which to disable heads."""
    rng = np.random.default_rng(0)
    return [[heads[i] for i in rng.permutation(len(heads))] for _ in range(N_ORDERS)]
