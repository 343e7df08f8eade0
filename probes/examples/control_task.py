"""The control task: random labels that can only be memorised (Hewitt & Liang 2019)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.examples.examples import Examples

Array = NDArray[Any]


def control_labels(examples: Examples, split: str, seeds: Sequence[int]) -> Array:
    """The control task's labels, in the form of `Examples.targets`. Shape (seeds, n).

    A type's label depends only on the seed, the type and the distribution of labels in train.
    """
    places = {
        name: index
        for index, name in enumerate(sorted({e.type for e in examples.splits[split].examples}))
    }
    of_example = np.array([places[e.type] for e in examples.splits[split].examples])
    # The label at a random place of the sorted training labels: as probable as it is frequent.
    train = np.sort(examples.targets("train"))
    drawn = [[train[int(_uniform(seed, name) * len(train))] for name in places] for seed in seeds]
    return np.array(drawn, dtype=train.dtype)[:, of_example]


def _uniform(seed: int, name: str) -> float:
    """A number in [0, 1), determined by seed and name."""
    digest = hashlib.sha256(f"{seed} {name}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:6]) / 2**48


def has_types(examples: Examples) -> bool:
    """Whether every example has a type, which control labels depend on."""
    return all(e.type for part in examples.splits.values() for e in part.examples)
