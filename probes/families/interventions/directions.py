"""Directions that tell two classes of states apart, fitted to pairs of states, and their controls.

A state is exchanged along a direction (`changes.exchanged`), or moved along it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from probes.families.interventions.changes import Direction, projection
from probes.families.interventions.controls import random_directions, shuffled_classes
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


def directions(
    states: Floats, side: Ints, n: int, rng: np.random.Generator
) -> dict[str, Direction]:
    """Directions that are fitted to the states of training pairs at one layer and place.

    - the mean difference of the classes,
    - weights of a logistic regression on standardised vectors (`PROBE`),
    - `LEACE` (Belrose et al. 2023): written is the mean difference, read the direction that
      predicts the class best,
    - the first principal component of the pairs' differences,
    - controls, drawn anew for each prompt, so that means over prompts vary as their draws do.

    Args:
        states: of base and source. Shape (pairs, 2, H).
        side: class of each base, 0 or 1. Shape (pairs,).
        n: number of prompts.
    """
    from sklearn.linear_model import LogisticRegression  # slow to import

    x = states.reshape(-1, states.shape[-1])
    z = np.stack([side, 1 - side], axis=1).ravel()
    mean = x[z == 1].mean(0) - x[z == 0].mean(0)
    scale = np.where(x.std(0) > 0, x.std(0), 1)
    probe = LogisticRegression(C=1.0, max_iter=200).fit((x - x.mean(0)) / scale, z)
    differences = states[:, 1] - states[:, 0]
    *_, (component, *_) = np.linalg.svd(differences, full_matrices=False)
    eraser = leace(Moments.of([(x[:, None], z[:, None])]))  # of two classes, its rank is 1
    return {
        MEAN: projection(mean),
        PROBE: projection(probe.coef_[0] / scale),
        LEACE: (eraser.left.T, eraser.right),
        COMPONENT: projection(component),
        SHUFFLED: shuffled_classes(differences, n, rng),
        RANDOM: random_directions(mean, n, rng),
    }
