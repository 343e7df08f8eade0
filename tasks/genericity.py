"""Genericity of arguments and predicates (Govindarajan et al. 2019)."""

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
    # Micro F1 would reward predicting all three properties, two of which are frequent.
    metric="macro_f1_20",
    also=["micro_f1", "exact_match"],
    group="semantics",
)


@generic("argument-genericity")
def arguments(sentence: Sentence) -> Iterator[Example]:
    """Whether an argument refers to particulars, to kinds, or to something abstract."""
    return _rated(sentence, "arg-")


@generic("predicate-genericity")
def predicates(sentence: Sentence) -> Iterator[Example]:
    """Whether a predicate describes a particular, a dynamic, or a hypothetical situation."""
    return _rated(sentence, "pred-")


def _rated(sentence: Sentence, kind: str) -> Iterator[Example]:
    for rating in sentence.ratings:
        if rating.subspace == "genericity" and next(iter(rating.values)).startswith(kind):
            (word,) = rating.words
            label = tuple(name.removeprefix(kind) for name in rating.holding)
            yield Example(label, (word, word + 1), type=sentence.words[word])
