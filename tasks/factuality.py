"""Event factuality (White et al. 2016, Rudinger et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterator

from probes.data.sentence import Sentence
from probes.tasks.task import Example, task


@task("factuality", version=1, needs=["ratings"], kind="regression",
      metric="corpus_spearman", also=["mae"],
      group="semantics")  # fmt: skip
def factuality(sentence: Sentence) -> Iterator[Example]:
    """The certainty that a predicate's event happened, or that it did not."""
    for rating in sentence.ratings:
        if rating.subspace == "factuality":
            (word,), value = rating.words, rating.values["factual"]
            group = "happened" if value > 0 else "did not happen"
            yield Example(value, (word, word + 1), type=sentence.words[word], groups=(group,))
