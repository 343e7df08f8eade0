"""Directions that tell two classes of states apart, fitted to pairs of states, and their controls.

A state is exchanged along a direction (`changes.exchanged`), or moved along it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from probes.families.interventions.changes import Direction, projection
from probes.families.interventions.controls import random_directions, shuffled_halves
from probes.families.interventions.erasers import Moments, leace

if TYPE_CHECKING:
    from probes.common.arrays import Floats, Ints

DIRECTIONS = WHOLE_VECTOR, MEAN, PROBE, LEACE, COMPONENT, SHUFFLED, RANDOM = (
    "whole",
    "mean difference",
    "probe",
    "LEACE",
    "first component",
    "shuffled classes",
    "random",
)
"""The whole vector, and directions along which it is exchanged; the last two are controls."""


def class_directions(x: Floats, z: Ints) -> tuple[Floats, dict[str, Direction]]:
    """Means of two classes of states (2, H), and directions that tell the classes apart.

    - `MEAN`: the mean difference of the classes,
    - `PROBE`: weights of a logistic regression on standardised states,
    - `LEACE` (Belrose et al. 2023): written is the mean difference, read the direction that
      predicts the class best; of equal means, neither.

    Args:
        x: shape (n, H).
        z: class of each, 0 or 1. Shape (n,).
    """
    from sklearn.linear_model import LogisticRegression  # slow to import

    means = np.stack([x[z == k].mean(0) for k in (0, 1)])
    scale = np.where(x.std(0) > 0, x.std(0), 1)
    probe = LogisticRegression(C=1.0, max_iter=200).fit((x - x.mean(0)) / scale, z)
    labels = z[:, None].astype(np.float64)
    eraser = leace(Moments.of([(x[:, None], labels)]))  # of two classes, its rank is 1 or 0
    none = np.zeros((1, x.shape[1]))
    return means, {
        MEAN: projection(means[1] - means[0]),
        PROBE: projection(probe.coef_[0] / scale),
        LEACE: (eraser.left.T, eraser.right) if eraser.rank else (none, none),
    }


def directions(
    x: Floats, z: Ints, n: int, rng: np.random.Generator, *, paired: bool
) -> dict[str, Direction]:
    """Directions that are fitted to training states at one layer and place, and controls.

    They are those of `class_directions`; of pairs also the first principal component of their
    differences. Controls are drawn anew for each prompt, so that means over prompts vary as their
    draws do.

    Args:
        x: shape (states, H).
        z: class of each state, 0 or 1. Shape (states,).
        n: number of prompts.
        paired: whether states are in turn of base and source, whose classes are then shuffled
            within pairs; otherwise a random half of each class changes it.
    """
    means, by_name = class_directions(x, z)
    if paired:
        differences = x[1::2] - x[::2]
        *_, (component, *_) = np.linalg.svd(differences, full_matrices=False)
        by_name[COMPONENT] = projection(component)
        by_name[SHUFFLED] = projection(rng.choice((-1.0, 1.0), (n, len(x) // 2)) @ differences)
    else:
        by_name[SHUFFLED] = projection(shuffled_halves(x, z, n, rng))
    return {**by_name, RANDOM: random_directions(means[1] - means[0], n, rng)}
