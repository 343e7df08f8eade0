"""Which texts share a forward pass."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_readings import random_texts, reading_of

from probes.common.errors import UserError
from probes.extraction.alignment import Pieces
from probes.extraction.encoding import vectors_of
from probes.extraction.loading import load_encoder
from probes.extraction.model_files import find_model
from probes.extraction.padding import plan_batches, split_by_tokens
from probes.extraction.views import Text, View


def test_batches_by_hand() -> None:
    """With two special tokens: of 20 in three windows of eight, then 8 and 7, 3 three times."""
    pieces = [Pieces(np.arange(n), np.array([0, n]), 0) for n in (1, 6, 20, 1, 5, 1)]
    assert plan_batches(pieces, 16, capacity=6, specials=2) == [[2], [1, 4], [0, 3, 5]]
    assert plan_batches(pieces, 6, capacity=6, specials=2) == [[2], [1], [4], [0, 3], [5]]
    assert plan_batches([], 16, capacity=6, specials=2) == []


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([5, 4, 3, 2], [2, 2]),
        ([2, 2, 5], [2, 1]),
        ([20, 6, 6, 6], [1, 2, 1]),
        ([3], [1]),
        ([], []),
    ],
)
def test_splits_of_at_most_twelve_tokens(lengths: list[int], expected: list[int]) -> None:
    parts = [lengths[part] for part in split_by_tokens(lengths, 12)]
    assert [len(part) for part in parts] == expected
    assert [length for part in parts for length in part] == lengths


def test_a_word_without_pieces_is_named_before_anything_is_encoded(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = load_encoder(find_model(str(tiny_bert)), device="cpu")
    monkeypatch.setattr(encoder.words, "_unk_id", None)
    odd = Text(("she", "\u200b", "counts"), (0, 3))
    view = View("plain", (*random_texts(50), odd))
    monkeypatch.setattr(encoder, "encode", None)
    with pytest.raises(UserError, match="yields no subword"):
        vectors_of(reading_of(tmp_path, encoder, view), encoder, 64)
    assert not list(tmp_path.rglob("*.npy"))
    # A hidden word is not read.
    encoder.split([replace(odd, mask=1)])
