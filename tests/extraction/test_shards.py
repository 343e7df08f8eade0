"""Which texts a shard has, and where its rows are among those of all, against plain numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_readings import collected, random_view, reading_of

from probes.extraction.collectors import WordVectors
from probes.extraction.encoder import Encoder
from probes.extraction.encoding import vectors_of
from probes.extraction.shards import kept_words, row_of_each_text, shard_numbers, shards_of
from probes.extraction.vectors import Sharded
from probes.extraction.views import Text, View


def test_shards_by_hand() -> None:
    """Batches of 4 and 3, 3 and 2, and 1 words, of which all but the last are kept, or that one.

    So 5, 3 and 1 are kept.
    """
    lengths = (2, 4, 1, 3, 3)
    texts = tuple(
        Text(tuple(f"{i}{j}" for j in range(n)), (0, max(1, n - 1))) for i, n in enumerate(lengths)
    )
    view, batches = View("plain", texts), [[1, 3], [4, 0], [2]]

    def numbers(bytes_per_word: int, device: str = "cpu") -> list[int]:
        return shard_numbers(view, batches, bytes_per_word, device)

    shards = shards_of(view, numbers(1 << 25))  # 128 MB are four words
    assert [shard.number for shard in shards] == [0, 1]
    assert [shard.index.tolist() for shard in shards] == [[1, 3], [0, 2, 4]]
    assert [list(shard.texts) for shard in shards] == [
        [texts[1], texts[3]],
        [texts[0], texts[2], texts[4]],
    ]
    assert [shard.starts.tolist() for shard in shards] == [[0, 3], [0, 1, 2]]
    assert [shard.n_rows for shard in shards] == [5, 4]
    assert row_of_each_text(shards, kept_words(view.texts)).tolist() == [5, 0, 6, 3, 7]
    assert numbers(1 << 25, "cuda") == [0] * 5  # 2 GB
    assert numbers(1 << 40) == [1, 0, 2, 0, 1]  # a batch at least
    assert shards_of(View("plain", ()), []) == []


def test_a_shard_has_at_most_sixteen_batches() -> None:
    view = View("plain", tuple(Text((f"{i}",), (0, 1)) for i in range(40)))
    numbers = shard_numbers(view, [[i] for i in range(40)], 1, "cuda")
    assert np.bincount(numbers).tolist() == [16, 16, 8]


@pytest.mark.parametrize("batch_tokens", [24, 100])
def test_batches_are_those_of_the_whole_view(
    batch_tokens: int, encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a layer is added to a store that was begun with another one."""
    monkeypatch.setattr("probes.extraction.shards._MOST_BATCHES", 3)
    view, passes = random_view(60), []
    run = encoder._pass
    monkeypatch.setattr(encoder, "_pass", lambda x, y: passes.append(x.text) or run(x, y))
    collected(encoder, view.texts, WordVectors([0], storage="float32"), batch_tokens)
    alone, before = [len(each) for each in passes], len(passes)
    for layers in ([1], [0, 1]):
        vectors_of(reading_of(tmp_path, encoder, view, layers), encoder, batch_tokens)
        assert [len(each) for each in passes[before:]] == alone
        before = len(passes)
    assert before == 3 * len(alone)


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
    for row in (-1, 14):
        with pytest.raises(ValueError, match=r"longer|negative"):
            found[np.array([3, row])]
