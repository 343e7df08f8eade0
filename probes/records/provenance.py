"""Provenance of a record: command, versions, machine, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path

import torch

from probes import __version__
from probes.records.record import SCHEMA_VERSION

PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "scipy")


def provenance(command: str, device: torch.device) -> dict[str, str]:
    """Command, versions and machine of this run; what is unknown is left out."""
    found = {
        "command": command,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "processor": _processor(),
        "cores": str(os.cpu_count() or ""),
        "memory": _memory(),
        "device": _device(device),
        "threads": str(torch.get_num_threads()),
        "git": _git(),
        "probes": __version__,
        "schema": str(SCHEMA_VERSION),
        **{package: version(package) for package in PACKAGES},
    }
    return {name: value for name, value in found.items() if value}


@cache
def _processor() -> str:
    """Model of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def _memory() -> str:
    """The machine's main memory."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return ""
    return f"{size / 2**30:.0f} GiB"


def _device(device: torch.device) -> str:
    if device.type == "cuda":
        return f"{device} ({torch.cuda.get_device_name(device)})"
    return str(device)


@cache
def _git() -> str:
    """Commit of the suite's repository, and whether tracked files were changed."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return ""
    try:
        commit = _output(root, "rev-parse", "HEAD")
        changed = _output(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return ""
    return commit + " with changes" * bool(changed)


def _output(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=10, check=True
    )
    return done.stdout.strip()
