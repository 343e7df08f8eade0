"""Numbers and lists in messages, and pydantic's errors in plain English."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import ValidationError


def counted(n: int, noun: str, plural: str = "") -> str:
    """``1 result``, ``2 results``."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def listed(names: Iterable[str], last: str = "or") -> str:
    """``a``, ``a or b``, ``a, b or c``."""
    *others, final = names
    return f"{', '.join(others)} {last} {final}" if others else final


def names_in(text: str) -> tuple[str, ...]:
    """Split names at commas, without duplicates."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def first_fault(error: ValidationError) -> tuple[str, object, str]:
    """The first invalid field, its value, and the reason."""
    fault = error.errors()[0]
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "greater_than_equal":
        why = f"give a number of at least {context['ge']}"
    elif kind == "less_than_equal":
        why = f"give a number of at most {context['le']}"
    elif kind.startswith("int_"):
        why = "not a whole number"
    elif kind.startswith("float_"):
        why = "not a number"
    elif kind.startswith("byte_size"):
        why = "not a number of bytes, such as 2000000000 or 2GB"
    elif kind == "literal_error":
        why = f"give {context['expected'].replace(chr(39), '')}"
    elif kind == "too_short":
        why = "give at least one"
    elif kind == "missing":
        why = "is missing"
    elif kind == "extra_forbidden":
        why = "there is no such field"
    elif kind == "value_error":
        why = str(context["error"])
    else:
        why = fault["msg"].lower()
    return str(fault["loc"][0]) if fault["loc"] else "", fault["input"], why.rstrip(".")


def quoted(value: object) -> str:
    """A shortened value for a message; in quotation marks only if it would be invisible."""
    text = " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    text = text[:80]
    return text if text.strip() else repr(text)
