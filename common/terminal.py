"""Messages and progress bars for the user, and the log of a run.

The log is a JSON Lines file with one object per event: `time` (UTC), `level` (debug, info, warning,
error), `event`, `message`, and further fields of the event.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from shutil import get_terminal_size
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Any, TextIO

from probes.common.errors import UserError, printable_lines
from probes.common.files import writing

if TYPE_CHECKING:
    from rich.console import Console


def output_console(quiet: bool = False, stderr: bool = False) -> Console:
    """The console for tables; raises BrokenPipeError if the pipe is closed."""
    from rich.console import Console

    class Pipe(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Pipe(quiet=quiet, stderr=stderr)


def wrapped(text: str, width: int, indent: int) -> str:
    """Lines broken between words, none within paths; what continues a line is indented."""
    wrapper = TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    wrapper.subsequent_indent = " " * indent
    return "\n".join(map(wrapper.fill, text.split("\n")))


def discard_output() -> None:
    """Redirect a broken standard output, or Python would try to flush it at exit."""
    with contextlib.suppress(OSError, AttributeError):  # in a notebook, or without one
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def tolerate_broken_output() -> Iterator[None]:
    """Continue if standard output cannot be written: the pipe is closed, or the disk is full."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        discard_output()
        if not isinstance(error, BrokenPipeError):
            progress.warn(f"cannot print the tables ({error.strerror}); they are in the files")


class Progress:
    """Messages and bars on standard error, and the run's log.

    Attributes:
        quiet: whether to show only warnings and errors; the log still has everything.
        verbose: whether to show details too.
        forward: in a worker process, sends level, message, event and fields of each message to the
            parent; nothing is shown or logged here.
        said: while several processes say the same, messages so far without times; what comes again
            is a detail. None if each is shown.
    """

    def __init__(self) -> None:
        self.quiet = False
        self.verbose = False
        self.forward: Callable[[str, str, str, dict[str, Any]], None] | None = None
        self.said: set[tuple[str, str]] | None = None
        self._log: TextIO | None = None
        self._bars: list[Any] = []

    def say(self, message: str, event: str = "note", **fields: Any) -> None:
        """Show a line, above any progress bar."""
        self.emit("info", message, event, fields)

    def detail(self, message: str, event: str = "detail", **fields: Any) -> None:
        """Show a line if `verbose`."""
        self.emit("debug", message, event, fields)

    def warn(self, message: str, event: str = "notice", **fields: Any) -> None:
        """Show a line even if `quiet`."""
        self.emit("warning", message, event, fields)

    def emit(self, level: str, message: str, event: str, fields: dict[str, Any]) -> None:
        """Show a line if the level (debug, info or warning) allows it, and add it to the log."""
        if self.forward is not None:
            self.forward(level, message, event, fields)
            return
        if self.said is not None and level != "debug":
            key = event, re.sub(r"[\d.]+ s\b", "", message)
            level = "debug" if key in self.said else level
            self.said.add(key)
        levels = {"debug": self.verbose and not self.quiet, "info": not self.quiet, "warning": True}
        if levels[level]:
            from tqdm import tqdm

            text = printable_lines(message)
            if sys.stderr and sys.stderr.isatty() and event != "next":  # commands are copied
                text = wrapped(text, get_terminal_size().columns, 8)
            tqdm.write(text, file=sys.stderr)
        self.record(level, event, message=message, **fields)

    @contextlib.contextmanager
    def verbosity(self, *, quiet: bool, verbose: bool) -> Iterator[None]:
        """Show more or less than usual inside the block."""
        before = self.quiet, self.verbose
        self.quiet, self.verbose = self.quiet or quiet, self.verbose or verbose
        try:
            yield
        finally:
            self.quiet, self.verbose = before

    @contextlib.contextmanager
    def forwarded(self, take: Callable[[str, str, str, dict[str, Any]], None]) -> Iterator[None]:
        """Hand level, message, event and fields of each message to `take` inside the block."""
        before, self.forward = self.forward, take
        try:
            yield
        finally:
            self.forward = before

    @contextlib.contextmanager
    def bar(self, label: str, total: int, unit: str, unit_scale: bool = False) -> Iterator[Any]:
        """A progress bar; hidden unless standard error is a terminal or in a notebook."""
        kind: Any
        if "ipykernel" in sys.modules:
            from tqdm.auto import tqdm as kind
        else:
            from tqdm import tqdm as kind
        with kind(
            desc=label,
            total=total,
            unit=unit,
            unit_scale=unit_scale,
            leave=False,
            disable=True if self.quiet or self.forward else None,  # None: without a terminal
            dynamic_ncols=True,
        ) as bar:
            self._bars.append(bar)
            try:
                yield bar
            finally:
                self._bars.pop()

    def advance(self, n: int = 1) -> None:
        """Advance the innermost open bar by `n` units, if there is one."""
        if self._bars:
            self._bars[-1].update(n)

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Hide bars while something is printed inside the block."""
        from tqdm import tqdm

        with tqdm.external_write_mode(file=sys.stdout):
            yield

    def record(self, level: str, event: str, **fields: Any) -> None:
        """Add an event to the log, if there is one."""
        if self._log is None:
            return
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"time": time, "level": level, "event": event, **fields}
        try:
            self._log.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")
            self._log.flush()
        except OSError as error:
            # Results matter more than the log. If they cannot be written either, the run stops.
            self._drop_log()
            self.warn(f"the log ends here: it cannot be written ({error.strerror})")

    @contextlib.contextmanager
    def log_to(self, folder: Path, **fields: Any) -> Iterator[Path]:
        """Log the events inside the block to a new file in `folder`; yields the file's path.

        The log begins with an event "start", which has `fields`, and ends with an event "end". The
        log of a killed run has no "end".
        """
        start = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        path = folder / f"{start}-{os.getpid()}.jsonl"
        with writing(path):
            folder.mkdir(parents=True, exist_ok=True)
            self._log = path.open("a", encoding="utf-8")
        try:
            self.record("info", "start", pid=os.getpid(), **fields)
            yield path
            self.record("info", "end", status="done")
        except UserError as error:
            self.record("error", "end", status="error", message=str(error))
            raise
        except KeyboardInterrupt:
            self.record("warning", "end", status="stopped")
            raise
        except Exception as error:
            trace = "".join(traceback.format_exception(error))
            self.record("error", "end", status="defect", message=trace)
            raise
        finally:
            self._drop_log()

    def _drop_log(self) -> None:
        log, self._log = self._log, None
        if log is not None:
            with contextlib.suppress(OSError):
                log.close()


progress = Progress()
