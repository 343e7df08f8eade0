"""Writes the HTML page: collects its parts and fills the templates."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from probes import __version__
from probes.boards.overview import NOTE
from probes.boards.shown_together import CorpusGroup, Group, corpus_groups, group, model_labels
from probes.common.errors import printable_lines
from probes.common.files import published
from probes.common.terminal import progress
from probes.measurements.plugin_keys import plugin_failure
from probes.pages import sections
from probes.pages.page_charts import ChartSpec, packed, page_models, script
from probes.records.record import Record
from probes.records.result import Result
from probes.tables.table import Table

MOST_DRAWN = 8
"""Number of models that are drawn in the charts at first; more are hard to read."""


def write_page(
    found: Mapping[Path, Result],
    path: Path,
    name: str,
    others: Mapping[Path, Record] = MappingProxyType({}),
    home: str = "",
) -> Path:
    """Write the page of results and of records of other measurements; see `page`."""
    with published(path) as temporary:
        temporary.write_text(page(found, name, others, home), encoding="utf-8")
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
    found: Mapping[Path, Result],
    name: str,
    others: Mapping[Path, Record] = MappingProxyType({}),
    home: str = "",
) -> str:
    """The page as HTML.

    Args:
        found: results by their paths.
        name: its title.
        others: records of measurements of a corpus; see `probes.boards.shown_together.of_corpora`.
        home: the address of a page that it belongs to; empty for none.
    """
    every = {**found, **others}
    models = page_models(every)
    scored, left_out = group(found, others)
    corpora, also_left_out = corpus_groups(others, model_labels(every))
    groups = {f"g{i}": each for i, each in enumerate(scored)}
    environment = templates()
    specs: list[ChartSpec] = []

    def keep(spec: ChartSpec) -> int:
        specs.append(spec)
        return len(specs) - 1

    show = partial(macro(environment, "section"), models=models, keep=keep)
    several = sum(not model.random for model in models.values()) > 1
    own = {
        "Overview": sections.overview(groups, models),
        "Leaderboard": sections.leaderboard_section(groups if several else {}),
        "Evidence": sections.evidence(groups, list(models)),
        "Breakdowns": sections.breakdowns(groups),
    }
    last = {
        "Claims": sections.claims(groups, found, others),
        "Sources": sections.sources(models, list(every.values())),
    }
    tabs = [(title.lower(), title, show(part)) for title, part in own.items() if part.sections]
    tabs += _measurement_parts(corpora, groups, list(models), show)
    tabs += [(title.lower(), title, show(part)) for title, part in last.items()]
    return environment.get_template("page.html").render(
        name=name,
        home=home,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        version=__version__,
        models=models,
        most_drawn=MOST_DRAWN,
        several=several,
        groups={id: each.title for id, each in groups.items()},
        tasks=list(dict.fromkeys(unit.name for each in scored for unit in each.units)),
        tabs=tabs,
        overview_note=NOTE,
        left_out=left_out + also_left_out,
        data=packed(
            {
                "models": [{"label": x, "random": each.random} for x, each in models.items()],
                "charts": specs,
            }
        ),
        script=script(),
    )


def _measurement_parts(
    corpora: Sequence[CorpusGroup],
    scored: Mapping[str, Group],
    models: Sequence[str],
    show: Callable[[sections.PageSection], Markup],
) -> Iterator[tuple[str, str, Markup]]:
    """A part for each measurement; that of a plug-in that fails is left out with a message."""
    for name, given in groupby(corpora, key=lambda group: group.measurement.name):
        try:
            part = show(sections.of_measurement(list(given), scored, models))
        except Exception as error:
            if not (why := plugin_failure(error, name, None, "")):
                raise
            progress.say(f"left out of the page: {name}: {why}")
        else:
            yield f"of-{name}", name.replace("_", " ").capitalize(), part
