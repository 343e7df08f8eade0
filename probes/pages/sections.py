"""Sections of the page: sentences, charts and tables of what may stand together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from probes.boards import score_charts
from probes.boards.breakdown_tables import evidence_tables
from probes.boards.claims.claim_reports import NOTE, Report, claims_table, make_reports
from probes.boards.comparable import SAME_VECTORS, twins_of
from probes.boards.layer_tables import score_tables
from probes.boards.overview import best_layers
from probes.boards.shown_together import CorpusGroup, Group, TaskResults
from probes.common.errors import layer_ranges
from probes.common.grouping import grouped
from probes.data.splits import worded_note
from probes.frames.header_columns import values
from probes.frames.measurement_tables import findings_of, measurement_tables
from probes.measurements.measurement import probe_measurements
from probes.measurements.table_cells import group_cell, group_metric_title, score_cell
from probes.pages.page_charts import PageChart, PageModel, not_drawn, page_chart, view_chart
from probes.records.header import CorpusRecord
from probes.records.record import Record, model_title
from probes.records.result import Result
from probes.tables.charts import Style
from probes.tables.table import NOTHING, Cell, Table, TableRow

SCORES_NOTE = (
    "Headline metric on test. Intervals are over test documents, or sentences where the corpus "
    "names no documents; training variation is not included."
)
LOCATED_NOTE = (
    "Where in the model a task's labels become decodable (Tenney et al. 2019a): expected layers "
    "with 95 % intervals, and centres of gravity. Undefined: the mix of all layers does not gain "
    "on layer 0."
)


@dataclass
class PageSection:
    """A part of the page.

    Attributes:
        texts: paragraphs.
        missing: what could not be shown, and why.
        model, groups, task: by which the page is filtered; None for no filter.
        folded: None for a part that cannot be folded.
    """

    title: str = ""
    texts: Sequence[str] = ()
    charts: Sequence[PageChart] = ()
    tables: Sequence[Table] = ()
    sections: Sequence[PageSection] = ()
    missing: Sequence[str] = ()
    model: str | None = None
    groups: str | None = None
    task: str | None = None
    folded: bool | None = None


def overview(
    groups: Mapping[str, Group], models: Mapping[str, PageModel], half: Style
) -> PageSection:
    """Curves and best layers of all models; for each, the tables of layers."""
    sections = []
    for id, group in groups.items():
        trained = [label for label in group.models if not models[label].random]
        parts = [_layers_section(group, label, trained[:1]) for label in group.models]
        charts = [
            page_chart(
                score_charts.curves_of_group(replace(group, units=[unit]), half),
                half,
                f"{unit.title}, n = {unit.n}",
                task=unit.name,
            )
            for unit in group.units
        ]
        alone = [
            unit.title
            for unit in group.units
            if all(x.model.random_seed is None for x in unit.results.values())
        ]
        missing = [f"No random twin among the results on {', '.join(alone)}."] if alone else []
        section = PageSection(group.title, [SCORES_NOTE], charts=charts, sections=parts, groups=id)
        best = _best_by_task(group, trained)
        sections.append(replace(section, tables=[best], missing=missing))
    return PageSection(sections=sections)


def _best_by_task(group: Group, models: Collection[str]) -> Table:
    """The best layers, score, floor and gain of each model, task by task."""
    rows = [
        TableRow.of(unit.title, label, *_best_cells(result), model=label, task=unit.name)
        for unit in group.units
        for label, result in unit.floored.items()
        if label in models or not models
    ]
    heads = ("task", "model", "best layers", "score", "floor", "gain")
    return Table("Best layers of all models", heads, tuple(rows), left=2, repeated=2)


def _best_cells(result: Result) -> Iterator[Cell]:
    best, metric, n_layers = result.best_number, result.task.metric, result.model.n_layers
    floored, tied = result.is_floored(result.best_layer), best_layers(result)
    if best is None or floored:
        yield Cell(NOTHING)
    else:
        _, layers = layer_ranges(tied or {best}).split(" ", 1)
        yield Cell(f"{layers} of {n_layers}", note="" if tied else "on dev", value=best)
    score, interval = result.score(result.best_layer), result.interval(result.best_layer)
    note = "no best layer" if best is None else f"layer {best} of {n_layers}"
    yield score_cell(score, interval, metric, note=note, floored=floored)
    name, floor = result.floor or ("none", None)
    yield score_cell(floor, None, metric, note=name)
    above = None if score is None or floor is None else score - floor
    gain = score_cell(above, None, metric)
    yield replace(gain, text=f"+{gain.text}" if (gain.value or 0) > 0 else gain.text)


def _layers_section(group: Group, label: str, opened: Sequence[str]) -> PageSection:
    results = [unit.floored[label] for unit in group.units if label in unit.results]
    tables = list(score_tables(results))
    folded = label not in opened
    return PageSection(label, tables=tables, model=label, folded=folded)


def evidence(groups: Mapping[str, Group], half: Style, page: Style) -> PageSection:
    """Charts of the evidence behind scores, and tables of each model."""
    sections = []
    for id, group in groups.items():
        charts = [*_evidence_charts(group, half, page)]
        plot = score_charts.expected_layers(group, page)
        located = page_chart(plot, page, "Expected layer by task", LOCATED_NOTE, wide=True)
        tables = {
            label: evidence_tables(list(results.values())) for label, results in group.paths.items()
        }
        drawn = grouped((x for x in charts if x.spec), lambda chart: (chart.title, chart.note))
        parts = [
            PageSection(title, [note], charts=[replace(x, note="") for x in of_title])
            for (title, note), of_title in drawn.items()
        ]
        parts += [_tables_section(label, chain(*x.values())) for label, x in tables.items() if x]
        if parts or located.spec:
            section = PageSection(group.title, charts=[located], sections=parts, groups=id)
            sections.append(replace(section, missing=not_drawn([*charts, located])))
    texts = ["Measurements that help to interpret the scores. Bands are 95 % intervals."]
    return PageSection(texts=texts, sections=sections)


def _evidence_charts(group: Group, half: Style, page: Style) -> Iterator[PageChart]:
    for measurement in probe_measurements():
        for unit in group.units:
            if any(map(measurement.own_record, unit.results.values())):
                findings = findings_of(measurement, unit.results)
                about: Any = {"task": unit.name, "unit": group.short_title(unit)}
                for view in measurement.charts:
                    chart = view_chart(view, findings, half, **about)
                    # Panels side by side do not fit into half the width.
                    if chart.spec and "concat" in chart.spec:
                        chart = view_chart(view, findings, page, wide=True, **about)
                    yield chart


def _tables_section(label: str, tables: Iterable[Table]) -> PageSection:
    return PageSection(f"{label}: tables", tables=list(tables), model=label, folded=True)


def breakdowns(groups: Mapping[str, Group]) -> PageSection:
    """Scores by group of examples at each model's best layer."""
    texts = [
        "Test scores within groups of examples, at each model's best layer. Some tasks have "
        "another metric here, one that is defined within a group. Groups that are too small have "
        "no interval. python -m probes show gives the scores for every layer and label."
    ]
    parts = [
        PageSection(
            group.title,
            sections=[
                PageSection(tables=[_by_group(unit)], task=unit.name)
                for unit in group.units
                if any(unit.first.examples.groups.values())
            ],
            groups=id,
        )
        for id, group in groups.items()
    ]
    return PageSection(texts=texts, sections=[x for x in parts if x.sections])


