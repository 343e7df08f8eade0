"""Which of some words of middling frequency a sentence contains (WC, Conneau et al. 2018).

Theirs are the words of rank 2,001 to 3,000 of millions of sentences, with a hundred sentences or
more each; a treebank has as many only of more frequent words. There are no types, since the word
is its own label: the floor is the majority.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from probes.data.sentence import Sentence
from probes.tasks.task import Example, Excluded, task

MOST = 100
"""Words that are told apart, the most frequent of those that qualify."""

FEWEST_SENTENCES, LARGEST_SHARE = 10, 0.01
"""Training sentences that a word is in: at least as many, and at most this share of all."""


def mid_frequency(train: Sequence[Sentence]) -> frozenset[str]:
    """The words, in lower case; of equally frequent ones those that sort first."""
    counts = Counter(word for sentence in train for word in _forms(sentence))
    fitting = [
        (-n, word)
        for word, n in counts.items()
        if FEWEST_SENTENCES <= n <= LARGEST_SHARE * len(train)
    ]
    return frozenset(word for _, word in sorted(fitting)[:MOST])


@task("word-content", version=1, needs=[], shape="sentence", metric="accuracy",
      also=["macro_f1"], from_train=mid_frequency,
      group="surface")  # fmt: skip
def word_content(known: frozenset[str], sentence: Sentence) -> Iterator[Example | Excluded]:
    """Which of a hundred words of middling frequency is in a sentence."""
    found = _forms(sentence) & known
    if len(found) == 1:
        yield Example(found.pop(), (0, len(sentence)))
    else:
        yield Excluded("several of the words" if found else "none of the words")


def _forms(sentence: Sentence) -> set[str]:
    return {word.lower() for word in sentence.words if word.isalpha()}
