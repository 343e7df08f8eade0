"""Types of gold base chunks (constituent labelling of Tenney et al. 2019b)."""

from __future__ import annotations

from collections.abc import Iterator

from probes.data.chunk_schemes import chunks_of
from probes.data.sentence import Sentence
from probes.tasks.task import Example, task


@task(
    "chunk-labelling",
    version=1,
    needs=["chunks"],
    shape="span",
    metric="accuracy",
    also=["macro_f1_20"],
    group="syntax",
)
def chunk_labelling(sentence: Sentence) -> Iterator[Example]:
    """The type of a given base chunk."""
    for label, start, end in chunks_of(sentence.chunks):
        size = f"{end - start} words" if end - start > 1 else "1 word"
        # The last word predicts the type best: English base chunks end in their head.
        yield Example(
            label,
            (start, end),
            type=sentence.words[end - 1],
            groups=(size if end - start < 4 else "4+ words",),
        )
