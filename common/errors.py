"""The exception for errors that the user can fix, and the detection of out-of-memory errors."""

from __future__ import annotations

import errno


class UserError(Exception):
    """An error that the user can fix.

    The message is one line: what is wrong, where (file, line, value), and what to do. The command
    line prints it without a traceback and exits with status 2. Unprintable characters, such as a
    line break in a name, are escaped.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class NoHeadError(UserError):
    """A model has no language-model head, or its files lack the weights of one."""


class DiskError(UserError):
    """A file cannot be written to its folder; another folder may work."""


def printable(text: str) -> str:
    """Escape unprintable characters and changes of text direction."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def printable_lines(text: str) -> str:
    """Make each line of a text `printable`; line breaks stay."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


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
    """Whether an error means that memory ran out, on a device or in main memory."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    # Torch's CPU allocator has no exception type for this, nor has Python when it starts threads or
    # maps libraries.
    message = str(error).lower()
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError | ImportError)
        and any(part in message for part in _NO_MEMORY)
    )
