"""Tables in the terminal: layers × tasks of a model, and models against each other."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib
from rich.console import Console
from rich.table import Table
from rich.text import Text

from probes.comparison import Comparison, Standing
from probes.results import Result
from probes.tables import METRIC_NAMES, Entry, metric_name, shown, shown_p, table_rows


def print_tables(results: Sequence[Result], console: Console) -> None:
    """Print one coloured table per probe family; the best layer of each task is marked."""
    for family in dict.fromkeys(result.probe.family for result in results):
        chosen = [result for result in results if result.probe.family == family]
        first = chosen[0]
        table = Table(
            title=Text(f"{first.model.name} · {first.corpus.name} · {family} probe · test"),
            caption="★ best layer on dev · ☆ not separable from it (.05) · ± half a 95 % interval",
        )
        table.add_column("layer", justify="right", no_wrap=True)
        for result in chosen:
            head = Text(f"{result.task.name}\n{metric_name(result)}")
            table.add_column(head, justify="right")
        for name, entries in table_rows(chosen).items():
            table.add_row(
                name,
                *(_text(entry) for entry in entries),
                end_section=name == str(chosen[0].layers[-1].layer),
            )
        console.print(table)


def _text(entry: Entry) -> Text:
    half = f"±{entry.half.removeprefix('0')}" if entry.half else ""
    mark = "★" if entry.best else "☆" if entry.tied else " "
    if entry.place < 0:
        return Text(entry.text + half + mark, style="dim")
    red, green, blue, _ = matplotlib.colormaps["viridis"](0.15 + 0.85 * entry.place)
    colour = f"rgb({int(255 * red)},{int(255 * green)},{int(255 * blue)})"
    return Text(entry.text + half + mark, style=f"bold {colour}" if entry.best else colour)


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
            metric = METRIC_NAMES.get(comparison.metric, comparison.metric)
            task = f"{comparison.task} ({metric})"
            last = len(comparison.standings) - 1
            for place, standing in enumerate(comparison.standings):
                table.add_row(
                    Text("" if place else task),
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
