"""A simulated second device, transfers, and exact products."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_runs import run

from probes.common.errors import UserError
from probes.compute.devices import exact_products, pick_device, require_products
from probes.compute.memory import ToHost, host_empty, to_device
from probes.extraction.reading.encoder import Encoder
from probes.records.probe_spec import PROBES
from probes.training import dataset
from probes.training.memory_plan import Work, group_layers

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def device_results(tiny_bert, tmp_path_factory):
    script, folder = TESTS / "helpers" / "on_both_devices.py", tmp_path_factory.mktemp("both")
    env = {**os.environ, "PYTHONPATH": str(TESTS.parent)}
    command = [sys.executable, script, tiny_bert, folder]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_another_device_gives_the_same_numbers(device_results):
    assert device_results["mixed"]
    assert len(device_results["cpu"]) == 6
    # Prefixes of this code go side by side there, and so do seeds 1 and 2 of MLPs.
    assert device_results["cpu"]["pos linear"][-1] > 0
    assert device_results["cpu"].keys() == device_results["elsewhere"].keys()
    for unit, numbers in device_results["cpu"].items():
        assert device_results["elsewhere"][unit] == pytest.approx(numbers, rel=1e-3, abs=0.02), unit


@pytest.mark.slow
def test_a_training_step_copies_nothing_between_devices(device_results):
    short, twice_as_long = device_results["crossings"]
    assert short > 0
    assert twice_as_long == short


@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_a_device_that_is_not_there_is_named_with_the_remedy(kind):
    if getattr(torch, kind).is_available():
        pytest.skip(f"there is a {kind.upper()} device")
    with pytest.raises(UserError) as caught:
        pick_device(kind)
    assert str(caught.value) == (
        f"--device {kind}: no {kind.upper()} device is available; use --device cpu."
    )


def test_a_device_with_wrong_products_is_refused(monkeypatch):
    require_products("cpu")
    right = torch.Tensor.cpu
    monkeypatch.setattr(torch.Tensor, "cpu", lambda tensor: right(tensor) * 1.01)
    with pytest.raises(UserError, match="a product of matrices differs from that of the CPU"):
        require_products("cpu")


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def test_on_a_cpu_nothing_is_copied() -> None:
    tensor = torch.arange(6.0).view(2, 3)
    (sent,) = ToHost(tensor).wait()
    assert sent.data_ptr() == tensor.data_ptr()
    assert to_device(tensor, torch.device("cpu")).data_ptr() == tensor.data_ptr()
    assert not host_empty(2, dtype=torch.bfloat16, device=torch.device("cpu")).is_pinned()


@needs_gpu
def test_copies_from_a_gpu_survive_the_reuse_of_its_memory() -> None:
    gpu = torch.device("cuda:0")
    expected = torch.randn(2048, 4096)
    for _ in range(10):
        tensor = to_device(expected, gpu)
        sent = ToHost(tensor, tensor.half())
        del tensor
        # As large: the allocator would give it the memory that was just freed.
        torch.full((2048, 4096), 7.0, device=gpu).mul_(2)
        full, half = sent.wait()
        assert full.is_pinned()
        assert torch.equal(full, expected)
        assert torch.equal(half, expected.half())


@needs_gpu
def test_copies_to_a_gpu_survive_the_reuse_of_host_memory() -> None:
    gpu = torch.device("cuda:0")
    arrived = []
    for number in range(20):
        block = host_empty(1024, 4096, dtype=torch.float32, device=gpu).fill_(number)
        arrived.append(to_device(block, gpu))
        del block
    for number, tensor in enumerate(arrived):
        assert (tensor == number).all()


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
    recorded(dataset, "predict")
    run(tiny_bert, tmp_path, limit=20, tasks="pos", probes="linear")
    assert found == {"encode": {"highest"}, "predict": {"highest"}}


def test_no_tensor_on_a_mac_holds_four_gigabytes() -> None:
    metal, work = torch.device("mps"), Work(PROBES["mlp"], 768, 768, 200_000, 17, 3)
    layers, hold = group_layers(1 << 40, metal, work)
    assert hold
    assert 4 * 768 * 200_000 * layers < 1 << 32 <= 4 * 768 * 200_000 * (layers + 1)
    assert not group_layers(1 << 40, metal, replace(work, n_examples=2_000_000))[1]
    assert group_layers(1 << 40, torch.device("cuda"), work)[0] > layers
