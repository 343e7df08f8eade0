"""Asks `faults.py` for runs that are killed, and says what a run has written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from probes.frames.frame import HEADERS, ROWS
from probes.records.parameters import CACHE

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "data" / "sample"


def small_corpus(folder, n=12):
    """The first sentences of each split of the sample, as CoNLL-U files."""
    folder.mkdir()
    for split in ("train", "dev", "test"):
        (source,) = SAMPLE.glob(f"*{split}*.conllu")
        sentences = source.read_text(encoding="utf-8").split("\n\n")[:n]
        (folder / f"{split}.conllu").write_text("\n\n".join(sentences) + "\n\n")
    return folder


def command(model, corpus, folder, *more):
    """A command line of a few seconds: two tasks, two views, evidence, tables, leaderboard."""
    flags = "--tasks pos,agreement --probes linear --evidence selectivity --twins 0"
    flags += " --device cpu --batch-tokens 400 -q"
    places = ["--output", str(folder / "results"), "--cache-dir", str(folder / "cache")]
    return ["--model", str(model), "--corpus", str(corpus), *flags.split(), *places, *more]


class Driver:
    """A process that runs command lines in forks of itself."""

    def __init__(self, model):
        self._process = subprocess.Popen(
            [sys.executable, str(ROOT / "tests" / "helpers" / "faults.py"), str(model)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def start(self, run, **task):
        """Begin a run; see `faults.py`."""
        self._process.stdin.write(json.dumps({"run": run, **task}) + "\n")
        self._process.stdin.flush()

    def ask_together(self, tasks):
        """Begin several runs at once and wait for all of them."""
        self._process.stdin.write(json.dumps({"together": tasks}) + "\n")
        self._process.stdin.flush()
        return self.answer()

    def answer(self):
        """The answer to a run: its status and events."""
        return json.loads(self._process.stdout.readline())

    def ask(self, run, **task):
        """Begin a run and wait for it."""
        self.start(run, **task)
        return self.answer()

    def close(self):
        """End the process."""
        self._process.stdin.close()
        self._process.wait()


def event_kinds(events, folder):
    """Numbers of the first event of each kind, counted from 1.

    Events of one kind do the same to files of the same purpose.
    """
    first = {}
    for number, (what, path) in enumerate(events, start=1):
        name = path.replace(str(folder), "")
        name = re.sub(r"[0-9a-f]{32}", "store", re.sub(r"\.\w{8}(?=(\.\w+)?$)", "", name))
        name = re.sub(r"\d{5}(?=-|\.lock$|/|$)", "shard", re.sub(r"layer-\d\d", "layer", name))
        first.setdefault((what, "fd" if path.isdigit() else name), number)
    return sorted(first.values())


def logged(folder, event):
    """The events of a kind in the logs of all runs, one of which may be writing a line."""
    lines = [
        json.loads(line)
        for path in sorted((folder / "results" / "runs").iterdir())
        for line in path.read_text(encoding="utf-8").rpartition("\n")[0].splitlines()
    ]
    return [line for line in lines if line["event"] == event]


def wait_for(condition, seconds=180):
    """Return when a condition holds; fail if it does not within that time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def age(folder):
    """Make what is there two hours old, as if the run had been killed then."""
    past = time.time() - 7200
    for path in folder.rglob(".part-*"):
        os.utime(path, (past, past))


def written(folder):
    """The files of a run by their place, apart from what no two runs share.

    These are times, the command, the log, the place of the cache, and the cache of the frame, which
    knows times.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir() or path.suffix == ".jsonl":
            continue
        if path.name in (HEADERS, ROWS, CACHE):
            continue
        if path.suffix == ".npz":
            with np.load(path) as arrays:
                found[name] = {key: arrays[key].tolist() for key in arrays}
        elif path.suffix == ".json":
            content = json.loads(path.read_bytes())
            found[name] = {k: v for k, v in content.items() if k not in ("seconds", "provenance")}
        elif path.name == "leaderboard.csv":
            lines = [line.split(",") for line in path.read_text().splitlines()]
            column = lines[0].index('"seconds"')
            found[name] = [line[:column] + line[column + 1 :] for line in lines]
        elif path.suffix == ".png":
            found[name] = "a picture"
        else:
            found[name] = path.read_bytes()
    return found
