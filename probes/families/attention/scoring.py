"""Scores of heads on relations and trees, each with a baseline, and the heads chosen by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Ints
from probes.families.attention.annotation import Annotation, best_offset
from probes.families.attention.heads import DIRECTIONS, NOT_PUNCTUATION, UNDIRECTED
from probes.records.row import AxisValue, Row
from probes.statistics.of_families.ratios import RatioParts

if TYPE_CHECKING:
    from probes.measurements.context import ModelContext

CHAINS = {"right-branching": -1, "left-branching": +1}
"""Trees in which each word depends on the one before, or on the one after."""


@dataclass(frozen=True)
class ScoredHeads:
    """Scores of all heads on one relation, or of the trees that are read from their maps.

    Attributes:
        measure: "relation", "uas" or "uuas".
        axes: axes of all rows: the relation as ``feature``; none for trees.
        directions: which word attends to which.
        heads: by split; cells are layers × heads × directions.
        baseline: by split, in one cell, or one for each cell of `heads`. The best head is then the
            one that exceeds its own baseline most.
        baseline_kind: name of the baseline.
        chance: test score of a head without knowledge.
    """

    measure: str
    axes: Mapping[str, AxisValue]
    directions: tuple[str, ...]
    heads: Mapping[str, RatioParts]
    baseline: Mapping[str, RatioParts]
    baseline_kind: str
    chance: float

    @property
    def has_baselines(self) -> bool:
        """Whether each head has a baseline of its own."""
        return len(self.baseline["test"].scores) > 1


def relations(
    context: ModelContext,
    blocks: Sequence[int],
    gold: Mapping[str, Annotation],
    names: Sequence[str],
) -> Iterator[ScoredHeads]:
    """Scores of heads on the named relations.

    From dependent to head, a prediction is right if the word attends most to its head; from head to
    dependent, if its head is the word that attends most to it (Clark et al. 2019, section 4.2.1).
    The baseline is the best fixed offset on train; chance picks any other word.
    """
    hits = {
        split: word_parts(context, "most", split, blocks) == gold[split].head[:, None, None, None]
        for split in ("dev", "test")
    }
    for name in names:
        words = {split: annotation.of(name) for split, annotation in gold.items()}
        offset = best_offset(gold["train"], words["train"])
        yield ScoredHeads(
            "relation",
            {"feature": name},
            DIRECTIONS,
            {x: gold[x].counted(words[x], hits[x]) for x in hits},
            {x: gold[x].counted(words[x], gold[x].at(offset)) for x in hits},
            f"offset {offset:+d}",
            float((1 / (gold["test"].lengths(words["test"]) - 1)).mean()),
        )


def tree_scores(
    context: ModelContext, blocks: Sequence[int], gold: Mapping[str, Annotation]
) -> tuple[list[ScoredHeads], list[Row]]:
    """Scores of trees read from maps, and of chains of words on test; none without relations.

    Trees are maximum spanning arborescences (Raganato & Tiedemann 2018), not told the root, and
    undirected trees. Punctuation is not scored. The baseline of arborescences is the better of two
    chains on train; that of undirected trees links neighbours. By chance, a word of a random tree
    of n words is the head of another with probability 1 / n: n − 1 of the n (n − 1) ordered pairs
    are linked, all equally likely.
    """
    words = {split: annotation.of(NOT_PUNCTUATION) for split, annotation in gold.items()}
    if not all(x.any() for x in words.values()):
        return [], []

    def share(split: str, chain: str) -> float:
        return float(gold[split].at(CHAINS[chain])[words[split]].mean())

    best = max(CHAINS, key=lambda chain: share("train", chain))
    uas: dict[str, RatioParts] = {}
    uuas: dict[str, RatioParts] = {}
    for split in ("dev", "test"):
        annotation = gold[split]
        heads = word_parts(context, "trees", split, blocks)
        right = heads[..., :-1] == annotation.head[:, None, None, None]
        uas[split] = annotation.counted(words[split], right)
        uuas[split] = annotation.counted(words[split], linked_words(heads[..., -1], annotation))
    chains = {x: gold[x].counted(words[x], gold[x].at(CHAINS[best])) for x in uas}
    neighbours = {x: gold[x].counted(words[x], gold[x].at(-1) | gold[x].at(1)) for x in uas}
    chance = float((1 / gold["test"].lengths(words["test"])).mean())
    shares = {("uas", chain): share("test", chain) for chain in CHAINS}
    shares["uuas", "neighbours"] = float(neighbours["test"].scores[0])
    return [
        ScoredHeads("uas", {}, DIRECTIONS, uas, chains, best, chance),
        ScoredHeads("uuas", {}, (UNDIRECTED,), uuas, neighbours, "neighbours", 2 * chance),
    ], [Row(name, value, axes={"baseline": kind}) for (name, kind), value in shares.items()]


def linked_words(tree: Ints, gold: Annotation) -> NDArray[np.bool_]:
    """Whether each word is linked to its head in undirected trees.

    Args:
        tree: neighbour of each word in its sentence, in any number of trees. Shape (words, …).
    """
    shape = (-1, *[1] * (tree.ndim - 1))
    head, position = gold.head.reshape(shape), gold.position.reshape(shape)
    first = np.arange(len(tree)) - gold.position  # of the sentence
    of_head = tree[first + gold.head.clip(0)]
    is_linked: NDArray[np.bool_] = (tree == head) | ((of_head == position) & (head >= 0))
    return is_linked


def word_parts(context: ModelContext, part: str, split: str, blocks: Sequence[int]) -> NDArray[Any]:
    """A part of the collector for the words of a split. Shape (words, layers, …)."""
    return np.concatenate(context.stored.arrays(part))[context.rows(split)][:, blocks]
