"""Compares the numbers of two checkouts.

    python benchmarks/same_numbers.py BEFORE AFTER --work FOLDER --data-dir DIR [--only NAME …]
    python benchmarks/same_numbers.py … --without NAME

Runs the same commands in both checkouts, with separate results and a shared cache: `sample`; a part
of EWT, also with full evidence; structure, geometry and attention of two models; the plug-ins of
each checkout's guides. Then it compares all CSV files digit for digit. Each number in a record of
BEFORE must also be in AFTER's record of the same measurement, or in the record's arrays.
`--without` names measurements, metrics, facts and columns that AFTER lacks on purpose. Exits with 1
if anything differs.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

LEFT_OUT = {"seconds", "suite_version", "provenance", "encoding", "key", "plug_ins"}
"""Columns and fields that may differ: times, versions, digests of sources."""

BOTH = ("all-MiniLM-L6-v2", "random:all-MiniLM-L6-v2")

GUIDES = "tense kappa low_rank word_norms seed_agreement head_entropy norm_ratio"
"""Plug-ins in docs/*.md: a task, a metric, a probe family, measurements."""


def plug_ins(checkout: Path, folder: Path) -> list[str]:
    """Write the examples of a checkout's guides to files; returns the options that load them."""
    folder.mkdir(parents=True, exist_ok=True)
    options = []
    text = "\n".join(path.read_text("utf-8") for path in sorted((checkout / "docs").glob("*.md")))
    for name in GUIDES.split():
        match = re.search(rf"```python\n(# {name}\.py\n.*?)```", text, re.DOTALL)
        if not match:
            raise SystemExit(f"{checkout}/docs: no example {name}.py")
        path = folder / f"{name}.py"
        path.write_text(match[1], encoding="utf-8")
        options += ["--include", str(path.resolve())]
    return options


def commands(limit: int) -> dict[str, list[str]]:
    """Arguments of `run_probes.py` by name."""
    ewt = ["--corpus", "ewt", "--limit", str(limit)]
    return {
        "sample": ["--model", BOTH[0]],
        "ewt": ["--model", BOTH[0], *ewt, "--twins", "1"],
        "full": ["--model", BOTH[0], *ewt, "--tasks", "pos,depth", "--probes", "linear",
                 "--evidence", "full", "--twins", "0"],
        "corpus": ["--model", *BOTH, *ewt, "--measurements", "structure,geometry,attention"],
        "plug-ins": ["--model", *BOTH, "--limit", "400", "--tasks", "tense,pos",
                     "--probes", "linear,low_rank", "--evidence", "standard,seed_agreement",
                     "--measurements", "probes,word_norms,head_entropy,norm_ratio"],
    }  # fmt: skip


def main() -> int:
    """Run the commands, and print differences."""
    options = parse()
    options.work.mkdir(parents=True, exist_ok=True)
    named_commands = commands(options.limit)
    faults = []
    for name in options.only or named_commands:
        folders = []
        for side, checkout in (("before", options.before), ("after", options.after)):
            output = options.work / side / name
            arguments = [*named_commands[name], "--output", str(output.resolve())]
            if name == "plug-ins":
                arguments += plug_ins(checkout, options.work / "plug-ins" / side)
            run(checkout, arguments, options)
            folders.append(output)
        left_out = LEFT_OUT | set(options.without)
        lines = list(differences(folders[0], folders[1], left_out))
        print(f"{name}: {len(lines)} differences", flush=True)
        faults += lines
        for line in lines[:20]:
            print(f"  {line}", flush=True)
    return 1 if faults else 0


def parse() -> argparse.Namespace:
    """The arguments."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("before", type=Path, help="a checkout")
    parser.add_argument("after", type=Path, help="another")
    parser.add_argument("--work", type=Path, required=True, help="folder of results and cache")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=1500, help="sentences of EWT's splits")
    parser.add_argument("--only", nargs="+", help="some of the commands")
    parser.add_argument(
        "--without", nargs="+", default=(), help="names that AFTER lacks on purpose", metavar="NAME"
    )
    return parser.parse_args()


def run(checkout: Path, arguments: list[str], options: argparse.Namespace) -> None:
    """Run a checkout's `run_probes.py`; finished results are not computed again."""
    command = [sys.executable, "run_probes.py", *arguments, "--offline"]
    command += ["--cache-dir", str(options.work.resolve() / "cache")]
    command += ["--data-dir", str(options.data_dir.resolve())]
    with (options.work / "log.txt").open("a", encoding="utf-8") as log:
        environment = {**os.environ, "PYTHONPATH": ""}
        subprocess.run(command, cwd=checkout, check=True, stdout=log, stderr=log, env=environment)


def differences(before: Path, after: Path, left_out: set[str]) -> Iterator[str]:
    """Yield a line for each difference between two results folders."""
    for path in sorted(before.rglob("*.csv")):
        yield from table_differences(path, after / path.relative_to(before), left_out)
    for path in sorted(before.rglob("*-????????.json")):
        same = path.name.rsplit("-", 1)[0]
        places = list((after / path.relative_to(before).parent).glob(f"{same}-????????.json"))
        after_path = places[0] if len(places) == 1 else after / path.relative_to(before)
        yield from record_differences(path, after_path, left_out)


def table_differences(path: Path, after_path: Path, left_out: set[str]) -> Iterator[str]:
    """Yield rows that only one of two CSV files has."""
    if not after_path.exists():
        yield f"{after_path}: missing"
        return
    tables = []
    for file in (path, after_path):
        with file.open(encoding="utf-8", newline="") as opened:
            rows = [
                tuple(sorted((k, v) for k, v in row.items() if k not in left_out))
                for row in csv.DictReader(opened)
                if left_out.isdisjoint(row.values())
            ]
        tables.append(Counter(rows))
    for row in tables[0] - tables[1]:
        yield f"{path.name}: only before: {dict(row)}"
    for row in tables[1] - tables[0]:
        yield f"{path.name}: only after: {dict(row)}"


def record_differences(path: Path, after_path: Path, left_out: set[str]) -> Iterator[str]:
    """Yield numbers of a record that the other one lacks."""
    record = json.loads(path.read_text(encoding="utf-8"))
    if record["measurement"] in left_out:
        return
    if not after_path.exists():
        yield f"{after_path}: missing"
        return
    missing = set(numbers(without_metrics(record, left_out), left_out))
    missing -= set(numbers(json.loads(after_path.read_text("utf-8")), left_out))
    missing -= set(arrays(after_path.with_suffix(".npz")))
    if missing:
        yield f"{path.name}: numbers without a place: {sorted(missing)[:5]} … ({len(missing)})"


def without_metrics(record: dict[str, Any], left_out: set[str]) -> list[Any]:
    """A record without the rows of metrics in `left_out`."""
    rows = record.pop("rows")
    metric = rows.get("metric", [])
    if isinstance(metric, dict):
        metric = [metric["distinct"][i] for i in metric["at"]]
    columns = [x for x in (*rows.values(), *rows.get("axes", {}).values()) if isinstance(x, list)]
    kept_rows = [x for x in zip(metric, *columns, strict=True) if x[0] not in left_out]
    return [record, [list(cells) for cells in kept_rows]]


def numbers(value: Any, left_out: set[str]) -> Iterator[float]:
    """All non-integer numbers in a JSON value."""
    if isinstance(value, dict):
        for name, member in value.items():
            if name not in left_out:
                yield from numbers(member, left_out)
    elif isinstance(value, list):
        for member in value:
            yield from numbers(member, left_out)
    elif isinstance(value, float):
        yield value


def arrays(path: Path) -> Iterator[float]:
    """All numbers in the arrays beside a record."""
    if path.exists():
        with np.load(path, allow_pickle=False) as archive:
            for name in archive.files:
                if archive[name].dtype.kind == "f":
                    yield from archive[name].ravel().tolist()


if __name__ == "__main__":
    sys.exit(main())
