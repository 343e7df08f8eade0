"""The folder of one model and corpus: its tables (`layers.md` has all of them) and its picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from probes.boards.breakdown_tables import evidence_tables
from probes.boards.layer_tables import floor_notes, interval_frame, layer_frames, score_tables
from probes.boards.overview import NOTE as OVERVIEW
from probes.boards.overview import confidence_set, sentence
from probes.boards.transferability import all_ranks, correlation_table, mean_rank_table
from probes.common.errors import printable_lines
from probes.common.files import published
from probes.common.grouping import grouped
from probes.common.terminal import progress
from probes.measurements.measurement import CSV_FIELDS, get_measurement
from probes.measurements.table_cells import group_cell, group_metric_title, interval_note, task_head
from probes.records.record import Record, corpus_title, limit_of, model_title, short_digest
from probes.records.result import Result
from probes.statistics.metrics import printed_score
from probes.statistics.partition import FEWEST
from probes.tables.printing import TIE, escaped_markdown, markdown, markdown_lines
from probes.tables.table import Table, cell_text, csv_line, marks_legend


def layers_md(results: Sequence[Result]) -> str:
    """The text of `layers.md`."""
    first = results[0]
    families = grouped(results, lambda x: x.probe.family)
    title = escaped_markdown(f"# {model_title(first)} on {corpus_title(first)}")
    lines = [f"{title} (causal)" if first.model.causal else title, ""]
    marked: list[Table] = []
    for family, family_results in families.items():
        lines += [f"## {family} probe, test", ""]
        lines += [*(f"- {escaped_markdown(sentence(result))}" for result in family_results), ""]
        for full_table in score_tables(family_results):
            table = full_table.filled
            marked.append(table)
            lines += [*markdown_lines(table), ""]
            # The table's own notes follow below, once for all families.
            lines += [f"{note}\n" for note in table.notes[len(full_table.notes) :]]
    lines += [
        *(f"{line}\n" for line in marks_legend(marked)),
        " ".join([OVERVIEW, _separation(results), interval_note(results), *floor_notes(results)]),
        "Layer 0 is the embedding output. What can be decoded from a layer need not be used by the "
        "model.",
        "",
        "## Other metrics and breakdowns, at the best layer",
        "",
        *(f"- {_details(result)}" for result in results),
        "",
    ]
    for family, family_results in families.items():
        for tables in evidence_tables(family_results).values():
            for table in tables:
                titled = replace(table, title=f"{family} probe, {table.title}")
                lines.append(markdown(titled, level=2))
    lines += [*_transferability(results), *_provenance_line(results), ""]
    # A tie is no printable letter, and would be escaped with the others.
    return TIE.join(map(printable_lines, "\n".join(lines).split(TIE)))


def _separation(results: Sequence[Result]) -> str:
    """A sentence on how layers were tested against each other, or why they were not."""
    if all(confidence_set(result) is None for result in results):
        return (
            "Layers are not tested against each other, which takes training variance "
            f"(--evidence standard) and {FEWEST} test documents or sentences."
        )
    return (
        "Layers are tested by a paired bootstrap with the variance of training, max-T over all "
        "pairs of layers; that they do not differ significantly does not mean that they are equal."
    )


def _details(result: Result) -> str:
    """Other metrics, and the score within each group of examples, at the best layer."""
    best = result.best_layer
    scores = result.scores_of(best)
    parts = [f"{name} {printed_score(value, name)}" for name, value in scores.items()]
    parts.append(f"{result.facts['probe_parameters']:,} parameters")
    groups = [
        f"{name} (n = {result.examples.groups[name]:,}) {cell_text(group_cell(result, best, name))}"
        for name in dict.fromkeys(str(row.axes["group"]) for row in result.rows.along("group"))
    ]
    if groups:
        metric = group_metric_title(result)
        metric += "," if "," in metric else ""
        parts.append(f"{metric} by group: {', '.join(groups)}")
    return f"{task_head(result)}, {result.probe.family}, layer {best}: " + "; ".join(parts)


def _transferability(results: Sequence[Result]) -> Iterator[str]:
    """Mean ranks and correlations of every probe family with several tasks."""
    frames = {
        family: scores for family, scores in layer_frames(results).items() if scores.shape[1] > 1
    }
    if not frames:
        return
    yield from ("## Transferability", "")
    notes: tuple[str, ...] = ()
    for family, scores in frames.items():
        yield from (f"### {family} probe", "")
        mean, correlations = mean_rank_table(scores), correlation_table(scores)
        if mean.rows:
            yield from (f"{mean.title}:", "", *markdown_lines(mean), "")
        if mean.notes:
            yield from (*mean.notes, "")
        if correlations.rows:
            yield from (*markdown_lines(correlations), "")
        notes = correlations.notes
    yield from (*notes, "")


def _provenance_line(results: Sequence[Result]) -> Iterator[str]:
    """A line on the corpus, the model and the number of examples."""
    first = results[0]
    counts = "; ".join(
        f"{r.task.name} v{r.task.version}: {r.examples.n['train']} / {r.examples.n['dev']} / "
        f"{r.examples.n['test']} examples"
        for r in {r.task.name: r for r in results}.values()
    )
    yield (
        f"Corpus fingerprint `{first.corpus.fingerprint[:16]}`, model `{first.model.digest[:16]}`, "
        f"pooling {first.pooling}; {counts}."
    )


def write_tables(folder: Path, results: Sequence[Result]) -> list[Path]:
    """Write `layers.csv`, `layers.md`, `layers.png` and `transfer.csv` into `folder`."""
    names = ("layers.csv", "layers.md", "layers.png", "transfer.csv")
    scores_csv, text_file, picture, ranks_csv = paths = [folder / name for name in names]
    frames, wide = layer_frames(results), interval_frame(results)
    with published(scores_csv) as temporary:
        wide.to_csv(temporary, float_format="%.6f", lineterminator="\n")
    with published(ranks_csv) as temporary:
        all_ranks(frames).to_csv(temporary, float_format="%.6f", lineterminator="\n")
    text = layers_md(results)
    if text_file.is_file() and picture.is_file() and text_file.read_bytes() == text.encode():
        return paths
    # The picture shows what the text says and takes a second. It is drawn first, so that the text
    # is never newer than the picture.
    from probes.boards.score_charts import chart_of_results
    from probes.tables import figures
    from probes.tables.charts import Style

    if reason := figures.no_room():
        progress.say(f"{picture}: not drawn, since {reason}")
        picture.unlink(missing_ok=True)
    else:
        style = Style(width=60 + 62 * len(results))
        figures.write(picture, figures.svg(chart_of_results(results, style), style), dpi=150)
    with published(text_file) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return paths


def numbers_path(folder: Path, name: str) -> Path:
    """The CSV file with the numbers of the measurement of the corpus that is called `name`."""
    return folder / f"{get_measurement(name).csv_name or name}.csv"


def write_numbers(folder: Path, record: Record) -> Path:
    """Write the numbers of a measurement of the corpus into its CSV file, a row for each.

    Why some are missing stands in the record, and in notes below its tables.
    """
    about = record.model.name, record.corpus.name, limit_of(record)
    key = short_digest(record.key)
    rows = list(get_measurement(record.measurement).csv_lines(record))
    columns = rows[0] if rows else ("layer", *CSV_FIELDS)
    lines = [csv_line(("model", "corpus", "limit", *columns, "key"))]
    lines += [csv_line([*about, *line.values(), key]) for line in rows]
    path = numbers_path(folder, record.measurement)
    with published(path) as temporary:
        temporary.write_text("".join(lines), encoding="utf-8", newline="")
    return path
