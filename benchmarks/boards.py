"""Processor time and memory of the commands that read a folder of thousands of records.

    python benchmarks/boards.py CHECKOUT … [--work FOLDER] [--copies N] [--only NAME …]

Copies the published records under N model names, and runs each command twice in every checkout, the
first time with an empty cache of the user. Prints processor seconds and the largest memory of a
process. What a command prints and writes is kept in FOLDER/outputs; exits with 1 if that of two
checkouts, or of two runs, differs in a byte.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

PUBLISHED = Path(__file__).parents[1] / "results" / "published"

MODELS = "bert-mlm-tiny", "gemma-3-270m"

PAGE = "{page}"
"""Stands for the path of the page that a command writes."""

COMMANDS = {
    "leaderboard": ["leaderboard"],
    "leaderboard csv": ["leaderboard", "--format", "csv"],
    "compare": ["compare", *MODELS, "--results"],
    "compare csv": ["compare", *MODELS, "--format", "csv", "--results"],
    "claims": ["claims"],
    "claims csv": ["claims", "--format", "csv"],
    "show": ["show"],
    "show csv": ["show", "--format", "csv"],
    "report": ["report", "-o", PAGE],
}
"""Arguments by name; the folder of records comes after them."""


def main() -> int:
    """Run the commands, and print a line for each checkout and command."""
    options = parse()
    options.work.mkdir(parents=True, exist_ok=True)
    folder = options.work / f"{options.copies}-copies"
    if not folder.exists():
        copy_records(folder, options.copies)
    print(f"{len(list(folder.rglob('*-????????.json'))):,} records in {folder}")
    outputs = options.work / "outputs" / folder.name
    differing = set()
    for name in options.only or COMMANDS:
        for checkout in options.checkouts:
            cache = options.work / "caches" / checkout.resolve().name
            if not options.warm:
                shutil.rmtree(cache, ignore_errors=True)
            for run in range(options.runs):
                content, seconds, memory = timed(checkout.resolve(), name, folder, cache)
                turn = "again" if run or options.warm else "first"
                print(f"{name:<16} {checkout} {turn}: {seconds:.2f} s, {memory:.0f} MB", flush=True)
                path = outputs / checkout.resolve().name / name
                path.parent.mkdir(parents=True, exist_ok=True)
                if run and path.read_bytes() != content:
                    differing.add(name)
                path.write_bytes(content)
        if len({path.read_bytes() for path in outputs.glob(f"*/{name}")}) > 1:
            differing.add(name)
    print(f"outputs differ: {', '.join(differing)}" if differing else "outputs are equal")
    return 1 if differing else 0


def parse() -> argparse.Namespace:
    """The arguments."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkouts", nargs="+", type=Path, help="with an environment in .venv")
    parser.add_argument("--work", type=Path, default=Path("build/boards"), help="folder of records")
    parser.add_argument("--copies", type=int, default=9, help="number of model names")
    parser.add_argument("--only", nargs="+", choices=COMMANDS, metavar="NAME", help="some commands")
    parser.add_argument("--runs", type=int, default=2, help="of each command (default: 2)")
    parser.add_argument("--warm", action="store_true", help="keep the cache of the last time")
    return parser.parse_args()


def copy_records(folder: Path, n: int) -> None:
    """Copy the published records under n names of each model, with links to their arrays."""
    temporary = folder.with_suffix(".part")
    shutil.rmtree(temporary, ignore_errors=True)
    for number in range(1, n + 1):
        suffix = f"-{number}" * (number > 1)
        for path in PUBLISHED.rglob("*-????????.json"):
            model, *parts = path.relative_to(PUBLISHED).parts
            copy = temporary.joinpath(model + suffix, *parts)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(json.dumps(renamed(json.loads(path.read_text("utf-8")), suffix)))
            if (arrays := path.with_suffix(".npz")).exists():
                os.link(arrays, copy.with_suffix(".npz"))
    temporary.rename(folder)


def renamed(record: dict[str, Any], suffix: str) -> dict[str, Any]:
    """A record of a model of another name; keys do not cover names."""
    for role in ("model", "base"):
        if record.get(role):
            record[role]["name"] += suffix
    return record


def timed(checkout: Path, name: str, folder: Path, cache: Path) -> tuple[bytes, float, float]:
    """Output of a command, printed and written, its processor seconds, and its memory in MB."""
    page = cache / "report.html"
    cache.mkdir(parents=True, exist_ok=True)
    words = [str(page.resolve()) if x == PAGE else x for x in COMMANDS[name]]
    command = [str(checkout / ".venv/bin/python"), "-m", "probes", *words, str(folder.resolve())]
    environment = {**os.environ, "PROBES_CACHE_DIR": str(cache.resolve()), "OMP_NUM_THREADS": "1"}
    with (cache / "printed").open("w+b") as printed:
        process = subprocess.Popen(command, cwd=checkout, stdout=printed, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)}: status {process.returncode}")
        printed.seek(0)
        content = printed.read()
    content = content.replace(str(page.resolve()).encode(), b"")
    content += page.read_bytes() if PAGE in COMMANDS[name] else b""
    return content, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
