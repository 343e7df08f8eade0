"""Where the page's numbers come from: corpora with licence and citation, runs, results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from probes.records.header import CorpusRecord
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


def sources(results: Sequence[Result]) -> Sources:
    """Collect the sources of results."""
    corpora = {result.corpus.digest: result.corpus for result in results}
    grouped: dict[tuple[tuple[str, str], ...], list[Result]] = {}
    for result in results:
        grouped.setdefault(tuple(sorted(result.provenance.items())), []).append(result)
    runs = [
        Run(len(made), list(Counter(r.model.name for r in made)), dict(facts))
        for facts, made in grouped.items()
    ]
    return Sources(list(corpora.values()), runs, list(map(_made, results)))


def _made(result: Result) -> Made:
    n = result.examples.n
    excluded = sum(result.examples.excluded.get("test", {}).values())
    examples = " / ".join(f"{n[split]:,}" for split in ("train", "dev", "test") if split in n)
    marks = {
        "silver": result.silver,
        "limited": result.corpus.limited,
        "random": result.model.random_seed is not None,
    }
    task = result.task
    return Made(
        result.model.name,
        f"{result.corpus.name} {result.corpus.version}",
        f"{task.name} v{task.version}, {result.probe.family}, {result.view} view, "
        f"{result.pooling} pooling, {result.dtype}",
        examples + f"; {excluded:,} of test left out" * bool(excluded),
        f"{sum(result.seconds.values()):.1f}",
        result.key[:8],
        ", ".join(mark for mark, is_so in marks.items() if is_so),
    )
