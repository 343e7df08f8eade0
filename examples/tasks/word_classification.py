"""Noun or another part of speech."""

from __future__ import annotations

from collections.abc import Iterator

from probes import Example, Sentence, task


@task(
    "word_classification",
    # Raise it whenever the same sentence would yield other examples.
    version=1,
    # The annotation layers that the rule reads: upos, xpos, feats, heads, deprels, chunks, frames,
    # lemmas, mentions, ratings, constituents.
    needs=["upos"],
    # The words of an example: word, pair, span, span pair or sentence.
    shape="word",
    # The kind of label: classification, multi-label or regression.
    kind="classification",
    # The headline metric, by which the best layer is chosen, and further ones.
    metric="accuracy",
    also=["macro_f1"],
)
def word_classification(sentence: Sentence) -> Iterator[Example]:
    """Noun or another part of speech."""
    for i, tag in enumerate(sentence.upos):
        label = "noun" if tag == "NOUN" else "other"
        # The probe sees the words [i, i + 1); the control task has one random label per type.
        yield Example(label, (i, i + 1), type=sentence.words[i])
