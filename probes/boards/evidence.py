"""Tables of the evidence behind one model's scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from probes.measurements.measurement import probe_measurements
from probes.records.result import Result
from probes.records.table import Table
from probes.records.titles import limit_mark, model_title


def evidence_tables(results: Sequence[Result]) -> dict[str, list[Table]]:
    """The tables of one model, corpus and probe family, by measurement.

    A measurement that no result has is left out, and so is, from its tables, a result that lacks
    it.
    """
    tables = {}
    for each in probe_measurements():
        having = [result for result in results if result.found(each.name) is not None]
        if having:
            tables[each.name] = list(each.tables(having))
    return tables


def tables_of(results: Iterable[Result], name: str) -> Iterator[tuple[str, Sequence[Table]]]:
    """Those of one measurement for each model, corpus and probe family, after these three."""

    def unit(result: Result) -> tuple[str, str, str]:
        corpus = result.corpus.name + limit_mark(result)
        return model_title(result), corpus, result.probe.family

    for names, chosen in groupby(sorted(results, key=unit), key=unit):
        title = f"{' · '.join(names)} probe"
        found = evidence_tables(list(chosen)).get(name, [])
        yield title, [replace(table, title=f"{title} · {table.title}") for table in found]
