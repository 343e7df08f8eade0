"""The vectors of a view's words, of its whole texts or of bags of their tokens, from a store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Ints
from probes.common.files import folder_name
from probes.extraction.reading.shards import kept_words, row_of_each_text
from probes.extraction.reading.store import Store, StoreKey
from probes.extraction.reading.views import View
from probes.tasks.positions import Position
from probes.tasks.task import SITE_VERSIONS, ReadSite

T = TypeVar("T")


def layer_part(layer: int, site: ReadSite | None = None, position: Position | None = None) -> str:
    """The name of one layer's array in a shard: ``layer-05``, ``layer-05-mlp-v2-last``.

    Args:
        site: None for the layer itself.
        position: where whole texts are read; None for words.
    """
    version = SITE_VERSIONS.get(site or "")
    of_position = position and folder_name(position.name)
    names = [f"layer-{layer:02d}", site, version and f"v{version}", of_position]
    return "-".join(name for name in names if name)


def lengths_part(position: Position) -> str:
    """The name of the array with the number of tokens in each text's bag (texts,)."""
    return f"n-tokens-{folder_name(position.name)}"


class Sharded:
    """Rows that lie in several arrays, one after the other.

    Args:
        arrays: one per shard. Each (rows, hidden size).

    Attributes:
        bounds: the first row of each array, and the number of all rows. Shape (shards + 1,).
    """

    def __init__(self, arrays: Sequence[NDArray[Any]]) -> None:
        self.arrays = list(arrays)
        self.bounds: Ints = np.cumsum([0, *map(len, self.arrays)])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and the size of each."""
        return int(self.bounds[-1]), self.arrays[0].shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type in which they are stored."""
        return self.arrays[0].dtype

    def __getitem__(self, rows: Ints) -> NDArray[Any]:
        """Copies of some rows, in the given order. Shape (n, hidden size)."""
        copies = np.empty((len(rows), self.shape[1]), self.dtype)
        shard = np.searchsorted(self.bounds, rows, side="right") - 1
        in_order = np.argsort(shard, kind="stable")
        counts = np.bincount(shard, minlength=len(self.arrays))
        parts = np.split(in_order, np.cumsum(counts)[:-1])
        for array, first, places in zip(self.arrays, self.bounds[:-1], parts, strict=True):
            copies[places] = array[rows[places] - first]
        return copies


class StoredVectors(Store):
    """The vectors of a view: one per kept word, one per whole text, or one per token of a bag.

    Args:
        cache, key: see `Store`.
        view: the texts.

    Attributes:
        starts: the first row of each text of the view. Shape (texts,).
        lengths: the number of rows of each text, which follow one another: kept words, or tokens.
            Shape (texts,).
    """

    _site: ReadSite | None = None
    _position: Position | None = None

    def __init__(self, cache: Path, key: StoreKey, view: View) -> None:
        super().__init__(cache, key)
        self._shards = self.shards(view)
        self.lengths = kept_words(view.texts)
        self.starts = row_of_each_text(self._shards, self.lengths)
        self._derived: dict[str, Any] = {}

    def of(self, position: Position | None = None, site: ReadSite | None = None) -> StoredVectors:
        """A copy with vectors of whole texts at one position, or of words, at one site."""
        vectors = copy(self)
        vectors._position, vectors._site = position, site
        if position and position.is_bag:
            vectors.lengths = np.empty_like(self.lengths)
            for shard, lengths in zip(
                self._shards, self.arrays(lengths_part(position)), strict=True
            ):
                vectors.lengths[shard.index] = lengths
            vectors.starts = row_of_each_text(self._shards, vectors.lengths)
        return vectors

    @property
    def n_layers(self) -> int:
        """Number of the model's layers, the embedding layer included."""
        return int(self.manifest["layers"])

    def layer(self, index: int) -> Sharded:
        """The vectors of one layer, mapped read-only."""
        return Sharded(self.arrays(layer_part(index, self._site, self._position)))

    def derived(self, key: str, make: Callable[[], T]) -> T:
        """The result of `make` for `key`, which is kept until `forget_derived`.

        Several measurements, probe families and tasks read the same features.

        Args:
            key: names everything that the result depends on except the vectors.
            make: computes the result.
        """
        key = f"{self._position} {self._site} {key}"
        if key not in self._derived:
            self._derived[key] = make()
        result: T = self._derived[key]
        return result

    def forget_derived(self) -> None:
        """Forget all results: a probe's code that failed may have changed them."""
        self._derived.clear()
