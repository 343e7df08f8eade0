"""Measures attention: from what a collector kept of every head to estimates and choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats
from probes.examples.examples import NotServedError
from probes.measurements.attention.averages import Heads, of_features, of_scored, of_texts
from probes.measurements.attention.choices import Picked, arrays_of, choices_of
from probes.measurements.attention.clusters import clusters
from probes.measurements.attention.divergence import divergences
from probes.measurements.attention.gold import frequent, gold_of
from probes.measurements.attention.mixing import HeadMixes, mixing
from probes.measurements.attention.names import TOKENS
from probes.measurements.attention.patterns import classes
from probes.measurements.attention.payload import (
    Choice,
    Clusters,
    Findings,
    HeadNumbers,
    MeanMaps,
    Mixes,
)
from probes.measurements.attention.roles import roles
from probes.measurements.attention.scored import relations, trees
from probes.measurements.attention.scoring import Contributions, estimate
from probes.measurements.attention.texts import Texts, texts_of
from probes.measurements.corpus_context import CorpusContext
from probes.measurements.measurement import Found
from probes.statistics.partition import Partition


@dataclass
class OfSentences:
    """What is found of sentences, and not of pairs of them."""

    numbers: list[HeadNumbers] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    mixes: Mixes | None = None
    clusters: Clusters | None = None
    rare: dict[str, int] = field(default_factory=dict)
    rare_roles: dict[str, int] = field(default_factory=dict)
    without_controls: int = 0
    chains: dict[str, float] = field(default_factory=dict)
    arrays: dict[str, NDArray[np.generic]] = field(default_factory=dict)
    parameters: dict[str, NDArray[np.float32]] = field(default_factory=dict)


def measure(context: CorpusContext) -> Found[Findings]:
    """Everything that is measured of heads.

    Raises:
        NotServedError: no text of a split fits into the model's window.
    """
    segments = context.options.segments
    n_heads = context.stored.arrays("mean_maps")[0].shape[1]
    heads = Heads(context.layers, n_heads)
    splits = {name: texts_of(context, name, segments) for name in splits_of(segments)}
    for name, texts in splits.items():
        if texts.left_out.all():
            raise NotServedError(f"no text of {name} fits into the model's window")
    numbers = list(of_texts(context, heads, splits["test"]))
    rest = of_sentences(context, heads, splits) if segments == "one" else OfSentences()
    payload = Findings(
        layers=context.layers,
        heads=n_heads,
        segments=segments,
        splits={name: texts.counts for name, texts in splits.items()},
        resampled=splits["test"].partition.clusters,
        numbers=(*numbers, *rest.numbers),
        choices=tuple(rest.choices),
        patterns=classes(numbers),
        mean_maps=mean_maps(context, heads),
        mixes=rest.mixes,
        clusters=rest.clusters,
        rare=rest.rare,
        rare_roles=rest.rare_roles,
        without_controls=rest.without_controls,
        chains=rest.chains,
    )
    return Found(payload=payload, arrays=rest.arrays, parameters=rest.parameters)


def of_sentences(context: CorpusContext, heads: Heads, splits: Mapping[str, Texts]) -> OfSentences:
    """Features, relations, trees, roles, mixes and distances."""
    found, test = OfSentences(), splits["test"]
    gold = {name: gold_of(texts.sentences, texts.left_out) for name, texts in splits.items()}
    train = context.corpus.splits["train"]
    gold["train"] = gold_of(train, np.zeros(len(train), dtype=bool))
    found.numbers += of_features(context, heads, gold["test"], test)
    names, found.rare = frequent(gold)
    found_trees, found.chains = trees(context, heads.blocks, gold)
    found_roles, found.rare_roles, found.without_controls = roles(context, heads.blocks, splits)
    every: list[Picked] = []
    for scored in (relations(context, heads.blocks, gold, names), found_trees, found_roles):
        picked = []
        for each in scored:
            found.numbers += of_scored(each, heads, test.partition)
            picked.append(Picked.of(each))
        found.choices += choices_of(picked, heads, test.partition)
        every += picked
    found.arrays = {**arrays_of(every), "test_clusters": test.partition.of_sentence}
    found.clusters = clusters_of(context)
    if names and found_trees:
        add_mixes(found, context, heads, test.partition)
    return found


def add_mixes(
    found: OfSentences, context: CorpusContext, heads: Heads, partition: Partition
) -> None:
    """Add the attention-only probe."""
    mix = mixing(context, context.options.mix_sentences)
    found.mixes = mixes_of(mix, heads, partition)
    found.arrays["test_mix_hits"] = mix.hits["test"][[*heads.blocks, -1]]
    found.arrays["test_mix_counts"] = mix.counts["test"]
    found.parameters = {"mix.all": mix.all_weights} | {
        f"mix.layer-{layer:02d}": mix.weights[layer - 1] for layer in context.layers
    }


def splits_of(segments: str) -> tuple[str, ...]:
    """The splits whose texts are read."""
    return ("dev", "test") if segments == "one" else ("test",)


def mixes_of(found: HeadMixes, heads: Heads, partition: Partition) -> Mixes:
    """The attention-only probe's scores."""
    counts = found.counts["test"].astype(np.float64)
    *layers, every = (
        estimate(
            Contributions(found.hits["test"][row][:, None].astype(np.float64), counts), partition
        )
        for row in (*heads.blocks, -1)
    )
    dev = [None if np.isnan(x) else float(x) for x in found.uas("dev")]
    return Mixes(
        sentences=found.sentences,
        words=found.words,
        left_out=found.left_out,
        layers=tuple(layers),
        every=every,
        dev_layers=tuple(dev[block] for block in heads.blocks),
        dev_every=dev[-1],
    )


def clusters_of(context: CorpusContext) -> Clusters:
    """Distances of all heads of the model."""
    found = divergences(context, context.options.cluster_sentences)
    return Clusters(
        texts=found.texts,
        tokens=found.tokens,
        left_out=found.left_out,
        found=clusters(found.mean, context.model.n_layers),
    )


def mean_maps(context: CorpusContext, heads: Heads) -> MeanMaps:
    """The mean maps of all heads."""
    texts = int(np.concatenate(context.stored.arrays("n_mean_maps")).sum())
    if not texts:
        return MeanMaps(tokens=TOKENS, texts=0, maps=())
    sums: Floats = np.stack(context.stored.arrays("mean_maps")).sum(0, dtype=np.float64)
    maps = (sums[heads.blocks] / texts).round(3)
    return MeanMaps(tokens=TOKENS, texts=texts, maps=maps.tolist())
