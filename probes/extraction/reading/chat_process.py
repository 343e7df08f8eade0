"""Chat templates in a process of their own: they are programs of strangers.

The process is ``python -m probes.extraction.reading.chat_process``. It answers each line of its
standard input, ends with it, and imports no torch.
"""

from __future__ import annotations

import json
import random
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from weakref import finalize

from probes.common.origin import described
from probes.common.process import same_imports

DATE = "2024-07-26"
"""The day that templates are told: the one that Llama 3.1's writes where it cannot ask."""

SECONDS, MEMORY, LONGEST = 5, 1 << 30, 1 << 24
"""Most processor time for a text, bytes of memory, and bytes of a text. Few take milliseconds."""


class ChatProcess:
    """The process in which templates run, started when it is first needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def write(
        self, chat: Sequence[Any], changes: Sequence[tuple[int, Any]], **arguments: Any
    ) -> Iterator[tuple[bool, str]]:
        """Yield what a template makes of a chat after each change: whether it is a text, and this.

        Args:
            chat: messages.
            changes: number of a message, and the one that takes its place.
            **arguments: further ones of transformers' `render_jinja_template`.

        Raises:
            ValueError: the template was stopped.
        """
        # Only a process that has answered is kept: no call reads the answer to another one.
        process, self._process = self._process or self._new_process(), None
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            request = json.dumps([chat, changes, arguments], default=str)
            print(request, file=process.stdin, flush=True)
        for n_left in reversed(range(len(changes))):
            line = process.stdout.readline()
            if not line.endswith("\n"):
                reasons = {-signal.SIGPROF: f"it ran for more than {SECONDS} seconds"}
                raise ValueError(reasons.get(process.wait(), "its process was ended"))
            if not n_left:
                self._process = process
            yield tuple(json.loads(line))

    def _new_process(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "probes.extraction.reading.chat_process", str(SECONDS)],
            # Sets of strings in one order; each thread reserves memory.
            env={**same_imports(), "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C is for this process
        )
        finalize(self, _end, process)
        return process


def _end(process: subprocess.Popen[str]) -> None:
    with process:
        process.kill()


def _rendered_chat(chat: list[Any], arguments: dict[str, Any]) -> str:
    from transformers.utils import chat_template_utils as templates

    environment = templates._compile_jinja_template(arguments["chat_template"]).environment
    environment.globals["strftime_now"] = datetime.fromisoformat(DATE).strftime
    random.seed(0)
    text = str(templates.render_jinja_template([chat], **arguments)[0][0])
    if len(text.encode()) > LONGEST:
        raise MemoryError(f"a text of {len(text):,} letters")
    return text


def _answer(seconds: float) -> None:
    """Answer each line."""
    import transformers.utils.chat_template_utils  # noqa: F401 - before memory is bounded

    with suppress(ValueError, OSError):  # macOS has no such bound
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # it ends the process, whatever that does
    for chat, changes, arguments in map(json.loads, sys.stdin):
        for number, message in changes:
            signal.setitimer(signal.ITIMER_PROF, seconds)
            try:
                changed = [*chat[:number], message, *chat[number + 1 :]]
                answer = True, _rendered_chat(changed, arguments)
            except Exception as error:  # noqa: BLE001 - whatever a stranger's program raises
                answer = False, described(error)
            signal.setitimer(signal.ITIMER_PROF, 0)
            print(json.dumps(answer))
        sys.stdout.flush()


if __name__ == "__main__":
    _answer(float(sys.argv[1]))
