"""Charts of structure."""

from __future__ import annotations

from collections.abc import Mapping

from probes.measurements.structure.payload import LIKE, METRICS, Findings
from probes.records.charts import Chart
from probes.records.curves import Curves, Point
from probes.records.record import Record
from probes.statistics.metrics import is_percent

FIGURES = ("ranks", "structure_uuas", "structure_dspr", "structure_root_accuracy", "structure_nspr")


def charts(records: Mapping[str, Record[Findings]]) -> list[Chart]:
    """UUAS by rank, at each model's best layer or, of one model, at all; scores by layer."""
    found = {label: record.payload for label, record in records.items()}
    return [_ranks(found), *(_layers(found, metric) for metric in METRICS)]


def _ranks(found: Mapping[str, Findings]) -> Curves:
    alone = len(found) == 1
    which = "each layer" if alone else "the layer that is best on dev"
    curves = Curves(
        "ranks",
        "UUAS by rank",
        f"Of distance probes at {which}; dashed: the chain of neighbours.",
        "UUAS, %",
        "accuracy",
        percent=True,
        what="rank",
        log=True,
    )
    for label, each in found.items():
        layers = each.layers if alone else (each.best["uuas"],)
        curves.models[label] = [
            Point(rank, uuas.value, uuas.interval, f"layer {layer}" if alone else "")
            for layer in layers
            for rank in each.ranks
            for uuas in [each.cell(layer, rank).scores["test"]["uuas"]]
        ]
    curves.levels.update(_chain(found))
    return curves


def _layers(found: Mapping[str, Findings], metric: str) -> Curves:
    ranks = sorted({each.reported for each in found.values()})
    percent = is_percent(LIKE[metric])
    curves = Curves(
        f"structure_{metric}",
        f"{METRICS[metric]} by layer",
        f"Of probes of rank {' or '.join(map(str, ranks))}, with 95 % intervals.",
        METRICS[metric] + ", %" * percent,
        LIKE[metric],
        percent,
    )
    for label, each in found.items():
        curves.models[label] = [
            Point(layer, score.value, score.interval)
            for layer in each.layers
            for score in [each.cell(layer, each.reported).scores["test"][metric]]
        ]
    if metric == "uuas":
        curves.levels.update(_chain(found))
    return curves


def _chain(found: Mapping[str, Findings]) -> dict[str, float]:
    """Of one corpus, so that it is the same for all models."""
    values = [each.chain["test"].value for each in found.values()]
    return {"chain of neighbours": values[0]} if values and values[0] is not None else {}
