"""Windows of texts, and which of their pieces make a word's vector, by hand."""

from __future__ import annotations

import numpy as np

from probes.extraction.alignment import Pieces
from probes.extraction.windows import (
    pooled_pieces,
    window_of_pieces,
    window_spans,
    windows_of_text,
)


def test_windows_overlap_by_half_and_cover_all() -> None:
    assert window_spans(6, 6) == [(0, 6)]
    assert window_spans(7, 6) == [(0, 6), (1, 7)]
    assert window_spans(13, 6) == [(0, 6), (3, 9), (6, 12), (7, 13)]
    assert window_spans(3, 1) == [(0, 1), (1, 2), (2, 3)]


def test_a_word_is_read_where_it_lies_farthest_from_an_edge() -> None:
    spans = window_spans(12, 6)  # (0, 6), (3, 9), (6, 12)
    bounds = np.array([0, 1, 4, 5, 7, 12])
    #  word 1 = pieces 1–3: margin 1 in the first, outside the others; word 2 = piece 4: 1 and 1,
    #  the earlier; word 3 = pieces 5–6: whole in the second only; word 4 = pieces 7–11: third
    assert window_of_pieces(bounds, spans).tolist() == [0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2]


def test_a_causal_model_reads_a_word_where_most_is_to_its_left() -> None:
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


def test_a_word_longer_than_a_window_is_read_piece_by_piece() -> None:
    spans = window_spans(9, 4)  # (0, 4), (2, 6), (4, 8), (5, 9)
    assert window_of_pieces(np.array([0, 9]), spans).tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3]


def test_pooling_takes_all_first_or_last_pieces() -> None:
    bounds = np.array([0, 2, 3, 6])
    assert [a.tolist() for a in pooled_pieces(bounds, (1, 3), "mean")] == [
        [2, 3, 4, 5],
        [0, 1, 1, 1],
    ]
    assert [a.tolist() for a in pooled_pieces(bounds, (1, 3), "first")] == [[2, 3], [0, 1]]
    assert [a.tolist() for a in pooled_pieces(bounds, (0, 3), "last")] == [[1, 2, 5], [0, 1, 2]]


def test_windows_of_a_text_hold_special_tokens_and_only_what_is_kept() -> None:
    """Six pieces in windows of four: (0, 4) and (2, 6); words of 2, 1, 2 and 1 pieces."""
    pieces = Pieces(np.arange(10, 16), np.array([0, 2, 3, 5, 6]), 0)
    around = {"capacity": 4, "prefix": [1], "suffix": [2, 3], "text": 5, "first_row": 7}
    first, second = windows_of_text(pieces, (1, 4), "mean", **around)
    assert first.ids.tolist() == [1, 10, 11, 12, 13, 2, 3]
    assert (first.place.tolist(), first.owner.tolist()) == ([3], [7])
    assert [(window.text, window.first) for window in (first, second)] == [(5, 0), (5, 2)]
    assert second.ids.tolist() == [1, 12, 13, 14, 15, 2, 3]
    assert (second.place.tolist(), second.owner.tolist()) == ([2, 3, 4], [8, 8, 9])
    assert second.share.tolist() == [0.5, 0.5, 1]
    (alone,) = windows_of_text(pieces, (0, 1), "last", **around)
    assert (alone.place.tolist(), alone.share.tolist()) == ([2], [1])
