"""Similarity of models: linear CKA of their layers on the same words (Kornblith et al. 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.measurements.chart_views import Cells
from probes.measurements.measurement import Found, measurement
from probes.measurements.pivots import Pivot
from probes.records.row import Row
from probes.statistics.cka import bias_note, cka_between

if TYPE_CHECKING:
    from probes.measurements.context import PairContext


@measurement(
    "model_similarity",
    of="pair",
    after="geometry",
    views=(
        Pivot(columns=("base_layer",)),
        Cells(
            "cka_of_models",
            "cka",
            across="base_layer",
            title="Similarity of two models",
            note="Linear CKA over test words; rows: layers of the model, columns: of the base.",
            low=0.0,
            high=1.0,
            apart="base",
        ),
    ),
)
def model_similarity(context: PairContext) -> Found:
    """Linear CKA of the layers of two models; made along with geometry.

    Every layer is compared with every layer of the run's first model, on the words of test. Vectors
    may differ in size. Two layers are in memory at a time.
    """
    base = context.base
    with context.bar(len(context.layers) * len(base.layers)) as bar:
        cka = cka_between(
            lambda layer: context.words("test", layer),
            context.layers,
            lambda layer: base.words("test", layer),
            base.layers,
            lambda: bar.update(1),
        )
    rows = [
        Row("cka", value, layer, axes={"base": base.model.name, "base_layer": other})
        for layer, values in zip(context.layers, cka, strict=True)
        for other, value in zip(base.layers, values, strict=True)
    ]
    n_words = len(context.rows("test"))
    size = max(context.model.hidden_size, base.model.hidden_size)
    note = (
        f"Linear CKA over test words; rows: layers of {context.model.name}, columns: layers "
        f"of {base.model.name}."
    )
    return Found(rows, facts={"words": n_words}, notes=(note, *bias_note(n_words, size)))
