"""The claims held against stored results: findings on every model and corpus."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from probes.boards.claims.evidence import Evidence
from probes.boards.claims.literature import CLAIMS
from probes.boards.claims.predicates import Finding
from probes.common.terminal import progress
from probes.extraction.model_files import RANDOM
from probes.measurements.current import is_current
from probes.records.result import Result
from probes.statistics.resampled import resampled_scores


@dataclass(frozen=True)
class Report:
    """Findings on one model and corpus.

    Attributes:
        marks: what sets the model or the data apart.
        findings: by name of the claim.
    """

    model: str
    corpus: str
    marks: tuple[str, ...]
    findings: Mapping[str, Finding]

    @property
    def title(self) -> str:
        """Model, corpus, and what sets them apart."""
        return " · ".join([self.model, self.corpus, *self.marks])


def make_reports(found: Mapping[Path, Result], family: str) -> list[Report]:
    """Findings on every model × corpus among results of a probe family, by their paths."""
    runs: dict[tuple[str, ...], dict[str, Path]] = defaultdict(dict)
    for path, result in found.items():
        if result.probe.family != family:
            continue
        if not is_current(result):
            progress.say(f"left out {path}: made by another version of its task or probe")
            continue
        corpus = result.corpus.digest
        run = (result.model.name, result.model.digest, corpus, result.pooling, result.dtype)
        runs[run].setdefault(result.task.name, path)
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
    evidence = Evidence(results, lambda task: resampled_scores(results[task], paths[task]))
    return Report(
        first.model.name,
        f"{first.corpus.name} {first.corpus.version}",
        tuple(filter(None, marks)),
        {claim.name: claim.on(evidence) for claim in CLAIMS},
    )
