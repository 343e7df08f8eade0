"""The claims tested on stored results: a report for every model and corpus."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from probes.boards.claims.claim import NOTE
from probes.boards.claims.literature import CLAIMS
from probes.boards.claims.model_scores import ModelScores
from probes.boards.claims.outcome import Outcome, beside_twin, corrected
from probes.boards.comparable import SAME_CLAIM, alike
from probes.boards.corpus_groups import of_corpora
from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.extraction.model_names import RANDOM, is_twin_name
from probes.measurements.current import is_current
from probes.measurements.measurement import get_measurement
from probes.measurements.resampled import resampled
from probes.measurements.resampled_mixes import resampled_mixes
from probes.measurements.results import joined
from probes.records.files import if_readable, read_records
from probes.records.record import AnyRecord
from probes.records.result import Result
from probes.records.table import Cell, Table, TableRow
from probes.records.titles import model_title
from probes.statistics.replicates import Replicates


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


class _Tested(NamedTuple):
    """A report, and what it was made of: any path and record of the model and corpus."""

    report: Report
    path: Path
    record: AnyRecord


def make_reports(
    found: Mapping[Path, Result],
    family: str,
    others: Mapping[Path, AnyRecord] = MappingProxyType({}),
) -> list[Report]:
    """Test the claims on every model and corpus.

    What a model's random twin passes too is marked. The twin is among these records, or in the
    folder beside that of the model.

    Args:
        found: results by their paths; those of other probe families are not used.
        others: records of measurements of a corpus; see `probes.boards.corpus_groups.of_corpora`.
    """
    tested = _tested(found, family, others)
    return [_beside_twin(each, tested, family) for each in tested]


def _beside_twin(each: _Tested, tested: Sequence[_Tested], family: str) -> Report:
    """The report on a model, given those on others; of several twins, the first seed's counts."""
    if each.record.model.random_seed is not None:
        return each.report
    twins = [other for other in tested if is_twin(other.record, each.record)]
    if not twins:
        beside = read_records(_twins_beside(each.path))
        of_twins = {path: x for path, x in beside.items() if is_twin(x, each.record)}
        try:
            twins = _tested(joined(of_twins), family, of_corpora(of_twins))
        except UserError as error:
            progress.say(f"left out the random twin: {error}")
    if not twins:
        return each.report
    twin = min(twins, key=lambda other: other.record.model.random_seed or 0).report.outcomes
    outcomes = {name: beside_twin(x, twin[name]) for name, x in each.report.outcomes.items()}
    return replace(each.report, outcomes=outcomes)


def _twins_beside(path: Path) -> list[Path]:
    """Records of random twins on the corpus of a record, where all models' are."""
    folder = path.resolve().parent
    names = f"random*/{folder.name}/*-????????.json"
    return sorted(folder.parents[1].glob(names)) if len(folder.parents) > 1 else []


def is_twin(record: AnyRecord, of: AnyRecord) -> bool:
    """Whether a record is of the random twin of another's model, on the same text."""
    alike = (record.corpus.fingerprint, *claim_subject(record)[2:]) == (
        of.corpus.fingerprint,
        *claim_subject(of)[2:],
    )
    return alike and is_twin_name(record.model.name, of.model.name)


def _tested(
    found: Mapping[Path, Result], family: str, others: Mapping[Path, AnyRecord]
) -> list[_Tested]:
    usable: dict[Path, Result] = {}
    for path, result in found.items():
        if result.probe.family != family:
            continue
        if not is_current(result):
            progress.say(f"left out {path}: made by another version of its task or probe")
            continue
        usable[path] = result
    runs: list[dict[str, Path]] = []
    for same in alike(usable, SAME_CLAIM):
        runs.append({})
        for path, result in same.items():
            runs[-1].setdefault(result.task.name, path)
    beside = _by_subject(others)

    def records_at(places: Mapping[str, Path]) -> dict[str, AnyRecord]:
        return {name: others[path] for name, path in places.items()}

    made = []
    for run in runs:
        results = {task: found[path] for task, path in run.items()}
        first = next(iter(results.values()))
        report = _report(results, run, records_at(beside.get(claim_subject(first), {})))
        made.append(_Tested(report, next(iter(run.values())), first))
    tested = {claim_subject(found[path]) for run in runs for path in run.values()}
    for subject, places in beside.items():
        if subject not in tested:
            path = next(iter(places.values()))
            made.append(_Tested(_report({}, {}, records_at(places)), path, others[path]))
    return made


def claim_subject(record: AnyRecord) -> tuple[str, ...]:
    """Model, vectors and text: what claims relate scores and other measurements of."""
    model = record.model
    return model.name, model.digest, record.dtype, record.pooling, record.corpus.digest


def _by_subject(
    others: Mapping[Path, AnyRecord],
) -> dict[tuple[str, ...], dict[str, Path]]:
    """Paths of one model's records by measurement; of several, that with default options counts.

    A pair belongs to its other model; those with a random twin are of no claim.
    """
    found: dict[tuple[str, ...], dict[str, Path]] = defaultdict(dict)
    for path, record in others.items():
        pair = (record.model, record.base) if record.base else ()
        if any(model.name.startswith(RANDOM) for model in pair):
            continue
        if not is_current(record):
            progress.say(f"left out {path}: made by another version of its measurement")
            continue
        of_subject = found[claim_subject(record)]
        earlier = of_subject.get(record.measurement)
        before = others[earlier] if earlier else None
        if before and before.base and record.base and before.base.digest != record.base.digest:
            progress.say(f"left out {path}: claims use the comparison with {before.base.name}")
            continue
        defaults = get_measurement(record.measurement).options().model_dump(mode="json")
        if before is None or record.settings == defaults:
            of_subject[record.measurement] = path
    return found


def _report(
    results: Mapping[str, Result],
    paths: Mapping[str, Path],
    records: Mapping[str, AnyRecord],
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
    )
    return Report(
        model_title(first),
        f"{first.corpus.name} {first.corpus.version}",
        tuple(filter(None, marks)),
        corrected({claim.name: claim.on(scores) for claim in CLAIMS}),
        bool(results),
    )


def _resampled(result: Result, path: Path) -> Replicates | None:
    return resampled(result, path, list(result.headline))


def _partly_silver(record: AnyRecord) -> bool:
    return record.silver or (record.task is None and bool(record.corpus.silver))


def claims_table(report: Report, family: str) -> Table:
    """One model's verdicts, with the numbers behind them."""
    return Table(
        f"{report.title} · {family} probe" if report.scored else report.title,
        ("claim", "verdict", "numbers"),
        tuple(
            TableRow.of(
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
