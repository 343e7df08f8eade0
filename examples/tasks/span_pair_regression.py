"""The distance in words between the first words of a predicate and its argument."""

from __future__ import annotations

from collections.abc import Iterator

from probes import Example, Sentence, task


@task(
    "span_pair_regression",
    # Raise it whenever the same sentence would yield other examples.
    version=1,
    # The annotation layers that the rule reads: upos, xpos, feats, heads, deprels, chunks, frames,
    # lemmas, mentions, ratings, constituents.
    needs=["frames"],
    # What an example is made of: word, pair, span, span pair or sentence.
    shape="span pair",
    # What is predicted: classification, multi-label or regression.
    kind="regression",
    # The headline metric, by which the best layer is chosen, and further ones.
    metric="corpus_spearman",
    also=["mae"],
)
def span_pair_regression(sentence: Sentence) -> Iterator[Example]:
    """The distance in words between the first words of a predicate and its argument."""
    for frame in sentence.frames:
        for _, span in frame.arguments:
            # The probe sees the mean of each span's words.
            kind = f"{frame.roleset} {sentence.words[span[0]]}"
            apart = abs(frame.predicate[0] - span[0])
            yield Example(float(apart), frame.predicate, span, type=kind)
