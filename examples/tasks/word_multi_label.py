"""The morphological features of a word."""

from __future__ import annotations

from collections.abc import Iterator

from probes import Example, Sentence, task


@task(
    "word_multi_label",
    # Raise it whenever the same sentence would yield other examples.
    version=1,
    # The annotation layers that the rule reads: upos, xpos, feats, heads, deprels, chunks, frames,
    # lemmas, mentions, ratings, constituents.
    needs=["feats"],
    # What an example is made of: word, pair, span, span pair or sentence.
    shape="word",
    # What is predicted: classification, multi-label or regression.
    kind="multi-label",
    # The headline metric, by which the best layer is chosen, and further ones.
    metric="micro_f1",
    also=["exact_match"],
)
def word_multi_label(sentence: Sentence) -> Iterator[Example]:
    """The morphological features of a word."""
    for i, feats in enumerate(sentence.feats):
        label = tuple(f"{name}={value}" for name, value in feats.items())  # may be empty
        # The probe sees the words [i, i + 1); the control task has one random label per type.
        yield Example(label, (i, i + 1), type=sentence.words[i])
