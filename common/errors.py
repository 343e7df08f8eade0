"""Errors that the user can fix, words of messages, and the detection of out-of-memory errors."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


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

    @classmethod
    def of(cls, model: str) -> NoHeadError:
        """The error of a model that has none."""
        return cls(f"--model {model}: it has no language-model head.")


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


def counted(n: int, noun: str, plural: str = "") -> str:
    """``1 result``, ``2 results``."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def listed(names: Iterable[str], last: str = "or") -> str:
    """``a``, ``a or b``, ``a, b or c``."""
    *others, final = names
    return f"{', '.join(others)} {last} {final}" if others else final


def layer_ranges(numbers: Iterable[int], all_layers: Sequence[int] | None = None) -> str:
    """Layers as ranges: ``layer 3``, ``layers 2–4, 6``.

    Args:
        all_layers: layers of which neighbours make a range; all by default.
    """
    numbers = sorted(numbers)
    positions = {layer: i for i, layer in enumerate(all_layers or range(numbers[-1] + 1))}
    runs: list[list[int]] = []
    for number in numbers:
        if runs and positions[number] == positions[runs[-1][-1]] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs]
    return f"{'layers' if len(numbers) > 1 else 'layer'} {', '.join(texts)}"


def names_in(text: str) -> tuple[str, ...]:
    """Split names at commas, without duplicates."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


_REASONS = {
    "greater_than_equal": "give a number of at least {ge}",
    "less_than_equal": "give a number of at most {le}",
    "int_": "not a whole number",
    "float_": "not a number",
    "byte_size": "not a number of bytes, such as 2000000000 or 2GB",
    "byte_size_unit": "not a number of bytes, such as 2000000000 or 2GB",
    "literal_error": "give {expected}",
    "too_short": "give at least one",
    "missing": "is missing",
    "extra_forbidden": "there is no such field",
    "value_error": "{error}",
}
"""Reasons in words, by pydantic's types of errors, or their beginning if that ends in _."""


def first_fault(error: ValidationError) -> tuple[str, object, str]:
    """The first invalid field, its value, and the reason."""
    fault = error.errors()[0]
    context = {"expected": "", **fault.get("ctx", {})}
    # Choices are written as on the command line, where they have no quotation marks.
    context["expected"] = context["expected"].replace("'", "")
    family = fault["type"].split("_")[0] + "_"
    form = _REASONS.get(fault["type"], _REASONS.get(family))
    reason = form.format(**context) if form else fault["msg"].lower()
    return str(fault["loc"][0]) if fault["loc"] else "", fault["input"], reason.rstrip(".")


def quoted(value: object) -> str:
    """A shortened value for a message; in quotation marks only if it would be invisible."""
    text = " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    text = text[:80]
    return text if text.strip() else repr(text)
