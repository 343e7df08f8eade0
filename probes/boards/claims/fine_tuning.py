"""The predicate on what changes in attention between two models."""

from __future__ import annotations

from probes.boards.claims.model_scores import ModelScores
from probes.boards.claims.outcome import MissingError, Outcome, all_of, any_of, decided, p_above

CHANGE = "attention_change"

_FINAL = 2
"""Layers that count as final, as in Kovaleva et al. (2019)."""


def final_layers_change_most(model: ModelScores) -> Outcome:
    """Whether attention changes most in one of the last two layers.

    By Jensen–Shannon divergence. Supported if the interval of the greatest of them lies above those
    of all layers below, contradicted if it lies below that of one.
    """
    if CHANGE not in model.records:
        raise MissingError(
            "there are no two trained models compared by attention_change (--model BASE TUNED "
            "--measurements attention)"
        )
    record = model.records[CHANGE]
    found = {
        row.layer: row
        for row in record.rows
        if row.metric == "divergence" and "head" not in row.axes and row.layer is not None
    }
    n = record.model.n_layers
    if n <= _FINAL:
        raise MissingError(f"a model of {n} layers has none below the last {_FINAL}")
    if absent := sorted(set(range(1, n + 1)) - set(found)):
        raise MissingError(f"layer {', '.join(map(str, absent))} was not compared")
    ends = {layer: x.interval for layer, x in found.items() if x.interval is not None}
    if len(ends) < n:
        raise MissingError("divergences have no intervals")
    below = range(1, n - _FINAL + 1)
    most = max(range(n - _FINAL + 1, n + 1), key=lambda layer: found[layer].value or 0.0)
    rival = max(below, key=lambda layer: found[layer].value or 0.0)
    shown = (
        f"{x}: {found[x].value:.3f} [{ends[x][0]:.3f}, {ends[x][1]:.3f}]" for x in (most, rival)
    )
    base = record.base.name if record.base else ""
    why = (
        f"divergence from {base} at layer {'; greatest below the last two, at layer '.join(shown)}"
    )
    numbers = [
        {"layer": layer, "divergence": x.value, "interval": x.interval}
        for layer, x in sorted(found.items())
    ]
    return decided(
        all_of(p_above(ends[layer], ends[most]) for layer in below),
        any_of(p_above(ends[most], ends[layer]) for layer in below),
        why,
        numbers,
    )
