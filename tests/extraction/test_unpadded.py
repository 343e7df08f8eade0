"""Attention text by text, against its formula, and when a model is left with padding."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tiny_models
import torch

from probes.common.errors import UserError
from probes.extraction.encoder import Encoder, load_encoder
from probes.extraction.model_files import find_model
from probes.extraction.unpadded import attend, leave_padding_out
from probes.extraction.windows import Padded, Unpadded

HEADS, SIZE, LENGTHS = 4, 8, [5, 5, 3, 1]


def drawn(heads: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(1, heads, sum(LENGTHS), SIZE, generator=generator)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [None, 2, 5])
@pytest.mark.parametrize("groups", [1, 2])
def test_each_text_sees_itself_alone(causal: bool, window: int | None, groups: int) -> None:
    """softmax(q kᵀ · scaling) v, token by token; with groups, heads share keys and values."""
    query = drawn(HEADS, 0)
    key, value = drawn(HEADS // groups, 1), drawn(HEADS // groups, 2)
    module: Any = SimpleNamespace(num_key_value_groups=groups, is_causal=causal)
    runs = torch.tensor([[5, 2], [3, 1], [1, 1]])
    found, weights = attend(
        module, query, key, value, None, text_lengths=runs, scaling=0.3, sliding_window=window
    )
    assert weights is None
    assert found.shape == (1, sum(LENGTHS), HEADS, SIZE)
    first = 0
    for length in LENGTHS:
        for i in range(length):
            seen = [
                first + j
                for j in range(length)
                if (not causal or j <= i) and (window is None or abs(i - j) < window)
            ]
            for head in range(HEADS):
                shared = head // groups
                scores = 0.3 * key[0, shared, seen] @ query[0, head, first + i]
                expected = scores.softmax(0) @ value[0, shared, seen]
                torch.testing.assert_close(found[0, first + i, head], expected)
        first += length


@pytest.mark.parametrize("length", [1, 7, 16, 30])
def test_what_follows_a_text_does_not_change_its_last_bit(length: int) -> None:
    """So that vectors do not depend on which texts share a batch."""
    generator = torch.Generator().manual_seed(0)
    query, key, value = torch.randn(3, 1, HEADS, 5 * length + 40, 32, generator=generator)
    module: Any = SimpleNamespace(is_causal=False)

    def attended(n: int, rest: int) -> torch.Tensor:
        """Of the first text of `n`, which others of `rest` tokens follow."""
        runs = torch.tensor([[length, n], *([[1, rest]] if rest else [])])
        states = (x[:, :, : n * length + rest] for x in (query, key, value))
        found, _ = attend(module, *states, None, text_lengths=runs, scaling=0.3)
        return found[:, :length]

    alone = attended(1, 0)
    for n, rest in ((1, 3), (1, 40), (2, 0), (5, 0), (5, 40)):
        assert torch.equal(attended(n, rest), alone)


def test_a_mask_of_the_model_s_own_is_refused() -> None:
    states, runs = drawn(HEADS, 0), torch.tensor([[5, 2], [3, 1], [1, 1]])
    mask = torch.ones(1, 1, sum(LENGTHS), sum(LENGTHS), dtype=torch.bool)
    with pytest.raises(ValueError, match="masks by itself"):
        attend(SimpleNamespace(), states, states, states, mask, text_lengths=runs)


def loaded(name: str, folder: Path, **changes: Any) -> Encoder:
    tiny_models.save(name, folder, **changes)
    return load_encoder(find_model(str(folder)), device="cpu")


def test_positions_that_start_elsewhere_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RoBERTa's first token has position 2."""
    encoder = loaded("roberta", tmp_path)
    assert isinstance(encoder.layout, Unpadded)
    assert encoder.layout.first_position == 2
    monkeypatch.setattr("probes.extraction.unpadded.first_position", lambda _model: 1)
    encoder = load_encoder(find_model(str(tmp_path)), device="cpu")
    assert isinstance(encoder.layout, Padded)
    assert encoder.model.config._attn_implementation == "sdpa"


