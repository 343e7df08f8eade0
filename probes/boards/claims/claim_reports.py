"""The claims tested on stored results: a report for every model and corpus."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from probes.boards.claims.claim import NOTE, Claim, Outcome, beside_twin, corrected
from probes.boards.claims.literature import CLAIMS
from probes.boards.claims.model_rows import ModelRows
from probes.boards.comparable import SAME_CLAIM, SAME_VECTORS, values
from probes.boards.corpus_groups import of_corpora
from probes.boards.twins import twins_beside, twins_of
from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.extraction.model_names import RANDOM
from probes.measurements.current import is_current
from probes.measurements.joined_results import joined
from probes.measurements.measurement import get_measurement
from probes.measurements.resampled import resampled
from probes.measurements.resampled_mixes import resampled_mixes
from probes.records.files import if_readable
from probes.records.record import Record
from probes.records.result import SCORES, Result
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

    @property
    def tested(self) -> list[Claim]:
        """The claims that could be tested."""
        return [x for x in CLAIMS if self.outcomes[x.name].verdict != "not tested"]

    @property
    def not_tested(self) -> str:
        """The other claims in one line, by what they lack; empty if there are none."""
        lacking: dict[str, list[str]] = defaultdict(list)
        for claim in CLAIMS:
            outcome = self.outcomes[claim.name]
            if outcome.verdict == "not tested":
                lacking[outcome.why].append(claim.name)
        reasons = (f"{', '.join(names)}: {why}" for why, names in lacking.items())
        n = sum(map(len, lacking.values()))
        return f"Not tested, {n} of {len(CLAIMS)} claims: {'; '.join(reasons)}." if n else ""


class _Tested(NamedTuple):
    """A report, and any of the records that it was made of."""

    report: Report
    path: Path
    record: Record


def make_reports(
    found: Mapping[Path, Result],
    family: str,
    others: Mapping[Path, Record] = MappingProxyType({}),
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
    report, path, record = each
    if record.model.random_seed is not None:
        return report
    records = {place: other.record for place, other in enumerate(tested)}
    twins = [tested[place] for place in twins_of(record, records)]
    if not (twins := twins or _twins_beside(path, record, family)):
        return report
    twin = min(twins, key=lambda other: other.record.model.random_seed or 0).report.outcomes
    outcomes = {name: beside_twin(x, twin[name]) for name, x in report.outcomes.items()}
    return replace(report, outcomes=outcomes)


def _tested(
    found: Mapping[Path, Result], family: str, others: Mapping[Path, Record]
) -> list[_Tested]:
    groups = grouped(found, family, others)
    return [_Tested(_report(group), *next(iter(group.items()))) for group in groups]


def _twins_beside(path: Path, record: Record, family: str) -> list[_Tested]:
    """Those of random twins of a record's model on its corpus, from where all models' are."""
    twins = twins_beside(record, path)
    try:
        return _tested(joined(twins), family, of_corpora(twins))
    except UserError as error:
        progress.say(f"left out the random twin: {error}")
        return []


def grouped(
    found: Mapping[Path, Result], family: str, others: Mapping[Path, Record]
) -> list[dict[Path, Record]]:
    """What claims relate: results by `SAME_CLAIM`, with records of a corpus by `SAME_VECTORS`.

    Outdated records are left out with a message. Of several results of a task the first counts; of
    several records of a measurement of the corpus, that with default options. A pair belongs to its
    other model, and is compared with one base; pairs with a random twin are of no claim.
    """
    runs: dict[Hashable, dict[str, Path]] = defaultdict(dict)
    for path, result in found.items():
        if result.probe.family == family and _counts(path, result, "task or probe"):
            runs[values(result, SAME_CLAIM)].setdefault(result.task.name, path)
    beside: dict[Hashable, dict[str, Path]] = defaultdict(dict)
    for path, record in others.items():
        pair = (record.model, record.base) if record.base else ()
        if any(model.name.startswith(RANDOM) for model in pair):
            continue
        if not _counts(path, record, "measurement"):
            continue
        own = beside[values(record, SAME_VECTORS)]
        before = others.get(own.get(record.measurement, Path()))
        if before and before.base and record.base and before.base.digest != record.base.digest:
            progress.say(f"left out {path}: claims use the comparison with {before.base.name}")
            continue
        defaults = get_measurement(record.measurement).options().model_dump(mode="json")
        if before is None or record.settings == defaults:
            own[record.measurement] = path
    alone = dict(beside)
    groups = []
    for run in runs.values():
        group: dict[Path, Record] = {path: found[path] for path in run.values()}
        subject = values(next(iter(group.values())), SAME_VECTORS)
        alone.pop(subject, None)
        groups.append(group | {path: others[path] for path in beside[subject].values()})
    return groups + [{path: others[path] for path in own.values()} for own in alone.values()]


def _counts(path: Path, record: Record, what: str) -> bool:
    if not is_current(record):
        progress.say(f"left out {path}: made by another version of its {what}")
        return False
    return True


def _report(group: Mapping[Path, Record]) -> Report:
    results = {x.task.name: (x, path) for path, x in group.items() if isinstance(x, Result)}

    def replicates(task: str, measurement: str) -> Replicates | None:
        result, path = results[task]
        if measurement == SCORES:
            return if_readable(lambda: resampled(result, path, list(result.headline)))
        return if_readable(lambda: resampled_mixes(result, path))

    model = ModelRows(group.values(), replicates)
    first = next(iter(group.values()))
    marks = [
        f"{first.pooling} pooling" * (first.pooling != "mean"),
        "random twin: its weights were never trained" * first.model.name.startswith(RANDOM),
        "part of the corpus" * first.corpus.limited,
        "some labels made by a machine" * any(map(_partly_silver, group.values())),
    ]
    return Report(
        model_title(first),
        f"{first.corpus.name} {first.corpus.version}",
        tuple(filter(None, marks)),
        corrected({claim.name: claim.on(model) for claim in CLAIMS}),
        bool(results),
    )


def _partly_silver(record: Record) -> bool:
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
            for claim in report.tested
        ),
        left=3,
        notes=(*filter(None, [report.not_tested]), NOTE),
    )
