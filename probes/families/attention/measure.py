"""Makes rows, choices and notes from the statistics that a collector kept of every head."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats
from probes.examples.examples import NotServedError
from probes.families.attention.annotation import Annotation, frequent, gold_of
from probes.families.attention.heads import (
    ABOVE,
    CHANCE,
    CLASS,
    MASSES,
    STATISTICS,
    classes,
    masses,
)
from probes.families.attention.scored import ScoredHeads, relations, trees
from probes.families.attention.tables import RELATIONS, TREES
from probes.measurements.context import ModelContext
from probes.measurements.measurement import Found
from probes.measurements.pivots import note_of
from probes.records.row import Place, Row
from probes.records.values import Estimate
from probes.statistics.metrics import shown
from probes.statistics.partition import Partition
from probes.statistics.ratios import RatioParts, difference, estimate, intervals, p_values


class Gathering:
    """A `Found` under construction."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.arrays: dict[str, NDArray[np.generic]] = {}
        self.facts: dict[str, Place] = {}
        self.notes: list[str] = []


def measure(context: ModelContext) -> Found:
    """All numbers of heads.

    Raises:
        NotServedError: no text of a split fits into the model's window.
    """
    n_heads = context.stored.arrays("mean_maps")[0].shape[1]
    heads = Heads(context.layers, n_heads)
    found = Gathering()
    for split in ("dev", "test"):
        count_texts(found, context, split)
    test = context.partition("test")
    found.facts["resampled"] = test.clusters
    found.notes.append(
        "Entropy: share of the greatest possible. Means over test texts. heads.csv has the numbers "
        f"of single heads, with intervals over {test.clusters}."
    )
    found.rows += of_texts(context, heads, test)
    of_class: dict[Any, str] = classes(masses(found.rows)).to_dict()
    add_of_sentences(found, context, heads, test)
    found.rows += [
        Row(CLASS, None, layer, axes={"head": head, "feature": name})
        for (layer, head), name in of_class.items()
    ]
    add_mean_maps(found, context, heads)
    return Found(found.rows, found.arrays, {}, found.facts, found.notes)


def count_texts(found: Gathering, context: ModelContext, split: str) -> None:
    """Count the texts of a split, and those longer than the model's window.

    Raises:
        NotServedError: all are longer.
    """
    sentences, too_long = context.corpus.splits[split], context.in_several_windows(split)
    if too_long.all():
        raise NotServedError(f"no text of {split} fits into the model's window")
    n, left_out, n_words = len(sentences), int(too_long.sum()), sum(map(len, sentences))
    counts = {"texts": n, "words": n_words, "too_long": left_out}
    found.facts |= {f"{split}_{name}": count for name, count in counts.items()}
    long = f"; {left_out:,} left out, longer than the model's window" * bool(left_out)
    found.notes.append(f"{split}: {n:,} sentences, {n_words:,} words{long}.")


def add_of_sentences(
    found: Gathering, context: ModelContext, heads: Heads, test: Partition
) -> None:
    """Add features, relations and trees."""
    splits = context.corpus.splits
    gold = {x: gold_of(splits[x], context.in_several_windows(x)) for x in ("dev", "test")}
    gold["train"] = gold_of(splits["train"], np.zeros(len(splits["train"]), dtype=bool))
    found.rows += of_features(context, heads, gold["test"], test)
    names, rare = frequent(gold)
    found_trees, chains = trees(context, heads.blocks, gold)
    every: list[Picked] = []
    lacking = []
    for what, scored in (
        (RELATIONS, relations(context, heads.blocks, gold, names)),
        (TREES, found_trees),
    ):
        picked = []
        for each in scored:
            found.rows += of_scored(each, heads, test)
            picked.append(Picked.of(each))
        found.rows += choices_of(picked, heads, test)
        lacking += [what] * (not picked)
        every += picked
    found.rows += chains
    shares = ", ".join(f"{row.axes['baseline']} {shown(row.value, 'uas')}" for row in chains)
    found.notes += [
        *[note_of(TREES, f"Chains on test: {shares}.")] * bool(chains),
        *_too_rare(RELATIONS, "words", rare),
        *[f"Left out for lack of annotation: {', '.join(sorted(lacking))}."] * bool(lacking),
    ]
    found.arrays |= {**arrays_of(every), "test_clusters": test.of_sentence}


def _too_rare(title: str, of: str, rare: Mapping[str, int]) -> Iterator[str]:
    if rare:
        names = ", ".join(f"{name} {n}" for name, n in rare.items())
        yield note_of(title, f"Not scored (too rare); {of} in test: {names}.")


def add_mean_maps(found: Gathering, context: ModelContext, heads: Heads) -> None:
    """Add the mean maps of all heads."""
    texts = int(np.concatenate(context.stored.arrays("n_mean_maps")).sum())
    found.facts["mean_map_texts"] = texts
    if texts:
        sums: Floats = np.stack(context.stored.arrays("mean_maps")).sum(0, dtype=np.float64)
        maps = (sums[heads.blocks] / texts).round(3)
        found.arrays["mean_maps"] = maps.astype(np.float32)


@dataclass(frozen=True)
class Picked:
    """The head that is best on dev for a feature.

    Attributes:
        cell: layer, head and direction, as in `ScoredHeads`.
        test, baseline: parts of its test score, and of its baseline.
    """

    measure: str
    feature: str
    directions: tuple[str, ...]
    cell: int
    test: RatioParts
    baseline: RatioParts
    baseline_kind: str
    chance: float

    @classmethod
    def of(cls, scored: ScoredHeads) -> Picked:
        """Keep the best head only."""
        cell = scored.best
        return cls(
            scored.measure,
            scored.feature,
            scored.directions,
            cell,
            scored.test.of(cell),
            scored.baseline("test", cell),
            scored.baseline_kind,
            float(scored.chance[cell]),
        )


