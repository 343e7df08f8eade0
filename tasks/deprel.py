"""Dependency relations of gold word–head pairs (Tenney et al. 2019b, Liu et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterator

from probes.data.sentence import ROOT, Sentence
from probes.tasks.srl import distance_group
from probes.tasks.task import Example, task


@task(
    "deprel",
    version=1,
    needs=["heads", "deprels"],
    shape="pair",
    metric="accuracy",
    also=["macro_f1_20"],
    group="syntax",
)
def deprel(sentence: Sentence) -> Iterator[Example]:
    """The dependency relation, with subtype, between a word and its given head."""
    for i, head in enumerate(sentence.heads):
        if head != ROOT:
            word_span, head_span = (i, i + 1), (head, head + 1)
            # With both forms as type, train would lack the types of most test pairs.
            form = sentence.words[i]
            groups = distance_group(word_span, head_span)
            yield Example(sentence.deprels[i], word_span, head_span, type=form, groups=groups)
