"""Adverb in a sentence: yes or no."""

from __future__ import annotations

from collections.abc import Iterator

from probes import Example, Sentence, task


@task(
    "sentence_classification",
    # Raise it whenever the same sentence would yield other examples.
    version=1,
    # The annotation layers that the rule reads: upos, xpos, feats, heads, deprels, chunks, frames,
    # lemmas, mentions, ratings, constituents.
    needs=["upos"],
    # The words of an example: word, pair, span, span pair or sentence.
    shape="sentence",
    # The kind of label: classification, multi-label or regression.
    kind="classification",
    # The headline metric, by which the best layer is chosen, and further ones.
    metric="accuracy",
    also=["macro_f1"],
)
def sentence_classification(sentence: Sentence) -> Iterator[Example]:
    """Adverb in a sentence: yes or no."""
    label = "adverb" if "ADV" in sentence.upos else "none"
    # The probe sees the mean of all words.
    yield Example(label, (0, len(sentence)), type=sentence.words[0])
