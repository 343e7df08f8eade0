"""Mid-frequency words that sentences contain (WC, Conneau et al. 2018).

The paper uses the words of rank 2,001 to 3,000 in millions of sentences, each in a hundred or more.
In a treebank, only more frequent words are in enough sentences. There are no types, since the word
is the label; the baseline is the majority.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from probes.data.sentence import Sentence
from probes.tasks.task import Example, Excluded, task

MOST = 100
"""Number of classes: the most frequent words that qualify."""

FEWEST_SENTENCES, LARGEST_SHARE = 10, 0.01
"""Minimum number of training sentences with a word, and maximum share of all."""


def mid_frequency(train: Sequence[Sentence]) -> frozenset[str]:
    """The words, in lower case; ties in frequency go to words that sort first."""
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
def word_content(vocabulary: frozenset[str], sentence: Sentence) -> Iterator[Example | Excluded]:
    """The one of a hundred mid-frequency words that is in a sentence."""
    words = _forms(sentence) & vocabulary
    if len(words) == 1:
        yield Example(words.pop(), (0, len(sentence)))
    else:
        yield Excluded("several of the words" if words else "none of the words")


def _forms(sentence: Sentence) -> set[str]:
    return {word.lower() for word in sentence.words if word.isalpha()}
