"""Which texts share a batch, and that texts are tokenised ahead."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from probes.common.errors import UserError
from probes.extraction.batching import (
    in_batches,
    one_ahead,
    plan_batches,
    split_by_tokens,
    stretches,
)
from probes.extraction.encoder import Encoder
from probes.extraction.encoding import open_or_encode
from probes.extraction.loading import load_encoder
from probes.extraction.model_files import find_model
from probes.extraction.store import StoreKey
from probes.extraction.views import Text, View

WORDS = ("light", "she", "counts", "the", "boats", "lightkeepers")


@pytest.fixture(scope="module")
def encoder(tiny_bert: Path) -> Encoder:
    return load_encoder(find_model(str(tiny_bert)), device="cpu")


def texts(n: int) -> list[Text]:
    """Of 1 to 20 words, every word of 1 to several pieces."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 21, n)
    return [Text(tuple(rng.choice(WORDS, k)), (0, int(k))) for k in lengths]


def test_stretches_hold_every_text_once_longest_first() -> None:
    given = texts(300)
    found = stretches(given, 400)
    assert sorted(i for part in found for i in part) == list(range(300))
    for part in found:
        assert part == sorted(part)
    sizes = [sum(len(given[i].words) for i in part) for part in found]
    assert all(400 <= size < 420 for size in sizes[:-1])
    shortest = [min(len(given[i].words) for i in part) for part in found]
    longest = [max(len(given[i].words) for i in part) for part in found]
    assert all(a >= b for a, b in zip(shortest[:-1], longest[1:], strict=True))
    assert stretches([], 400) == []


def test_batches_hold_each_text_with_its_own_pieces_and_stay_within_bounds(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("probes.extraction.batching._STRETCH", 500)
    monkeypatch.setattr("probes.extraction.batching._STRETCH_BATCHES", 1)
    given = texts(300)
    batches = list(in_batches(encoder, given, 128))
    assert sorted(i for batch in batches for i in batch.index) == list(range(300))
    for batch in batches:
        assert batch.texts == [given[i] for i in batch.index]
        for text, pieces in zip(batch.texts, batch.pieces, strict=True):
            (alone,) = encoder.split([text])
            assert pieces.ids.tolist() == alone.ids.tolist()
        lengths = [len(p.ids) + encoder.specials for p in batch.pieces]
        assert len(batch.index) == 1 or max(lengths) * len(lengths) <= 128


def test_batches_of_a_single_stretch_are_those_of_all_texts(encoder: Encoder) -> None:
    given = texts(200)
    plan = plan_batches(encoder, encoder.split(given), 128)
    assert [batch.index for batch in in_batches(encoder, given, 128)] == plan


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
    encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder.words, "_unk_id", None)
    odd = Text(("she", "\u200b", "counts"), (0, 3))
    view = View("plain", (*texts(50), odd))
    key = StoreKey(encoder.info.digest, view.digest, "mean", "float32")
    monkeypatch.setattr(encoder, "encode", None)
    with pytest.raises(UserError, match="yields no subword"):
        open_or_encode(tmp_path, key, view, encoder, 64)
    assert not list(tmp_path.rglob("*.npy"))
    # A hidden word is not read.
    encoder.words.require_pieces([replace(odd, mask=1)])


def test_the_next_item_is_computed_while_one_is_used() -> None:
    begun = [threading.Event() for _ in range(4)]

    def square(i: int) -> int:
        begun[i].set()
        return i * i

    found = []
    for i, value in enumerate(one_ahead(square, range(4))):
        if i < 3:
            assert begun[i + 1].wait(30)
        found.append(value)
        assert not any(event.is_set() for event in begun[i + 2 :])
    assert found == [0, 1, 4, 9]


def test_stopping_early_waits_for_no_item_that_has_not_begun() -> None:
    asked: list[int] = []
    begun, held = threading.Event(), threading.Event()

    def slow(i: int) -> int:
        asked.append(i)
        if i == 1:
            begun.set()
            held.wait(30)
        return i

    values = one_ahead(slow, range(9))
    assert next(values) == 0
    assert begun.wait(30)
    threading.Timer(0.2, held.set).start()
    values.close()
    assert asked == [0, 1]
    assert not any("ThreadPool" in thread.name for thread in threading.enumerate())


def test_an_error_ahead_is_raised_where_it_belongs() -> None:
    values = one_ahead(lambda i: 6 // i, [3, 0, 2])
    assert next(values) == 2
    with pytest.raises(ZeroDivisionError):
        next(values)
