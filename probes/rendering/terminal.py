"""Tables in the terminal: layers × tasks of a model, and models against each other."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from probes.boards.comparison import Comparison, Standing
from probes.boards.layer_tables import Entry, table_rows
from probes.records.result import Result
from probes.records.titles import limit_mark, metric_name
from probes.rendering.palette import shade
from probes.statistics.formatting import shown, shown_p


def print_tables(results: Sequence[Result], console: Console) -> None:
    """Print each probe family as coloured tables; the best layer of each task is marked.

    A family is one table, or as many as it takes for every column to have its room.
    """
    for family in dict.fromkeys(result.probe.family for result in results):
        rest = [result for result in results if result.probe.family == family]
        while rest:
            n = len(rest)
            while n > 1 and _width(_table(rest[:n])) > console.width:
                n -= 1
            console.print(_table(rest[:n]))
            rest = rest[n:]


def _width(table: Table) -> int:
    """Of a table whose columns have fixed widths, with padding and rules."""
    return sum((column.width or 0) + 3 for column in table.columns) - 1


def _table(results: Sequence[Result]) -> Table:
    """Scores by layer; heads may be broken between words, scores may not."""
    first = results[0]
    family = first.probe.family
    table = Table(
        title=Text(
            f"{first.model.name} · {first.corpus.name}{limit_mark(first)} · {family} probe · test"
        ),
        caption="★ best layer on dev · ☆ not separable from it (.05) · ± half a 95 % interval",
        pad_edge=False,  # so that five tasks have room in 80 columns
    )
    heads = ["layer", *(f"{result.task.name}\n{metric_name(result)}" for result in results)]
    rows = {
        name: [Text(name), *map(_text, entries)] for name, entries in table_rows(results).items()
    }
    for head, cells in zip(heads, zip(*rows.values(), strict=True), strict=True):
        longest = max(map(cell_len, (*head.split(), *(text.plain for text in cells))))
        table.add_column(Text(head), justify="right", width=longest)
    for name, texts in rows.items():
        table.add_row(*texts, end_section=name == str(first.layers[-1].layer))
    return table


def _text(entry: Entry) -> Text:
    half = f"±{entry.half.removeprefix('0')}" if entry.half else ""
    mark = "★" if entry.best else "☆" if entry.tied else " "
    if entry.place < 0:
        return Text(entry.text + half + mark, style="dim")
    red, green, blue = shade(0.15 + 0.85 * entry.place)
    style = f"rgb({red},{green},{blue})"
    return Text(entry.text + half + mark, style=f"bold {style}" if entry.best else style)


def print_comparisons(comparisons: Sequence[Comparison], console: Console) -> None:
    """Print one table per probe family: every model's best layer, and how it differs."""
    for family in dict.fromkeys(comparison.probe for comparison in comparisons):
        table = Table(
            title=Text(f"models at their best layers · {family} probe · test"),
            caption="layers and first model chosen on dev · 95 % interval, p Holm-corrected: "
            "test sentences resampled",
        )
        for name in ("task", "model"):
            table.add_column(name)
        for name in ("layer", "score", "less the first", "p"):
            table.add_column(name, justify="right", no_wrap=True)
        for comparison in comparisons:
            if comparison.probe != family:
                continue
            last = len(comparison.standings) - 1
            for place, standing in enumerate(comparison.standings):
                table.add_row(
                    Text("" if place else comparison.head),
                    *_standing(standing, comparison.metric),
                    end_section=place == last and not comparison.apart,
                )
            for model, why in comparison.apart.items():
                table.add_row("", Text(model), "", Text(f"apart: {why}"), "", "")
        console.print(table)


def _standing(standing: Standing, metric: str) -> list[Text]:
    difference = ""
    if standing.difference is not None:
        difference = shown(standing.difference, metric)
    if standing.interval is not None:
        low, high = (shown(bound, metric) for bound in standing.interval)
        difference += f" [{low}, {high}]"
    texts = (
        standing.model,
        str(standing.layer),
        shown(standing.score, metric),
        difference,
        "" if standing.p is None else shown_p(standing.p),
    )
    return [Text(text, style="" if standing.separated else "bold") for text in texts]
