"""Length and depth of whole sentences, in classes (SentLen and TreeDepth, Conneau et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterator

from probes.data.sentence import Sentence
from probes.tasks.depth import depths
from probes.tasks.task import Example, task

LENGTHS = ((4, "1–4"), (8, "5–8"), (12, "9–12"), (16, "13–16"), (20, "17–20"), (25, "21–25"),
           (float("inf"), "26+"))  # fmt: skip
"""Classes: maximum number of words, and name."""

DEEPEST = 8
"""Trees from this depth on form one class."""


@task("length", version=1, needs=[], shape="sentence", metric="accuracy", also=["macro_f1"],
      group="surface")  # fmt: skip
def length(sentence: Sentence) -> Iterator[Example]:
    """The number of words in a sentence, in seven classes."""
    yield Example(length_class(sentence), (0, len(sentence)))


@task("tree-depth", version=1, needs=["heads"], shape="sentence",
      metric="accuracy", also=["macro_f1"], group="syntax")  # fmt: skip
def tree_depth(sentence: Sentence) -> Iterator[Example]:
    """The depth of a sentence's dependency tree, in nine classes."""
    deepest = max(depths(sentence.heads))
    label = str(deepest) if deepest < DEEPEST else f"{DEEPEST}+"
    words = f"{length_class(sentence)} words"
    yield Example(label, (0, len(sentence)), groups=(words,))


def length_class(sentence: Sentence) -> str:
    """The class of a sentence's length."""
    return next(name for most, name in LENGTHS if len(sentence) <= most)
