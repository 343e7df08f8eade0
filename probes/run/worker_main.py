"""A helper of `--workers`: a process that makes what is free of another one's run.

Started as ``python -m probes.run.worker_main N``: it reads its request from standard input, and
writes its messages to the open file N, one JSON list a line.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from threading import RLock, Thread

from tqdm import tqdm

from probes.common.errors import UserError
from probes.common.origin import described
from probes.common.process import infrequent_garbage_collection, stopping_at_sigterm
from probes.common.terminal import progress
from probes.run.local_engine import LocalEngine
from probes.run.loop import make_records
from probes.run.workers import RunRequest


def worker_main() -> None:
    """Help until nothing is left to be made, or the process that is helped has ended."""
    with os.fdopen(int(sys.argv[1]), "w", encoding="utf-8") as messages:

        def send(*message: object) -> None:
            with suppress(BrokenPipeError):
                print(json.dumps(message, default=str), file=messages, flush=True)

        request = RunRequest(**json.loads(sys.stdin.readline()))
        Thread(target=end_with_parent, daemon=True).start()
        # The default is a semaphore of the system, which would outlive a process that is killed.
        tqdm.set_lock(RLock())
        # A helper that is stopped ends as a run does at Ctrl-C, with locks and files in order.
        with (
            suppress(KeyboardInterrupt),
            stopping_at_sigterm(),
            progress.forwarded(send),
            infrequent_garbage_collection(),
        ):
            help_with(request)


def help_with(request: RunRequest) -> None:
    """Make what is free of a run."""
    try:
        runs = request.runs()
        make_records(runs, engine=LocalEngine(runs, helpers=0))
    except UserError as error:
        # The process that is helped comes to the same job.
        progress.detail(f"a worker has ended: {error}")
    except Exception as error:  # noqa: BLE001 - others make its record, or say the same
        progress.warn(f"a worker has ended: {described(error)}")


def end_with_parent() -> None:
    """End at once when standard input is closed."""
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    worker_main()
    # At once: the interpreter takes seconds to clear up torch.
    with suppress(OSError):
        print(end="", flush=True)  # what a plug-in has printed
    os._exit(0)
