"""Depth in the dependency tree (Hewitt & Manning 2019)."""

from __future__ import annotations

from collections.abc import Iterator

from probes.data.sentence import ROOT, Sentence
from probes.tasks.task import PUNCTUATION, Example, task

DEEP = 5
"""Words from this depth on form one group of the breakdown."""


def depths(heads: tuple[int, ...]) -> list[int]:
    """Number of edges from each word to the root of its tree; 0 for the root itself.

    Raises:
        ValueError: the heads contain a cycle.
    """
    edges = {ROOT: -1}
    for word in range(len(heads)):
        path: list[int] = []
        while word not in edges:
            if len(path) == len(heads):
                raise ValueError("the heads contain a cycle")
            path.append(word)
            word = heads[word]
        for below in reversed(path):
            edges[below] = edges[heads[below]] + 1
    return [edges[word] for word in range(len(heads))]


@task(
    "depth",
    version=2,
    needs=["heads", "upos"],
    kind="regression",
    metric="nspr",
    also=["root_accuracy", "spearman", "mae"],
    group="syntax",
)
def depth(sentence: Sentence) -> Iterator[Example]:
    """The number of edges from a word to the root of its dependency tree."""
    for i, edges in enumerate(depths(sentence.heads)):
        level = f"depth {edges}" if edges < DEEP else f"depth {DEEP}+"
        groups = (level, PUNCTUATION) if sentence.upos[i] == "PUNCT" else (level,)
        yield Example(float(edges), (i, i + 1), type=sentence.words[i], groups=groups)
