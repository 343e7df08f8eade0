"""Products with packed weights, against the same in float64."""

from __future__ import annotations

import resource
import weakref
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import torch
from torch import Tensor, nn
from transformers import AutoModel, AutoTokenizer
from transformers.pytorch_utils import Conv1D

from probes.compute.precision import has_bf16
from probes.extraction import packing
from probes.extraction.encoder import load_encoder
from probes.extraction.loading import digest_of_loaded, part_that_reads
from probes.extraction.model_files import find_model
from probes.extraction.packing import PackedLinear, pack, pack_linears, packs

pytestmark = pytest.mark.skipif(not packs(), reason="needs oneDNN on an x86 processor")


class ReadsItself(nn.Module):
    """Reads its layer's weight, as DeBERTa's first version does."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(24, 10, bias=False)

    def forward(self, inputs: Tensor) -> Tensor:
        return nn.functional.linear(inputs, self.layer.weight.chunk(2, dim=0)[1])


class Doubling(nn.Linear):
    """Computes something else than its parent."""

    def forward(self, inputs: Tensor) -> Tensor:
        return 2 * super().forward(inputs)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@torch.inference_mode()
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("shape", [(384, 1536), (1536, 384), (7, 3), (1, 1)])
def test_a_product_is_that_of_float64(shape: tuple[int, int], with_bias: bool) -> None:
    weight, inputs = drawn(shape[1], shape[0]), drawn(3, 40, shape[0], seed=1)
    bias = nn.Parameter(drawn(shape[1], seed=2)) if with_bias else None
    layer = PackedLinear(pack(weight), bias)
    expected = inputs.double() @ weight.double().t()
    size = inputs.double().abs() @ weight.double().abs().t()
    if bias is not None:
        expected += bias.double()
    # Rounding of so many sums and products, in units of what is added up.
    assert ((layer(inputs) - expected).abs() <= 2e-6 * (size + 1)).all()
    assert torch.equal(layer.weight, weight)


@torch.inference_mode()
def test_any_layout_and_number_of_rows_will_do() -> None:
    weight, rows = drawn(9, 5), drawn(6, 5, seed=1)
    layer = PackedLinear(pack(weight.t().contiguous().t()), None)
    expected = layer(rows)
    torch.testing.assert_close(expected, rows @ weight.t())
    assert torch.equal(layer(rows.t().contiguous().t()), expected)
    torch.testing.assert_close(layer(rows[::2]), expected[::2])
    torch.testing.assert_close(layer(rows[3]), expected[3])
    assert layer(rows[:0]).shape == (0, 9)
    assert layer(rows.view(2, 3, 5)).shape == (2, 3, 9)


@torch.inference_mode()
@pytest.mark.skipif(not has_bf16(), reason="needs instructions for products of bf16")
def test_bf16_sums_in_float32() -> None:
    weight, rows = drawn(16, 512).bfloat16(), drawn(8, 512, seed=1).bfloat16()
    model = nn.Sequential(nn.Linear(512, 16, bias=False).bfloat16())
    model[0].weight.copy_(weight)
    pack_linears(model)
    assert isinstance(model[0], PackedLinear)
    expected = (rows.double() @ weight.double().t()).bfloat16()
    torch.testing.assert_close(model(rows), expected, rtol=1 / 128, atol=1e-3)


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5", "bart", "albert"])
def test_every_layer_of_what_is_read_is_packed(name: str, tmp_path: Path) -> None:
    """Values of whole models are compared in test_architectures.py."""
    tiny_models.save(name, tmp_path)
    encoder = load_encoder(find_model(str(tmp_path)), device="cpu")
    plain = part_that_reads(AutoModel.from_pretrained(tmp_path))
    if getattr(plain, "pooler", None) is not None:
        plain.pooler = None
    expected = dict(plain.named_modules())
    found = {k: m for k, m in encoder.model.named_modules() if isinstance(m, PackedLinear)}
    assert found.keys() == {k for k, m in expected.items() if isinstance(m, nn.Linear | Conv1D)}
    assert found
    for key, layer in found.items():
        weight: Any = expected[key].weight
        assert torch.equal(layer.weight, weight.t() if name == "gpt2" else weight)
    assert encoder.info.parameters == sum(p.numel() for p in plain.parameters())


def test_a_shared_weight_is_packed_and_counted_once() -> None:
    model = nn.Sequential(nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False))
    model[1].weight = model[0].weight
    pack_linears(model)
    assert model[0].packed is model[1].packed
    assert sum(p.numel() for p in model.parameters()) == 64


def test_a_weight_is_gone_before_the_next_but_one_is_packed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(5)))
    weights = [weakref.ref(layer.weight) for layer in model]
    alive = []

    def counted(weight: Tensor) -> nn.Parameter:
        alive.append(sum(each() is not None for each in weights))
        return pack(weight)

    monkeypatch.setattr(packing, "pack", counted)
    pack_linears(model)
    # The one packed last goes when the next is looked at.
    assert alive == [5, 4, 3, 2, 1]


@torch.inference_mode()
def test_what_computes_something_else_is_left_alone() -> None:
    model = nn.Sequential(Doubling(8, 4))
    inputs = drawn(3, 8)
    before = model(inputs)
    pack_linears(model)
    assert type(model[0]) is Doubling
    assert torch.equal(model(inputs), before)


@torch.inference_mode()
def test_a_model_may_read_the_weight_itself() -> None:
    model, inputs = ReadsItself(), drawn(3, 24)
    before = model(inputs)
    pack_linears(model)
    assert isinstance(model.layer, PackedLinear)
    torch.testing.assert_close(model(inputs), before)


@pytest.mark.parametrize("half", [torch.float16, torch.float64])
def test_other_types_stay_as_they_are(half: torch.dtype) -> None:
    model = nn.Sequential(nn.Linear(8, 4).to(half))
    pack_linears(model)
    assert type(model[0]) is nn.Linear


def test_on_other_processors_nothing_is_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.Sequential(nn.Linear(8, 4))
    monkeypatch.setattr(packing.platform, "machine", lambda: "arm64")
    pack_linears(model)
    assert type(model[0]) is nn.Linear


def test_where_memory_is_limited_nothing_is_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """oneDNN would end the process; test_faults.py has runs that run out of memory."""
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1 << 40, resource.RLIM_INFINITY))
    assert not packs()


def test_a_packed_model_in_memory_has_a_digest(tmp_path: Path) -> None:
    tiny_models.save("bert", tmp_path)
    encoder = load_encoder(find_model(str(tmp_path)), device="cpu")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    digest = digest_of_loaded(encoder.model, tokenizer)
    layer = encoder.model.encoder.layer[0].output.dense
    layer.packed = pack(layer.weight + 1)
    assert digest_of_loaded(encoder.model, tokenizer) != digest
