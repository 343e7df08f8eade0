"""The labels of multi-label tasks, as sets and as rows of a table. No torch here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def label_set(label: Any) -> tuple[str, ...]:
    """The labels of a multi-label example, each once, sorted."""
    return tuple(sorted(set(label)))


def membership(sets: Sequence[Collection[str]], names: Sequence[str]) -> NDArray[np.bool_]:
    """Which of `names` each of `sets` holds; other labels are ignored. Shape (sets, names)."""
    place = {name: column for column, name in enumerate(names)}
    found = np.zeros((len(sets), len(names)), dtype=bool)
    for row, labels in enumerate(sets):
        found[row, [place[label] for label in labels if label in place]] = True
    return found
