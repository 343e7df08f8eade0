"""Types of mentioned entities (entity labelling of Tenney et al. 2019b)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from probes.data.sentence import Sentence, Span
from probes.tasks.task import Example, Excluded, task

FORMS = {"PRON": "pronoun", "PROPN": "name"}
"""Groups of the breakdown, by the tag of the mention's head; others are common nouns."""


@task("entities", version=1, needs=["mentions", "heads", "upos"], shape="span",
      metric="accuracy", also=["macro_f1"],
      group="semantics")  # fmt: skip
def entities(sentence: Sentence) -> Iterator[Example | Excluded]:
    """The type of the entity that a given mention refers to."""
    for mention in sentence.mentions:
        if reason := mention.unfit or ("" if mention.type else "no type of entity"):
            yield Excluded(reason)
            continue
        head = head_of(mention.span, sentence.heads)
        yield Example(
            mention.type,
            mention.span,
            type=sentence.words[head].lower(),
            groups=(FORMS.get(sentence.upos[head], "common noun or other"),),
        )


def head_of(span: Span, heads: Sequence[int]) -> int:
    """The first word of a span whose head is outside the span."""
    start, end = span
    return next(word for word in range(start, end) if not start <= heads[word] < end)
