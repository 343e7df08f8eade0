"""Measures attention: from what a collector kept of every head to estimates and choices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats
from probes.examples.examples import NotServedError
from probes.measurements.attention.gold import FEWEST_TESTED, Gold, gold_of
from probes.measurements.attention.names import STATISTICS, TOKENS
from probes.measurements.attention.patterns import MASSES, beyond_uniform, pattern_of
from probes.measurements.attention.payload import (
    Choice,
    Findings,
    Grid,
    HeadNumbers,
    MeanMaps,
)
from probes.measurements.attention.roles import roles
from probes.measurements.attention.scored import Scored, relations, trees
from probes.measurements.attention.scoring import (
    Contributions,
    difference,
    estimate,
    intervals,
    p_values,
)
from probes.measurements.attention.texts import Texts, texts_of
from probes.measurements.corpus_context import CorpusContext
from probes.measurements.measurement import Found
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


def measure(context: CorpusContext, segments: str) -> Found[Findings]:
    """Everything that is measured of heads.

    Raises:
        NotServedError: no text of a split fits into the model's window.
    """
    n_heads = context.stored.arrays("mean_maps")[0].shape[1]
    heads = Heads(context.layers, n_heads)
    splits = {name: texts_of(context, name, segments) for name in splits_of(segments)}
    for name, texts in splits.items():
        if texts.left_out.all():
            raise NotServedError(f"no text of {name} fits into the model's window")
    test = splits["test"]
    numbers = list(of_texts(context, heads, test))
    choices: list[Choice] = []
    arrays: dict[str, NDArray[np.generic]] = {}
    rare: dict[str, int] = {}
    chains: dict[str, float] = {}
    without_controls = 0
    if segments == "one":
        gold = {name: gold_of(texts.sentences, texts.left_out) for name, texts in splits.items()}
        train = context.corpus.splits["train"]
        gold["train"] = gold_of(train, np.zeros(len(train), dtype=bool))
        numbers += of_features(context, heads, gold["test"], test)
        found_relations, rare = relations(context, heads.blocks, gold)
        found_trees, chains = trees(context, heads.blocks, gold)
        found_roles, without_controls = roles(context, heads.blocks, splits)
        for scored in (found_relations, found_trees, found_roles):
            numbers += [each for x in scored for each in of_scored(x, heads, test.partition)]
            its_choices, contributions = chosen(scored, heads, test.partition)
            choices += its_choices
            for name, values in contributions.items():
                before = arrays.get(name)
                arrays[name] = values if before is None else np.concatenate([before, values])
        arrays["test_clusters"] = test.partition.of_sentence
    payload = Findings(
        layers=context.layers,
        heads=n_heads,
        segments=segments,
        splits={name: texts.counts for name, texts in splits.items()},
        resampled=test.partition.clusters,
        numbers=tuple(numbers),
        choices=tuple(choices),
        patterns=patterns(numbers, heads),
        mean_maps=mean_maps(context, heads),
        rare=rare,
        chains=chains,
        without_controls=without_controls,
    )
    return Found(payload, arrays)


def splits_of(segments: str) -> tuple[str, ...]:
    """The splits whose texts are read."""
    return ("dev", "test") if segments == "one" else ("test",)


def of_texts(context: CorpusContext, heads: Heads, test: Texts) -> Iterator[HeadNumbers]:
    """What is one number per text and head, averaged over texts."""
    values = context.of_texts("statistics")[test.index][:, heads.blocks]
    values[test.left_out] = np.nan
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


def of_features(
    context: CorpusContext, heads: Heads, gold: Gold, test: Texts
) -> Iterator[HeadNumbers]:
    """Attention to words with a feature; sentences without one are left out.

    Kovaleva et al. (2019), section 4.4: of several such words, that which gets most counts.
    """
    received = np.concatenate(context.stored.arrays("received"))[context.rows("test")]
    received = received[:, heads.blocks]
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


def chosen(
    scored: Sequence[Scored], heads: Heads, partition: Partition
) -> tuple[list[Choice], dict[str, NDArray[np.generic]]]:
    """The best heads on dev, scored on test.

    Returns:
        the choices, and what test sentences contribute to them: ``test_sums``, ``test_counts``,
        ``test_baseline_sums``, each (choices, sentences), in the order of the choices.
    """
    picked = [(x, x.best) for x in scored]
    pairs = [(x.test.of(cell), x.baseline("test", cell)) for x, cell in picked]
    tested = [place for place, (test, _) in enumerate(pairs) if test.n >= FEWEST_TESTED]
    p = dict(zip(tested, p_values([pairs[place] for place in tested], partition), strict=True))
    choices = []
    for place, ((x, cell), (test, baseline)) in enumerate(zip(picked, pairs, strict=True)):
        head, direction = divmod(cell, len(x.directions))
        layer, number = heads.named(head)
        choices.append(
            Choice(
                measure=x.measure,
                feature=x.feature,
                direction=x.directions[direction],
                layer=layer,
                head=number,
                dev=float(x.on_dev[cell]),
                test=estimate(test, partition),
                baseline=estimate(baseline, partition),
                baseline_kind=x.baseline_kind,
                difference=difference(test, baseline, partition),
                p=p.get(place),
                n_dev=x.dev.n,
                n_test=x.test.n,
            )
        )
    if not pairs:
        return [], {}
    return choices, {
        "test_sums": np.stack([test.sums[:, 0] for test, _ in pairs]).astype(np.float32),
        "test_counts": np.stack([test.counts for test, _ in pairs]).astype(np.float32),
        "test_baseline_sums": np.stack([x.sums[:, 0] for _, x in pairs]).astype(np.float32),
    }


def patterns(numbers: Sequence[HeadNumbers], heads: Heads) -> tuple[tuple[str, ...], ...]:
    """The class of every head."""
    masses = {x.feature: x for x in numbers if x.measure == "pattern"}

    def of(layer: int, head: int) -> str:
        beyond = {}
        for name, each in masses.items():
            mass, uniform = each.values[layer][head], each.baseline_of(layer, head)
            assert mass is not None
            assert uniform is not None
            beyond[name] = beyond_uniform(mass, uniform)
        return pattern_of(beyond)

    return tuple(
        tuple(of(layer, head) for head in range(heads.n)) for layer in range(len(heads.layers))
    )


def mean_maps(context: CorpusContext, heads: Heads) -> MeanMaps:
    """The mean maps of all heads."""
    texts = int(np.concatenate(context.stored.arrays("n_mean_maps")).sum())
    if not texts:
        return MeanMaps(tokens=TOKENS, texts=0, maps=())
    sums: Floats = np.stack(context.stored.arrays("mean_maps")).sum(0, dtype=np.float64)
    maps = (sums[heads.blocks] / texts).round(3)
    return MeanMaps(tokens=TOKENS, texts=texts, maps=maps.tolist())
