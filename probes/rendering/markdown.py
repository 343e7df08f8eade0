"""`layers.md`: everything that one model's results on one corpus say, as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from probes.boards import transferability
from probes.boards.evidence_tables import measures
from probes.boards.layer_tables import Entry, layer_tables, table_rows
from probes.records.result import Result
from probes.records.table import escaped
from probes.records.titles import METRIC_NAMES, corpus_title, task_head
from probes.statistics.formatting import shown
from probes.statistics.metrics import lower_is_better


def markdown(results: Sequence[Result]) -> str:
    """The tables as Markdown, with what they were computed on."""
    first = results[0]
    title = escaped(f"# {first.model.name} on {corpus_title(first)}")
    lines = [title + " (causal)" * first.model.causal, ""]
    for family in dict.fromkeys(result.probe.family for result in results):
        chosen = [result for result in results if result.probe.family == family]
        heads = [task_head(r, r.task.metric) for r in chosen]
        rows = {n: [_marked(entry) for entry in row] for n, row in table_rows(chosen).items()}
        lines += [f"## {family} probe, test", "", *_grid(heads, rows), ""]
    lines += [
        "Bold: the best layer on dev. Starred: the test data cannot separate the layer from it "
        "(paired bootstrap over sentences, Holm-corrected, .05), which is not to say that they are "
        "equal. ± half a 95 % interval. Layer 0 is the embedding output. Decodable is not used.",
        "",
        "## Beside the headline, at the best layer",
        "",
        *(f"- {_details(result)}" for result in results),
        "",
        *_beside(results),
        *transferability.markdown(layer_tables(results)),
        f"Corpus fingerprint `{first.corpus.fingerprint[:16]}`, model `{first.model.digest[:16]}`, "
        f"pooling {first.pooling}; "
        + "; ".join(
            f"{r.task.name} v{r.task.version}: {r.examples.n['train']} / {r.examples.n['dev']} / "
            f"{r.examples.n['test']} examples"
            for r in {r.task.name: r for r in results}.values()
        )
        + ".",
        "",
    ]
    return "\n".join(lines)


def _marked(entry: Entry) -> str:
    text = f"**{entry.text}**" if entry.best else entry.text + "*" * entry.tied
    return f"{text} ± {entry.half}" if entry.half else text


def _details(result: Result) -> str:
    """Other metrics, and the score within each breakdown, of the best layer."""
    best = result.best_layer
    cell = best.cells[0]
    parts = [f"{name} {shown(value, name)}" for name, value in cell.test.items()]
    spread = result.seed_spread(best)
    if spread is not None:
        metric = result.task.metric
        parts.append(f"over {len(best.cells)} seeds, standard deviation {shown(spread, metric)}")
    parts += ["one seed"] * (len(best.cells) == 1) + ["quick run"] * result.quick
    parts.append(f"{result.probe_parameters:,} parameters")
    groups = [
        f"{name} (n = {result.examples.groups[name]:,}) {shown(value, result.group_metric)}"
        for name, value in cell.groups.items()
    ]
    metric = METRIC_NAMES.get(result.group_metric, result.group_metric)
    metric += ", lower is better," * lower_is_better(result.group_metric)
    parts += [f"{metric} by group: " + ", ".join(groups)] * bool(groups)
    return f"{task_head(result)}, {result.probe.family}, layer {best.layer}: " + "; ".join(parts)


def _beside(results: Sequence[Result]) -> Iterator[str]:
    """Selectivity, compression and localisation of every probe family."""
    for family in dict.fromkeys(result.probe.family for result in results):
        for measure in measures([r for r in results if r.probe.family == family]):
            yield f"## {family} probe, {measure.title}"
            yield ""
            yield from _grid(measure.heads, measure.rows)
            yield from ("", measure.note, "")


def _grid(heads: Sequence[str], rows: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The lines of a table whose first column names the rows."""
    yield "| " + " | ".join(("layer", *(head.replace("|", "\\|") for head in heads))) + " |"
    yield "| --- |" + " ---: |" * len(heads)
    for name, texts in rows.items():
        yield "| " + " | ".join((name, *texts)) + " |"
