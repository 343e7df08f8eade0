"""Scores of heads against gold relations and trees, each with a baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats, Ints
from probes.families.attention.annotation import (
    Annotation,
    Words,
    best_offset,
)
from probes.families.attention.heads import DIRECTIONS, TREES
from probes.measurements.context import ModelContext
from probes.records.row import Row
from probes.statistics.ratios import RatioParts
from probes.statistics.sums import sparse


@dataclass(frozen=True)
class ScoredHeads:
    """A feature by which heads are scored on dev and test.

    Attributes:
        directions: who attends to whom; cells are layers × heads × directions.
        baselines: baseline by split, for each cell or one for all.
        chance: test score of a head without knowledge. Shape (cells,).
    """

    measure: str
    feature: str
    directions: tuple[str, ...]
    dev: RatioParts
    test: RatioParts
    baselines: Mapping[str, RatioParts]
    baseline_kind: str
    chance: Floats

    @property
    def best(self) -> int:
        """The best cell on dev; the first of equals."""
        return int(np.nanargmax(self.dev.scores))

    def baseline(self, split: str, cell: int) -> RatioParts:
        """Baseline of a cell."""
        of_split = self.baselines[split]
        return of_split if of_split.sums.shape[1] == 1 else of_split.of(cell)


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
    hits = {}
    for split in ("dev", "test"):
        most = _of_words(context, "most", split)[:, blocks]
        hits[split] = (most == gold[split].head[:, None, None, None]).reshape(len(most), -1)
    for name in names:
        offset = best_offset(gold["train"], gold["train"].of(name))
        parts = {split: _counted(gold[split], name, hits[split]) for split in hits}
        base = {
            split: _counted(gold[split], name, _at(gold[split], offset)[:, None]) for split in hits
        }
        kind, cells = f"offset {offset:+d}", parts["test"].sums.shape[1]
        others = gold["test"].length[gold["test"].of(name)] - 1
        chance = np.full(cells, (1 / others).mean())
        yield ScoredHeads(
            "relation", name, DIRECTIONS, parts["dev"], parts["test"], base, kind, chance
        )


def _of_words(context: ModelContext, part: str, split: str) -> NDArray[Any]:
    return np.concatenate(context.stored.arrays(part))[context.rows(split)]


def _at(gold: Annotation, offset: int) -> Words:
    """True for words whose head is at an offset."""
    found: Words = gold.head == gold.position + offset
    return found


def _counted(gold: Annotation, relation: str, hits: Words) -> RatioParts:
    """Hits among words of a relation. `hits` has one column per cell."""
    return summed_up(gold.sentence, gold.n_sentences, gold.relations[relation], hits)


def summed_up(sentence: Ints, n_sentences: int, which: Words, values: NDArray[Any]) -> RatioParts:
    """Sum values of words or links over each sentence.

    Args:
        sentence: sentence of each item. Shape (n,).
        which: True for items that count. Shape (n,).
        values: shape (n, cells).
    """
    (rows,) = np.nonzero(which)
    of = sentence[rows]
    ones, places = np.ones(len(rows), dtype=np.float32), np.arange(len(rows))
    members = sparse((ones, (of, places)), (n_sentences, len(rows)))
    counts = np.bincount(of, minlength=n_sentences).astype(np.float64)
    return RatioParts(members @ values[rows].astype(np.float32), counts)


def trees(
    context: ModelContext, blocks: Sequence[int], gold: Mapping[str, Annotation]
) -> tuple[list[ScoredHeads], list[Row]]:
    """Scores of trees read from maps, and of chains of words on test.

    Trees are maximum spanning arborescences (Raganato & Tiedemann 2018), not told the root, and
    undirected trees. Punctuation is not scored. The baseline of arborescences is the better of two
    chains on train, in which each word depends on the one before or on the one after. By chance, a
    word of a random tree of n words is the head of another with probability 1 / n: n − 1 of the
    n (n − 1) ordered pairs are linked, all equally likely.
    """
    right = {split: each.without_punctuation for split, each in gold.items()}
    if not all(words.any() for words in right.values()):
        return [], []
    chains = {"right-branching": -1, "left-branching": +1}
    best = max(chains, key=lambda x: _at(gold["train"], chains[x])[right["train"]].mean())
    hits: dict[str, dict[str, RatioParts]] = {"uas": {}, "uuas": {}}
    base: dict[str, dict[str, RatioParts]] = {"uas": {}, "uuas": {}}
    for split in ("dev", "test"):
        annotation, counts = gold[split], right[split]

        def summed(
            values: NDArray[Any], annotation: Annotation = annotation, counts: Words = counts
        ) -> RatioParts:
            flat = values.reshape(len(values), -1)
            return summed_up(annotation.sentence, annotation.n_sentences, counts, flat)

        heads = _of_words(context, "trees", split)[:, blocks]
        directed = heads[..., : len(DIRECTIONS)] == annotation.head[:, None, None, None]
        hits["uas"][split] = summed(directed)
        hits["uuas"][split] = summed(_linked(heads[..., -1], annotation))
        base["uas"][split] = summed(_at(annotation, chains[best]))
        base["uuas"][split] = summed(_at(annotation, -1) | _at(annotation, 1))
    of_chains = [
        Row("uas", float(_at(gold["test"], at)[right["test"]].mean()), axes={"baseline": chain})
        for chain, at in chains.items()
    ]
    neighbours = float(base["uuas"]["test"].scores[0])
    of_chains.append(Row("uuas", neighbours, axes={"baseline": "neighbours"}))
    linked = (1 / gold["test"].length[right["test"]]).mean()
    kinds = {"uas": (DIRECTIONS, best, linked), "uuas": (TREES[-1:], "neighbours", 2 * linked)}
    return [
        ScoredHeads(
            name,
            "",
            directions,
            hits[name]["dev"],
            hits[name]["test"],
            base[name],
            kind,
            np.full(hits[name]["test"].sums.shape[1], chance),
        )
        for name, (directions, kind, chance) in kinds.items()
    ], of_chains


def _linked(heads: NDArray[Any], gold: Annotation) -> Words:
    """True where the edge of a word and its gold head is in the tree. Shape (words, layers, heads).

    Args:
        heads: heads in the tree, of the same shape.
    """
    gold_head = gold.head[:, None, None]
    of_head = heads[(gold.first + gold.head.clip(0))]
    found: Words = (heads == gold_head) | (
        (of_head == gold.position[:, None, None]) & (gold_head >= 0)
    )
    return found
