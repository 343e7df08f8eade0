"""Which of noun, verb and adverb a sentence contains."""

from __future__ import annotations

from collections.abc import Iterator

from probes import Example, Sentence, task


@task(
    "sentence_multi_label",
    # Raise it whenever the same sentence would yield other examples.
    version=1,
    # The annotation layers that the rule reads: upos, xpos, feats, heads, deprels, chunks, frames,
    # lemmas, mentions, ratings, constituents.
    needs=["upos"],
    # What an example is made of: word, pair, span, span pair or sentence.
    shape="sentence",
    # What is predicted: classification, multi-label or regression.
    kind="multi-label",
    # The headline metric, by which the best layer is chosen, and further ones.
    metric="micro_f1",
    also=["exact_match"],
)
def sentence_multi_label(sentence: Sentence) -> Iterator[Example]:
    """Which of noun, verb and adverb a sentence contains."""
    label = tuple(tag for tag in ("NOUN", "VERB", "ADV") if tag in sentence.upos)
    # The probe sees the mean of all words.
    yield Example(label, (0, len(sentence)), type=sentence.words[0])
