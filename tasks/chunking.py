"""Base-chunk tagging (Tjong Kim Sang & Buchholz 2000)."""

from __future__ import annotations

from collections.abc import Iterator

from probes.data.sentence import Sentence
from probes.tasks.task import Example, task


@task("chunking", version=1, needs=["chunks"], metric="span_f1", also=["accuracy"], group="syntax")
def chunking(sentence: Sentence) -> Iterator[Example]:
    """The BIO tag of a word's base chunk."""
    for i, tag in enumerate(sentence.chunks):
        yield Example(tag, (i, i + 1), type=sentence.words[i])