def _by_group(unit: TaskResults) -> Table:
    first = unit.first
    groups = {name: n for name, n in first.examples.groups.items() if n}
    rows = []
    for model, result in unit.results.items():
        best = result.best_layer
        cells = (group_cell(result, best, name) for name in groups)
        rows.append(TableRow.of(f"{model}, layer {best}", *cells, model=model))
    heads = ("model", *(f"{name}\nn = {n:,}" for name, n in groups.items()))
    return Table(f"{unit.name}: {group_metric_title(first)}", heads, tuple(rows))


def measurement_section(
    groups: Sequence[CorpusGroup], scored: Mapping[str, Group], style: Style
) -> PageSection:
    """The charts and tables of one measurement of a corpus.

    Args:
        groups: its records, by what may stand together.
        scored: groups of scores on the page, by identifier.
    """
    sections = []
    for group in groups:
        text = group.first.corpus.fingerprint
        same = [x for x, y in scored.items() if y.units[0].first.corpus.fingerprint == text]
        findings = findings_of(group.measurement, group.records, group.paths)
        charts = [view_chart(view, findings, style, wide=True) for view in group.measurement.charts]
        sections.append(
            PageSection(
                group.title,
                charts=charts,
                sections=[
                    _tables_section(label, measurement_tables(group.measurement, [record]))
                    for label, record in group.records.items()
                ],
                missing=not_drawn(charts),
                groups=" ".join(same),
            )
        )
    summary = groups[0].measurement.summary
    texts = [f"{summary[:1].upper()}{summary[1:]}. Bands are 95 % intervals."]
    return PageSection(texts=texts, sections=sections)


