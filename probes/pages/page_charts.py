"""Charts of the page as Vega-Lite specifications, and the script that draws them."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from probes.boards.score_charts import Plot, view_plot
from probes.boards.shown_together import model_key, model_labels, model_order
from probes.common.errors import UserError
from probes.common.files import published
from probes.extraction.models.model_names import pretrained_name
from probes.frames.long_frame import RecordsByModel
from probes.measurements.chart_views import caption
from probes.measurements.pivots import ChartView
from probes.records.record import Record
from probes.tables.charts import PAGE, Style
from probes.tables.colours import model_colours
from probes.tables.figures import printable_spec

ChartSpec = dict[str, Any]
"""A chart as Vega-Lite reads it."""

HALF = replace(PAGE, width=400)
"""Look of charts of which several stand beside each other."""


@dataclass(frozen=True)
class PageChart:
    """A chart with its caption.

    Attributes:
        unit: which of several charts of this title it is; empty for none.
        spec: None if no model has a part in it.
        missing: why models have none.
        task: by which the page is filtered; empty for none.
        wide: whether it takes the whole width.
    """

    title: str
    note: str
    spec: ChartSpec | None
    missing: Mapping[str, str] = field(default_factory=dict)
    unit: str = ""
    task: str = ""
    wide: bool = False


ALONE = "single numbers, which the tables have"


def view_chart(view: ChartView, findings: RecordsByModel, style: Style, **more: Any) -> PageChart:
    """The chart of a view, None of single dots; `more` are further attributes of `PageChart`."""
    plot = view_plot(view, findings, style)
    datasets = plot.chart.to_dict().get("datasets", {}) if plot.chart else {}
    points = [x for rows in datasets.values() for x in rows if x.get("value") is not None]
    if points and all(point.get("alone") for point in points):
        models = dict.fromkeys(point["model"] for point in points)
        plot = Plot(None, {**plot.missing, **dict.fromkeys(models, ALONE)})
    return page_chart(plot, style, *caption(view, findings), **more)


def page_chart(plot: Plot, style: Style, title: str, note: str = "", **more: Any) -> PageChart:
    """A chart that has been drawn, with a caption."""
    spec = plot.chart and {**plot.chart.to_dict(), "config": style.config}
    return PageChart(title, note, spec, plot.missing, **more)


def not_drawn(charts: Iterable[PageChart]) -> list[str]:
    """Sentences that say which charts lack which models, and why."""
    tasks: dict[tuple[str, str, str], list[str]] = {}
    for chart in charts:
        for reason in dict.fromkeys(chart.missing.values()):
            names = ", ".join(name for name, x in chart.missing.items() if x == reason)
            tasks.setdefault((chart.title, names, reason), []).append(chart.unit)
    return [
        f"No chart: {title} of {names}{' on ' + ', '.join(x) if any(x) else ''}: {reason}."
        for (title, names, reason), x in tasks.items()
    ]


def packed(data: Any) -> str:
    """Data as the page carries them: compressed JSON, in letters that mean nothing in HTML."""
    text = json.dumps(printable_spec(data), separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def script() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script.

    Bundling takes three seconds, so the script is kept in the user's cache.
    """
    import pooch
    import vl_convert

    path = Path(pooch.os_cache("probing-suite")) / f"vega-{version('vl-convert-python')}.js"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    text: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    text = text.replace("</script", "<\\/script")
    try:
        with published(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except UserError:  # A cache that cannot be written costs time alone.
        pass
    return text


class PageModel(NamedTuple):
    """A model as the page shows it.

    Attributes:
        record: any record of it.
        random: whether its weights were never trained; it has its model's colour, dotted.
    """

    record: Record
    colour: str
    random: bool

    @property
    def glyph(self) -> str:
        """A sign in its colour, which is open for random twins."""
        return "○" if self.random else "●"


def page_models(
    records: Mapping[Path, Record], site_models: Iterable[str] = ()
) -> dict[str, PageModel]:
    """Models by label, each followed by its random twins; see `page`."""
    labels = model_labels(records)
    firsts: dict[str, Record] = {}
    for record in records.values():
        firsts.setdefault(labels[model_key(record)], record)
    colours = model_colours([*firsts, *site_models])
    return {
        label: PageModel(firsts[label], colours[label], pretrained_name(label) != label)
        for label in sorted(firsts, key=model_order)
    }
