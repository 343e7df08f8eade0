"""What a result says about how it was made."""

import re
from importlib.metadata import version

import torch

from probes.run.job_record import provenance


def test_command_versions_machine_and_state_of_the_code():
    found = provenance("python run_probes.py", torch.device("cpu"))
    assert found["command"] == "python run_probes.py"
    assert found["device"] == "cpu"
    assert found["torch"] == version("torch")  # torch.__version__ may name CUDA, too
    assert int(found["cores"]) >= 1
    assert re.fullmatch(r"\d+ GiB", found["memory"])
    assert found["processor"]
    # No repository, no commit.
    assert re.fullmatch(r"[0-9a-f]{40}( with changes)?", found.get("git", "0" * 40))
