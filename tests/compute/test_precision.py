from dataclasses import replace

import pytest
import torch

import probes
from probes.common.errors import UserError
from probes.compute.precision import (
    Rounding,
    exact_products,
    fast_products,
    has_bf16,
    multiplies_bf16,
    rounding,
)
from probes.extraction.encoder import Encoder
from probes.measurements import layer_scores
from probes.records.probe_spec import PROBES
from probes.training.memory_plan import Work, group_layers


@pytest.fixture
def rough():
    """A process in which products were made rough, as some containers do."""
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    yield
    after = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision(before[0])
    torch.backends.cudnn.allow_tf32 = before[1]
    assert after == ("high", True)


def test_products_are_rough_only_inside(rough) -> None:
    with exact_products():
        assert torch.get_float32_matmul_precision() == "highest"
        assert not torch.backends.cudnn.allow_tf32
        with fast_products():
            assert torch.get_float32_matmul_precision() == "high"
        assert torch.get_float32_matmul_precision() == "highest"


def test_switches_of_both_kinds_are_refused_with_the_remedy() -> None:
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        with pytest.raises(UserError, match=r"use torch\.set_float32_matmul_precision instead"):
            exact_products().__enter__()
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
    with exact_products():
        assert torch.get_float32_matmul_precision() == "highest"


HALF, FULL = torch.bfloat16, torch.float32


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ({"cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": True}, (HALF, HALF)),
        ({"cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": False}, (HALF, FULL)),
        ({"cpu_name": "AMD EPYC", "avx512_bf16": True, "amx_bf16": False}, (HALF, HALF)),
        ({"cpu_name": "Intel Xeon", "avx512_bf16": False}, (FULL, FULL)),
        ({}, (FULL, FULL)),
    ],
)
def test_bf16_is_read_where_there_is_and_multiplied_where_it_is_fast(
    capabilities, expected, monkeypatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    for name, function in (("has_bf16", has_bf16), ("multiplies_bf16", multiplies_bf16)):
        monkeypatch.setattr(f"probes.compute.precision.{name}", function.__wrapped__)
    assert rounding(torch.device("cpu")) == Rounding(*expected)
    assert rounding(torch.device("cuda")) == Rounding(FULL, FULL)


@pytest.mark.usefixtures("short_schedule")
def test_vectors_and_predictions_are_exact_whatever_the_process_has_set(
    rough, tiny_bert, tmp_path, monkeypatch
) -> None:
    found = {}

    def recorded(owner, name):
        function = getattr(owner, name)

        def record(*args, **kwargs):
            found.setdefault(name, set()).add(torch.get_float32_matmul_precision())
            return function(*args, **kwargs)

        monkeypatch.setattr(owner, name, record)

    recorded(Encoder, "encode")
    recorded(layer_scores, "predict")
    probes.run_probes(
        str(tiny_bert),
        limit=20,
        tasks=("pos",),
        quick=True,
        device="cpu",
        cache_dir=tmp_path / "cache",
        output=tmp_path / "results",
    )
    assert found == {"encode": {"highest"}, "predict": {"highest"}}


def test_no_tensor_on_a_mac_holds_four_gigabytes() -> None:
    metal, work = torch.device("mps"), Work(PROBES["linear"], 768, 768, 200_000, 17, 3)
    layers, hold = group_layers(1 << 40, metal, work)
    assert hold
    assert 4 * 768 * 200_000 * layers < 1 << 32 <= 4 * 768 * 200_000 * (layers + 1)
    assert not group_layers(1 << 40, metal, replace(work, n_examples=2_000_000))[1]
    assert group_layers(1 << 40, torch.device("cuda"), work)[0] > layers
