"""Scores of probes between corpora: what each has trained, on the test split of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from probes.measurements.cells import score_cell
from probes.measurements.measurement import TRANSFER
from probes.records.result import Result
from probes.records.table import NOTHING, Cell, Table, TableRow

NOTE = (
    "Rows: corpus that the probes were trained on; columns: corpus that they are tested on, at the "
    "layer that is best on dev for its own probes. All layers: python -m probes show RESULTS --by "
    f"{TRANSFER}."
)


def transfer_tables(results: Iterable[Result]) -> Iterator[Table]:
    """A table of training × test corpora for each model, task and probe family."""
    every: dict[tuple[str, str, str], list[Result]] = {}
    for result in results:
        if TRANSFER in result.evidence:
            of = result.model.name, result.task.name, result.probe.family
            every.setdefault(of, []).append(result)
    for of, tested in every.items():
        names = [result.corpus.name for result in tested]
        heads = "trained on", *(f"{x.corpus.name}, layer {x.best_layer}" for x in tested)
        rows = (TableRow.of(name, *(_score(result, name) for result in tested)) for name in names)
        yield Table(f"{' · '.join(of)} · transfer", heads, tuple(rows), notes=(NOTE,))


def _score(result: Result, trained_on: str) -> Cell:
    """The score of a corpus's probes at the best layer of another corpus, or of itself."""
    record = result.evidence[TRANSFER]
    row = record.rows.at("transfer_score", result.best_layer, train=trained_on, vectors=None)
    own = trained_on == result.corpus.name
    return score_cell(row.value, None, result.task.metric, best=own) if row else Cell(NOTHING)
