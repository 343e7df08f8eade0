"""Checks of what the rule of a task yields."""

from __future__ import annotations

import math
from collections.abc import Iterable
from reprlib import repr as shortened
from typing import TYPE_CHECKING

from probes.common.errors import UserError
from probes.data.sentence import LARGEST_LABEL

if TYPE_CHECKING:
    from probes.tasks.task import Example, Kind


class TaskError(UserError):
    """The rule of a task failed or yielded something invalid. Other tasks are not affected."""


def fault(example: Example, kind: Kind) -> str:
    """What is wrong with the fields of an example; empty if nothing is.

    Whether spans lie within the sentence is checked by `Task.examples`.
    """
    spans = [example.span] if example.span2 is None else [example.span, example.span2]
    for span in spans:
        if not (isinstance(span, tuple) and len(span) == 2 and all(map(_is_index, span))):
            return f"the span {shortened(span)}; a span is a pair of integers, word i is (i, i + 1)"
    for name in ("hide", "cue"):
        index = getattr(example, name)
        if index is not None and not _is_index(index):
            return f"{name}={shortened(index)}; it must be the index of a word"
    if not isinstance(example.type, str):
        return f"type={shortened(example.type)}; a type must be a string"
    if example.words is not None and not (_are_texts(example.words) and all(example.words)):
        return f"words={shortened(example.words)}; words must be a tuple of non-empty strings"
    for name in ("groups", "cues"):
        if not _are_texts(given := getattr(example, name)):
            return f"{name}={shortened(given)}; {name} must be a tuple of strings"
    if example.reference != "" and (what := _label_fault(example.reference, kind)):
        return f"reference={shortened(example.reference)}; {what}"
    if what := _label_fault(example.label, kind):
        return f"the label {shortened(example.label)} ({type(example.label).__name__}); {what}"
    return ""


def _label_fault(label: object, kind: Kind) -> str:
    """What a label of this kind must be; empty if `label` is valid."""
    if kind == "classification":
        sound = _is_index(label) or _are_texts((label,))
        wanted = "a class must be a string or an integer"
    elif kind == "multi-label":
        sound = _are_texts(label)
        wanted = "a label of a multi-label task must be a tuple of strings"
    else:
        number = isinstance(label, (int, float)) and not isinstance(label, bool)
        sound = number and math.isfinite(label) and abs(label) <= LARGEST_LABEL  # type: ignore[arg-type]
        wanted = f"a label of a regression must be a finite number up to {LARGEST_LABEL:g}"
    return "" if sound else wanted


def _is_index(value: object) -> bool:
    """Whether `value` is an integer: the index of a word, or a class given as a number."""
    return isinstance(value, int) and not isinstance(value, bool)


def _are_texts(values: object) -> bool:
    return isinstance(values, tuple) and all(isinstance(v, str) and _is_utf8(v) for v in values)


def _is_utf8(text: str) -> bool:
    # A lone surrogate cannot be encoded.
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


def items_of(found: object) -> Iterable[object]:
    """What a rule returned, if it is iterable.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(found, Iterable) or isinstance(found, (str, bytes)):
        raise TypeError(f"the rule returned {shortened(found)}; it must yield examples")
    return found
