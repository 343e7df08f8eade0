"""What stands beside the scores of a probe family, layer by layer: one small table for each.

Selectivity, compression and localisation, as text; a result without one has an empty column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from probes.records.payload import Estimate, Interval, LayerResult
from probes.records.result import Result
from probes.records.titles import task_head
from probes.statistics.formatting import shown

Rows = dict[str, list[str]]

NOTHING = "–"


class Measure(NamedTuple):
    """One table.

    Attributes:
        name: what `python -m probes show --by` calls it.
        title: what it shows.
        note: how to read it.
        heads: of the columns, one per result.
        rows: by name, texts of the columns.
    """

    name: str
    title: str
    note: str
    heads: list[str]
    rows: Rows


def measures(results: Sequence[Result]) -> list[Measure]:
    """The tables of one model, corpus and probe family that have anything in them."""
    found = [_selectivity(results), _compression(results), _mixes(results)]
    return [measure for measure in found if measure.rows]


def _selectivity(results: Sequence[Result]) -> Measure:
    def cell(result: Result, layer: LayerResult) -> str:
        value = layer.cells[0].selectivity
        if result.control is None or value is None:
            return NOTHING
        return between(value.value, layer.selectivity, result.control.metric)

    chosen = [r for r in results if r.control]
    rows = _by_layer(chosen, cell)
    if chosen:
        rows["test types seen in train"] = [
            f"{100 * r.control.seen:.0f} %" if r.control else NOTHING for r in chosen
        ]
    return Measure(
        "selectivity",
        "selectivity: score on the task less score on its control task",
        "The control task gives every type a random label (Hewitt & Liang 2019): it can only be "
        "memorised. ± half a 95 % interval. It tells how much a probe memorises, and does not "
        "choose layers.",
        [task_head(r, r.control.metric) for r in chosen if r.control],
        rows,
    )


def _compression(results: Sequence[Result]) -> Measure:
    def cell(result: Result, layer: LayerResult) -> str:
        value = result.compression(layer)
        if value is None:
            return NOTHING
        bounds = result.compression_interval(layer)
        return f"{value:.2f}" + (f" ± {(bounds[1] - bounds[0]) / 2:.2f}" if bounds else "")

    chosen = [r for r in results if r.code]
    rows = _by_layer(chosen, cell)
    if chosen:
        rows["labels alone"] = [
            f"{r.code.uniform_bits / r.code.prior_bits:.2f}" if r.code else NOTHING for r in chosen
        ]
    return Measure(
        "compression",
        "compression: length of the uniform code over that of the online code",
        "Of the training labels, given the layer's vectors (Voita & Titov 2020); seed 0. ± half a "
        "95 % interval. 'Labels alone' is the same code without vectors.",
        [task_head(r) for r in chosen],
        rows,
    )


def _mixes(results: Sequence[Result]) -> Measure:
    chosen = [r for r in results if r.localisation]
    rows: Rows = {}
    for k in sorted({mix.k for r in chosen if r.localisation for mix in r.localisation.mixes}):
        rows[f"layers 0 to {k}" if k else "layer 0"] = [
            next(
                (
                    between(m.test[r.task.metric], m.intervals[r.task.metric], r.task.metric)
                    for m in (r.localisation.mixes if r.localisation else ())
                    if m.k == k
                ),
                NOTHING,
            )
            for r in chosen
        ]
    if chosen:
        found = [r.localisation for r in chosen if r.localisation]
        rows["expected layer"] = [estimate_text(x.expected_layer) for x in found]
        rows["centre of gravity"] = [estimate_text(x.centre_of_gravity) for x in found]
        rows["KL from uniform, bits"] = [estimate_text(x.kl) for x in found]
    return Measure(
        "mix",
        "probes on mixes of layers 0 to k",
        "Scalar mixes as Tenney et al. 2019a; expected layer from their gains, centre of gravity "
        "and divergence from the weights of the mix of all layers. Brackets and ±: 95 % intervals.",
        [task_head(r, r.task.metric) for r in chosen],
        rows,
    )


def _by_layer(results: Sequence[Result], cell: Callable[[Result, LayerResult], str]) -> Rows:
    numbers = sorted({layer.layer for result in results for layer in result.layers})
    return {
        str(number): [
            next((cell(r, layer) for layer in r.layers if layer.layer == number), NOTHING)
            for r in results
        ]
        for number in numbers
    }


def between(value: float | None, bounds: Interval, metric: str) -> str:
    """A score, ± half its interval if it has one."""
    text = shown(value, metric)
    return text if bounds is None else f"{text} ± {shown((bounds[1] - bounds[0]) / 2, metric)}"


def estimate_text(estimate: Estimate) -> str:
    """A value and its interval, or why there is none."""
    if estimate.value is None:
        return f"undefined: {estimate.missing}"
    if estimate.interval is None:
        return f"{estimate.value:z.2f}"
    return f"{estimate.value:z.2f} [{estimate.interval[0]:z.2f}, {estimate.interval[1]:z.2f}]"
