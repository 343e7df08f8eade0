import pytest
import torch

from probes.compute.memory import ToHost, host_empty, to_device

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
