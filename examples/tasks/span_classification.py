"""The type of a base chunk; its words are given."""

from __future__ import annotations

from collections.abc import Iterator

from probes import Example, Sentence, task


@task(
    "span_classification",
    # Raise it whenever the same sentence would yield other examples.
    version=1,
    # The annotation layers that the rule reads: upos, xpos, feats, heads, deprels, chunks, frames,
    # lemmas, mentions, ratings, constituents.
    needs=["chunks"],
    # What an example is made of: word, pair, span, span pair or sentence.
    shape="span",
    # What is predicted: classification, multi-label or regression.
    kind="classification",
    # The headline metric, by which the best layer is chosen, and further ones.
    metric="accuracy",
    also=["macro_f1"],
)
def span_classification(sentence: Sentence) -> Iterator[Example]:
    """The type of a base chunk; its words are given."""
    for start, tag in enumerate(sentence.chunks):
        if tag.startswith("B-"):
            end = start + 1
            while end < len(sentence) and sentence.chunks[end].startswith("I-"):
                end += 1
            # The probe sees the mean of the words [start, end).
            yield Example(tag[2:], (start, end), type=" ".join(sentence.words[start:end]))
