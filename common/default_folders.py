"""Default folders; environment variables override them."""

from __future__ import annotations

import os
from pathlib import Path


def default_cache() -> Path:
    """`PROBES_CACHE_DIR`, or `probes` in the user's cache folder."""
    if folder := os.environ.get("PROBES_CACHE_DIR"):
        return Path(folder)
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "probes"


def default_data_dir() -> Path | None:
    """`PROBES_DATA_DIR`, if it is set."""
    folder = os.environ.get("PROBES_DATA_DIR")
    return Path(folder) if folder else None
