"""Writes probes/cli/setting_types.pyi: the settings of a run, for type checkers and editors.

    python tools/write_setting_types.py     # run it after a change of `RunConfig`

A test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from textwrap import indent, wrap

from probes.cli.own_vectors import FROM_VECTORS
from probes.run.config import RunConfig
from probes.run.settings import accepted_type

FILE = Path(__file__).parents[1] / "probes" / "cli" / "setting_types.pyi"

HEAD = """\
# Written by tools/write_setting_types.py from RunConfig.

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict
"""


def typed_dict(header: str, names: Iterable[str]) -> str:
    """A class with a line for each setting, and its description below."""
    lines = []
    for name in names:
        lines.append(f"{name}: {accepted_type(name)}".replace("'", '"'))
        lines += wrap(f'"""{RunConfig.model_fields[name].description}"""', 96)
    return f"\nclass {header}, total=False):\n" + indent("\n".join(lines), "    ") + "\n"


def setting_types() -> str:
    """The content of the file."""
    fitting = [name for name in RunConfig.model_fields if name not in FROM_VECTORS]
    of_fits = typed_dict("FitSettings(TypedDict", fitting)
    return HEAD + of_fits + typed_dict("RunSettings(FitSettings", FROM_VECTORS)


if __name__ == "__main__":
    FILE.write_text(setting_types(), "utf-8")
