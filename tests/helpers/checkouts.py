"""Copies of the checkout."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def copy_checkout(target):
    """Copy the files and links that git knows, or would, but for tests and results."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=False)
    if files.returncode:
        pytest.skip("not a git repository")
    for name in filter(None, files.stdout.split("\0")):
        if (ROOT / name).exists() and not name.startswith(("results/", "tests/")):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name, follow_symlinks=False)
