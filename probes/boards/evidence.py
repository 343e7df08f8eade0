"""Tables of the evidence behind one model's scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from probes.measurements.measurement import probe_measurements
from probes.records.result import Result
from probes.records.table import Table


def evidence_tables(results: Sequence[Result]) -> dict[str, list[Table]]:
    """The tables of one model, corpus and probe family, by measurement.

    A measurement that no result has is left out, and so is, from its tables, a result that lacks
    it.
    """
    tables = {}
    for each in probe_measurements():
        having = [result for result in results if result.found(each.name) is not None]
        if having:
            # Columns are results, of which there may be more than a terminal is wide.
            made = each.tables(having)
            tables[each.name] = [replace(table, repeated=table.repeated or 1) for table in made]
    return tables
