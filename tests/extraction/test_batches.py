"""Windows of texts, texts of a forward pass, and texts of a shard, by hand and by plain numpy."""

from __future__ import annotations

import numpy as np
import pytest

from probes.extraction.reading.alignment import Pieces
from probes.extraction.reading.padding import plan_batches, split_by_tokens
from probes.extraction.reading.shards import kept_words, row_of_each_text, shard_numbers, shards_of
from probes.extraction.reading.vectors import Sharded
from probes.extraction.reading.views import Text, View
from probes.extraction.reading.windows import (
    pooled_pieces,
    window_of_pieces,
    window_spans,
    windows_of_text,
)


def test_windows_overlap_by_half_and_cover_all():
    assert window_spans(6, 6) == [(0, 6)]
    assert window_spans(7, 6) == [(0, 6), (1, 7)]
    assert window_spans(13, 6) == [(0, 6), (3, 9), (6, 12), (7, 13)]
    assert window_spans(3, 1) == [(0, 1), (1, 2), (2, 3)]


def test_a_word_is_read_where_it_lies_farthest_from_an_edge():
    spans = window_spans(12, 6)  # (0, 6), (3, 9), (6, 12)
    bounds = np.array([0, 1, 4, 5, 7, 12])
    #  word 1 = pieces 1–3: margin 1 in the first, outside the others; word 2 = piece 4: 1 and 1,
    #  the earlier; word 3 = pieces 5–6: whole in the second only; word 4 = pieces 7–11: third
    assert window_of_pieces(bounds, spans).tolist() == [0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2]


def test_a_causal_model_reads_a_word_where_most_is_to_its_left():
    spans = window_spans(12, 6)  # (0, 6), (3, 9), (6, 12)
    bounds = np.array([0, 1, 4, 5, 7, 12])
    #  word 3 = pieces 5–6 is whole in the second only; word 4 = pieces 7–11 in the third only
    found = window_of_pieces(bounds, spans, causal=True)
    assert found.tolist() == [0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2]
    assert (
        window_of_pieces(np.arange(13), spans, causal=True).tolist() == [0] * 6 + [1] * 3 + [2] * 3
    )
    assert window_of_pieces(np.array([0, 9]), window_spans(9, 4), causal=True).tolist() == [
        *(0, 0, 0, 0, 1, 1, 2, 2, 3)
    ]


def test_a_word_longer_than_a_window_is_read_piece_by_piece():
    spans = window_spans(9, 4)  # (0, 4), (2, 6), (4, 8), (5, 9)
    assert window_of_pieces(np.array([0, 9]), spans).tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3]


def test_pooling_takes_all_first_or_last_pieces():
    bounds = np.array([0, 2, 3, 6])
    assert [a.tolist() for a in pooled_pieces(bounds, (1, 3), "mean")] == [
        [2, 3, 4, 5],
        [0, 1, 1, 1],
    ]
    assert [a.tolist() for a in pooled_pieces(bounds, (1, 3), "first")] == [[2, 3], [0, 1]]
    assert [a.tolist() for a in pooled_pieces(bounds, (0, 3), "last")] == [[1, 2, 5], [0, 1, 2]]


def test_windows_of_a_text_hold_special_tokens_and_only_what_is_kept():
    """Six pieces in windows of four: (0, 4) and (2, 6); words of 2, 1, 2 and 1 pieces."""
    pieces = Pieces(np.arange(10, 16), np.array([0, 2, 3, 5, 6]), 0)
    around = {"capacity": 4, "prefix": [1], "suffix": [2, 3], "text": 5, "first_row": 7}
    first, second = windows_of_text(pieces, (1, 4), "mean", **around)
    assert first.ids.tolist() == [1, 10, 11, 12, 13, 2, 3]
    assert (first.position.tolist(), first.owner.tolist()) == ([3], [7])
    assert [(window.text, window.first) for window in (first, second)] == [(5, 0), (5, 2)]
    assert second.ids.tolist() == [1, 12, 13, 14, 15, 2, 3]
    assert (second.position.tolist(), second.owner.tolist()) == ([2, 3, 4], [8, 8, 9])
    assert second.share.tolist() == [0.5, 0.5, 1]
    (alone,) = windows_of_text(pieces, (0, 1), "last", **around)
    assert (alone.position.tolist(), alone.share.tolist()) == ([2], [1])


def test_batches_by_hand():
    """With two special tokens: of 20 in three windows of eight, then 8 and 7, 3 three times."""
    pieces = [Pieces(np.arange(n), np.array([0, n]), 0) for n in (1, 6, 20, 1, 5, 1)]
    assert plan_batches(pieces, 16, capacity=6, specials=2) == [[2], [1, 4], [0, 3, 5]]
    assert plan_batches(pieces, 6, capacity=6, specials=2) == [[2], [1], [4], [0, 3], [5]]
    assert plan_batches([], 16, capacity=6, specials=2) == []


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [([5, 4, 3, 2], [2, 2]), ([2, 2, 5], [2, 1]), ([20, 6, 6, 6], [1, 2, 1]), ([3], [1]), ([], [])],
)
def test_splits_of_at_most_twelve_tokens(lengths, expected):
    parts = [lengths[part] for part in split_by_tokens(lengths, 12)]
    assert [len(part) for part in parts] == expected
    assert [length for part in parts for length in part] == lengths


def test_shards_by_hand():
    """Batches of 4 and 3, 3 and 2, and 1 words, of which all but the last are kept, or that one.

    So 5, 3 and 1 are kept.
    """
    lengths = (2, 4, 1, 3, 3)
    texts = tuple(
        Text(tuple(f"{i}{j}" for j in range(n)), (0, max(1, n - 1))) for i, n in enumerate(lengths)
    )
    view, batches = View("plain", texts), [[1, 3], [4, 0], [2]]

    def numbers(bytes_per_word: int, device: str = "cpu") -> list[int]:
        return shard_numbers(view, batches, bytes_per_word * kept_words(view.texts), device)

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


def test_a_shard_has_at_most_sixteen_batches():
    view = View("plain", tuple(Text((f"{i}",), (0, 1)) for i in range(40)))
    numbers = shard_numbers(view, [[i] for i in range(40)], kept_words(view.texts), "cuda")
    assert np.bincount(numbers).tolist() == [16, 16, 8]


def test_rows_in_several_arrays_are_those_of_a_concatenation():
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
