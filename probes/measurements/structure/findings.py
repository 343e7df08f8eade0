"""The payload of structure, from what sentences contribute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats
from probes.measurements.structure.contributions import Contributions, joined
from probes.measurements.structure.fitting import Fitted
from probes.measurements.structure.payload import (
    BINS,
    METRICS,
    Cell,
    Control,
    Counts,
    Findings,
    Recall,
    Refits,
)
from probes.measurements.structure.probe import Probe
from probes.measurements.structure.scoring import Sample, difference, mean_share, shares
from probes.measurements.structure.trees import Trees
from probes.measurements.training_variance import Spread, pooled
from probes.records.values import Estimate
from probes.statistics.bootstrap import RESAMPLES
from probes.statistics.metrics import mean_value
from probes.statistics.partition import Partition
from probes.statistics.sums import ratio
from probes.statistics.training_noise import training_noise

Edges = NDArray[np.uint16]
"""By sentence and distance of both words. Shape (s, bins)."""


@dataclass(frozen=True)
class LayerFound:
    """One layer's probes, and what they find on dev and test.

    Attributes:
        found: of each rank, the identity, and each bootstrap sample, by split.
        control: edges of control trees that are found, by split. Each (draws, s, bins).
    """

    fitted: Fitted
    found: Mapping[str, Contributions]
    control: Mapping[str, Edges]


@dataclass(frozen=True)
class Scored:
    """What is known of a split before anything is predicted.

    Attributes:
        control_edges: edges of control trees between words that are not punctuation. Shape
            (draws, s, bins).
        chain, control_chain: those of gold and of control trees that the chain finds.
    """

    sample: Sample
    control_edges: Edges
    chain: Edges
    control_chain: Edges


def findings(
    name: str,
    ranks: Sequence[int],
    reported: int,
    trees: Mapping[str, Trees],
    scored: Mapping[str, Scored],
    layers: Mapping[int, LayerFound],
    resampled: Partition,
) -> Findings:
    """Score everything.

    Args:
        name: by which the noise of training is drawn.
        resampled: of the test split.
    """
    place, test = list(ranks).index(reported), scored["test"].sample
    cells = [cell for layer in layers.items() for cell in _cells(ranks, scored, *layer)]
    refits = [
        Refits(layer=layer, scores=tuple(test.values(found.found["test"])[len(ranks) + 1 :]))
        for layer, found in layers.items()
    ]
    spread = {
        metric: pooled([[scores[metric] for scores in each.scores] for each in refits])
        for metric in METRICS
    }
    each_layer = joined([found.found["test"].of(place) for found in layers.values()])
    hits = {layer: found.found["test"].hits[place] for layer, found in layers.items()}
    return Findings(
        ranks=tuple(ranks),
        reported=reported,
        counts={split: _counts(each) for split, each in trees.items()},
        resampled=resampled.clusters,
        clusters=test.n_used,
        cells=tuple(cells),
        controls=tuple(_control(name, place, scored, *layer) for layer in layers.items()),
        refits=tuple(refits),
        chain={split: _uuas(each.sample, each.chain) for split, each in scored.items()},
        control_chain={split: _control_chain(name, each) for split, each in scored.items()},
        best={metric: _best(cells, reported, metric) for metric in METRICS},
        spread=spread,
        p_best={
            metric: test.p_best(name, metric, list(layers), each_layer, spread[metric])
            for metric in METRICS
        },
        recall=tuple(
            _recall(test, layer, edges)
            for layer, edges in [*hits.items(), (None, scored["test"].chain)]
        ),
        gold_edges={
            each: int(n) for each, n in zip(BINS, test.edges.sum(0, dtype=np.int64), strict=True)
        },
    )


def _cells(
    ranks: Sequence[int], scored: Mapping[str, Scored], layer: int, found: LayerFound
) -> Iterator[Cell]:
    """The probes of each rank, and the identity."""
    scores = {split: each.sample.scores(found.found[split]) for split, each in scored.items()}
    for i, rank in enumerate([*ranks, None]):
        probes = {x.kind: x for x in found.fitted.matrices if x == Probe(x.kind, rank or 0)}
        yield Cell(
            layer=layer,
            rank=rank,
            scores={split: each[i] for split, each in scores.items()},
            dev_losses={kind: found.fitted.dev_losses[x] for kind, x in probes.items()},
            stopped={kind: found.fitted.stopped[x] for kind, x in probes.items()},
        )


def _control(
    name: str, place: int, scored: Mapping[str, Scored], layer: int, found: LayerFound
) -> Control:
    draws, spread, uuas, selectivity = {}, {}, {}, {}
    for split, each in scored.items():
        gold = shares(found.found[split].hits[place].sum(-1), each.sample.edges.sum(-1))
        control = _shares(found.control[split], each.control_edges)
        draws[split] = _values(control)
        spread[split] = pooled([draws[split]])
        noise = _noise(f"{name} control trees {layer}", spread[split])
        uuas[split] = each.sample.estimate(control, mean_share, noise)
        both = np.concatenate([gold, control], axis=1)
        selectivity[split] = each.sample.estimate(both, difference, noise)
    return Control(layer=layer, draws=draws, spread=spread, uuas=uuas, selectivity=selectivity)


def _control_chain(name: str, scored: Scored) -> Estimate:
    parts = _shares(scored.control_chain, scored.control_edges)
    noise = _noise(f"{name} control trees, chain", pooled([_values(parts)]))
    return scored.sample.estimate(parts, mean_share, noise)


def _shares(hits: Edges, edges: Edges) -> Floats:
    """Parts of the share of edges found in each draw. (draws, s, bins) twice to (s, 2 · draws)."""
    pairs = zip(hits.sum(-1), edges.sum(-1), strict=True)
    return np.concatenate([shares(found, of) for found, of in pairs], axis=1)


def _values(parts: Floats) -> tuple[float | None, ...]:
    """The share of each draw."""
    sums = parts.sum(0)
    found = ratio(sums[::2], sums[1::2]).tolist()
    return tuple(None if np.isnan(x) else x for x in found)


def _noise(name: str, draws: Spread | None) -> Floats | float:
    """What other draws of control trees would have changed in their mean, in each resample."""
    if draws is None:
        return 0.0
    sd = draws.sd / (draws.df + 1) ** 0.5
    found: Floats = training_noise(name, [0], sd, draws.df, RESAMPLES)[0]
    return found


def _recall(sample: Sample, layer: int | None, hits: Edges) -> Recall:
    return Recall(
        layer=layer,
        edges={
            name: sample.estimate(shares(hits[:, i], sample.edges[:, i]), mean_value)
            for i, name in enumerate(BINS)
        },
    )


def _uuas(sample: Sample, hits: Edges) -> Estimate:
    return sample.estimate(shares(hits.sum(-1), sample.edges.sum(-1)), mean_value)


def _best(cells: Sequence[Cell], reported: int, metric: str) -> int:
    """The layer with the highest dev score; of equal ones, or without any score, the lowest."""

    def score(cell: Cell) -> float:
        value = cell.scores["dev"][metric].value
        return -np.inf if value is None else value

    return max((cell for cell in cells if cell.rank == reported), key=score).layer


def _counts(trees: Trees) -> Counts:
    return Counts(
        sentences=len(trees.sentences),
        words=int(trees.lengths.sum()),
        edges=int(trees.edges.sum()),
        left_out=trees.left_out,
        without_edges=sum(int((~each).sum()) < 2 for each in trees.punctuation),
        punctuation_roots=trees.punctuation_roots,
    )
