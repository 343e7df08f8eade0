"""The claims tested on stored results: a report for every model and corpus."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from probes.boards.claims.literature import CLAIMS, NOTE
from probes.boards.claims.model_scores import ModelScores
from probes.boards.claims.outcome import Outcome
from probes.boards.comparable import SAME_CLAIM, values
from probes.common.terminal import progress
from probes.extraction.model_files import RANDOM
from probes.measurements.current import is_current
from probes.measurements.resampled import resampled
from probes.measurements.resampled_mixes import resampled_mixes
from probes.records.result import Result
from probes.records.table import Cell, Row, Table
from probes.records.titles import model_title


@dataclass(frozen=True)
class Report:
    """The outcomes of all claims on one model and corpus.

    Attributes:
        marks: what a reader has to know about the model or the data.
        outcomes: by name of the claim.
    """

    model: str
    corpus: str
    marks: tuple[str, ...]
    outcomes: Mapping[str, Outcome]

    @property
    def title(self) -> str:
        """Model, corpus, and what sets them apart."""
        return " · ".join([self.model, self.corpus, *self.marks])


def make_reports(found: Mapping[Path, Result], family: str) -> list[Report]:
    """Test the claims on every model and corpus among results of a probe family, by their paths."""
    runs: dict[tuple[Any, ...], dict[str, Path]] = defaultdict(dict)
    for path, result in found.items():
        if result.probe.family != family:
            continue
        if not is_current(result):
            progress.say(f"left out {path}: made by another version of its task or probe")
            continue
        runs[values(result, SAME_CLAIM)].setdefault(result.task.name, path)
    return [
        _report({task: found[path] for task, path in run.items()}, run) for run in runs.values()
    ]


def _report(results: Mapping[str, Result], paths: Mapping[str, Path]) -> Report:
    first = next(iter(results.values()))
    marks = [
        f"{first.pooling} pooling" * (first.pooling != "mean"),
        "random twin: its weights were never trained" * first.model.name.startswith(RANDOM),
        "part of the corpus" * first.corpus.limited,
        "some labels made by a machine" * any(result.silver for result in results.values()),
    ]
    scores = ModelScores(
        results,
        cache(lambda task: resampled(results[task], paths[task], list(results[task].headline))),
        cache(lambda task: resampled_mixes(results[task], paths[task])),
    )
    return Report(
        model_title(first),
        f"{first.corpus.name} {first.corpus.version}",
        tuple(filter(None, marks)),
        {claim.name: claim.on(scores) for claim in CLAIMS},
    )


def claims_table(report: Report, family: str) -> Table:
    """One model's verdicts, with the numbers behind them."""
    return Table(
        f"{report.title} · {family} probe",
        ("claim", "verdict", "numbers"),
        tuple(
            Row.of(
                Cell(claim.statement, note=claim.note),
                Cell(report.outcomes[claim.name].verdict, verdict=True),
                report.outcomes[claim.name].why,
                ends_section=True,
            )
            for claim in CLAIMS
        ),
        left=3,
        notes=(NOTE,),
    )
