"""PropBank role of an argument, given the predicate."""

from __future__ import annotations

from collections.abc import Iterator

from probes import Example, Sentence, task


@task(
    "span_pair_classification",
    # Raise it whenever the same sentence would yield other examples.
    version=1,
    # The annotation layers that the rule reads: upos, xpos, feats, heads, deprels, chunks, frames,
    # lemmas, mentions, ratings, constituents.
    needs=["frames"],
    # The words of an example: word, pair, span, span pair or sentence.
    shape="span pair",
    # The kind of label: classification, multi-label or regression.
    kind="classification",
    # The headline metric, by which the best layer is chosen, and further ones.
    metric="accuracy",
    also=["macro_f1"],
)
def span_pair_classification(sentence: Sentence) -> Iterator[Example]:
    """PropBank role of an argument, given the predicate."""
    for frame in sentence.frames:
        for role, span in frame.arguments:
            # The probe sees the mean of each span's words.
            kind = f"{frame.roleset} {sentence.words[span[0]]}"
            yield Example(role, frame.predicate, span, type=kind)
