"""What rules yield, held against what a task may give."""

from __future__ import annotations

import math
from collections.abc import Iterable
from reprlib import repr as shortened
from typing import TYPE_CHECKING

from probes.common.errors import UserError
from probes.data.sentence import LARGEST

if TYPE_CHECKING:
    from probes.tasks.task import Example, Kind


class TaskError(UserError):
    """A task whose rule failed, or yielded what is no example. Other tasks are not affected."""


def fault(example: Example, kind: Kind) -> str:
    """What is wrong with the fields of an example, its spans within the text apart; else empty."""
    spans = [example.span] if example.span2 is None else [example.span, example.span2]
    for span in spans:
        if not (isinstance(span, tuple) and len(span) == 2 and all(map(_is_place, span))):
            return f"the span {shortened(span)}; a span is a pair of numbers, word i is (i, i + 1)"
    for name in ("hide", "cue"):
        place = getattr(example, name)
        if place is not None and not _is_place(place):
            return f"{name}={shortened(place)}; it is the number of a word"
    if not isinstance(example.type, str):
        return f"type={shortened(example.type)}; a type is a string"
    if example.words is not None and not (_are_texts(example.words) and all(example.words)):
        return f"words={shortened(example.words)}; words are a tuple of strings, none of them empty"
    if not _are_texts(example.groups):
        return f"groups={shortened(example.groups)}; groups are a tuple of strings"
    if example.reference != "" and (what := _label_fault(example.reference, kind)):
        return f"reference={shortened(example.reference)}, where {what}"
    if what := _label_fault(example.label, kind):
        return f"the label {shortened(example.label)} ({type(example.label).__name__}); {what}"
    return ""


def _label_fault(label: object, kind: Kind) -> str:
    """What a label of this kind is, if this is none; else empty."""
    if kind == "classification":
        sound, wanted = _is_place(label) or _are_texts((label,)), "a class is a string"
    elif kind == "multi-label":
        sound, wanted = _are_texts(label), "a multi-label task takes a tuple of strings"
    else:
        number = isinstance(label, (int, float)) and not isinstance(label, bool)
        sound = number and math.isfinite(label) and abs(label) <= LARGEST  # type: ignore[arg-type]
        wanted = f"regression takes finite numbers up to {LARGEST:g}"
    return "" if sound else wanted


def _is_place(value: object) -> bool:
    """Whether it is an integer; that stands for a word, or is a class by its numeral."""
    return isinstance(value, int) and not isinstance(value, bool)


def _are_texts(values: object) -> bool:
    return isinstance(values, tuple) and all(isinstance(v, str) and _is_utf8(v) for v in values)


def _is_utf8(text: str) -> bool:
    # Half a surrogate pair cannot be written to a file.
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


def items_of(found: object) -> Iterable[object]:
    """What a rule gave, to be gone through.

    Raises:
        TypeError: it gave nothing that can be.
    """
    if not isinstance(found, Iterable) or isinstance(found, (str, bytes)):
        raise TypeError(f"the rule returned {shortened(found)}; it has to yield examples")
    return found
