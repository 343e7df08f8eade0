"""The numbers of structure, for CSV files."""

from __future__ import annotations

from collections.abc import Iterator

from probes.measurements.structure.payload import Findings
from probes.records.row import Row
from probes.records.values import Estimate


def numbers(found: Findings) -> Iterator[Row]:
    """All of a record; rank 0 is the vectors themselves."""
    for cell in found.cells:
        rank = {"rank": cell.rank or 0}
        for split, scores in cell.scores.items():
            for metric, estimate in scores.items():
                yield _number(metric, estimate, cell.layer, split, **rank)
        for kind, loss in cell.dev_losses.items():
            yield Row(f"{kind}_loss", loss, cell.layer, split="dev", axes=rank)
    for control in found.controls:
        for metric, by_split in (
            ("control_uuas", control.uuas),
            ("selectivity", control.selectivity),
        ):
            for split, estimate in by_split.items():
                yield _number(metric, estimate, control.layer, split, rank=found.reported)
        for split, draws in control.spread.items():
            sd, axes = draws.sd if draws else None, {"rank": found.reported}
            yield Row("control_uuas_draw_sd", sd, control.layer, split=split, axes=axes)
    for split in found.chain:
        yield _number("chain_uuas", found.chain[split], None, split)
        yield _number("chain_control_uuas", found.control_chain[split], None, split)
    for recall in found.recall:
        name = "chain_recall" if recall.layer is None else "recall"
        for words, estimate in recall.edges.items():
            yield _number(name, estimate, recall.layer, "test", words=words)
    for metric, spread in found.spread.items():
        axes = {"rank": found.reported}
        yield Row(f"{metric}_training_sd", spread.sd if spread else None, axes=axes)
        for layer, p in found.p_best[metric].items():
            yield Row(f"{metric}_p_best", p, layer, axes=axes)


def _number(
    metric: str, estimate: Estimate, layer: int | None, split: str, **axes: int | str
) -> Row:
    low, high = estimate.interval or (None, None)
    return Row(metric, estimate.value, layer, low, high, split, axes=axes)
