from dataclasses import replace

import pytest
import torch

import probes
from probes.common.errors import UserError
from probes.compute.devices import exact_products
from probes.extraction.encoder import Encoder
from probes.measurements import probing
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


def test_products_are_exact_inside_exact_products(rough) -> None:
    with exact_products():
        assert torch.get_float32_matmul_precision() == "highest"
        assert not torch.backends.cudnn.allow_tf32


def test_torchs_newer_precision_switches_are_refused() -> None:
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        with pytest.raises(UserError, match=r"use torch\.set_float32_matmul_precision instead"):
            exact_products().__enter__()
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
    with exact_products():
        assert torch.get_float32_matmul_precision() == "highest"


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
    recorded(probing, "predict")
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
    metal, work = torch.device("mps"), Work(PROBES["mlp"], 768, 768, 200_000, 17, 3)
    layers, hold = group_layers(1 << 40, metal, work)
    assert hold
    assert 4 * 768 * 200_000 * layers < 1 << 32 <= 4 * 768 * 200_000 * (layers + 1)
    assert not group_layers(1 << 40, metal, replace(work, n_examples=2_000_000))[1]
    assert group_layers(1 << 40, torch.device("cuda"), work)[0] > layers
