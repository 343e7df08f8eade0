"""The number of words in a sentence."""

from __future__ import annotations

from collections.abc import Iterator

from probes import Example, Sentence, task


@task(
    "sentence_regression",
    # Raise it whenever the same sentence would yield other examples.
    version=1,
    # The annotation layers that the rule reads: upos, xpos, feats, heads, deprels, chunks, frames,
    # lemmas, mentions, ratings, constituents.
    needs=[],
    # What an example is made of: word, pair, span, span pair or sentence.
    shape="sentence",
    # What is predicted: classification, multi-label or regression.
    kind="regression",
    # The headline metric, by which the best layer is chosen, and further ones.
    metric="corpus_spearman",
    also=["mae"],
)
def sentence_regression(sentence: Sentence) -> Iterator[Example]:
    """The number of words in a sentence."""
    # The probe sees the mean of all words.
    yield Example(float(len(sentence)), (0, len(sentence)), type=sentence.words[0])
