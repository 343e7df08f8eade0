"""No step of training and no forward pass makes the host wait for a device.

Seen on a simulated one: `tests/helpers/second_device.py` says what it lists, and what it cannot
see. What a piece of work lists once, such as copies of starting parameters, does not grow with it.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def waits(tiny_bert):
    """For each piece of work, how often each line waited in a short one and in one twice as long."""
    script = TESTS / "helpers" / "waiting_steps.py"
    env = {**os.environ, "PYTHONPATH": str(TESTS.parent)}
    done = subprocess.run(
        [sys.executable, script, tiny_bert], capture_output=True, text=True, env=env
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("features differ") < 1e-6
    return {
        work: [Counter(sorted(line.rsplit(":", 1)[0] for line in lines)) for lines in of_work]
        for work, of_work in found.items()
    }


def test_the_simulation_sees_what_waits(waits):
    (seen,) = waits["all kinds"]
    assert seen["helpers/waiting_steps.py"] == 9


@pytest.mark.parametrize("work", ["linear, steps", "linear, batches", "mlp, steps", "mlp, batches"])
def test_steps_of_adam_wait_for_nothing(waits, work):
    short, long = waits[work]
    assert short
    assert long == short


def test_an_iteration_of_lbfgs_reads_twice(waits):
    """Which cells have not converged, and which steps are to be shortened."""
    short, long = waits["l-bfgs, iterations"]
    assert long - short == {"training/full_batch.py": 2 * 3}


@pytest.mark.parametrize("work", ["words, passes", "texts, passes"])
def test_what_is_kept_of_a_pass_stays_on_the_device(waits, work):
    """A shard is waited for once, when it is finished. Models look whether their masks hide any."""
    short, long = waits[work]
    assert short["compute/memory.py"] == long["compute/memory.py"] == 1
    n_more = long["transformers/masking_utils.py"] - short["transformers/masking_utils.py"]
    assert long - short == {"transformers/masking_utils.py": n_more}
    assert n_more == 5  # passes


def test_spans_are_averaged_on_the_device(waits):
    """Rows go there as they are stored, and nothing comes back."""
    assert waits["features, readings"] == [{}, {}]
