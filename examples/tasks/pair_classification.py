"""The dependency relation of a word to its head; both are given."""

from __future__ import annotations

from collections.abc import Iterator

from probes import ROOT, Example, Excluded, Sentence, task


@task(
    "pair_classification",
    # Raise it whenever the same sentence would yield other examples.
    version=1,
    # The annotation layers that the rule reads: upos, xpos, feats, heads, deprels, chunks, frames,
    # lemmas, mentions, ratings, constituents.
    needs=["heads", "deprels"],
    # What an example is made of: word, pair, span, span pair or sentence.
    shape="pair",
    # What is predicted: classification, multi-label or regression.
    kind="classification",
    # The headline metric, by which the best layer is chosen, and further ones.
    metric="accuracy",
    also=["macro_f1"],
)
def pair_classification(sentence: Sentence) -> Iterator[Example | Excluded]:
    """The dependency relation of a word to its head; both are given."""
    for i, head in enumerate(sentence.heads):
        if head == ROOT:
            yield Excluded("root")  # not an example; counted by reason
            continue
        # The probe sees both words; the control task has one random label per type.
        pair = f"{sentence.words[i]} {sentence.words[head]}"
        yield Example(sentence.deprels[i], (i, i + 1), (head, head + 1), type=pair)
