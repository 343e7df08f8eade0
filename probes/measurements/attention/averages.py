"""Numbers of all heads: what was collected of texts and words, averaged, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats
from probes.measurements.attention.annotation import Annotation
from probes.measurements.attention.layout import Texts
from probes.measurements.attention.scored import ScoredHeads
from probes.measurements.context import Context
from probes.measurements.head_rows import MASSES, STATISTICS
from probes.records.row import Place, Row
from probes.statistics.partition import Partition
from probes.statistics.ratios import RatioParts, intervals

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

    def named(self, cell: int) -> tuple[int, int]:
        """Layer and head, both counted from 1."""
        layer, head = divmod(cell, self.n)
        return self.layers[layer], head + 1


def of_texts(context: Context, heads: Heads, test: Texts) -> Iterator[Row]:
    """What is one number per text and head, averaged over texts."""
    values = context.of_texts("statistics")[test.index][:, heads.blocks]
    for place, name in enumerate(STATISTICS):
        of_name = values[..., place].astype(np.float64)
        if np.isnan(of_name).all():
            continue
        measured, _, offset = name.partition(" ")
        of: tuple[str, Place] = (measured, int(offset) if offset else None)
        if name in MASSES:
            of = "pattern", name
        yield from averaged(*of, of_name, heads, test.partition)


def averaged(
    measured: str, feature: Place, values: Floats, heads: Heads, partition: Partition
) -> Iterator[Row]:
    """A mean over texts in which it is defined.

    Args:
        values: of every text, layer and head, the last of which is uniform. Shape
            (texts, layers, heads + 1).
    """
    known: NDArray[np.bool_] = np.logical_and.reduce(~np.isnan(values), axis=(1, 2))
    filled = np.where(known[:, None, None], values, 0)
    counts = known.astype(np.float64)
    of_heads = RatioParts(filled[..., :-1].reshape(len(values), -1), counts)
    uniform = RatioParts(filled[..., -1], counts).scores
    axes = {} if feature is None else {"feature": feature}
    yield from _rows(measured, "test", of_heads, heads, partition, axes)
    yield from _baselines(measured, "test", uniform, heads, {**axes, "baseline": UNIFORM})


def of_features(context: Context, heads: Heads, gold: Annotation, test: Texts) -> Iterator[Row]:
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
        yield from averaged("special", None, values, heads, test.partition)
    for feature, words in gold.features.items():
        if not words.any():
            continue
        sentence = gold.sentence[words]
        first = np.flatnonzero(np.diff(sentence, prepend=-1))
        values = np.full((gold.n_sentences, *received.shape[1:]), np.nan)
        values[sentence[first]] = np.maximum.reduceat(received[words], first, axis=0)
        yield from averaged("feature", feature, values, heads, test.partition)


def of_scored(scored: ScoredHeads, heads: Heads, partition: Partition) -> Iterator[Row]:
    """The scores of all heads on dev and test."""
    for place, direction in enumerate(scored.directions):
        axes: dict[str, Place] = {"direction": direction}
        if scored.feature:
            axes["feature"] = scored.feature
        for split, found in (("dev", scored.dev), ("test", scored.test)):
            cells = slice(place, None, len(scored.directions))
            of_cells = RatioParts(found.sums[:, cells], found.counts)
            base = scored.baselines[split].scores
            of_base = base if len(base) == 1 else base[cells]
            resampled = partition if split == "test" else None
            yield from _rows(scored.measure, split, of_cells, heads, resampled, axes)
            of = {**axes, "baseline": scored.baseline_kind}
            yield from _baselines(scored.measure, split, of_base, heads, of)


def _rows(
    measured: str,
    split: str,
    found: RatioParts,
    heads: Heads,
    partition: Partition | None,
    axes: Mapping[str, Place],
) -> Iterator[Row]:
    """Numbers of all heads, with intervals if there is a partition."""
    scores = found.scores
    ends = np.full((len(scores), 2), np.nan) if partition is None else intervals(found, partition)
    for cell, (score, pair) in enumerate(zip(scores.tolist(), ends.tolist(), strict=True)):
        layer, head = heads.named(cell)
        low, high = (round(end, 6) for end in pair)
        of = {"head": head, **axes}
        yield Row(measured, round(score, 6), layer, low, high, split, found.n, axes=of)


def _baselines(
    measured: str, split: str, values: Floats, heads: Heads, axes: Mapping[str, Place]
) -> Iterator[Row]:
    """Baselines of all heads: one for all, one for each layer, or one for each."""
    for place, value in enumerate(round(x, 6) for x in values.tolist()):
        if len(values) <= len(heads.layers):
            layer = None if len(values) == 1 else heads.layers[place]
            yield Row(measured, value, layer, split=split, axes=axes)
        else:
            layer, head = heads.named(place)
            yield Row(measured, value, layer, split=split, axes={"head": head, **axes})
