"""Settings of this process: SIGTERM stops a run like Ctrl-C, and garbage is collected less often.

SIGTERM comes from `docker stop`, Kubernetes, `kill` or a job's time limit. Only commands and
workers change signal handlers; a program that imports the suite keeps its own.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer, current_thread, main_thread
from types import FrameType


class Sigterm:
    """Raises KeyboardInterrupt at the first SIGTERM. (`timeout` sends two.)

    Attributes:
        came: whether SIGTERM has come. Libraries may turn the exception into another one.
    """

    came = False

    def stops(self) -> None:
        """Install the handler; SIGINT stays as it is."""
        signal.signal(signal.SIGTERM, self._stop)
        sys.unraisablehook = self._stop_again

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self.came = True
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    def _stop_again(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Send SIGTERM again if Python ignored the exception, as it does in `__del__`."""
        if self.came and issubclass(unraisable.exc_type, KeyboardInterrupt):
            signal.signal(signal.SIGTERM, self._stop)
            timer = Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM))
            timer.daemon = True
            timer.start()
        else:
            sys.__unraisablehook__(unraisable)


@contextmanager
def stopping_at_sigterm() -> Iterator[Sigterm]:
    """Let SIGTERM stop the block, unless the process already has a handler for it."""
    sigterm = Sigterm()
    is_default = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not is_default or current_thread() is not main_thread():
        yield sigterm
        return
    hook = sys.unraisablehook
    sigterm.stops()
    try:
        yield sigterm
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def sigterm_kept() -> Iterator[None]:
    """Keep the handler of SIGTERM in a block where a library would exit at SIGTERM."""
    if current_thread() is not main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit:
        # SIGTERM came, and the library has cleaned up.
        signal.signal(signal.SIGTERM, handler)
        signal.raise_signal(signal.SIGTERM)
        raise
    finally:
        signal.signal(signal.SIGTERM, handler)


def same_imports() -> dict[str, str]:
    """Environment of a further Python process that finds the modules that this one finds."""
    (root, *_) = map(os.path.dirname, sys.modules["probes"].__path__)
    paths = os.pathsep.join([root, *(path or os.getcwd() for path in sys.path)])
    return {**os.environ, "PYTHONPATH": paths}


@contextmanager
def infrequent_garbage_collection() -> Iterator[None]:
    """Run Python's garbage collector less often inside the block.

    With a corpus or many records in memory, the default of one collection per 700 new objects takes
    a quarter of the time or more. Reference cycles are still collected, but later.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(100_000, 10, 10)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
