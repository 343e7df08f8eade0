"""The number of words in a base chunk."""

from __future__ import annotations

from collections.abc import Iterator

from probes import Example, Sentence, task


@task(
    "span_regression",
    # Raise it whenever the same sentence would yield other examples.
    version=1,
    # The annotation layers that the rule reads: upos, xpos, feats, heads, deprels, chunks, frames,
    # lemmas, mentions, ratings, constituents.
    needs=["chunks"],
    # What an example is made of: word, pair, span, span pair or sentence.
    shape="span",
    # What is predicted: classification, multi-label or regression.
    kind="regression",
    # The headline metric, by which the best layer is chosen, and further ones.
    metric="corpus_spearman",
    also=["mae"],
)
def span_regression(sentence: Sentence) -> Iterator[Example]:
    """The number of words in a base chunk."""
    for start, tag in enumerate(sentence.chunks):
        if tag.startswith("B-"):
            end = start + 1
            while end < len(sentence) and sentence.chunks[end].startswith("I-"):
                end += 1
            # The probe sees the mean of the words [start, end).
            yield Example(float(end - start), (start, end), type=sentence.words[start])
