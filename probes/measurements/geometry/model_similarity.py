"""Similarity of models: linear CKA of their layers on the same words (Kornblith et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from probes.measurements.measurement import Found, PairMeasurement
from probes.records.base import Frozen
from probes.records.charts import Chart, Grid, Panel
from probes.records.record import Record
from probes.records.row import Row
from probes.records.table import NOTHING, Table, TableRow
from probes.records.titles import subject_title

if TYPE_CHECKING:
    from probes.measurements.corpus_context import CorpusContext

FIGURE = "cka_of_models"


class Similarities(Frozen):
    """What `ModelSimilarity` finds."""

    layers: tuple[int, ...]
    """Of the model."""
    base_layers: tuple[int, ...]
    """Of the base."""
    cka: tuple[tuple[float | None, ...], ...]
    """Linear CKA of each layer with each of the base's; None where one does not vary."""
    words: int
    """Words of the test split."""
    biased: bool
    """Whether there are so few words that unrelated layers look similar."""


class ModelSimilarity(PairMeasurement[Similarities]):
    """Linear CKA of every layer of a model with every layer of the first model of the run.

    The test split's words, whose vectors may have different sizes in the two models.
    """

    name = "model_similarity"
    summary = "linear CKA of the layers of two models; made along with geometry"
    payload: ClassVar[type[Similarities]] = Similarities
    figures = (FIGURE,)

    def compute(self, context: CorpusContext) -> Found[Similarities]:
        """Compare every two layers, two of them in memory at a time."""
        from probes.measurements.geometry.cka import cka_between, is_biased

        base = context.base
        assert base is not None
        with context.bar(len(context.layers) * len(base.layers)) as bar:
            cka = cka_between(
                lambda layer: context.words("test", layer),
                context.layers,
                lambda layer: base.words("test", layer),
                base.layers,
                lambda: bar.update(1),
            )
        n_words = len(context.rows("test"))
        size = max(context.model.hidden_size, base.model.hidden_size)
        return Found(
            payload=Similarities(
                layers=context.layers,
                base_layers=base.layers,
                cka=tuple(tuple(None if np.isnan(x) else float(x) for x in row) for row in cka),
                words=n_words,
                biased=is_biased(n_words, size),
            )
        )

    def numbers(self, record: Record[Similarities]) -> Iterator[Row]:
        """The similarity of every pair of layers."""
        found = record.payload
        base = _base(record)
        for layer, row in zip(found.layers, found.cka, strict=True):
            for other, value in zip(found.base_layers, row, strict=True):
                yield Row("cka", value, layer, axes={"base": base, "base_layer": other})

    def tables(self, record: Record[Similarities]) -> Sequence[Table]:
        """The layers of the model by those of the base."""
        found = record.payload
        rows = [
            TableRow.of(str(layer), *(NOTHING if x is None else f"{x:.2f}" for x in row))
            for layer, row in zip(found.layers, found.cka, strict=True)
        ]
        note = f"Rows: layers of {record.model.name}; columns: layers of {_base(record)}."
        few = "There are few words for vectors of this size, which makes all layers look similar."
        title = f"{subject_title(record)} · linear CKA with {_base(record)}"
        heads = ("layer", *map(str, found.base_layers))
        return [Table(title, heads, tuple(rows), notes=(note, *[few] * found.biased), repeated=1)]

    def charts(self, records: Mapping[str, Record[Similarities]]) -> Sequence[Chart]:
        """A grid for each pair."""
        panels = {
            f"{label} × {_base(record)}": Panel(
                tuple(map(str, record.payload.layers)),
                tuple(map(str, record.payload.base_layers)),
                record.payload.cka,
            )
            for label, record in records.items()
        }
        return [
            Grid(
                FIGURE,
                "Similarity of two models",
                "Linear CKA over test words; rows: layers of the model, columns: of the base.",
                "layer",
                "layer of the base",
                panels,
                low=0.0,
                high=1.0,
            )
        ]


def _base(record: Record[Similarities]) -> str:
    assert record.base is not None
    return record.base.name
