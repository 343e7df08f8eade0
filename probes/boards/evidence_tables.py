"""Tables of the measurements behind one model's scores: selectivity, compression, localisation.

Each has a column per result; a result without the measurement has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from probes.boards.cells import estimate_text, number_cell, score_cell
from probes.records.payload import LayerResult, Localisation
from probes.records.result import Result
from probes.records.table import NOTHING, Cell, Row, Table
from probes.records.titles import task_head


def evidence_tables(results: Sequence[Result]) -> dict[str, Table]:
    """The tables of one model, corpus and probe family, by the name that `show --by` takes.

    A measurement that no result has is left out.
    """
    found = {
        "selectivity": _selectivity(results),
        "compression": _compression(results),
        "mix": _mixes(results),
    }
    return {name: table for name, table in found.items() if table.rows}


def _selectivity(results: Sequence[Result]) -> Table:
    def cell(result: Result, layer: LayerResult) -> Cell:
        found = layer.cells[0].selectivity
        if result.control is None or found is None:
            return Cell(NOTHING)
        return score_cell(found.value, layer.selectivity, result.control.metric)

    chosen = [r for r in results if r.control]
    rows = _by_layer(chosen, cell)
    if chosen:
        seen = (f"{100 * r.control.seen:.0f} %" for r in chosen if r.control)
        rows.append(Row.of("test types seen in train", *seen))
    return Table(
        "selectivity: score on the task less score on its control task",
        ("layer", *(task_head(r, r.control.metric) for r in chosen if r.control)),
        tuple(rows),
        notes=(
            "The control task gives every type a random label (Hewitt & Liang 2019): it can only "
            "be memorised. ± half a 95 % interval. It tells how much a probe memorises, and does "
            "not choose layers.",
        ),
    )


def _compression(results: Sequence[Result]) -> Table:
    def cell(result: Result, layer: LayerResult) -> Cell:
        return number_cell(result.compression(layer), result.compression_interval(layer))

    chosen = [r for r in results if r.code]
    rows = _by_layer(chosen, cell)
    if chosen:
        alone = (f"{r.code.uniform_bits / r.code.prior_bits:.2f}" for r in chosen if r.code)
        rows.append(Row.of("labels alone", *alone))
    return Table(
        "compression: length of the uniform code over that of the online code",
        ("layer", *map(task_head, chosen)),
        tuple(rows),
        notes=(
            "Of the training labels, given the layer's vectors (Voita & Titov 2020); seed 0. ± "
            "half a 95 % interval. 'Labels alone' is the same code without vectors.",
        ),
    )


def _mixes(results: Sequence[Result]) -> Table:
    found = [(r, r.localisation) for r in results if r.localisation]
    rows = [
        Row.of(
            f"layers 0 to {k}" if k else "layer 0",
            *(_mix(localisation, k, r.task.metric) for r, localisation in found),
        )
        for k in sorted({mix.k for _, localisation in found for mix in localisation.mixes})
    ]
    if found:
        rows += [
            Row.of("expected layer", *(estimate_text(x.expected_layer) for _, x in found)),
            Row.of("centre of gravity", *(estimate_text(x.centre_of_gravity) for _, x in found)),
            Row.of("KL from uniform, bits", *(estimate_text(x.kl) for _, x in found)),
        ]
    return Table(
        "probes on mixes of layers 0 to k",
        ("layer", *(task_head(r, r.task.metric) for r, _ in found)),
        tuple(rows),
        notes=(
            "Scalar mixes as in Tenney et al. 2019a; the expected layer follows from their gains, "
            "centre of gravity and divergence from the weights of the mix of all layers. Brackets "
            "and ±: 95 % intervals.",
        ),
    )


def _mix(localisation: Localisation, k: int, metric: str) -> Cell:
    for mix in localisation.mixes:
        if mix.k == k:
            return score_cell(mix.test[metric], mix.intervals[metric], metric)
    return Cell(NOTHING)


def _by_layer(results: Sequence[Result], cell: Callable[[Result, LayerResult], Cell]) -> list[Row]:
    layers = [{layer.layer: layer for layer in result.layers} for result in results]
    return [
        Row.of(
            str(number),
            *(
                cell(result, own[number]) if number in own else Cell(NOTHING)
                for result, own in zip(results, layers, strict=True)
            ),
        )
        for number in sorted({number for own in layers for number in own})
    ]
