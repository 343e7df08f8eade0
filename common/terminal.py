"""What a run says: bars and lines for the user, and every event in the run's log.

The log is a file of JSON lines, one object an event: `time` (UTC), `level` (debug, info, warning,
error), `event`, `message`, and what else belongs to the event.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tqdm import tqdm

from probes.common.errors import UserError, printable
from probes.common.files import writing

if TYPE_CHECKING:
    from rich.console import Console


def output_console(quiet: bool = False) -> Console:
    """Where tables are printed: rich's console, which for a closed pipe raises BrokenPipeError."""
    from rich.console import Console

    class Pipe(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Pipe(quiet=quiet)


def silence_output() -> None:
    """Let go of a standard output that cannot be written; at exit Python would try again."""
    with contextlib.suppress(OSError, AttributeError):  # of a notebook, or none
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def losing_output() -> Iterator[None]:
    """Go on if what is printed inside cannot be: nobody reads it, or its disk is full."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        silence_output()
        if not isinstance(error, BrokenPipeError):
            progress.insist(f"tables cannot be printed ({error.strerror}); files have them")


class Progress:
    """Messages and bars on standard error, and the run's log.

    Attributes:
        quiet: say nothing but errors. The log has everything all the same.
        verbose: say details too.
    """

    def __init__(self) -> None:
        self.quiet = False
        self.verbose = False
        self._log: TextIO | None = None

    def say(self, message: str, event: str = "note", **fields: Any) -> None:
        """One line, above any bar."""
        self._tell(message, not self.quiet, "info", event, fields)

    def detail(self, message: str, event: str = "detail", **fields: Any) -> None:
        """One line for those who asked for more."""
        self._tell(message, self.verbose and not self.quiet, "debug", event, fields)

    def insist(self, message: str, event: str = "notice", **fields: Any) -> None:
        """One line, said even to those who asked for quiet: terms that they have to know."""
        self._tell(message, True, "warning", event, fields)

    def _tell(
        self, message: str, aloud: bool, level: str, event: str, fields: dict[str, Any]
    ) -> None:
        if aloud:
            tqdm.write("\n".join(map(printable, message.split("\n"))), file=sys.stderr)
        self.record(level, event, message=message, **fields)

    def bar(self, what: str, total: int, unit: str, unit_scale: bool = False) -> Any:
        """A progress bar; invisible when standard error is not a terminal."""
        return tqdm(
            desc=what,
            total=total,
            unit=unit,
            unit_scale=unit_scale,
            leave=False,
            disable=True if self.quiet else None,
            dynamic_ncols=True,
        )

    def record(self, level: str, event: str, **fields: Any) -> None:
        """Add an event to the log, if one is kept."""
        if self._log is None:
            return
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"time": time, "level": level, "event": event, **fields}
        try:
            self._log.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")
            self._log.flush()
        except OSError as error:
            # Results are worth more than the log; where these cannot be written either, the run
            # stops there.
            self._drop_log()
            self.insist(f"the run's log ends here: it cannot be written ({error.strerror})")

    @contextlib.contextmanager
    def recorded(self, folder: Path, **fields: Any) -> Iterator[Path]:
        """Keep a log of what happens inside, in a new file in `folder`; yields its path.

        It begins with an event "start", which has `fields`, and ends with one "end"; the log of a
        run that was killed has no end.

        Raises:
            UserError: it cannot be written.
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
            what = "".join(traceback.format_exception(error))
            self.record("error", "end", status="defect", message=what)
            raise
        finally:
            self._drop_log()

    def _drop_log(self) -> None:
        log, self._log = self._log, None
        if log is not None:
            with contextlib.suppress(OSError):
                log.close()


progress = Progress()
