"""Heads beside other heads: those of another model, and those of the same and other layers.

- `attention_change`: how much each head differs from the same head of another model, such as the
  one that it was fine-tuned from (Kovaleva et al. 2019, section 4.3).
- `head_similarity`: whether heads of one layer are more alike than heads of several (Clark et al.
  2019, section 6).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from probes.common.arrays import Floats, Ints
from probes.common.errors import counted
from probes.examples.examples import NotServedError
from probes.families.attention.attention import block_layers, head_sums, head_view, sample_view
from probes.measurements.chart_views import Cells, Lines
from probes.measurements.measurement import Measured, NoOptions, measurement
from probes.measurements.pivots import Pivot
from probes.records.row import Row
from probes.records.values import Estimate
from probes.statistics.bootstrap import means

if TYPE_CHECKING:
    from probes.data.sentence import Corpus
    from probes.extraction.reading.collectors import Collector
    from probes.extraction.reading.views import View
    from probes.measurements.context import ModelContext, PairContext

CHANGES = "map_cosine", "map_divergence"

DISTANCES = "head_distance_within", "head_distance_between", "head_distance_difference"


@measurement(
    "attention_change",
    of="pair",
    after="attention",
    extent=block_layers,
    reads=head_view,
    collector=head_sums,
    shows=(
        Pivot("mean over heads", CHANGES, columns=("metric",), where={"head": None}),
        Pivot("divergence by head", CHANGES[1:], columns=("head",), where={"head": ...}),
        Pivot("cosine by head", CHANGES[:1], columns=("head",), where={"head": ...}),
        Cells(
            "head_change",
            "map_cosine",
            across="head",
            title="Change of attention heads",
            note="Cosine of a head's map and that of the same head of the first model.",
            low=0.0,
            high=1.0,
            where={"head": ...},
            apart="base",
        ),
    ),
)
def attention_change(context: PairContext) -> Measured:
    """Change of attention heads between two models; made along with attention.

    Each head is compared with the same head of the run's first model on a sample of test sentences.
    Rows without a head are means over the heads of a layer.

    Raises:
        NotServedError: layers, heads or tokens do not correspond, or no sentence fits.
    """
    from probes.families.attention.head_maps import change_of_maps, maps_of_texts

    view, base = sample_view(context.corpus, NoOptions()), context.base
    names = f"{context.model.name} and {base.model.name}"
    of_base = {text: (maps, ids) for text, maps, ids in maps_of_texts(base, view)}
    changes: dict[int, Floats] = {}
    for text, maps, ids in maps_of_texts(context, view):
        if text not in of_base:  # the base has a shorter window, or more tokens
            continue
        base_maps, base_ids = of_base[text]
        if ids.tolist() != base_ids.tolist():
            raise NotServedError(f"{names} have other tokens for the same words")
        if maps.shape != base_maps.shape:
            raise NotServedError(
                f"{names} have {_shape(maps)} and {_shape(base_maps)}, which do not correspond"
            )
        changes[text] = change_of_maps(maps, base_maps)
    if not changes:
        raise NotServedError("no test sentence fits into the window of both models")
    texts = sorted(changes)
    # The mean is number 0 of a layer's heads, so that it gets an interval like each of them.
    of_heads = np.stack([changes[text] for text in texts])[:, :, [x - 1 for x in context.layers]]
    with_mean = np.concatenate([of_heads.mean(3, keepdims=True), of_heads], axis=3)
    rows = []
    estimates = _means(context, view, texts, with_mean)
    for cell, estimate in zip(np.ndindex(with_mean.shape[1:]), estimates, strict=True):
        metric, layer, head = CHANGES[cell[0]], context.layers[cell[1]], cell[2]
        axes = {"base": base.model.name, **({"head": head} if head else {})}
        rows.append(Row.estimated(metric, estimate, layer, axes=axes, n=len(texts)))
    note = "Divergence: Jensen–Shannon, in nats, of the attention from a token; at most .693."
    return Measured(rows, notes=[note, *_sample_notes(context, texts, len(view.texts))])


def _shape(maps: Any) -> str:
    return f"{len(maps)} layers × {maps.shape[1]} heads"


def _distances(corpus: Corpus, layers: Sequence[int], options: NoOptions) -> Collector:
    from probes.families.attention.head_maps import HeadDistances

    return HeadDistances()


@measurement(
    "head_similarity",
    extent=block_layers,
    reads=sample_view,
    collector=_distances,
    shows=(
        Pivot(
            metrics=DISTANCES,
            columns=("metric",),
            note="Mean distance (√JSD, 0 to .833) of two heads of the layer, of a head of the "
            "layer and one of another, and the difference.",
        ),
        Lines(
            "head_similarity",
            DISTANCES[:2],
            "Distance of attention heads",
            "Mean distance of two heads of a layer, and of heads of the layer and of others.",
        ),
    ),
)
def head_similarity(context: ModelContext) -> Measured:
    """How alike the attention heads of one layer are, beside heads of different layers.

    Raises:
        NotServedError: layers have one head, or there is one layer, or no sentence fits.
    """
    distances = context.of_texts("distances")
    texts = np.flatnonzero(~np.isnan(distances).any((1, 2)))
    if not len(texts):
        raise NotServedError("there are no two heads in a layer, no two layers, or no whole text")
    values = distances[texts][:, [layer - 1 for layer in context.layers]]
    three = np.concatenate([values, values[..., 1:] - values[..., :1]], axis=2)
    rows = [
        Row.estimated(DISTANCES[metric], estimate, context.layers[layer], n=len(texts))
        for (layer, metric), estimate in zip(
            np.ndindex(three.shape[1:]), _means(context, context.view, texts, three), strict=True
        )
    ]
    return Measured(rows, notes=list(_sample_notes(context, texts, len(distances))))


def _means(
    context: ModelContext, view: View, texts: Sequence[int] | Ints, values: Floats
) -> Sequence[Estimate]:
    """Means over texts (texts, …), with intervals over documents or sentences of test."""
    from probes.extraction.reading.views import plain_text
    from probes.families.attention.head_maps import sample

    partition = context.partition("test")
    # Equal sentences are one text: the first of them stands for all.
    sentence: dict[int, int] = {}
    for i in sample(context.corpus):
        sentence.setdefault(view.index[plain_text(context.corpus.splits["test"][i])], i)
    clusters = partition.of_sentence[[sentence[int(text)] for text in texts]]
    units, cluster = np.unique(clusters, return_inverse=True)
    return means(values.reshape(len(values), -1), cluster, len(units), partition.clusters)


def _sample_notes(
    context: ModelContext, texts: Sequence[int] | Ints, n_texts: int
) -> Iterator[str]:
    clusters = context.partition("test").clusters
    yield f"{counted(len(texts), 'test sentence')}; intervals over {clusters}."
    if n_long := n_texts - len(texts):
        yield f"{counted(n_long, 'sentence')} longer than a window left out."
