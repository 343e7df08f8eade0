"""Attention in texts of two segments, such as the inputs of most of GLUE's tasks.

Kovaleva et al. (2019), sections 3 and 4.1, describe maps of pairs of texts. The pairs here are
neighbouring sentences of a document, with pairs of sentences of two documents as a control.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, compress, groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from probes.common.errors import counted
from probes.data.sentence import Sentence
from probes.examples.examples import NotServedError
from probes.families.attention.annotation import annotation_of
from probes.families.attention.attention import (
    MEANS,
    Heads,
    block_layers,
    feature_rows,
    rows_of_means,
    statistic_rows,
)
from probes.families.attention.heads import BLOCK, CLASS, classes, masses
from probes.families.attention.tables import pattern_table
from probes.measurements.measurement import Measured, NoOptions, measurement
from probes.measurements.pivots import Pivot
from probes.records.record import subject_title
from probes.records.row import Row
from probes.statistics.bootstrap import means

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from probes.data.sentence import Corpus
    from probes.extraction.reading.collectors import Collector
    from probes.extraction.reading.views import View
    from probes.measurements.context import ModelContext


Pairs = list[tuple[Sentence, Sentence]]

OTHER = "other_segment", "other_segment_control", "other_segment_difference"
"""Attention to the other segment: of neighbours, of strangers, and the difference."""


def neighbours(sentences: Sequence[Sentence]) -> Pairs:
    """The first and second sentence of each document, the third and fourth, and so on."""
    pairs: Pairs = []
    for document, group in groupby(sentences, key=lambda sentence: sentence.document):
        inside = list(group) if document else []
        pairs += zip(inside[::2], inside[1::2], strict=False)
    return pairs


def strangers(pairs: Pairs) -> Pairs:
    """Pairs, of two documents or more, each with a second sentence of another document instead.

    The new sentence is nearly as long.
    """
    n, order = len(pairs), sorted(range(len(pairs)), key=lambda i: len(pairs[i][1]))
    new_pairs = list(pairs)
    for rank, i in enumerate(order):
        first = pairs[i][0]
        near = (order[x] for step in range(1, n) for x in (rank + step, rank - step) if 0 <= x < n)
        candidates = (pairs[j][1] for j in near if pairs[j][0].document != first.document)
        new_pairs[i] = first, next(candidates)
    return new_pairs


def corpus_of_pairs(corpus: Corpus) -> Corpus:
    """Pairs of test sentences as sentences: "test" has neighbours, "control" strangers.

    Raises:
        NotServedError: there are no two documents with pairs.
    """
    pairs = neighbours(corpus.splits["test"])
    if len({first.document for first, _ in pairs}) < 2:
        raise NotServedError("no two documents of test have two sentences each")
    splits = {"test": pairs, "control": strangers(pairs)}
    return replace(corpus, splits={x: tuple(map(_one_sentence, y)) for x, y in splits.items()})


def _one_sentence(pair: tuple[Sentence, Sentence]) -> Sentence:
    first, second = pair
    return Sentence(
        first.id,
        first.language,
        first.words + second.words,
        first.upos + second.upos,
        document=first.document,
        starts=(0, len(first)),
    )


def _pair_view(corpus: Corpus, options: NoOptions) -> View:
    from probes.extraction.reading.views import plain_text, view_over

    return view_over(map(plain_text, chain(*corpus_of_pairs(corpus).splits.values())), "own")


def _segment_sums(corpus: Corpus, layers: Sequence[int], options: NoOptions) -> Collector:
    from probes.extraction.reading.views import plain_text
    from probes.families.attention.collector import SegmentSums

    pairs = chain(*corpus_of_pairs(corpus).splits.values())
    return SegmentSums({plain_text(pair): pair.starts[1] for pair in pairs})


@measurement(
    "segment_attention",
    extent=block_layers,
    reads=_pair_view,
    collector=_segment_sums,
    more_tables=lambda record: [
        pattern_table(f"{subject_title(record)} · pairs of sentences · patterns", record.rows)
    ],
    shows=(
        MEANS,
        Pivot(
            "attention to the other segment, mean over heads, %",
            OTHER,
            columns=("metric",),
            where={"head": None, "baseline": None},
            note="Of another document: a second sentence of nearly the same length.",
        ),
    ),
)
def segment_attention(context: ModelContext) -> Measured:
    """Attention within and between two sentences that are read as a pair.

    Rows are those of `attention` without relations and trees. ``pattern`` has the feature
    ``block``, too. Of attention to the other segment, rows without ``head`` are means over heads.

    Raises:
        NotServedError: see `corpus_of_pairs` and `SegmentSums`; or no pair fits into the window.
    """
    corpus = corpus_of_pairs(context.corpus)
    context = replace(context, corpus=corpus)
    first = [context.of_sentences(split, "statistics")[:, 0, 0, 0] for split in corpus.splits]
    # A pair counts if both it and its control are read whole, so that the two can be subtracted.
    fits: NDArray[np.bool_] = np.logical_and.reduce(~np.isnan(first))
    if not fits.any():
        raise NotServedError("no pair of sentences fits into the model's window")
    pairs = {split: tuple(compress(x, fits)) for split, x in corpus.splits.items()}
    context = replace(context, corpus=replace(corpus, splits=pairs))
    places, clusters = [layer - 1 for layer in context.layers], context.partition("test")
    near, far = (context.of_sentences(x, "statistics")[:, places].astype(np.float64) for x in pairs)
    heads = Heads(context.layers, near.shape[2] - 1, clusters)
    rows = [*statistic_rows(context, heads)]
    rows += rows_of_means("pattern", {"feature": BLOCK}, near[..., -2], heads)
    of_class: dict[Any, str] = classes(masses(rows)).to_dict()
    for (layer, head), name in of_class.items():
        rows.append(Row(CLASS, None, layer, axes={"head": head, "feature": name}))
    n, n_long = len(near), len(fits) - len(near)
    rows += feature_rows(context, heads, annotation_of(pairs["test"], np.zeros(n, dtype=bool)))
    to_other = near[..., -1], far[..., -1]
    for metric, values in zip(OTHER, (*to_other, to_other[0] - to_other[1]), strict=True):
        rows += rows_of_means(metric, {}, values, heads)
        of_layers = values[..., :-1].mean(-1)
        estimates = means(of_layers, clusters.of_sentence, clusters.n, clusters.clusters)
        for layer, estimate in zip(heads.layers, estimates, strict=True):
            rows.append(Row.estimated(metric, estimate, layer, n=n))
    long = f", {n_long:,} longer than the model's window left out" if n_long else ""
    note = f"{counted(n, 'pair')} of neighbours{long}; intervals over {clusters.clusters}."
    return Measured(rows, facts={"pairs": n, "too_long": n_long}, notes=[note])
