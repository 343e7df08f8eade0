"""Numbers of all heads: what was collected of texts and words, averaged, with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats
from probes.measurements.attention.gold import Gold
from probes.measurements.attention.names import STATISTICS
from probes.measurements.attention.patterns import MASSES
from probes.measurements.attention.payload import Grid, HeadNumbers
from probes.measurements.attention.scored import Scored
from probes.measurements.attention.scoring import Contributions, intervals
from probes.measurements.attention.texts import Texts
from probes.measurements.corpus_context import CorpusContext
from probes.statistics.partition import Partition

UNIFORM = "uniform"


@dataclass(frozen=True)
class Heads:
    """The heads that are reported: of some layers, all of them.

    Attributes:
        layers: ascending.
        n: heads of each layer.
    """

    layers: tuple[int, ...]
    n: int

    @property
    def blocks(self) -> list[int]:
        """The places of the layers in what the collector kept."""
        return [layer - 1 for layer in self.layers]

    def grid(self, values: Floats) -> Grid:
        """Numbers of all heads, layer by layer, as a payload has them."""
        rows = np.asarray(values, dtype=np.float64).reshape(len(self.layers), -1)
        return tuple(
            tuple(None if np.isnan(x) else round(float(x), 6) for x in row) for row in rows
        )

    def named(self, cell: int) -> tuple[int, int]:
        """Layer and head, both counted from 1."""
        layer, head = divmod(cell, self.n)
        return self.layers[layer], head + 1


def of_texts(context: CorpusContext, heads: Heads, test: Texts) -> Iterator[HeadNumbers]:
    """What is one number per text and head, averaged over texts."""
    values = context.of_texts("statistics")[test.index][:, heads.blocks]
    for place, name in enumerate(STATISTICS):
        of_name = values[..., place].astype(np.float64)
        if np.isnan(of_name).all():
            continue
        measured, _, feature = name.partition(" ")
        if name in MASSES:
            measured, feature = "pattern", name
        yield averaged(measured, feature, of_name, heads, test.partition)


def averaged(
    measured: str, feature: str, values: Floats, heads: Heads, partition: Partition
) -> HeadNumbers:
    """A mean over texts in which it is defined.

    Args:
        values: of every text, layer and head, the last of which is uniform. Shape
            (texts, layers, heads + 1).
    """
    known: NDArray[np.bool_] = np.logical_and.reduce(~np.isnan(values), axis=(1, 2))
    filled = np.where(known[:, None, None], values, 0)
    counts = known.astype(np.float64)
    of_heads = Contributions(filled[..., :-1].reshape(len(values), -1), counts)
    uniform = Contributions(filled[..., -1], counts).scores
    return _numbers(
        measured, feature, "", "test", of_heads, heads, partition, heads.grid(uniform), UNIFORM
    )


def of_features(
    context: CorpusContext, heads: Heads, gold: Gold, test: Texts
) -> Iterator[HeadNumbers]:
    """Attention to words with a feature, and to special tokens and punctuation together.

    Sentences without a word of the feature are left out; of several such words, that which gets
    most counts (Kovaleva et al. 2019, section 4.4). Special tokens and punctuation get what other
    words do not (after Clark et al. 2019, section 3.2).
    """
    received = np.concatenate(context.stored.arrays("received"))[context.rows("test")]
    received = received[:, heads.blocks]
    if "punctuation" in gold.features:
        others = received * ~gold.features["punctuation"][:, None, None]
        starts = np.flatnonzero(np.diff(gold.sentence, prepend=-1))
        values = 1 - np.add.reduceat(others, starts, axis=0, dtype=np.float64)
        yield averaged("special", "", values, heads, test.partition)
    for feature, words in gold.features.items():
        if not words.any():
            continue
        sentence = gold.sentence[words]
        first = np.flatnonzero(np.diff(sentence, prepend=-1))
        values = np.full((gold.n_sentences, *received.shape[1:]), np.nan)
        values[sentence[first]] = np.maximum.reduceat(received[words], first, axis=0)
        yield averaged("feature", feature, values, heads, test.partition)


def of_scored(scored: Scored, heads: Heads, partition: Partition) -> Iterator[HeadNumbers]:
    """The scores of all heads on dev and test."""
    for place, direction in enumerate(scored.directions):
        for split, found in (("dev", scored.dev), ("test", scored.test)):
            cells = np.arange(found.sums.shape[1]).reshape(-1, len(scored.directions))[:, place]
            base = scored.baselines[split]
            same = base.sums.shape[1] == 1
            of_base = base.scores if same else base.scores[cells]
            yield _numbers(
                scored.measure,
                scored.feature,
                direction,
                split,
                Contributions(found.sums[:, cells], found.counts),
                heads,
                partition if split == "test" else None,
                ((round(float(of_base[0]), 6),),) if same else heads.grid(of_base),
                scored.baseline_kind,
            )


def _numbers(
    measured: str,
    feature: str,
    direction: str,
    split: str,
    found: Contributions,
    heads: Heads,
    partition: Partition | None,
    baseline: Grid,
    kind: str,
) -> HeadNumbers:
    """Numbers of all heads, with intervals if there is a partition."""
    low: Grid = ()
    high: Grid = ()
    if partition is not None:
        ends = intervals(found, partition)
        if not np.isnan(ends).all():
            low, high = heads.grid(ends[:, 0]), heads.grid(ends[:, 1])
    return HeadNumbers(
        measure=measured,
        feature=feature,
        direction=direction,
        split=split,
        n=found.n,
        values=heads.grid(found.scores),
        low=low,
        high=high,
        baseline=baseline,
        baseline_kind=kind,
    )
