"""Breakdowns of every task's scores: by label, and by the number of a word's pieces.

Breakdowns that a task defines itself are `Example.groups`; examples.py marks whether an example's
type occurs in train.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from probes.examples.examples import Examples
from probes.extraction.alignment import Pieces
from probes.extraction.views import Text
from probes.records.values import LabelScore
from probes.statistics.gold import Gold, Predictions
from probes.statistics.metrics import class_parts

ONE_PIECE, SEVERAL_PIECES = "word of one piece", "word of several pieces"


def marked_by_pieces(
    examples: Examples, split_words: Callable[[Sequence[Text]], list[Pieces]]
) -> Examples:
    """The examples with two more breakdowns of test: words of one subword, and of several.

    Only for tasks whose examples are words that the encoder sees: spans have several words, and
    a hidden word has no pieces.
    """
    if examples.task.shape != "word" or examples.view not in ("plain", "own"):
        return examples
    test = examples.splits["test"]
    texts = list(dict.fromkeys(test.texts))
    bounds = {text: p.bounds for text, p in zip(texts, split_words(texts), strict=True)}
    marked = []
    for example, text in zip(test.examples, test.texts, strict=True):
        start, end = example.span
        n_pieces = bounds[text][end] - bounds[text][start]
        name = ONE_PIECE if n_pieces == 1 else SEVERAL_PIECES
        marked.append(replace(example, groups=(*example.groups, name)))
    test = replace(test, examples=tuple(marked))
    return replace(examples, splits={**examples.splits, "test": test})


def by_label(gold: Gold, predicted: Predictions, *, chunks: bool) -> dict[str, LabelScore]:
    """Precision, recall and F1 of every label that occurs or is predicted, sorted by name.

    Args:
        predicted: class indices. Shape (n,).
        chunks: labels are BIO tags; score whole chunks by type.
    """
    if not gold.classes:
        return {}
    if chunks:
        wanted, found = gold.chunks, gold.chunks_in(predicted)
        n, given, right = (
            Counter(kind for _, _, kind in spans) for spans in (wanted, found, wanted & found)
        )
        return {name: _score(n[name], given[name], right[name]) for name in sorted(n | given)}
    names = (*gold.classes, *sorted(set(gold.unseen)))
    counts = class_parts(gold, predicted).sum(0).reshape(3, -1).astype(np.int64)
    named = zip(names, *counts.tolist(), strict=True)
    return {name: _score(n, given, right) for name, n, given, right in sorted(named) if n + given}


def _score(n: int, given: int, right: int) -> LabelScore:
    return LabelScore(
        n=n,
        precision=right / given if given else None,
        recall=right / n if n else None,
        f1=2 * right / (n + given),
    )
