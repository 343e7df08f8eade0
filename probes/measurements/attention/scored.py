"""Relations and trees that heads are scored on, each with its baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats, Ints
from probes.measurements.attention.annotation import (
    Annotation,
    Words,
    best_offset,
)
from probes.measurements.attention.heads import DIRECTIONS, TREES
from probes.measurements.context import ModelContext
from probes.records.row import Row
from probes.statistics.ratios import RatioParts
from probes.statistics.sums import sparse


@dataclass(frozen=True)
class ScoredHeads:
    """A feature by which heads are scored on dev and test.

    Attributes:
        directions: who attends to whom; cells are layers × heads × directions.
        baselines: by split; of one cell, or of as many as there are.
        chance: what would be reached on test by any head without knowledge. Shape (cells,).
        by_difference: whether the best head is that which differs most from its baseline.
    """

    measure: str
    feature: str
    directions: tuple[str, ...]
    dev: RatioParts
    test: RatioParts
    baselines: Mapping[str, RatioParts]
    baseline_kind: str
    chance: Floats
    by_difference: bool = False

    @property
    def on_dev(self) -> Floats:
        """What heads are chosen by. Shape (cells,)."""
        scores = self.dev.scores
        return scores - self.baselines["dev"].scores if self.by_difference else scores

    @property
    def best(self) -> int:
        """The best cell on dev; of equals the first."""
        return int(np.nanargmax(self.on_dev))

    def baseline(self, split: str, cell: int) -> RatioParts:
        """That of a cell."""
        of_split = self.baselines[split]
        return of_split if of_split.sums.shape[1] == 1 else of_split.of(cell)


def relations(
    context: ModelContext,
    blocks: Sequence[int],
    gold: Mapping[str, Annotation],
    names: Sequence[str],
) -> Iterator[ScoredHeads]:
    """Relations by their names, one after the other.

    A head is right about a word if, of all other words, it attends most to that word's head, or if
    the word's head is the word that attends most to it (Clark et al. 2019, section 4.2.1). The
    baseline is the best fixed offset on train; by chance it is any of the other words.
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
    """Whether a word's head is at an offset."""
    found: Words = gold.head == gold.position + offset
    return found


def _counted(gold: Annotation, relation: str, hits: Words) -> RatioParts:
    """Hits among words of a relation. `hits` has a column per cell."""
    return summed_up(gold.sentence, gold.n_sentences, gold.relations[relation], hits)


def summed_up(sentence: Ints, n_sentences: int, which: Words, values: NDArray[Any]) -> RatioParts:
    """Values of some words or links, summed over each sentence.

    Args:
        sentence: of each. Shape (n,).
        which: which of them count. Shape (n,).
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
    """Trees that are read from maps, and what chains of words reach on test.

    Maximum spanning arborescences (Raganato & Tiedemann 2018) without being told the root, and
    undirected trees; dependents that are punctuation do not count. The baseline of arborescences
    is the better chain on train: each word depends on the one before, or on the one after. In a
    random tree of n words each is the head of another with probability 1 / n, since n − 1 of the
    n (n − 1) ordered pairs are linked and all are alike.
    """
    right = {split: each.without_punctuation for split, each in gold.items()}
    if not all(words.any() for words in right.values()):
        return [], []
    chains = {"right-branching": -1, "left-branching": +1}
    best = max(chains, key=lambda x: _at(gold["train"], chains[x])[right["train"]].mean())
    hits: dict[str, dict[str, RatioParts]] = {"uas": {}, "uuas": {}}
    base: dict[str, dict[str, RatioParts]] = {"uas": {}, "uuas": {}}
    for split in ("dev", "test"):
        its, counts = gold[split], right[split]

        def summed(
            values: NDArray[Any], its: Annotation = its, counts: Words = counts
        ) -> RatioParts:
            flat = values.reshape(len(values), -1)
            return summed_up(its.sentence, its.n_sentences, counts, flat)

        heads = _of_words(context, "trees", split)[:, blocks]
        directed = heads[..., : len(DIRECTIONS)] == its.head[:, None, None, None]
        hits["uas"][split] = summed(directed)
        hits["uuas"][split] = summed(_linked(heads[..., -1], its))
        base["uas"][split] = summed(_at(its, chains[best]))
        base["uuas"][split] = summed(_at(its, -1) | _at(its, 1))
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
    """Whether the edge between a word and its head is in a tree.

    Args:
        heads: in the tree. Shape (words, layers, heads).
    """
    its = gold.head[:, None, None]
    of_head = heads[(gold.first + gold.head.clip(0))]
    found: Words = (heads == its) | ((of_head == gold.position[:, None, None]) & (its >= 0))
    return found