def test_texts_that_see_each_other_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mixed(*given: Any, text_lengths: torch.Tensor, **settings: Any) -> Any:
        whole = (text_lengths.prod(1).sum(), torch.tensor(1))
        return attend(*given, text_lengths=torch.stack(whole)[None], **settings)

    monkeypatch.setattr("probes.extraction.unpadded.attend", mixed)
    assert isinstance(loaded("bert", tmp_path).layout, Padded)


@pytest.mark.parametrize("causal", [False, True])
def test_windows_that_models_count_otherwise_are_noticed(causal: bool, tmp_path: Path) -> None:
    """With is_causal=False transformers' own mask lets a decoder see one token farther."""
    tiny_models.save(
        "qwen2",
        tmp_path,
        is_causal=causal,
        use_sliding_window=True,
        sliding_window=9,
        max_window_layers=1,
    )
    encoder = load_encoder(find_model(str(tmp_path)), device="cpu")
    assert isinstance(encoder.layout, Unpadded if causal else Padded)


def test_windows_too_wide_to_be_tried_leave_padding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1}
    assert isinstance(loaded("qwen2", tmp_path, **changes).layout, Unpadded)
    monkeypatch.setattr("probes.extraction.unpadded._LONGEST_TRIED", 10)
    assert isinstance(loaded("qwen2", tmp_path, **changes).layout, Padded)


def test_a_share_of_masked_words_in_the_row_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ESM's embeddings, which are scaled by it."""
    from transformers.models.bert.modeling_bert import BertEmbeddings

    forward = BertEmbeddings.forward

    def scaled(self: Any, input_ids: torch.Tensor, **given: Any) -> torch.Tensor:
        share = (input_ids == mask).float().mean(1)
        states: torch.Tensor = forward(self, input_ids, **given) * (1 - share)[:, None, None]
        return states

    encoder = loaded("bert", tmp_path)
    mask = encoder.words.mask_id
    assert isinstance(encoder.layout, Unpadded)
    monkeypatch.setattr(BertEmbeddings, "forward", scaled)
    assert isinstance(loaded("bert", tmp_path).layout, Padded)


def test_long_texts_bring_no_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    states = drawn(HEADS, 0)
    runs = torch.tensor([[5, 2], [3, 1], [1, 1]])
    module: Any = SimpleNamespace(is_causal=False)
    masked, _ = attend(module, states, states, states, None, text_lengths=runs)
    monkeypatch.setattr("probes.extraction.unpadded._LONG", 2)
    monkeypatch.setattr("probes.extraction.unpadded._seen_again", None)
    found, _ = attend(module, states, states, states, None, text_lengths=runs[:2])
    torch.testing.assert_close(found, masked[:, :-1])


@pytest.mark.parametrize("error", [TypeError, ValueError, RuntimeError, AttributeError, KeyError])
def test_a_model_that_cannot_is_left_with_padding(
    error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_given: Any, **_settings: Any) -> Any:
        raise error("no")

    monkeypatch.setattr("probes.extraction.unpadded.attend", broken)
    encoder = loaded("gpt2", tmp_path)
    assert isinstance(encoder.layout, Padded)
    assert encoder.model.config._attn_implementation == "sdpa"


def test_a_lack_of_memory_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_given: Any, **_settings: Any) -> Any:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr("probes.extraction.unpadded.attend", full)
    with pytest.raises((RuntimeError, UserError), match="memory"):
        loaded("bert", tmp_path)


def test_a_model_in_memory_keeps_its_attention(tiny_bert: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(tiny_bert)
    encoder = Encoder(model, AutoTokenizer.from_pretrained(tiny_bert), name="mine", device="cpu")
    assert isinstance(encoder.layout, Padded)
    assert model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_narrow_types_are_judged_by_their_rounding(dtype: Any, tiny_bert: Path) -> None:
    encoder = load_encoder(find_model(str(tiny_bert)), device="cpu", dtype=dtype)
    assert isinstance(encoder.layout, Unpadded)
    before = encoder.layout
    encoder.layout = Padded(before.pad_id)
    encoder.model.set_attn_implementation("sdpa")
    leave_padding_out(encoder)
    assert encoder.layout == before
