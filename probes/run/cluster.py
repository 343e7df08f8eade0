"""Ray: this machine's cores and GPUs, or a cluster that runs already. Imported if asked for."""

from __future__ import annotations

import logging
import os
import socket
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from probes.common.errors import UserError
from probes.common.files import default_cache
from probes.common.process import sigterm_kept
from probes.compute.devices import available_cores
from probes.run.config import RunConfig

_PATIENCE = 10.0
"""Seconds until a cluster has to answer."""

OPTIONS: dict[str, Any] = {
    "include_dashboard": False,
    "log_to_driver": False,
    "logging_level": logging.ERROR,
}


def connect(address: str | None) -> tuple[Any, bool]:
    """The module `ray`, connected, and whether Ray was started for that.

    Args:
        address: of a cluster that runs already, "auto" for the one of this machine; None to start
            Ray on this machine, reachable from this machine alone.

    Raises:
        UserError: Ray is not installed, or there is no such cluster.
    """
    # Read when Ray is imported: nothing is reported to its authors.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if address is None:
        # Otherwise Ray listens on all interfaces of a Linux machine.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    try:
        import ray
    except ImportError as error:
        raise UserError(
            "--engine ray: Ray is not installed; pip install 'probing-suite[cluster]'."
        ) from error
    if ray.is_initialized():
        return ray, False
    if address is None:
        with sigterm_kept():
            # Without "local", Ray would join another cluster of this machine.
            ray.init("local", num_cpus=available_cores(), _node_ip_address="127.0.0.1", **OPTIONS)
        return ray, True
    try:
        _require_listener(address)
        with sigterm_kept():
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError) as error:
        raise UserError(
            f"--address {address}: no cluster answers there ({str(error).splitlines()[0]}); start "
            "one with `ray start --head`, or leave --address out to use this machine alone."
        ) from error
    return ray, False


def _require_listener(address: str) -> None:
    """Check that something listens at ``host:port``: Ray itself would try for minutes.

    Raises:
        OSError: nothing does.
        ValueError: there is no such port.
    """
    host, colon, port = address.rpartition(":")
    if colon and "//" not in address:
        with socket.create_connection((host, int(port)), timeout=_PATIENCE):
            pass


def alive(ray: Any) -> list[dict[str, Any]]:
    """Ray's description of the nodes that are alive, in a fixed order."""
    return sorted((x for x in ray.nodes() if x["Alive"]), key=lambda node: str(node["NodeID"]))


def cache_of_node(marks: Sequence[Path], cache: Path) -> str:
    """The cache of the node where this runs; empty if it shares the driver's files.

    Args:
        marks: files that the driver has written.
        cache: the driver's default cache; a node with another one keeps what it encodes there.
    """
    node_cache = default_cache()
    shared = node_cache == cache and all(mark.is_file() for mark in marks)
    return "" if shared else str(node_cache)


def caches(ray: Any, config: RunConfig, nodes: Mapping[str, str]) -> dict[str, str]:
    """The cache of each node, as `cache_of_node` finds it; a node that is lost meanwhile has none.

    Args:
        nodes: their addresses, by their id.

    Raises:
        UserError: one cannot run the suite.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    folders = (config.output / "runs", config.cache_dir / "vectors")
    marks = [folder.absolute() / f".mark-{uuid.uuid4().hex}" for folder in folders]
    try:
        for mark in marks:
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
        futures = {}
        for name in nodes:
            strategy = NodeAffinitySchedulingStrategy(name, soft=False)
            remote = ray.remote(cache_of_node).options(num_cpus=0, scheduling_strategy=strategy)
            futures[name] = remote.remote(marks, default_cache())
        cache_by_node = {}
        for name, ref in futures.items():
            try:
                cache_by_node[name] = ray.get(ref)
            except ray.exceptions.RayTaskError as error:
                last_line = str(error).strip().splitlines()[-1]
                raise UserError(
                    f"--engine ray: the node {nodes[name]} cannot run the suite "
                    f"({last_line}); install the same software on all nodes."
                ) from error
            except ray.exceptions.RayError:
                continue
        return cache_by_node
    finally:
        for mark in marks:
            mark.unlink(missing_ok=True)