def claims(
    groups: Mapping[str, Group],
    results: Mapping[Path, Result],
    corpus_records: Mapping[Path, Record],
) -> PageSection:
    """Claims of two papers, tested on each model; or why there are none."""
    texts = [
        "Claims of two papers (Rogers et al. 2020; Kovaleva et al. 2019), tested on these results. "
        + NOTE
    ]
    sections = [
        PageSection(
            group.title,
            sections=[
                _claims_section(label, paths, group, corpus_records, folded=i > 0)
                for i, (label, paths) in enumerate(group.paths.items())
            ],
            groups=id,
        )
        for id, group in groups.items()
    ]
    subjects = {values(result, SAME_VECTORS) for result in results.values()}
    alone = {
        path: x for path, x in corpus_records.items() if values(x, SAME_VECTORS) not in subjects
    }
    if reports := make_reports({}, "", alone):
        tables = [*map(_verdicts, reports)]
        sections.append(PageSection("Without scores", tables=tables))
    return PageSection(texts=texts, sections=sections)


def _claims_section(
    label: str,
    paths: Mapping[Path, Result],
    group: Group,
    corpus_records: Mapping[Path, Record],
    *,
    folded: bool,
) -> PageSection:
    first = next(iter(paths.values()))
    results = {path: result for x in group.paths.values() for path, result in x.items()}
    twins = twins_of(first, results)
    subjects = {values(result, SAME_VECTORS) for result in (*paths.values(), *twins.values())}
    records = {path: x for path, x in corpus_records.items() if values(x, SAME_VECTORS) in subjects}
    reports = make_reports({**paths, **twins}, group.probe, records)
    for report in reports:
        # Its twins have reports of their own, which are not shown.
        if report.model == model_title(first):
            counts = Counter(outcome.verdict for outcome in report.outcomes.values())
            title = f"{label}: {', '.join(f'{n} {verdict}' for verdict, n in counts.items())}"
            tables = [_verdicts(report)] if report.tested else []
            texts = [] if report.tested else [report.not_tested]
            return PageSection(title, texts=texts, tables=tables, model=label, folded=folded)
    reason = f"{label}: no claim was tested."
    return PageSection(missing=[reason], model=label)


def _verdicts(report: Report) -> Table:
    table = claims_table(report)
    # The last note is the same for all; the part begins with it.
    return replace(table, notes=table.notes[:-1])


def sources(models: Mapping[str, PageModel], records: Sequence[Record]) -> PageSection:
    """Corpora with licence and citation, models, runs and records behind the page's numbers."""
    corpora = {record.corpus.digest: record.corpus for record in records}
    texts = {x.corpus.digest for x in records if x.task and x.task.shape == "text"}

    def run_facts(record: Record) -> tuple[tuple[str, str], ...]:
        return tuple(sorted(x for x in record.provenance.items() if x[0] != "written"))

    return PageSection(
        sections=[
            PageSection(
                "Corpora: licence and citation",
                sections=[_corpus_section(x, name in texts) for name, x in corpora.items()],
            ),
            PageSection("Models", tables=[_models_table(models)]),
            PageSection(
                "Runs", sections=[_run_section(*run) for run in grouped(records, run_facts).items()]
            ),
            PageSection(f"Records: {len(records)}", tables=[_records_table(records)], folded=True),
        ],
        texts=[
            "Charts by Vega, Vega-Lite and Vega-Embed (BSD licence, © University of Washington "
            "Interactive Data Lab), which are embedded; the page asks the network for nothing."
        ],
    )


