"""Roots from predicted depths, and trees turned towards them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Ints
from probes.data.sentence import ROOT


def oriented(heads: Ints, root: int) -> Ints:
    """The same tree of one sentence, with heads towards another root. Shape (n,)."""
    found, word, below = heads.copy(), root, ROOT
    while word != ROOT:
        found[word], word, below = below, int(heads[word]), word
    return found


def lowest(depths: NDArray[np.floating[Any]], kept: NDArray[np.bool_]) -> Ints:
    """The least deep of the words that are kept, -1 where there are none. (…, n) to (…,)."""
    found: Ints = np.where(kept, depths, np.inf).argmin(-1)
    return np.where(kept.any(-1), found, ROOT)
