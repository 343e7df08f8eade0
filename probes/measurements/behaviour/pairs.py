"""Minimal pairs: does a model find the acceptable sentence the likelier one?

Pairs are those of Warstadt et al. (2020), predictions over regions those of Hu et al. (2020), and
masked models are scored as by Salazar et al. (2020) and Kauf & Ivanova (2023).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from probes.data.items import WHOLE, Item
from probes.measurements.chart_views import Cells
from probes.measurements.measurement import Found, Measurement, Request
from probes.measurements.pivots import Pivot
from probes.records.base import Frozen
from probes.records.record import Extent

if TYPE_CHECKING:
    from probes.common.arrays import Floats
    from probes.data.sentence import Corpus
    from probes.extraction.collectors import Collector
    from probes.extraction.token_scores import Scored
    from probes.extraction.views import View
    from probes.measurements.context import Context

SCORINGS = {"log_p": "pseudo-log-likelihood", "within_word": "within-word l2r"}
"""How a masked model scores, by what `TokenScores` keeps."""

LEFT_TO_RIGHT = "left to right"
"""How a causal model does."""

HEADLINE = {"scoring": [SCORINGS["within_word"], LEFT_TO_RIGHT], "per": "text"}


class Pairs(Measurement):
    """How often the prediction of an item is true: ties count ½.

    Rows: ``pair_accuracy`` by ``paradigm``, by ``phenomenon`` and overall; ``mean_of_paradigms``,
    which counts each paradigm alike. Axes: ``scoring``; ``per`` says whether surprisal is that of
    the ``text`` or, of minimal pairs, its mean over a ``token``.

    Arrays beside the record: ``right`` (scorings, items), in the order of the facts ``scale 1``
    and so on; ``cluster`` and ``stratum`` (items,), what is resampled.
    """

    name = "pairs"
    summary = "minimal pairs and other predictions about which text is likelier"
    views = (
        Pivot(
            "by phenomenon, %",
            ("pair_accuracy",),
            rows="phenomenon",
            columns=("scoring", "per"),
            where={"paradigm": None},
            note="Share of pairs of which the acceptable sentence is likelier; ties count ½. Per "
            "text: all log-probabilities; per token: their mean.",
        ),
        Pivot(
            "by paradigm, %",
            ("pair_accuracy",),
            rows="paradigm",
            columns=("scoring", "per"),
            where={"paradigm": ...},
        ),
        Pivot("mean of paradigms, %", ("mean_of_paradigms",), rows="per", columns=("scoring",)),
        Cells(
            "paradigms",
            "pair_accuracy",
            across="scoring",
            down="paradigm",
            where={"paradigm": ..., "per": "text"},
            low=0.0,
            high=1.0,
        ),
    )
    needs = ("pairs",)
    shares_arrays = True
    reads_head = True

    def extent(self, request: Request) -> Extent:
        """The model's answer comes after its last layer."""
        return {request.n_layers: 1}

    def view(self, corpus: Corpus, options: Frozen) -> View:
        """All texts, each once."""
        from probes.measurements.behaviour.items import view_of_items

        return view_of_items(corpus.items)

    def collector(self, corpus: Corpus, layers: Sequence[int], options: Frozen) -> Collector:
        """See `TokenScores`."""
        from probes.extraction.token_scores import TokenScores

        return TokenScores()

    def compute(self, context: Context) -> Found:
        """Score all texts, and test what is predicted of them."""
        from probes.extraction.token_scores import stored_scores
        from probes.measurements.behaviour.items import Scale, accuracy_rows, strata_of

        items, found = context.corpus.items, stored_scores(context.view, context.stored)
        kept = (
            {LEFT_TO_RIGHT: "log_p"}
            if context.model.causal
            else {v: k for k, v in SCORINGS.items()}
        )
        columns: dict[tuple[str, str], Floats] = {}
        for scoring, part in kept.items():
            columns[scoring, "text"] = rightness(items, found, part)
            if all(item.predictions == (WHOLE,) for item in items):
                columns[scoring, "token"] = rightness(items, found, part, per_token=True)
        scales = [Scale("pair_accuracy", {"scoring": s, "per": per}) for s, per in columns]
        right = np.stack(list(columns.values()))
        strata = strata_of(items)
        facts = {f"scale {i}": scale.name for i, scale in enumerate(scales, start=1)}
        return Found(
            accuracy_rows(items, right.T, scales, "mean_of_paradigms"),
            {
                "right": right.astype(np.float32),
                "cluster": strata.cluster.astype(np.int32),
                "stratum": strata.stratum.astype(np.int32),
            },
            facts={"items": len(items), "ties": int((right[0] == 0.5).sum()), **facts},
        )


def rightness(
    items: Sequence[Item], found: Scored, part: str, *, per_token: bool = False
) -> Floats:
    """How much of what is predicted of each item is true, from 0 to 1. Shape (items,).

    Args:
        part: see `Scored.surprisal`.
        per_token: divide the surprisal of a text by its pieces.
    """
    from probes.measurements.behaviour.formulas import truth
    from probes.measurements.behaviour.items import text_in

    surprisal = found.surprisal(part)

    def regions(item: Item) -> Mapping[str, Sequence[float]]:
        by_condition = {}
        for condition, texts in item.texts.items():
            first = found.place(text_in(item, condition))
            own = slice(first, first + len(texts))
            n = max(1, int(found.pieces[own].sum())) if per_token else 1
            by_condition[condition] = (surprisal[own] / n).tolist()
        return by_condition

    values = []
    for item in items:
        its = regions(item)
        values.append(np.mean([truth(formula, its) for formula in item.predictions]))
    return np.array(values)
