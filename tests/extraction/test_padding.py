"""Windows padded for one forward pass, by hand."""

from __future__ import annotations

from dataclasses import replace

import torch

from probes.common.arrays import Ints
from probes.extraction.alignment import TokenTypes
from probes.extraction.padding import pad_windows
from probes.extraction.windows import Window


def ints(*values: int) -> Ints:
    return torch.tensor(values, dtype=torch.int64).numpy()


def window(
    ids: tuple[int, ...],
    place: tuple[int, ...],
    owner: tuple[int, ...],
    text: int = 0,
    first: int = 0,
) -> Window:
    share = torch.tensor([1 / owner.count(word) for word in owner]).double().numpy()
    return Window(ints(*ids), text, first, ints(*place), ints(*owner), share)


def test_windows_are_padded_on_the_right() -> None:
    windows = [
        window((1, 10, 11, 2), (1, 2), (0, 0)),
        window((1, 12, 13, 2), (1, 2), (1, 2), text=3, first=4),
        window((1, 14, 2), (1,), (4,), text=2),
    ]
    found = pad_windows(windows, 9, n_prefix=1, n_suffix=1)
    assert {name: tensor.tolist() for name, tensor in found.inputs.items()} == {
        "input_ids": [[1, 10, 11, 2], [1, 12, 13, 2], [1, 14, 2, 9]],
        "attention_mask": [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 0]],
    }
    assert found.position.tolist() == [1, 2, 5, 6, 9]
    assert found.offset.tolist() == [0, 2, 3, 4]
    assert found.word.tolist() == [0, 1, 2, 4]
    assert found.weight.tolist() == [0.5, 0.5, 1, 1, 1]
    assert found.text.tolist() == [0, 3, 2]
    assert found.first.tolist() == [0, 4, 0]
    assert (found.n_prefix, found.n_pieces.tolist()) == (1, [2, 2, 1])
    assert (found.n_middle, found.second.tolist()) == (0, [0, 0, 0])


def test_token_types_tell_second_segments() -> None:
    """Of two pieces before two special tokens and one piece after; of one segment; of one each."""
    windows = [
        replace(window((1, 10, 11, 2, 2, 12, 2), (1, 2, 5), (0, 1, 2)), second=5),
        window((1, 13, 2), (1,), (3,)),
        replace(window((1, 14, 2, 2, 15, 2), (1, 4), (4, 5)), second=4),
    ]
    types = TokenTypes(([0], 0, [0]), ([0], 0, [0, 0], 1, [1]))
    found = pad_windows(windows, 9, n_prefix=1, n_suffix=1, n_middle=2, types=types)
    assert found.inputs["token_type_ids"].tolist() == [
        [0, 0, 0, 0, 0, 1, 1],
        [0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 1, 1, 0],
    ]
    assert (found.n_middle, found.second.tolist()) == (2, [5, 0, 4])
    assert found.n_pieces.tolist() == [3, 1, 2]
    assert "token_type_ids" not in pad_windows(windows, 9).inputs
    assert "token_type_ids" not in pad_windows(windows[1:2], 9, types=types).inputs


def test_special_tokens_may_have_types_of_their_own() -> None:
    """As XLNet's have: 2 for the last, here in a text with one piece more than the other."""
    windows = [window((10, 11, 1, 2), (0, 1), (0, 0)), window((12, 1, 2), (0,), (1,))]
    types = TokenTypes(([], 0, [0, 2]), ([], 0, [0], 1, [1, 2]))
    found = pad_windows(windows, 9, n_suffix=2, types=types)
    assert found.inputs["token_type_ids"].tolist() == [[0, 0, 0, 2], [0, 0, 2, 0]]
    pair = replace(window((10, 1, 11, 12, 1, 2), (0, 2, 3), (0, 1, 2)), second=2)
    found = pad_windows([pair], 9, n_suffix=2, n_middle=1, types=types)
    assert found.inputs["token_type_ids"].tolist() == [[0, 0, 1, 1, 1, 2]]
