"""Distance in the dependency tree (Hewitt & Manning 2019)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from probes.data.sentence import ROOT, Sentence
from probes.tasks.srl import distance_group as words_between
from probes.tasks.task import Example, task


@task("distance", version=1, needs=["heads"], shape="pair", kind="regression",
      metric="spearman", also=["mae"], group="syntax")  # fmt: skip
def distance(sentence: Sentence) -> Iterator[Example]:
    """The number of edges between two words of a sentence in the dependency tree."""
    words = sentence.words
    for i, j in word_pairs(words):
        first_path, second_path = path_up(sentence.heads, i), path_up(sentence.heads, j)
        edges = float(len(set(first_path) ^ set(second_path)))
        first_span, second_span = (i, i + 1), (j, j + 1)
        form = f"{words[i]} {words[j]}"
        groups = words_between(first_span, second_span)
        yield Example(edges, first_span, second_span, type=form, groups=groups)


def word_pairs(words: Sequence[str]) -> list[tuple[int, int]]:
    """Draw one random partner for every word, seeded by the text: at most n pairs, not n²."""
    draw = random.Random(" ".join(words))
    # From i on, numbers stand for the next word, so that no word is its own partner.
    partners = [(i, draw.randrange(len(words) - 1)) for i in range(len(words)) if len(words) > 1]
    return sorted({(min(i, j + (j >= i)), max(i, j + (j >= i))) for i, j in partners})


def path_up(heads: Sequence[int], word: int) -> list[int]:
    """A word and all of its ancestors; the root is last."""
    path = [word]
    while (word := heads[word]) != ROOT:
        path.append(word)
    return path
