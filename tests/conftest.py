"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with the real corpora; without it, the test is skipped."""
    folder = Path(os.environ.get("PROBES_DATA_DIR", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real corpora at {folder}; set PROBES_DATA_DIR to their folder")
    return folder
