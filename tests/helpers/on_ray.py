"""Runs on Ray: a cluster on this machine, and what is left of one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest
from killing import ROOT

START_RAY = "import ray; ray.init('local', num_cpus=1, include_dashboard=False); ray.shutdown()"

MARK = "PROBES_TEST_MARK"
"""In the environment of processes whose descendants are looked for."""


@contextmanager
def running_cluster(*caches: Path | None, cores: Sequence[int] = (1, 1)) -> Iterator[Any]:
    """Nodes with a cache of their own each, or with that of this process if it is None."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster

    made = Cluster()
    made.added = []
    for number, (place, cpus) in enumerate(zip(caches, cores, strict=True)):
        own = {"env_vars": {"PROBES_CACHE_DIR": str(place)}} if place else {}
        first = {} if number else {"include_dashboard": False}
        made.added.append(made.add_node(num_cpus=cpus, **own, **first))
    try:
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def flags(models: Sequence[Path], corpus: Path, folder: Path, *more: str) -> list[str]:
    """A command line of a few seconds."""
    places = ["--output", str(folder / "results"), "--cache-dir", str(folder / "cache")]
    line = "--probes linear --device cpu --threads 1 --evidence selectivity"
    names = list(map(str, models))
    return ["--model", *names, "--corpus", str(corpus), *line.split(), *places, *more]


def scores(folder: Path) -> pd.DataFrame:
    """The leaderboard, times aside."""
    return pd.read_csv(folder / "results" / "leaderboard.csv").drop(columns="seconds")


@contextmanager
def started(line: Sequence[str], mark: Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A run in a group of processes of its own; all that it starts is marked, and ended at last."""
    script = f"import sys; from probes.cli.main import main; sys.exit(main({list(line)!r}))"
    run = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), MARK: str(mark), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield run
    finally:
        for process in marked(mark, run.pid):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        run.wait()


def marked(mark: Path, session: int | None = None) -> list[psutil.Process]:
    """Processes that descend from a marked one, or are in a session.

    Agents of Ray write their titles over their environment, and are known by the session alone.
    """
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            ours = process.environ().get(MARK) == str(mark) or os.getsid(process.pid) == session
            if ours and process.status() != "zombie":
                found.append(process)
    return found


def require_nothing_left(mark: Path, run: subprocess.Popen[str]) -> None:
    """Wait until neither a marked process nor another one of a run's session runs."""
    deadline = time.monotonic() + 20
    while left := marked(mark, run.pid):
        assert time.monotonic() < deadline, left
        time.sleep(0.2)


@cache
def why_not() -> str:
    """Why Ray does not start; empty if it does."""
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    try:
        done = subprocess.run(
            [sys.executable, "-c", START_RAY],
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
