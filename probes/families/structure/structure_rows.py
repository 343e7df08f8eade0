"""The rows of `structure`, and the notes below the tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats
from probes.common.errors import counted
from probes.families.structure.contributions import Contributions, joined
from probes.families.structure.fitting import SAMPLES, Fitted, Probe
from probes.families.structure.sentence_scores import (
    SCORES,
    MeasuredSentences,
    difference,
    mean_share,
    shares,
)
from probes.families.structure.trees import BINS, Trees
from probes.records.row import Row
from probes.statistics.bootstrap import RESAMPLES
from probes.statistics.metrics import label_of, shown_sd
from probes.statistics.partition import FEWEST
from probes.statistics.replicates import Spread, pooled, training_noise
from probes.statistics.sums import ratio

Edges = NDArray[np.uint16]
"""Number of edges by sentence and distance of their words. Shape (s, bins)."""


@dataclass(frozen=True)
class LayerFound:
    """The probes of one layer and their results on dev and test.

    Attributes:
        found: contributions of each rank, the identity, and each bootstrap sample, by split.
        control: edges of control trees found, by split. Each (draws, s, bins).
    """

    fitted: Fitted
    found: Mapping[str, Contributions]
    control: Mapping[str, Edges]


@dataclass(frozen=True)
class ReferenceEdges:
    """Edges of a split, and those that the chain of neighbours finds.

    Attributes:
        control_edges: edges of control trees without punctuation. Shape (draws, s, bins).
        chain, control_chain: edges of gold and of control trees that the chain finds.
    """

    sample: MeasuredSentences
    control_edges: Edges
    chain: Edges
    control_chain: Edges


def structure_rows(
    name: str,
    ranks: Sequence[int],
    reported: int,
    known: Mapping[str, ReferenceEdges],
    layers: Mapping[int, LayerFound],
) -> Iterator[Row]:
    """All rows. Rank 0 means the vectors themselves.

    Args:
        name: seeds the noise of training.
    """
    place, test = list(ranks).index(reported), known["test"].sample
    for layer, found in layers.items():
        yield from _scores(ranks, known, layer, found)
    for layer, found in layers.items():
        yield from _controls(name, place, reported, known, layer, found)
    for each in known.values():
        edges = each.sample.edges.sum(-1)
        yield each.sample.row("chain_uuas", None, shares(each.chain.sum(-1), edges))
        spread = pooled([control_uuas(each, each.control_chain)])
        noise = _noise(f"{name} control trees, chain", spread)
        parts = _shares(each.control_chain, each.control_edges)
        yield each.sample.row("chain_control_uuas", None, parts, mean_share, noise)
    for layer, found in layers.items():
        yield from _recall(test, "recall", layer, found.found["test"].hits[place])
    yield from _recall(test, "chain_recall", None, known["test"].chain)
    yield from _tests(name, place, reported, test, layers)


def best_layer(rows: Sequence[Row], reported: int) -> int:
    """The layer with the highest UUAS on dev; the lowest of equals, or if there are no scores."""
    dev = {
        row.layer: -np.inf if row.value is None else row.value
        for row in rows
        if (row.metric, row.split, row.axes.get("rank")) == ("uuas", "dev", reported)
        and row.layer is not None
    }
    return max(dev, key=dev.__getitem__)


def refits(test: MeasuredSentences, found: LayerFound, metric: str) -> list[float | None]:
    """Test scores of a layer's probes fitted to bootstrap samples."""
    return _defined(test.values(found.found["test"], metric)[-SAMPLES:])


def control_uuas(known: ReferenceEdges, found: Edges) -> list[float | None]:
    """Share of edges found in each draw of control trees."""
    sums = _shares(found, known.control_edges).sum(0)
    return _defined(ratio(sums[::2], sums[1::2]).tolist())


def _scores(
    ranks: Sequence[int], known: Mapping[str, ReferenceEdges], layer: int, found: LayerFound
) -> Iterator[Row]:
    """Scores of the probes of each rank, and of the identity."""
    for i, rank in enumerate([*ranks, 0]):
        for split, each in known.items():
            yield from each.sample.rows(found.found[split].of(i), layer, rank)
        for probe, loss in found.fitted.dev_losses.items():
            if probe == Probe(probe.kind, rank):
                yield Row(f"{probe.kind}_loss", loss, layer, split="dev", axes={"rank": rank})


def _controls(
    name: str,
    place: int,
    reported: int,
    known: Mapping[str, ReferenceEdges],
    layer: int,
    found: LayerFound,
) -> Iterator[Row]:
    """Mean UUAS on control trees, and UUAS on gold trees minus that mean.

    Intervals include the variance between draws. Standard deviations are not pooled over layers,
    as they differ several-fold.
    """
    axes, uuas, selectivity, sds = {"rank": reported}, [], [], []
    for split, each in known.items():
        control = _shares(found.control[split], each.control_edges)
        spread = pooled([control_uuas(each, found.control[split])])
        noise = _noise(f"{name} control trees {layer}", spread)
        uuas.append(each.sample.row("control_uuas", layer, control, mean_share, noise, **axes))
        gold = shares(found.found[split].hits[place].sum(-1), each.sample.edges.sum(-1))
        both = np.concatenate([gold, control], axis=1)
        selectivity.append(each.sample.row("selectivity", layer, both, difference, noise, **axes))
        sd = spread.sd if spread else None
        sds.append(Row("control_uuas_draw_sd", sd, layer, split=split, axes=axes))
    yield from (*uuas, *selectivity, *sds)


