"""Windows laid out in rows, with and without padding, by hand."""

from __future__ import annotations

import pytest
import torch

from probes.common.arrays import Ints
from probes.extraction.windows import Padded, Rows, Unpadded, Window, in_passes


def ints(*values: int) -> Ints:
    return torch.tensor(values, dtype=torch.int64).numpy()


def window(ids: tuple[int, ...], place: tuple[int, ...], owner: tuple[int, ...]) -> Window:
    share = [1 / owner.count(word) for word in owner]
    return Window(ints(*ids), ints(*place), ints(*owner), torch.tensor(share).double().numpy())


WINDOWS = [
    window((1, 10, 11, 2), (1, 2), (0, 0)),
    window((1, 12, 13, 2), (1, 2), (1, 2)),
    window((1, 14, 2), (1,), (4,)),
]


def require_the_words(rows: Rows) -> None:
    """The third window begins at the eighth position in either layout."""
    assert rows.position.tolist() == [1, 2, 5, 6, 9]
    assert rows.offset.tolist() == [0, 2, 3, 4]
    assert rows.word.tolist() == [0, 1, 2, 4]
    assert rows.weight.tolist() == [0.5, 0.5, 1, 1, 1]


def test_padded_rows() -> None:
    rows = Padded(9).rows(WINDOWS)
    assert {name: tensor.tolist() for name, tensor in rows.inputs.items()} == {
        "input_ids": [[1, 10, 11, 2], [1, 12, 13, 2], [1, 14, 2, 9]],
        "attention_mask": [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 0]],
    }
    require_the_words(rows)


def test_one_row_without_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probes.extraction.windows._FILL", 8)
    rows = Unpadded(9, 2).rows(WINDOWS)
    assert {name: tensor.tolist() for name, tensor in rows.inputs.items()} == {
        "input_ids": [[1, 10, 11, 2, 1, 12, 13, 2, 1, 14, 2, 9, 9, 9, 9, 9]],
        "position_ids": [[2, 3, 4, 5, 2, 3, 4, 5, 2, 3, 4, 2, 2, 2, 2, 2]],
        "text_lengths": [[4, 2], [3, 1], [5, 1]],
    }
    require_the_words(rows)


def test_a_row_that_is_full_is_not_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probes.extraction.windows._FILL", 8)
    inputs = Unpadded(9, 0).rows(WINDOWS[:2]).inputs
    assert inputs["input_ids"].shape == (1, 8)
    assert inputs["text_lengths"].tolist() == [[4, 2]]


@pytest.mark.parametrize(
    ("lengths", "padded", "unpadded"),
    [
        ([5, 4, 3, 2], [2, 2], [3, 1]),
        ([2, 2, 5], [2, 1], [3]),
        ([20, 6, 6, 6], [1, 2, 1], [1, 2, 1]),
        ([3], [1], [1]),
        ([], [], []),
    ],
)
def test_passes_of_at_most_twelve_tokens(
    lengths: list[int], padded: list[int], unpadded: list[int]
) -> None:
    for layout, expected in ((Padded(0), padded), (Unpadded(0, 0), unpadded)):
        parts = [lengths[part] for part in in_passes(lengths, layout, 12)]
        assert [len(part) for part in parts] == expected
        assert [length for part in parts for length in part] == lengths
