"""Flags that several sub-commands share."""

from __future__ import annotations

import argparse
from pathlib import Path

from common.places import default_cache, default_data_dir


def add_places(parser: argparse.ArgumentParser) -> None:
    """Add `--data-dir` and `--cache-dir`."""
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        default=default_data_dir(),
        help="searched for registered files before the cache (PROBES_DATA_DIR)",
    )
    parser.add_argument(
        "--cache-dir",
        type=Path,
        metavar="DIR",
        default=default_cache(),
        help="downloads are kept in its folder `corpora` (PROBES_CACHE_DIR)",
    )
