"""Checks of the examples that the rule of a task yields."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from reprlib import repr as shortened
from typing import TYPE_CHECKING

from probes.common.errors import UserError
from probes.data.sentence import LARGEST_LABEL, Sentence

if TYPE_CHECKING:
    from probes.tasks.task import Example, Kind, Task


class TaskError(UserError):
    """The rule of a task failed or yielded something invalid; other tasks continue."""


def fault(example: Example, kind: Kind) -> str:
    """Describe the first invalid field of an example; empty if all are valid.

    `Task.examples` checks that spans lie within the sentence.
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
        if not _are_texts(texts := getattr(example, name)):
            return f"{name}={shortened(texts)}; {name} must be a tuple of strings"
    if example.reference != "" and (problem := _label_fault(example.reference, kind)):
        return f"reference={shortened(example.reference)}; {problem}"
    if problem := _label_fault(example.label, kind):
        return f"the label {shortened(example.label)} ({type(example.label).__name__}); {problem}"
    return ""


def _label_fault(label: object, kind: Kind) -> str:
    """Describe a valid label of this kind; empty if `label` is valid."""
    if kind == "classification":
        sound = _is_index(label) or _are_texts((label,))
        requirement = "a class must be a string or an integer"
    elif kind == "multi-label":
        sound = _are_texts(label)
        requirement = "a label of a multi-label task must be a tuple of strings"
    else:
        number = isinstance(label, (int, float)) and not isinstance(label, bool)
        sound = number and math.isfinite(label) and abs(label) <= LARGEST_LABEL  # type: ignore[arg-type]
        requirement = f"a label of a regression must be a finite number up to {LARGEST_LABEL:g}"
    return "" if sound else requirement


def _is_index(value: object) -> bool:
    """Whether `value` is an integer: the index of a word, or a class given as a number."""
    return isinstance(value, int) and not isinstance(value, bool)


def _are_texts(values: object) -> bool:
    return isinstance(values, tuple) and all(isinstance(v, str) and _is_utf8(v) for v in values)


def _is_utf8(text: str) -> bool:
    # A lone surrogate cannot be encoded.
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


def items_of(output: object) -> Iterable[object]:
    """The return value of a rule, if it is iterable.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(output, Iterable) or isinstance(output, (str, bytes)):
        raise TypeError(f"the rule returned {shortened(output)}; it must yield examples")
    return output


def require_consistent(task: Task, examples: Sequence[tuple[Sentence, Example]]) -> None:
    """Check that examples match the task's declaration.

    Raises:
        TaskError: a second span is missing or unexpected, a hidden word is not the span, or only
            some examples hide a word or have their own words.
    """
    pairs = task.shape in ("pair", "span pair")
    _, first = examples[0]
    hides, brings = first.hide is not None, first.words is not None
    for sentence, example in examples:
        problem = ""
        if (example.span2 is not None) != pairs:
            problem = f"{'no' if pairs else 'a'} span2 in a task of shape {task.shape!r}"
        elif (example.hide is not None) != hides:
            problem = "a hidden word in some examples and none in others; make it two tasks"
        elif (example.words is not None) != brings:
            problem = "words of its own in some examples and none in others; make it two tasks"
        elif hides and (pairs or example.span != (example.hide, (example.hide or 0) + 1)):
            problem = "a hidden word that is not its only span"
        if problem:
            raise task.fault(sentence, f"{example.label!r} {problem}")


def require_repeatable(task: Task, sentences: Iterable[Sentence]) -> None:
    """Check that a task yields the same examples of a sentence every time.

    Raises:
        TaskError: the examples of one of these sentences differ.
    """
    sentences = list(task.texts(sentences))
    first = [task.examples(sentence) for sentence in sentences]
    # In reverse, so that a rule that depends on earlier sentences is found out.
    again = [task.examples(sentence) for sentence in reversed(sentences)][::-1]
    for sentence, one, other in zip(sentences, first, again, strict=True):
        if one != other:
            raise TaskError(
                f"Task {task.name!r} yielded different examples of sentence {sentence.id!r} when "
                "run twice. A rule may depend only on the sentence, not on chance or on earlier "
                "sentences. Fix the task."
            )