def _facts_table(facts: Mapping[str, str]) -> Table:
    rows = tuple(TableRow.of(name, value) for name, value in facts.items())
    return Table("", ("what", "value"), rows, left=2)


def _corpus_section(corpus: CorpusRecord, of_texts: bool) -> PageSection:
    def counts(numbers: Mapping[str, int]) -> str:
        return " · ".join(f"{name} {n:,}" for name, n in numbers.items()) or "not recorded"

    unit = "texts" if of_texts else "sentences"
    limit = f", the first {corpus.limit} {unit} of train" if corpus.limited else ""
    notes = {worded_note(x, corpus.group, of_texts=of_texts): n for x, n in corpus.notes.items()}
    facts = {
        "licence": corpus.licence or "none stated",
        unit: counts(corpus.sentences),
        **({} if of_texts else {"words": counts(corpus.words)}),
        "labels made by a machine": ", ".join(corpus.silver) or "none",
        "notes": counts(notes) if notes else "none",
        "fingerprint": corpus.fingerprint,
    }
    citation = corpus.citation or "No citation is stated."
    return PageSection(
        f"{corpus.name} {corpus.version}{limit}", [citation], tables=[_facts_table(facts)]
    )


def _models_table(models: Mapping[str, PageModel]) -> Table:
    rows = []
    for label, model in models.items():
        m = model.record.model
        seed = NOTHING if m.random_seed is None else str(m.random_seed)
        numbers = (Cell(f"{x:,}", value=x) for x in (m.n_layers, m.hidden_size, m.parameters))
        words = m.revision or NOTHING, m.architecture, "yes" if m.causal else "no", seed
        rows.append(TableRow.of(label, *words, m.digest[:12], *numbers, model=label))
    heads = ("model", "revision", "architecture", "causal", "random seed", "digest")
    return Table("", (*heads, "layers", "hidden size", "parameters"), tuple(rows), left=6)


def _run_section(facts: Sequence[tuple[str, str]], records: Sequence[Record]) -> PageSection:
    names = ", ".join(dict.fromkeys(record.model.name for record in records))
    corpora = ", ".join(dict.fromkeys(record.corpus.name for record in records))
    fact_by_name = dict(facts) or {"provenance": "not recorded"}
    return PageSection(
        f"{len(records)} {'records' if len(records) > 1 else 'record'} of {names} on {corpora}",
        tables=[_facts_table(fact_by_name)],
        folded=True,
    )


def _records_table(records: Sequence[Record]) -> Table:
    rows = []
    for record in records:
        of, examples = f"{record.measurement} v{record.measurement_version}", NOTHING
        if isinstance(record, Result):
            task = record.task
            of = f"{task.name} v{task.version}, {record.probe.family}, {record.view} view"
            examples = _examples(record)
        rows.append(
            TableRow.of(
                record.model.name + (f" against {record.base.name}" if record.base else ""),
                f"{record.corpus.name} {record.corpus.version}",
                f"{of}, {record.pooling} pooling, {record.dtype}",
                examples,
                record.key[:8],
                f"{sum(record.seconds.values()):.1f}",
            )
        )
    heads = ("model", "corpus", "what", "examples, train / dev / test", "key", "seconds")
    return Table("", heads, tuple(rows), left=5)


def _examples(result: Result) -> str:
    n = result.examples.n
    excluded = sum(result.examples.excluded.get("test", {}).values())
    examples = " / ".join(f"{n[split]:,}" for split in ("train", "dev", "test") if split in n)
    return f"{examples}; {excluded:,} of test left out" if excluded else examples