def _recall(
    sample: MeasuredSentences, metric: str, layer: int | None, hits: Edges
) -> Iterator[Row]:
    """Share of gold edges found, by the distance of their words in the sentence."""
    for i, words in enumerate(BINS):
        yield sample.row(metric, layer, shares(hits[:, i], sample.edges[:, i]), words=words)


def _tests(
    name: str, place: int, reported: int, test: MeasuredSentences, layers: Mapping[int, LayerFound]
) -> Iterator[Row]:
    """Standard deviations over bootstrap samples, pooled over layers, and tests between layers.

    For p-values see `MeasuredSentences.p_best`.
    """
    axes = {"rank": reported}
    each_layer = joined([found.found["test"].of(place) for found in layers.values()])
    for metric in SCORES:
        spread = pooled([refits(test, found, metric) for found in layers.values()])
        yield Row(f"{metric}_training_sd", spread.sd if spread else None, axes=axes)
        tests = test.p_best(name, metric, list(layers), each_layer, spread)
        for layer, p in tests.items():
            yield Row(f"{metric}_p_best", p, layer, axes=axes)


def _shares(hits: Edges, edges: Edges) -> Floats:
    """Parts of the share of edges found in each draw: two of (draws, s, bins) to (s, 2 · draws)."""
    pairs = zip(hits.sum(-1), edges.sum(-1), strict=True)
    return np.concatenate([shares(found, of) for found, of in pairs], axis=1)


def _defined(values: Sequence[float]) -> list[float | None]:
    return [None if np.isnan(x) else x for x in values]


def _noise(name: str, draws: Spread | None) -> Floats | float:
    """Variation of the mean over other draws of control trees, for each resample."""
    if draws is None:
        return 0.0
    sd = draws.sd / (draws.df + 1) ** 0.5
    found: Floats = training_noise(name, [0], sd, draws.df, RESAMPLES)[0]
    return found


def counts(trees: Trees) -> dict[str, int]:
    """Counts of a split, by name.

    Measured sentences, their words, and their edges without punctuation; excluded sentences;
    measured sentences with fewer than two words beside punctuation, which UUAS ignores; and those
    whose root is punctuation, which count as errors of the root.
    """
    return {
        "sentences": len(trees.sentences),
        "words": int(trees.lengths.sum()),
        "edges": int(trees.edges.sum()),
        "left_out": sum(trees.left_out.values()),
        "without_edges": sum(int((~each).sum()) < 2 for each in trees.punctuation),
        "punctuation_roots": trees.punctuation_roots,
    }


def notes(
    trees: Mapping[str, Trees], test: MeasuredSentences, resampled: str, rows: Sequence[Row]
) -> Iterator[str]:
    """Notes on intervals, tests and excluded sentences.

    Args:
        resampled: name of the clusters that intervals resample on test.
    """
    if test.n_used < FEWEST:
        yield f"No intervals and no tests: fewer than {FEWEST} test {resampled}."
    else:
        over_samples = ", ".join(
            f"{label_of(metric)} {shown_sd(sd, metric)}"
            for metric in SCORES
            for sd in _of_test(rows, f"{metric}_training_sd")
        )
        sds = _of_test(rows, "control_uuas_draw_sd")
        low, high = (shown_sd(of(sds, default=0.0), "uuas") for of in (min, max))
        over_draws = f" (standard deviation: {low} to {high})" if sds else ""
        yield (
            f"± half a 95 % interval over test {resampled}. Tests between layers also include "
            f"the variance of training (standard deviation: {over_samples}), and intervals of "
            f"control trees and selectivity that of draws{over_draws}."
        )
    for split, each in trees.items():
        yield f"{split}: {'; '.join(_counted(each))}."
    edges = zip(BINS, test.edges.sum(0).tolist(), strict=True)
    of_bins = ", ".join(f"{n:,} of {name} word{'s' * (name != '1')}" for name, n in edges)
    yield f"Gold edges of test by the distance of their words: {of_bins}."


def _of_test(rows: Sequence[Row], metric: str) -> list[float]:
    """The known values of a metric on test."""
    found = (row.value for row in rows if (row.metric, row.split) == (metric, "test"))
    return [value for value in found if value is not None]


def _counted(trees: Trees) -> Iterator[str]:
    found = counts(trees)
    yield f"{found['sentences']:,} sentences, {found['words']:,} words"
    for why, n in trees.left_out.items():
        yield f"{n:,} left out, {why}"
    if found["without_edges"]:
        lacking = "with fewer than two words beside punctuation, not in UUAS"
        yield f"{found['without_edges']:,} {lacking}"
    if n := found["punctuation_roots"]:
        yield f"{counted(n, 'root')} that {'is' if n == 1 else 'are'} punctuation, an error"
