"""Part-of-speech tagging."""

from __future__ import annotations

from collections.abc import Iterator

from probes.data.sentence import Sentence
from probes.tasks.task import Example, task


@task(
    "pos",
    version=1,
    needs=["upos"],
    metric="accuracy",
    also=["macro_f1"],
    stand_ins={"upos": "xpos"},
    group="syntax",
)
def pos(sentence: Sentence) -> Iterator[Example]:
    """The universal part-of-speech tag of a word (the corpus's own tag if it has none)."""
    for i, tag in enumerate(sentence.upos):
        yield Example(tag, (i, i + 1), type=sentence.words[i])
