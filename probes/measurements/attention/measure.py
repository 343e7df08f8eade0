"""Measures attention: from what a collector kept of every head to estimates and choices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats
from probes.examples.examples import NotServedError
from probes.measurements.attention.averages import Heads, of_features, of_scored, of_texts
from probes.measurements.attention.choices import chosen
from probes.measurements.attention.clusters import clusters
from probes.measurements.attention.divergence import divergences
from probes.measurements.attention.gold import gold_of
from probes.measurements.attention.mixing import HeadMixes, mixing
from probes.measurements.attention.names import TOKENS
from probes.measurements.attention.patterns import beyond_uniform, pattern_of
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
from probes.measurements.attention.texts import texts_of
from probes.measurements.corpus_context import CorpusContext
from probes.measurements.measurement import Found
from probes.statistics.partition import Partition


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
    test = splits["test"]
    numbers = list(of_texts(context, heads, test))
    choices: list[Choice] = []
    arrays: dict[str, NDArray[np.generic]] = {}
    rare: dict[str, int] = {}
    chains: dict[str, float] = {}
    without_controls = 0
    mixes = of_clusters = None
    parameters: dict[str, NDArray[np.float32]] = {}
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
        of_clusters = clusters_of(context)
        if found_relations and found_trees:
            mix = mixing(context, context.options.mix_sentences)
            mixes = mixes_of(mix, heads, test.partition)
            rows = [*heads.blocks, -1]
            arrays |= {
                "test_mix_hits": mix.hits["test"][rows],
                "test_mix_counts": mix.counts["test"],
            }
            parameters = {"mix.all": mix.all_weights} | {
                f"mix.layer-{layer:02d}": mix.weights[layer - 1] for layer in context.layers
            }
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
        mixes=mixes,
        clusters=of_clusters,
        rare=rare,
        chains=chains,
        without_controls=without_controls,
    )
    return Found(payload, arrays, parameters)


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
