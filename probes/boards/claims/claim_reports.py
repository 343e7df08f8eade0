"""Tests the claims on stored results, with a report for every model and corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from probes.boards.claims.rules import (
    Claim,
    MissingError,
    ModelRows,
    Outcome,
    beside_twin,
    corrected,
)
from probes.boards.claims.score_claims import all_claims
from probes.boards.comparable import SAME_VECTORS, groups_by, twins_beside, twins_of
from probes.boards.shown_together import corpus_records_of
from probes.common.errors import UserError
from probes.common.grouping import grouped
from probes.common.terminal import progress
from probes.frames.joined_results import results_with_evidence
from probes.measurements.measurement import get_measurement
from probes.records.record import Record, model_title
from probes.records.result import Result
from probes.tables.table import Cell, Table, TableRow

RecordsOfModel = dict[Path, Record]  # records of one model and corpus

CAVEAT = "A model need not use what can be decoded from it."

NOTE = (
    f"{CAVEAT} Undecided: the data do not decide. Verdicts are tested at .05, with p corrected for "
    "all claims on a model (Holm), not for many models. Not specific to training: the untrained "
    "random twin gets the same verdict. Primer: Rogers et al. 2020."
)


@dataclass(frozen=True)
class Report:
    """The outcomes of all claims on one model and corpus.

    Attributes:
        marks: settings other than the usual.
        probe: probe family of its scores; empty without scores.
        of_twin: whether the model is a random twin.
    """

    model: str
    corpus: str
    marks: tuple[str, ...]
    outcomes: Mapping[str, Outcome]
    probe: str
    of_twin: bool

    @property
    def title(self) -> str:
        """Model and corpus, with settings other than the usual, and probe family."""
        probe = [f"{self.probe} probe"] if self.probe else []
        return " · ".join([self.model, self.corpus, *self.marks, *probe])

    @property
    def tested(self) -> list[Claim]:
        """The claims that could be tested."""
        return [x for x in all_claims() if self.outcomes[x.name].verdict != "not tested"]

    @property
    def not_tested(self) -> str:
        """The other claims in one line, by reason; empty if there are none."""
        counts = Counter(x.why for x in self.outcomes.values() if x.verdict == "not tested")
        reasons = "; ".join(f"{n}: {reason}" for reason, n in counts.items())
        text = f"{counts.total()} of {len(all_claims())} claims were not tested: {reasons}."
        return text if counts else ""


def make_reports(
    results: Mapping[Path, Result],
    family: str,
    corpus_records: Mapping[Path, Record] = MappingProxyType({}),
) -> list[Report]:
    """Test the claims on every model and corpus, and on the model's random twin if there is one.

    The twin is among these records, or in the folder beside the model's. Of several twins, the one
    with the first seed counts. Results of other probe families are not used.
    """
    groups = _grouped(results, family, corpus_records)
    return [_with_twin(group, groups, family) for group in groups]


def claims_table(report: Report) -> Table:
    """One model's verdicts, with their numbers."""
    return Table(
        report.title,
        ("claim", "verdict", "numbers"),
        tuple(
            TableRow.of(
                Cell(claim.statement, note=f"{claim.source}. Differences: {claim.differs}"),
                Cell(report.outcomes[claim.name].verdict, verdict=True),
                report.outcomes[claim.name].why,
                ends_section=True,
            )
            for claim in report.tested
        ),
        left=3,
        notes=(*filter(None, [report.not_tested]), NOTE),
    )


def verdicts_tables(reports: Sequence[Report], family: str) -> list[Table]:
    """The verdicts on several trained models side by side, a table for each corpus."""
    shown_reports = (x for x in reports if x.tested and not x.of_twin)
    return [
        Table(
            f"{corpus} · {family} probe · verdicts",
            ("claim", *(" · ".join([x.model, *x.marks]) for x in several)),
            tuple(
                TableRow.of(
                    Cell(claim.statement, note=claim.source),
                    *(x.outcomes[claim.name].verdict for x in several),
                )
                for claim in all_claims()
                if any(claim in x.tested for x in several)
            ),
            left=1 + len(several),
            notes=(NOTE,),
        )
        for corpus, several in grouped(shown_reports, lambda x: x.corpus).items()
        if len(several) > 1
    ]


def _with_twin(group: RecordsOfModel, among: Sequence[RecordsOfModel], family: str) -> Report:
    """The report on a model, compared with its twin if there is one."""
    report, (path, record) = _group_report(group), next(iter(group.items()))
    if record.model.random_seed is not None:
        return report
    twins = [among[i] for i in twins_of(record, dict(enumerate(map(_first, among))))]
    if not twins:
        records = twins_beside(record, path)
        try:
            twins = _grouped(results_with_evidence(records), family, corpus_records_of(records))
        except UserError as error:
            progress.say(f"left out the random twin: {error}")
    if not twins:
        return report
    twin = _group_report(min(twins, key=lambda x: _first(x).model.random_seed or 0)).outcomes
    outcomes = {name: beside_twin(x, twin[name]) for name, x in report.outcomes.items()}
    return replace(report, outcomes=outcomes)


def _grouped(
    results: Mapping[Path, Result], family: str, corpus_records: Mapping[Path, Record]
) -> list[RecordsOfModel]:
    """Results and records of a corpus, grouped by `SAME_VECTORS`.

    Of several results of a task, the first counts; of several records of a corpus measurement, the
    one with default options. A comparison belongs to the model that is not the base; comparisons
    with a random twin are not used.
    """
    usable: RecordsOfModel = {}
    for path, record in {**results, **corpus_records}.items():
        with_twin = record.base and {record.base.random_seed, record.model.random_seed} - {None}
        if not with_twin and (record.probe is None or record.probe.family == family):
            usable[path] = record
    groups = []
    for group in groups_by(usable, SAME_VECTORS):
        by_name: dict[str, Path] = {}
        for path, record in group.items():
            name = record.measurement
            defaults = get_measurement(name).options().model_dump(mode="json")
            if record.task is None and (record.settings == defaults or name not in by_name):
                by_name[name] = path
        of_corpus = {path: group[path] for path in by_name.values()}
        # Reversed, so that the first result of a task replaces later ones.
        first = {x.task.name: path for path, x in reversed(group.items()) if x.task}
        groups.append({path: group[path] for path in group if path in first.values()} | of_corpus)
    return groups


def _group_report(group: RecordsOfModel) -> Report:
    first, model, outcomes = _first(group), ModelRows(group.values()), {}
    for claim in all_claims():
        try:
            outcomes[claim.name] = claim.rule(model=model)
        except MissingError as missing:
            outcomes[claim.name] = Outcome("not tested", f"{missing}", [])
    marks = {
        f"{first.pooling} pooling": first.pooling != "mean",
        "random twin, never trained": first.model.random_seed is not None,
        "part of the corpus": first.corpus.limited,
        "some labels made by a machine": any(
            x.silver or (x.task is None and x.corpus.silver) for x in group.values()
        ),
    }
    return Report(
        model_title(first),
        f"{first.corpus.name} {first.corpus.version}",
        tuple(mark for mark, is_marked in marks.items() if is_marked),
        corrected(outcomes),
        next((x.probe.family for x in model.results.values()), ""),
        first.model.random_seed is not None,
    )


def _first(group: RecordsOfModel) -> Record:
    return next(iter(group.values()))
