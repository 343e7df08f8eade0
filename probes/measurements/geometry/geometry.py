"""Geometry: how the vectors of words lie in space, layer by layer.

Anisotropy and contextuality (Ethayarajh 2019), dominant dimensions (Timkey & van Schijndel 2021),
intrinsic dimension, similarity of layers (Kornblith et al. 2019), clusters (Jawahar et al. 2019),
and the share of a word's place (after Mickus et al. 2020). Nothing is trained; all but clusters of
senses are of the words of the test split. docs/geometry.md says how far to trust each number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from probes.measurements.geometry.charts import FIGURES, charts
from probes.measurements.geometry.numbers import numbers
from probes.measurements.geometry.payload import Findings
from probes.measurements.geometry.tables import tables
from probes.measurements.measurement import CorpusMeasurement, Found
from probes.records.base import Frozen
from probes.records.charts import Chart
from probes.records.record import Record
from probes.records.row import Row
from probes.records.table import Table

if TYPE_CHECKING:
    from probes.measurements.corpus_context import CorpusContext
    from probes.measurements.geometry.labels import Read


MOST_SEED = 10**8
"""The highest seed; k-means takes none above 2³² − 1, and each of its starts has one of its own."""


class Options(Frozen):
    """What can be set."""

    seed: int = Field(
        default=0, ge=0, le=MOST_SEED, description="seed of random words and of k-means"
    )
    least: int = Field(
        default=5, ge=2, description="sentences that a word type has to be in to be measured"
    )


class Geometry(CorpusMeasurement[Findings]):
    """Anisotropy, contextuality, dimensions, clusters and similarity of layers."""

    name = "geometry"
    version = 2
    summary = "anisotropy, contextuality, intrinsic dimension, clusters, similarity of layers"
    payload: ClassVar[type[Findings]] = Findings
    options = Options
    figures = FIGURES
    of_pairs = "model_similarity"

    def compute(self, context: CorpusContext) -> Found[Findings]:
        """Measure each layer by itself, then the similarity of every two."""
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        from probes.measurements.geometry.cka import cka_within
        from probes.measurements.geometry.labels import label_sets
        from probes.measurements.geometry.layer import measured
        from probes.measurements.geometry.position import PLACES
        from probes.measurements.geometry.words import test_words

        layers, seed = context.layers, context.options.seed
        words, labels = test_words(context, context.options.least), label_sets(context)
        found = []
        with context.bar(len(layers) * (len(layers) + 3) // 2) as bar:
            # Threads are slow with many small matrices, and with them the borders of k-means would
            # depend on which is faster. Only libraries that are loaded by now are limited.
            with threadpool_limits(1):
                for layer in layers:
                    rows, read = context.words("test", layer), _reader(context, layer)
                    found.append(measured(layer, rows, words, labels, read, seed))
                    bar.update(1)
            cka = cka_within(
                lambda layer: context.words("test", layer), layers, lambda: bar.update(1)
            )
        payload = Findings(
            layers=tuple(each.payload for each in found),
            cka=tuple(tuple(None if np.isnan(x) else float(x) for x in row) for row in cka),
            words=len(words),
            sentences=words.n_sentences,
            far_words=int((words.position >= PLACES).sum()),
            in_several_windows=int(context.in_several_windows("test").sum()),
            types=len(words.frequent),
            resampled=words.partition.clusters,
            labels={name: each.about for name, each in labels.items()},
            missing={name: each.missing for name, each in labels.items() if each.missing},
            dimensions=rows.shape[1],
        )
        arrays = {
            name: np.stack([getattr(each, name) for each in found]).astype(np.float32)
            for name in ("intra_sentence", "self_similarity", "explainable")
        }
        return Found(payload=payload, arrays=arrays)

    def numbers(self, record: Record[Findings]) -> Iterator[Row]:
        """All numbers, by layer."""
        return numbers(record.payload)

    def tables(self, record: Record[Findings]) -> Sequence[Table]:
        """Layer × measure, dimensions, clusters, and CKA."""
        return tables(record)

    def charts(self, records: Mapping[str, Record[Findings]]) -> Sequence[Chart]:
        """Curves over layers, and CKA."""
        return charts(records)


def _reader(context: CorpusContext, layer: int) -> Read:
    """Gives rows of a layer in float32."""
    stored = context.vectors.layer(layer)
    return lambda rows: stored[rows].astype(np.float32)
