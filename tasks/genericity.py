"""What arguments refer to, and what predicates say of it (Govindarajan et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from probes.data.sentence import Sentence
from probes.tasks.task import Example, task

generic = partial(
    task,
    version=1,
    needs=["ratings"],
    kind="multi-label",
    # Micro F1 of three properties, two of them frequent, is best for who says that all hold.
    metric="macro_f1_20",
    also=["micro_f1", "exact_match"],
    group="semantics",
)


@generic("argument-genericity")
def arguments(sentence: Sentence) -> Iterator[Example]:
    """Whether an argument refers to particulars, to kinds, to something abstract."""
    return _rated(sentence, "arg-")


@generic("predicate-genericity")
def predicates(sentence: Sentence) -> Iterator[Example]:
    """Whether a predicate tells of a particular, a dynamic, a hypothetical situation."""
    return _rated(sentence, "pred-")


def _rated(sentence: Sentence, kind: str) -> Iterator[Example]:
    for rating in sentence.ratings:
        if rating.subspace == "genericity" and next(iter(rating.values)).startswith(kind):
            (word,) = rating.words
            label = tuple(name.removeprefix(kind) for name in rating.holding)
            yield Example(label, (word, word + 1), type=sentence.words[word])
