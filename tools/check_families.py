"""Deletes each family of measurements in a copy, and checks that the rest works without it.

    python tools/check_families.py [FAMILY …]

In each copy it runs ruff, imports every module, shows the help of all commands, reads the published
results, and runs the tests of boards and commands that name no measurement of the family.
"""

from __future__ import annotations

import contextlib
import io
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]

TESTS = "tests/boards", "tests/cli/test_commands.py"
"""Tests of what shows records of any measurement."""

PUBLISHED = "results/published/all-MiniLM-L6-v2-07db4e1f/sample"

SHOWN = (
    *(["claims", PUBLISHED], ["leaderboard", PUBLISHED]),
    ["report", PUBLISHED, "-o", "page.html"],
)


def check(family: str) -> str:
    """The complaint about a copy without the family; empty if everything works."""
    from probes.measurements.catalogue import measurement_families

    registered = measurement_families()[f"probes.families.{family}"]
    names = [*registered.measurements, *registered.evidence, *registered.commands]
    names += registered.figures
    with TemporaryDirectory() as folder:
        copy = Path(folder, "copy")
        _copy_without(family, copy)
        word = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")
        tests = [
            str(path.relative_to(copy))
            for place in TESTS
            for path in sorted([*(copy / place).rglob("test_*.py")] or [copy / place])
            if not word.search(path.read_text("utf-8"))
        ]
        python = (sys.executable, "-W", "ignore")
        few = ("-m", "not slow and not integration and not exhaustive", "-p", "no:cacheprovider")
        environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        for command in (
            (*python, "-m", "ruff", "check", "--quiet", "--no-cache", "."),
            (*python, "tools/check_families.py", "--here"),
            (*python, "-m", "pytest", "--quiet", "--exitfirst", *few, *tests),
        ):
            done = subprocess.run(
                command, cwd=copy, env=environment, capture_output=True, text=True
            )
            if done.returncode:
                said = f"{done.stdout}\n{done.stderr}".strip().splitlines()[-40:]
                return "\n".join([f"without {family}: {' '.join(command[3:6])}", *said])
    return ""


def _copy_without(family: str, copy: Path) -> None:
    """Copy the files that git knows, or would, but for those of the family."""
    listed = ("git", "ls-files", "--cached", "--others", "--exclude-standard")
    every = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    left_out = (f"probes/families/{family}/", f"tests/families/{family}/", "results/")
    for name in every.stdout.splitlines():
        if not name.startswith(left_out) and (ROOT / name).is_file():
            target = copy / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
    (copy / "results").symlink_to(ROOT / "results")


def check_here() -> None:
    """Import every module of this copy, and show help, lists and the published results."""
    import probes
    from probes.__main__ import COMMANDS, main
    from probes.cli.main import main as run

    assert Path(probes.__file__).is_relative_to(Path.cwd())
    for folder in ("probes", "common", "data", "tasks"):
        prefix = "probes." if folder == "probes" else f"probes.{folder}."
        for module in pkgutil.walk_packages([str(Path.cwd() / folder)], prefix):
            if not module.name.endswith("__main__"):
                import_module(module.name)
    for name in COMMANDS:
        _require(main, [name, "--help"])
    for given in SHOWN:
        _require(main, given)
    _require(run, ["--help"])
    _require(run, ["--list-measurements"])


def _require(command: Callable[[Sequence[str]], int], arguments: Sequence[str]) -> None:
    """Check that a command succeeds and prints something."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            status: object = command(arguments)
        except SystemExit as stop:  # after help
            status = stop.code
    if status or not printed.getvalue():
        sys.exit(f"{' '.join(arguments)}: exit status {status}\n{printed.getvalue()}")


def main(arguments: Sequence[str]) -> None:
    """Check the named families, or all of them, two at a time."""
    if list(arguments) == ["--here"]:
        return check_here()
    every = sorted(x.name for x in (ROOT / "probes" / "families").iterdir() if x.name[0] != "_")
    with ThreadPoolExecutor(2) as pool:
        names = list(arguments) or every
        complaints = [x for x in pool.map(check, names) if x]
    if complaints:
        sys.exit("\n\n".join(complaints))
    print(f"each can be deleted: {', '.join(names)}")
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
