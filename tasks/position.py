"""The position of a word in its sentence (after Lin et al. 2019): a surface property."""

from __future__ import annotations

from collections.abc import Iterator

from probes.data.sentence import Sentence
from probes.tasks.task import Example, task

PARTS = ((10, "words 0–9"), (20, "words 10–19"), (float("inf"), "words 20 and on"))
"""Groups of the breakdown: first index beyond the group, and name."""


@task("position", version=1, needs=[], kind="regression", metric="spearman", also=["mae"],
      group="surface")  # fmt: skip
def position(sentence: Sentence) -> Iterator[Example]:
    """The index of a word in its sentence, counted from 0."""
    for i, word in enumerate(sentence.words):
        part = next(name for end, name in PARTS if i < end)
        yield Example(float(i), (i, i + 1), type=word, groups=(part,))
