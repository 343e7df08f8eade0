"""Whether Ray starts on this machine, which may have too little shared memory or no network."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import pytest

SCRIPT = "import ray; ray.init('local', num_cpus=1, include_dashboard=False); ray.shutdown()"


@cache
def why_not() -> str:
    """Why Ray does not start; empty if it does."""
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    try:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "it does not start within two minutes"
    lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    return "" if done.returncode == 0 else lines[-1]


def require_ray() -> None:
    """Skip the test if Ray does not start here, saying why."""
    if why := why_not():
        pytest.skip(f"Ray does not start on this machine: {why}")
