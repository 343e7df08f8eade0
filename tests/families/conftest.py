"""Modules beside a family's tests are imported by their names."""

import sys
from pathlib import Path

import pytest

sys.path += [str(folder) for folder in sorted(Path(__file__).parent.iterdir()) if folder.is_dir()]


@pytest.fixture(scope="session")
def session_runs(tmp_path_factory):
    """See `measuring.SessionRuns`."""
    from measuring import SessionRuns

    return SessionRuns(tmp_path_factory)
