"""Where the page's numbers come from: corpora with licence and citation, runs, results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from probes.records.header import CorpusRecord
from probes.records.record import Record
from probes.records.result import Result


class Run(NamedTuple):
    """Results of one command on one machine."""

    n: int
    models: list[str]
    facts: dict[str, str]


class Made(NamedTuple):
    """One result, with what it was computed from."""

    model: str
    corpus: str
    what: str
    examples: str
    seconds: str
    key: str
    marks: str


class Sources(NamedTuple):
    """Corpora, runs and results behind the page's numbers."""

    corpora: list[CorpusRecord]
    runs: list[Run]
    results: list[Made]


def sources(records: Sequence[Record]) -> Sources:
    """Collect the sources of results, and of records of other measurements."""
    corpora = {record.corpus.digest: record.corpus for record in records}
    grouped: dict[tuple[tuple[str, str], ...], list[Record]] = {}
    for record in records:
        grouped.setdefault(tuple(sorted(record.provenance.items())), []).append(record)
    runs = [
        Run(len(made), list(Counter(r.model.name for r in made)), dict(facts))
        for facts, made in grouped.items()
    ]
    return Sources(list(corpora.values()), runs, list(map(_made, records)))


def _made(record: Record) -> Made:
    marks = {
        "silver": record.silver,
        "limited": record.corpus.limited,
        "random": record.model.random_seed is not None,
    }
    what = f"{record.measurement} v{record.measurement_version}"
    if isinstance(record, Result):
        task = record.task
        what = f"{task.name} v{task.version}, {record.probe.family}, {record.view} view"
    return Made(
        record.model.name + (f" against {record.base.name}" if record.base else ""),
        f"{record.corpus.name} {record.corpus.version}",
        f"{what}, {record.pooling} pooling, {record.dtype}",
        _examples(record) if isinstance(record, Result) else "–",
        f"{sum(record.seconds.values()):.1f}",
        record.key[:8],
        ", ".join(mark for mark, is_so in marks.items() if is_so),
    )


def _examples(result: Result) -> str:
    n = result.examples.n
    excluded = sum(result.examples.excluded.get("test", {}).values())
    examples = " / ".join(f"{n[split]:,}" for split in ("train", "dev", "test") if split in n)
    return examples + f"; {excluded:,} of test left out" * bool(excluded)
