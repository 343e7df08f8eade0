"""Which texts a shard has, and where its rows are among those of all, against plain numpy."""

from __future__ import annotations

import numpy as np
import pytest

from probes.extraction.shards import kept_words, row_of_each_text, shards_of, words_per_shard
from probes.extraction.vectors import Sharded
from probes.extraction.views import Text, View


@pytest.mark.parametrize(
    ("n_layers", "hidden_size", "expected"),
    [
        (7, 384, 16384),  # 2**27 bytes would be 24,966 words
        (13, 768, 6721),  # ⌊2**27 / (2 · 13 · 768)⌋
        (33, 4096, 1024),  # 496 words would be too few
    ],
)
def test_a_shard_has_128_mb_of_vectors_within_bounds(
    n_layers: int, hidden_size: int, expected: int
) -> None:
    assert words_per_shard(n_layers, hidden_size) == expected


def test_shards_by_hand() -> None:
    """Lengths 2, 4, 1, 3, 3, shards of at least five words: 4 + 3, 3 + 2, 1."""
    lengths = (2, 4, 1, 3, 3)
    texts = tuple(
        Text(tuple(f"{i}{j}" for j in range(n)), (0, max(1, n - 1))) for i, n in enumerate(lengths)
    )
    view = View("plain", texts)
    shards = shards_of(view, 5)
    assert [shard.number for shard in shards] == [0, 1, 2]
    assert [shard.index.tolist() for shard in shards] == [[1, 3], [0, 4], [2]]
    assert [list(shard.texts) for shard in shards] == [
        [texts[1], texts[3]],
        [texts[0], texts[4]],
        [texts[2]],
    ]
    # All words but the last are kept, of a single word that one.
    assert [shard.starts.tolist() for shard in shards] == [[0, 3], [0, 1], [0]]
    assert [shard.n_rows for shard in shards] == [5, 3, 1]
    assert row_of_each_text(shards, kept_words(view.texts)).tolist() == [5, 0, 8, 3, 6]
    assert shards_of(View("plain", ()), 5) == []


def test_rows_in_several_arrays_are_those_of_a_concatenation() -> None:
    random = np.random.default_rng(0)
    arrays = [random.normal(size=(n, 3)).astype(np.float16) for n in (4, 1, 7, 2)]
    together = np.concatenate(arrays)
    found = Sharded(arrays)
    assert (found.shape, found.dtype, found.bounds.tolist()) == ((14, 3), "f2", [0, 4, 5, 12, 14])
    for rows in (
        np.arange(14),
        random.integers(0, 14, 50),
        np.array([13, 0, 0]),
        np.array([], int),
    ):
        assert np.array_equal(found[rows], together[rows])
        assert found[rows].dtype == np.float16
