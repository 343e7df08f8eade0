"""The claims tested on stored results: a report for every model and corpus."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from probes.boards.chosen_heads import ATTENTION, ChosenHeads, chosen_heads
from probes.boards.claims.claim import NOTE
from probes.boards.claims.literature import CLAIMS
from probes.boards.claims.model_scores import ModelScores
from probes.boards.claims.outcome import Outcome
from probes.boards.comparable import SAME_CLAIM, values
from probes.common.terminal import progress
from probes.extraction.model_names import RANDOM
from probes.measurements.current import is_current
from probes.measurements.measurement import get_measurement
from probes.measurements.resampled import Replicates, resampled
from probes.measurements.resampled_mixes import resampled_mixes
from probes.records.files import if_readable
from probes.records.record import AnyRecord
from probes.records.result import Result
from probes.records.table import Cell, Row, Table
from probes.records.titles import model_title


@dataclass(frozen=True)
class Report:
    """The outcomes of all claims on one model and corpus.

    Attributes:
        marks: what a reader has to know about the model or the data.
        outcomes: by name of the claim.
        scored: whether there are scores among what they were tested on.
    """

    model: str
    corpus: str
    marks: tuple[str, ...]
    outcomes: Mapping[str, Outcome]
    scored: bool = True

    @property
    def title(self) -> str:
        """Model, corpus, and what sets them apart."""
        return " · ".join([self.model, self.corpus, *self.marks])


def make_reports(
    found: Mapping[Path, Result],
    family: str,
    others: Mapping[Path, AnyRecord] = MappingProxyType({}),
) -> list[Report]:
    """Test the claims on every model and corpus.

    Args:
        found: results by their paths; those of other probe families are not used.
        others: records of measurements of a corpus; see `probes.boards.corpus_groups.of_corpora`.
    """
    runs: dict[tuple[Any, ...], dict[str, Path]] = defaultdict(dict)
    for path, result in found.items():
        if result.probe.family != family:
            continue
        if not is_current(result):
            progress.say(f"left out {path}: made by another version of its task or probe")
            continue
        runs[values(result, SAME_CLAIM)].setdefault(result.task.name, path)
    beside = _by_subject(others)
    reports = []
    for run in runs.values():
        results = {task: found[path] for task, path in run.items()}
        records = beside.get(claim_subject(next(iter(results.values()))), {})
        reports.append(_report(results, run, records, others))
    tested = {claim_subject(found[path]) for run in runs.values() for path in run.values()}
    alone = (records for subject, records in beside.items() if subject not in tested)
    return reports + [_report({}, {}, records, others) for records in alone]


def claim_subject(record: AnyRecord) -> tuple[str, ...]:
    """Model, vectors and text: what claims relate scores and other measurements of."""
    model = record.model
    return model.name, model.digest, record.dtype, record.pooling, record.corpus.digest


def _by_subject(
    others: Mapping[Path, AnyRecord],
) -> dict[tuple[str, ...], dict[str, AnyRecord]]:
    """Records of one model by measurement; of several, that with default options counts.

    A pair belongs to its other model; those with a random twin are of no claim.
    """
    found: dict[tuple[str, ...], dict[str, AnyRecord]] = defaultdict(dict)
    for path, record in others.items():
        pair = (record.model, record.base) if record.base else ()
        if any(model.name.startswith(RANDOM) for model in pair):
            continue
        if not is_current(record):
            progress.say(f"left out {path}: made by another version of its measurement")
            continue
        of_subject = found[claim_subject(record)]
        before = of_subject.get(record.measurement)
        if before and before.base and record.base and before.base.digest != record.base.digest:
            progress.say(f"left out {path}: claims use the comparison with {before.base.name}")
            continue
        defaults = get_measurement(record.measurement).options().model_dump(mode="json")
        if before is None or record.settings == defaults:
            of_subject[record.measurement] = record
    return found


def _report(
    results: Mapping[str, Result],
    paths: Mapping[str, Path],
    records: Mapping[str, AnyRecord],
    others: Mapping[Path, AnyRecord],
) -> Report:
    every = [*results.values(), *records.values()]
    first = every[0]
    marks = [
        f"{first.pooling} pooling" * (first.pooling != "mean"),
        "random twin: its weights were never trained" * first.model.name.startswith(RANDOM),
        "part of the corpus" * first.corpus.limited,
        "some labels made by a machine" * any(map(_partly_silver, every)),
    ]
    scores = ModelScores(
        results,
        cache(lambda task: if_readable(lambda: _resampled(results[task], paths[task]))),
        cache(lambda task: if_readable(lambda: resampled_mixes(results[task], paths[task]))),
        records,
        cache(lambda: _chosen_heads(records, others)),
    )
    return Report(
        model_title(first),
        f"{first.corpus.name} {first.corpus.version}",
        tuple(filter(None, marks)),
        {claim.name: claim.on(scores) for claim in CLAIMS},
        bool(results),
    )


def _resampled(result: Result, path: Path) -> Replicates | None:
    return resampled(result, path, list(result.headline))


def _chosen_heads(
    records: Mapping[str, AnyRecord], others: Mapping[Path, AnyRecord]
) -> ChosenHeads | None:
    """The chosen heads of a model, whose random twin may be among others; None without arrays."""
    of_heads = {
        path: x for path, x in others.items() if x.measurement == ATTENTION and x.payload.choices
    }
    path = next((path for path, x in of_heads.items() if x is records.get(ATTENTION)), None)
    return None if path is None else if_readable(lambda: chosen_heads(path, of_heads))


def _partly_silver(record: AnyRecord) -> bool:
    return record.silver or (record.task is None and bool(record.corpus.silver))


def claims_table(report: Report, family: str) -> Table:
    """One model's verdicts, with the numbers behind them."""
    return Table(
        f"{report.title} · {family} probe" if report.scored else report.title,
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
