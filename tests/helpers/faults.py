"""Runs that are killed: a driver that imports the suite once and forks a process per run.

``python tests/helpers/faults.py`` reads tasks from standard input, one JSON object a line, and answers
each with one line. A task is a command line of `run_probes.py` and where it is to die:

- ``{"run": [...]}``: not at all; the answer also counts what it wrote ("events"),
- ``{"run": [...], "kill_at": 17}``: by SIGKILL at its 17th event,
- ``{"run": [...], "kill_at": 17, "signal": 2}``: by another signal,
- ``{"together": [{"run": [...]}, ...]}``: several at once, which gives a list of answers.

Events are what changes a disk: every write to a file (half of it is written before the process
dies), rename, deletion, new folder, and flush to disk.
"""

from __future__ import annotations

import builtins
import io
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

WATCHED = ("replace", "rename", "unlink", "remove", "mkdir", "rmdir", "fsync")


class Events:
    """Counts what changes a disk, and dies at one of them."""

    def __init__(self, kill_at=None, number=signal.SIGKILL):
        self.seen = []
        self.kill_at = kill_at
        self.number = number
        self.lock = threading.Lock()

    def note(self, what, path, half=lambda: None):
        """One event, about to happen; `half` does a part of it."""
        with self.lock:
            self.seen.append([what, str(path)])
            if len(self.seen) == self.kill_at:
                if self.number == signal.SIGKILL:
                    half()
                os.kill(os.getpid(), self.number)
                if self.number == signal.SIGKILL:
                    time.sleep(60)

    def watch(self):
        """Wrap what Python writes with."""
        for name in WATCHED:
            setattr(os, name, self.wrapped(name, getattr(os, name)))
        opened = io.open

        def watched_open(file, mode="r", *args, **kwargs):
            handle = opened(file, mode, *args, **kwargs)
            writes = set(mode) & set("wax+")
            return Writer(handle, file, self) if writes else handle

        builtins.open = io.open = watched_open

    def wrapped(self, name, function):
        def watched(path, *args, **kwargs):
            self.note(name, path)
            return function(path, *args, **kwargs)

        return watched


class Writer:
    """A file whose writes are events."""

    def __init__(self, handle, path, events):
        self._handle, self._path, self._events = handle, path, events

    def write(self, content):
        def half():
            self._handle.write(content[: len(content) // 2])
            self._handle.flush()

        self._events.note("write", self._path, half)
        return self._handle.write(content)

    def __getattr__(self, name):
        return getattr(self._handle, name)

    def __enter__(self):
        self._handle.__enter__()
        return self

    def __exit__(self, *error):
        return self._handle.__exit__(*error)

    def __iter__(self):
        return iter(self._handle)


def short_schedule():
    """Probes that stop early, and stores of several shards."""
    from probes.extraction.reading import shards
    from probes.records.probe_spec import PROBES

    for family, spec in PROBES.items():
        PROBES[family] = spec.model_copy(
            update={"epochs": 1, "min_steps": 24, "hidden": spec.hidden // 16}
        )
    shards._MOST_BATCHES = 6


def child(task, answer):
    """Run a command line; in a process of its own."""
    os.setpgid(0, 0)
    log = os.open(task.get("log", os.devnull), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    from tqdm import tqdm

    from probes.cli.main import main

    # tqdm's own is shared by all that are forked, and one that was killed may hold it for ever.
    tqdm.set_lock(threading.RLock())
    # A shell without job control starts what it puts in the background with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    events = Events(task.get("kill_at"), task.get("signal", signal.SIGKILL))
    if task.get("watch", True):
        events.watch()
    status = main(task["run"])
    sys.stdout.flush()
    os.write(answer, json.dumps(events.seen).encode())
    os._exit(status)


def warm_up(model):
    """Import now what every child would import for itself."""
    import probes.cli.run
    import probes.run.runner  # noqa: F401
    from probes.data.find import find_corpus
    from probes.extraction.models.model_files import find_model
    from probes.run.inputs import LazyModel
    from probes.run.settings import validate

    find_corpus("sample", limit=1).load()
    LazyModel(find_model(model), validate({"device": "cpu"})).encoder  # noqa: B018


def serve():
    """Answer tasks until there are no more."""
    short_schedule()
    warm_up(sys.argv[1])
    for line in sys.stdin:
        task = json.loads(line)
        begun = [begin(one) for one in task.get("together", [task])]
        answers = [end(*one) for one in begun]
        print(json.dumps(answers if "together" in task else answers[0]), flush=True)


def begin(task):
    """Fork a process for a task."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        try:
            child(task, write)
        finally:
            os._exit(99)
    os.close(write)
    return pid, read


def end(pid, read):
    """Wait for the process; what became of it."""
    seen = b""
    while part := os.read(read, 1 << 16):
        seen += part
    os.close(read)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return {"status": status, "events": json.loads(seen or b"[]")}


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    serve()
