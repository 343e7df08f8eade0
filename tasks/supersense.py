"""Supersenses of nouns: WordNet's lexicographer files (Ciaramita & Johnson 2003)."""

from __future__ import annotations

from collections.abc import Iterator

from probes.data.sentence import Sentence
from probes.tasks.task import Example, task


@task(
    "supersense",
    version=1,
    needs=["ratings"],
    kind="multi-label",
    metric="micro_f1",
    also=["macro_f1_20", "exact_match"],
    group="semantics",
)
def supersense(sentence: Sentence) -> Iterator[Example]:
    """The supersenses of a noun, of 26, in its sentence."""
    for rating in sentence.ratings:
        if rating.subspace == "wordsense":
            (word,) = rating.words
            label = tuple(name.removeprefix("supersense-noun.") for name in rating.holding)
            yield Example(label, (word, word + 1), type=sentence.words[word])
