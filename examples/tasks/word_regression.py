"""The number of dependents of a word."""

from __future__ import annotations

from collections.abc import Iterator

from probes import Example, Sentence, task


@task(
    "word_regression",
    # Raise it whenever the same sentence would yield other examples.
    version=1,
    # The annotation layers that the rule reads: upos, xpos, feats, heads, deprels, chunks, frames,
    # lemmas, mentions, ratings, constituents.
    needs=["heads"],
    # What an example is made of: word, pair, span, span pair or sentence.
    shape="word",
    # What is predicted: classification, multi-label or regression.
    kind="regression",
    # The headline metric, by which the best layer is chosen, and further ones.
    metric="corpus_spearman",
    also=["mae"],
)
def word_regression(sentence: Sentence) -> Iterator[Example]:
    """The number of dependents of a word."""
    for i, word in enumerate(sentence.words):
        # The probe sees the words [i, i + 1); the control task has one random label per type.
        yield Example(float(sentence.heads.count(i)), (i, i + 1), type=word)
