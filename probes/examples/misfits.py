"""Examples that are not what their task says of itself, and rules that do not repeat themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from probes.data.sentence import Sentence
from probes.tasks.checked import TaskError
from probes.tasks.task import Example, Task


def require_consistent(task: Task, examples: Sequence[tuple[Sentence, Example]]) -> None:
    """Refuse examples that do not fit what the task says of itself.

    Raises:
        TaskError: second spans missing or not wanted, hidden words that are not the span, or
            words of its own in some examples alone.
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
    """Refuse a rule that gives other examples when it is asked again.

    Raises:
        TaskError: it does, of one of these sentences.
    """
    sentences = list(sentences)
    first = [task.examples(sentence) for sentence in sentences]
    # Backwards, so that a rule which remembers the sentences before shows.
    again = [task.examples(sentence) for sentence in reversed(sentences)][::-1]
    for sentence, one, other in zip(sentences, first, again, strict=True):
        if one != other:
            raise TaskError(
                f"Task {task.name!r} gave other examples of sentence {sentence.id!r} when asked "
                "again; a rule may depend on nothing but the sentence, neither on chance nor on "
                "what came before. Mend the task."
            )
