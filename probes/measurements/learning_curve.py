"""Learning curves from the blocks of an online code (Voita & Titov 2020, section 3.2).

The bits per label of a block estimate the loss, on new examples, of probes that are trained on what
was sent before it. The area under the curve is the codelength.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from probes.measurements.cells import task_head
from probes.records.curves import Point
from probes.records.result import Result
from probes.records.table import Table, TableRow

if TYPE_CHECKING:
    from probes.measurements.description_length import Codelengths

ALONE = "labels alone"
"""The name of the code without vectors."""


def learning_table(result: Result, found: Codelengths) -> Table:
    """Bits per label: a row per layer, a column per number of training examples."""
    codes = {f"{layer.layer}": layer.block_bits for layer in found.layers}
    rows = (
        TableRow.of(name, *(f"{bits:.2f}" for bits in found.per_label(block_bits)))
        for name, block_bits in {**codes, ALONE: found.prior_block_bits}.items()
    )
    return Table(
        f"learning curve of {task_head(result)}: bits per label after so many training examples",
        ("layer", *(f"{n:,}" for n in found.starts)),
        tuple(rows),
        notes=(
            "Of the labels that are sent next, by probes trained on those before; at 0 by a "
            "uniform code. The area under a row's curve is its codelength.",
        ),
        repeated=1,
    )


def learning_points(result: Result, found: Codelengths) -> Iterator[Point]:
    """The curves of three layers and of the labels alone, without the uniform code at 0."""
    lines = {
        "best layer": result.best_layer.layer,
        "lowest layer": found.layers[0].layer,
        "highest layer": found.layers[-1].layer,
    }
    codes = {name: code.block_bits for name, x in lines.items() if (code := found.at(x))}
    for name, block_bits in {**codes, ALONE: found.prior_block_bits}.items():
        for n, bits in zip(found.starts[1:], found.per_label(block_bits)[1:], strict=True):
            yield Point(n, bits, line=name)
