"""Writes the HTML page: collects its parts and fills the templates."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from probes import __version__
from probes.boards.overview import NOTE
from probes.boards.shown_together import CorpusGroup, Group, all_groups, corpus_groups, model_labels
from probes.common.errors import printable_lines
from probes.common.files import published
from probes.common.terminal import progress
from probes.measurements.plugin_keys import plugin_failure
from probes.pages import sections
from probes.pages.page_charts import HALF, ChartSpec, packed, page_models, script
from probes.records.record import Record
from probes.records.result import Result
from probes.tables.charts import PAGE, Style
from probes.tables.table import Table

MOST_DRAWN = 8
"""Number of models that are drawn in the charts at first; more are hard to read."""


def write_page(
    results: Mapping[Path, Result], path: Path, name: str, *more: Any, **options: Any
) -> Path:
    """Write the page of results and of records of other measurements; see `page`."""
    return write_text(path, page(results, name, *more, **options))


def write_text(path: Path, text: str) -> Path:
    """Write a file of a page; returns its path."""
    with published(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def templates() -> Environment:
    """The templates of pages, in which everything is escaped."""
    return Environment(
        loader=PackageLoader("probes.pages"),
        autoescape=True,
        finalize=lambda x: printable_lines(x) if type(x) is str else x,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def macro(environment: Environment, name: str) -> Any:
    """A macro of the templates as a function."""
    return getattr(environment.get_template("macros.html").module, name)


def table_html(table: Table) -> str:
    """A table by itself, with its notes and a legend of its marks."""
    return str(macro(templates(), "table")(table))


def page(
    results: Mapping[Path, Result],
    name: str,
    corpus_records: Mapping[Path, Record] = MappingProxyType({}),
    home: str = "",
    site_models: Sequence[str] = (),
) -> str:
    """The page as HTML.

    Args:
        results: by their paths.
        name: its title.
        corpus_records: see `probes.boards.shown_together.corpus_records_of`.
        home: the address of a page that it belongs to; empty for none.
        site_models: labels of all models of the site of this page, which have colours.
    """
    all_records = {**results, **corpus_records}
    models = page_models(all_records, site_models)
    half, wide = (replace(x, models=(*models, *site_models)) for x in (HALF, PAGE))
    scored, left_out = all_groups(results, corpus_records)
    corpora, also_left_out = corpus_groups(corpus_records, model_labels(all_records))
    groups = {f"g{i}": group for i, group in enumerate(scored)}
    environment = templates()
    specs: list[ChartSpec] = []

    # Templates call it for each chart, so `specs` is complete only when all tabs are rendered.
    def add_spec(spec: ChartSpec) -> int:
        specs.append(spec)
        return len(specs) - 1

    show = partial(macro(environment, "section"), models=models, keep=add_spec)
    several = sum(not model.random for model in models.values()) > 1
    opening = {
        "Overview": sections.overview(groups, models, half),
        "Evidence": sections.evidence(groups, half, wide),
        "Breakdowns": sections.breakdowns(groups),
    }
    closing = {
        "Claims": sections.claims(groups, results, corpus_records),
        "Sources": sections.sources(models, list(all_records.values())),
    }
    tabs = [(title.lower(), title, show(part)) for title, part in opening.items() if part.sections]
    tabs += _measurement_parts(corpora, groups, wide, show)
    tabs += [(title.lower(), title, show(part)) for title, part in closing.items()]
    return environment.get_template("page.html").render(
        name=name,
        home=home,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        version=__version__,
        models=models,
        most_drawn=MOST_DRAWN,
        several=several,
        groups={id: group.title for id, group in groups.items()},
        tasks=list(dict.fromkeys(unit.name for group in scored for unit in group.units)),
        tabs=tabs,
        overview_note=NOTE,
        left_out=left_out + also_left_out,
        data=packed(
            {
                "models": [{"label": x, "random": model.random} for x, model in models.items()],
                "charts": specs,
            }
        ),
        script=script(),
    )


def _measurement_parts(
    corpora: Sequence[CorpusGroup],
    scored: Mapping[str, Group],
    style: Style,
    show: Callable[[sections.PageSection], Markup],
) -> Iterator[tuple[str, str, Markup]]:
    """A part for each measurement; that of a plug-in that fails is left out with a message."""
    for name, groups in groupby(corpora, key=lambda group: group.measurement.name):
        try:
            part = show(sections.measurement_section(list(groups), scored, style))
        except Exception as error:
            if not (reason := plugin_failure(error, name, None, "")):
                raise
            progress.say(f"left out of the page: {name}: {reason}")
        else:
            yield f"of-{name}", name.replace("_", " ").capitalize(), part
