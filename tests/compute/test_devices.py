"""Runs on a simulated second device (tests/helpers/second_device.py)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from probes.common.errors import UserError
from probes.compute.devices import pick_device, require_products

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def found(tiny_bert, tmp_path_factory):
    done = subprocess.run(
        [
            sys.executable,
            TESTS / "helpers" / "on_both_devices.py",
            tiny_bert,
            tmp_path_factory.mktemp("both"),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS.parent)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_another_device_gives_the_same_numbers(found):
    assert found["mixed"]
    assert len(found["cpu"]) == 6
    # Prefixes of this code go side by side there, and so do seeds 1 and 2 of MLPs.
    assert found["cpu"]["pos linear"][-1] > 0
    assert found["cpu"].keys() == found["elsewhere"].keys()
    for unit, numbers in found["cpu"].items():
        assert found["elsewhere"][unit] == pytest.approx(numbers, rel=1e-3, abs=0.02), unit


def test_a_training_step_copies_nothing_between_devices(found):
    short, twice_as_long = found["crossings"]
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
