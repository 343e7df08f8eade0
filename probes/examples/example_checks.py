"""Checks of what a task yields: examples of the declared shape, the same ones every time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from probes.data.sentence import Sentence
from probes.tasks.task import Example, Task
from probes.tasks.validation import TaskError


def require_consistent(task: Task, examples: Sequence[tuple[Sentence, Example]]) -> None:
    """Check that examples fit what the task declares.

    Raises:
        TaskError: a second span is missing or unexpected, a hidden word is not the span, or only
            some examples hide a word or bring words of their own.
    """
    pairs = task.shape in ("pair", "span pair")
    _, first = examples[0]
    hides, brings = first.hide is not None, first.words is not None
    for sentence, example in examples:
        what = ""
        if (example.span2 is not None) != pairs:
            what = f"{'no' if pairs else 'a'} span2 in a task of shape {task.shape!r}"
        elif (example.hide is not None) != hides:
            what = "a hidden word in some examples and none in others; make it two tasks"
        elif (example.words is not None) != brings:
            what = "words of its own in some examples and none in others; make it two tasks"
        elif hides and (pairs or example.span != (example.hide, (example.hide or 0) + 1)):
            what = "a hidden word that is not its only span"
        if what:
            raise task.fault(sentence, f"{example.label!r} {what}")


def require_repeatable(task: Task, sentences: Iterable[Sentence]) -> None:
    """Check that a task yields the same examples of a sentence every time.

    Raises:
        TaskError: it does not, for one of these sentences.
    """
    sentences = list(task.texts(sentences))
    first = [task.examples(sentence) for sentence in sentences]
    # In reverse, so that a rule that depends on earlier sentences is found out.
    again = [task.examples(sentence) for sentence in reversed(sentences)][::-1]
    for sentence, one, other in zip(sentences, first, again, strict=True):
        if one != other:
            raise TaskError(
                f"Task {task.name!r} yielded different examples of sentence {sentence.id!r} when "
                "run twice; a rule may depend on the sentence alone, not on chance or on earlier "
                "sentences. Fix the task."
            )
