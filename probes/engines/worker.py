"""What runs in a worker: it computes the units that it is sent, and sends what it has to say."""

from __future__ import annotations

import os
import pickle
import traceback
from contextlib import suppress
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from threading import Lock, RLock, Thread

from tqdm import tqdm

from probes.common.errors import UserError
from probes.common.garbage_collection import infrequent_garbage_collection
from probes.common.origin import described
from probes.common.stopping import Sigterm
from probes.common.terminal import progress
from probes.engines.dispatcher import Said, Started
from probes.engines.rebuilt import RebuiltRun, RunRequest
from probes.engines.units import Asked


def work(pipe: Connection, request: RunRequest) -> None:
    """Compute units until the pipe is closed or SIGTERM comes.

    Units come with whether to wait for other runs. Sent are `Started`, then `Said` at any time, and
    for each unit its `Outcome`; or, at last, the exception that ends the run.
    """
    Thread(target=_end_with_parent, daemon=True).start()
    # The default is a semaphore of the system, which would outlive a worker that is killed.
    tqdm.set_lock(RLock())
    lock = Lock()

    def send(what: object) -> None:
        with lock, suppress(BrokenPipeError):
            pipe.send(what)

    with suppress(KeyboardInterrupt):
        # A worker that is stopped ends as a run does at Ctrl-C, with locks and files in order.
        Sigterm().stops()
        send(Started())
        try:
            # The process that has started this one has said the same.
            progress.forward = lambda *message: None
            run = RebuiltRun(request)
            progress.forward = lambda *message: send(Said(*message))
            with infrequent_garbage_collection():
                while (asked := _next(pipe)) is not None:
                    unit, waiting = asked
                    send(run.compute(unit, wait=waiting))
        except Exception as error:  # noqa: BLE001 - raised where the run is
            send(portable(error))
    # Files and locks are in order. The interpreter takes seconds to clear up torch.
    with suppress(OSError):
        print(end="", flush=True)  # what a plug-in has printed
    os._exit(0)


def _next(pipe: Connection) -> tuple[Asked, bool] | None:
    """A unit and whether to wait for other runs; None if there are no more."""
    try:
        asked: tuple[Asked, bool] = pipe.recv()
        return asked
    except EOFError:
        return None


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def portable(error: Exception) -> Exception:
    """An exception that another process can read: this one, or one that says the same.

    Where it was raised is in a note.
    """
    if isinstance(error, UserError):
        return UserError(str(error))
    note = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    except Exception:  # noqa: BLE001 - whatever its class does
        error = RuntimeError(described(error))
    error.add_note(note)
    return error
