"""SIGTERM as a stop like Ctrl-C: `docker stop`, Kubernetes, `kill`, a job's time limit.

Only a process that is the suite's own, a command or a worker, changes what signals do.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer, current_thread, main_thread
from types import FrameType


class Sigterm:
    """SIGTERM raises KeyboardInterrupt, once: `timeout`, for one, sends it twice.

    Attributes:
        came: whether it has come. Libraries may turn the exception into another one.
    """

    came = False

    def stops(self) -> None:
        """Begin with that; SIGINT stays as it is."""
        signal.signal(signal.SIGTERM, self._stop)
        sys.unraisablehook = self._stop_again

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self.came = True
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    def _stop_again(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Have it come again if it came while an object was deleted, where Python ignores it."""
        if self.came and issubclass(unraisable.exc_type, KeyboardInterrupt):
            signal.signal(signal.SIGTERM, self._stop)
            timer = Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM))
            timer.daemon = True
            timer.start()
        else:
            sys.__unraisablehook__(unraisable)


@contextmanager
def stopping_at_sigterm() -> Iterator[Sigterm]:
    """Have SIGTERM stop the block, unless whoever started this process decides what it does."""
    sigterm = Sigterm()
    usual = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not usual or current_thread() is not main_thread():
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
    """Keep what SIGTERM does, where a library would rather have it exit."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit:
        # It has come, and the library has done what it would.
        signal.signal(signal.SIGTERM, before)
        signal.raise_signal(signal.SIGTERM)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
