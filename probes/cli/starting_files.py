"""Files to start from that a command writes: the name they are given, and where they go."""

from __future__ import annotations

import builtins
import importlib.util
import keyword
import sys
from collections.abc import Container, Mapping
from pathlib import Path

from probes.common.errors import UserError
from probes.common.files import published, require_parent


def require_usable_name(command: str, name: str, folder: Path, imported: Container[str]) -> None:
    """Check that a file and what it defines can have this name.

    Args:
        imported: names that the written file imports.

    Raises:
        UserError: they cannot.
    """
    if not name.isidentifier() or name.startswith("_") or len(name) > 60:
        raise UserError(
            f"{command} {name}: it becomes the name of a file and a function; use up to 60 "
            "letters, digits and _, and begin with a letter."
        )
    if keyword.iskeyword(name) or hasattr(builtins, name) or name in imported:
        raise UserError(
            f"{command} {name}: Python or the file itself uses this name; choose another."
        )
    module = importlib.util.find_spec(name)
    own = folder.resolve() / f"{name}.py"  # which is refused for what it is
    if name in sys.stdlib_module_names or (module and Path(module.origin or "").resolve() != own):
        raise UserError(
            f"{command} {name}: {name}.py would hide the module {name!r}; choose another name."
        )


def write_new(command: str, name: str, folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write files that do not exist yet; the folder is made if its parent exists.

    Returns:
        their paths.

    Raises:
        UserError: the folder cannot be created, or a file exists already.
    """
    paths = {folder / file: text for file, text in texts.items()}
    require_parent(folder)
    if folder.is_file():
        raise UserError(f"--folder {folder} is a file; name a folder.")
    for path in paths:
        if path.exists():
            raise UserError(f"{command} {name}: {path} exists already; choose another name.")
    for path, text in paths.items():
        with published(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return list(paths)
