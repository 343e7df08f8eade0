"""Examples that are not what their task says of itself."""

from __future__ import annotations

from collections.abc import Sequence

from tasks.checked import TaskError
from tasks.task import Example, Task


def require_consistent(task: Task, examples: Sequence[Example]) -> None:
    """Refuse examples that do not fit what the task says of itself.

    Raises:
        TaskError: second spans missing or not wanted, hidden words that are not the span, or
            words of its own in some examples alone.
    """
    pairs = task.shape in ("pair", "span pair")
    hides, brings = examples[0].hide is not None, examples[0].words is not None
    for example in examples:
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
            raise TaskError(f"Task {task.name!r} gave {example.label!r} {what}. Mend the task.")
