"""Writes probes/cli/setting_types.pyi: the settings of a run, for type checkers and editors.

    python tools/write_setting_types.py     # run it after a change of `RunConfig`

A test compares the two.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from textwrap import fill

from probes.cli.own_vectors import FROM_VECTORS
from probes.run.config import RunConfig
from probes.run.settings import accepted_type

FILE = Path(__file__).parents[1] / "probes" / "cli" / "setting_types.pyi"


def typed_dict(header: str, names: Iterable[str]) -> str:
    """A class with a line for each setting, and its description below."""
    lines = [f"class {header}, total=False):"]
    for name in names:
        description = fill(f'"""{RunConfig.model_fields[name].description}"""', 96)
        lines += [f"{name}: {accepted_type(name)}", *description.splitlines()]
    return "\n    ".join(lines)


def setting_types() -> str:
    """The content of the file."""
    fitting = [name for name in RunConfig.model_fields if name not in FROM_VECTORS]
    parts = (
        "# Written by tools/write_setting_types.py from RunConfig.",
        "from collections.abc import Sequence\nfrom pathlib import Path\n"
        "from typing import Any, Literal, TypedDict",
        typed_dict("FitSettings(TypedDict", fitting),
        typed_dict("RunSettings(FitSettings", FROM_VECTORS),
    )
    formatter = [sys.executable, "-m", "ruff", "format", "--stdin-filename", FILE.name, "-"]
    return subprocess.run(
        formatter, input="\n\n".join(parts), capture_output=True, text=True, check=True
    ).stdout


if __name__ == "__main__":
    FILE.write_text(setting_types(), "utf-8")