def choices_of(picked: Sequence[Picked], heads: Heads, partition: Partition) -> Iterator[Row]:
    """Rows with the axis ``chosen`` for all heads picked by a measure, tested together."""
    p_of = p_values([(each.test, each.baseline) for each in picked], partition)
    for each, p in zip(picked, p_of, strict=True):
        cell, direction = divmod(each.cell, len(each.directions))
        layer, head = heads.named(cell)
        axes: dict[str, Place] = {"head": head, "direction": each.directions[direction]}
        if each.feature:
            axes["feature"] = each.feature
        axes["chosen"] = "best on dev"
        name, n, own = each.measure, each.test.n, {"baseline": each.baseline_kind}
        test, baseline = (estimate(x, partition) for x in (each.test, each.baseline))
        above = difference(each.test, each.baseline, partition)
        yield Row(name, test.value, layer, *_ends(test), n=n, axes=axes)
        yield Row(name, baseline.value, layer, *_ends(baseline), n=n, axes={**axes, **own})
        yield Row(name, each.chance, layer, n=n, axes={**axes, "baseline": CHANCE})
        of = {**axes, "measure": name}
        yield Row(ABOVE, above.value, layer, *_ends(above), n=n, p=p, axes=of)


def _ends(found: Estimate) -> tuple[float | None, float | None]:
    return found.interval or (None, None)


def arrays_of(picked: Sequence[Picked]) -> dict[str, NDArray[np.generic]]:
    """Parts of test scores in the order of the choices; see `attention`."""
    if not picked:
        return {}
    return {
        "test_sums": np.stack([x.test.sums[:, 0] for x in picked]).astype(np.float32),
        "test_counts": np.stack([x.test.counts for x in picked]).astype(np.float32),
        "test_baseline_sums": np.stack([x.baseline.sums[:, 0] for x in picked]).astype(np.float32),
    }


UNIFORM = "uniform"


@dataclass(frozen=True)
class Heads:
    """The reported heads: all heads of some layers.

    Attributes:
        layers: layers, ascending.
        n: number of heads per layer.
    """

    layers: tuple[int, ...]
    n: int

    @property
    def blocks(self) -> list[int]:
        """Places of the layers in the collector's parts."""
        return [layer - 1 for layer in self.layers]

    def named(self, cell: int) -> tuple[int, int]:
        """Layer and head, both counted from 1."""
        layer, head = divmod(cell, self.n)
        return self.layers[layer], head + 1


def of_texts(context: ModelContext, heads: Heads, test: Partition) -> Iterator[Row]:
    """Statistics of texts, averaged over the texts of test."""
    values = context.of_sentences("test", "statistics")[:, heads.blocks]
    for place, name in enumerate(STATISTICS):
        of_name = values[..., place].astype(np.float64)
        if np.isnan(of_name).all():
            continue
        measured, _, offset = name.partition(" ")
        of: tuple[str, Place] = (measured, int(offset) if offset else None)
        if name in MASSES:
            of = "pattern", name
        yield from averaged(*of, of_name, heads, test)


def averaged(
    measured: str, feature: Place, values: Floats, heads: Heads, partition: Partition
) -> Iterator[Row]:
    """Mean of a statistic over the texts in which it is defined, with the uniform baseline.

    Args:
        values: shape (texts, layers, heads + 1); the last head is uniform.
    """
    known: NDArray[np.bool_] = np.logical_and.reduce(~np.isnan(values), axis=(1, 2))
    filled = np.where(known[:, None, None], values, 0)
    counts = known.astype(np.float64)
    of_heads = RatioParts(filled[..., :-1].reshape(len(values), -1), counts)
    uniform = RatioParts(filled[..., -1], counts).scores
    axes = {} if feature is None else {"feature": feature}
    yield from _rows(measured, "test", of_heads, heads, partition, axes)
    yield from _baselines(measured, "test", uniform, heads, {**axes, "baseline": UNIFORM})


def of_features(
    context: ModelContext, heads: Heads, gold: Annotation, test: Partition
) -> Iterator[Row]:
    """Attention to words with a feature, and to special tokens and punctuation together.

    Sentences without such a word are left out; if there are several, the one that receives most
    counts (Kovaleva et al. 2019, section 4.4). Special tokens and punctuation receive what other
    words do not (after Clark et al. 2019, section 3.2).
    """
    received = np.concatenate(context.stored.arrays("received"))[context.rows("test")]
    received = received[:, heads.blocks]
    if "punctuation" in gold.features:
        others = received * ~gold.features["punctuation"][:, None, None]
        starts = np.flatnonzero(np.diff(gold.sentence, prepend=-1))
        values = 1 - np.add.reduceat(others, starts, axis=0, dtype=np.float64)
        yield from averaged("special", None, values, heads, test)
    for feature, words in gold.features.items():
        if not words.any():
            continue
        sentence = gold.sentence[words]
        first = np.flatnonzero(np.diff(sentence, prepend=-1))
        values = np.full((gold.n_sentences, *received.shape[1:]), np.nan)
        values[sentence[first]] = np.maximum.reduceat(received[words], first, axis=0)
        yield from averaged("feature", feature, values, heads, test)


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
    """Scores of all heads, with intervals if there is a partition."""
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
