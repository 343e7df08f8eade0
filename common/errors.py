"""The one exception that users are meant to see, and how a lack of memory shows."""

from __future__ import annotations

import errno


class UserError(Exception):
    """Something the user can put right.

    The message is one line: what is wrong, where (file, line, value), and what to do.
    The command line prints it without a traceback and exits with status 2. What cannot be
    printed, such as a line end in a name, is written as its escape.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


def printable(text: str) -> str:
    """Text in which what cannot be printed, or turns the writing round, is its escape."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


_NO_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "can't start new thread",
    "failed to map segment",
    "could not create a primitive",  # oneDNN's
    "invalid buffer size",  # Metal's
    "_status_alloc_failed",  # cuBLAS'
)


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory could not be had, on a device or in main memory."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    # Torch has no error of its own for its allocator on the CPU, nor Python for threads and
    # for libraries that it cannot map.
    said = str(error).lower()
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError | ImportError) and any(part in said for part in _NO_MEMORY)
    )
