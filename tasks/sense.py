"""Senses of predicates (PropBank, Palmer et al. 2005)."""

from __future__ import annotations

from collections.abc import Iterator

from probes.data.sentence import Sentence
from probes.tasks.task import Example, task


@task(
    "sense",
    version=1,
    needs=["frames"],
    shape="span",
    metric="accuracy",
    also=["macro_f1_20"],
    ambiguous=True,
    group="semantics",
)
def sense(sentence: Sentence) -> Iterator[Example]:
    """The PropBank sense of a predicate whose lemma has several senses in train."""
    for frame in sentence.frames:
        # The lemma as type: its majority label is the most frequent sense.
        lemma = frame.roleset.rpartition(".")[0]
        yield Example(frame.roleset, frame.predicate, type=lemma)
