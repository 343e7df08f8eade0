"""Files to start from that a command copies: the name they are given, and where they go."""

from __future__ import annotations

import builtins
import importlib.util
import keyword
import re
import sys
from collections.abc import Container, Mapping
from pathlib import Path

from probes.common.errors import UserError
from probes.common.files import published, require_parent

_HERE = Path(__file__).parent

EXAMPLES = _HERE / "examples" if (_HERE / "examples").is_dir() else _HERE.parents[1] / "examples"
"""In a wheel it lies beside this file, in a checkout at the top."""


def examples_of(what: str) -> list[str]:
    """The names of the examples of tasks or of measurements."""
    files = sorted((EXAMPLES / what).glob("*.py"))
    return [path.stem for path in files if not path.stem.startswith("test_")]


def renamed_example(what: str, example: str, name: str) -> dict[str, str]:
    """The contents of an example's file and of its test under another name, by file name."""
    words = {example: name, example.replace("_", "-"): name.replace("_", "-")}
    words[_class_name(example)] = _class_name(name)
    pattern = re.compile(rf"\b(test_)?({'|'.join(words)})\b")
    return {
        f"{prefix}{name}.py": pattern.sub(
            lambda found: (found[1] or "") + words[found[2]],
            (EXAMPLES / what / f"{prefix}{example}.py").read_text(encoding="utf-8"),
        )
        for prefix in ("", "test_")
    }


def _class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


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
