"""Charts of heads: grids with tooltips, mean maps and relations."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from probes.common.grouping import grouped
from probes.families.attention.heads import CLASS, CLASSES, TOKENS, Choice, choices, numbers
from probes.measurements.chart_views import Cells, Maps
from probes.measurements.row_filters import rows_where
from probes.records.row import AxisValue, Rows
from probes.statistics.metrics import decimals, printed_score

if TYPE_CHECKING:
    from probes.measurements.pivots import ShownRecords
    from probes.tables.charts import Chart, Style

DESCRIBED: dict[tuple[str, AxisValue], str] = {
    ("entropy", None): "entropy",
    ("first", None): "to the first token",
    ("separators", None): "to separators",
    ("feature", "punctuation"): "to punctuation",
    ("offset", -1): "to the previous token",
    ("offset", 0): "to itself",
    ("offset", 1): "to the next token",
}
"""Lines of every head's tooltip, by metric and feature."""

MOST_RELATIONS = 20
"""Number of relations in the chart, the most frequent ones."""

MOST_DESCRIBED = 5
"""Number of relations in a tooltip, those in which a head exceeds the offset most."""


@lru_cache(maxsize=256)
def tooltips(shown_records: ShownRecords, model: str) -> dict[tuple[int, int], dict[str, str]]:
    """Tooltips by layer and head."""
    rows = shown_records.records[model].rows
    of_heads = [x for x in numbers(x for x in rows if x.split == "test") if x["head"] is not None]
    texts = {}
    for (layer, head), lines in grouped(of_heads, lambda x: (x["layer"], x["head"])).items():
        by_measure = {(x["metric"], x["feature"]): x for x in lines}
        (name,) = (feature for metric, feature in by_measure if metric == CLASS)
        tooltip = {"head": f"layer {layer}, head {head}: {name}"}
        tooltip |= {
            text: _value_and_baseline(by_measure[x])
            for x, text in DESCRIBED.items()
            if x in by_measure
        }
        relations = [x for x in lines if x["metric"] == "relation" and x["value"] is not None]
        for x in sorted(relations, key=lambda x: x["baseline"] - x["value"])[:MOST_DESCRIBED]:
            tooltip[f"{x['feature']}, {x['direction']}"] = _value_and_baseline(x)
        texts[layer, head] = tooltip
    for choice in choices(rows.along("chosen")):
        key: Any = choice.test.layer, choice.test.axes["head"]
        best_for = choice.feature or choice.test.metric.upper()
        if key in texts:
            before = texts[key].get("best on dev for")
            texts[key]["best on dev for"] = f"{before}, {best_for}" if before else best_for
    return texts


def _value_and_baseline(line: dict[str, Any]) -> str:
    """The number of a head with its baseline."""
    value, baseline = (printed_score(line[name], "entropy") for name in ("value", "baseline"))
    return f"{value} ({line['baseline_kind'].replace('-', '−')}: {baseline})"


class RelationsGrid:
    """Chart of the best head of each layer on dev, scored on test, for every relation."""

    name = "relations"
    title = "Relations"
    note = (
        "How often the word attended to most is the right one: test scores of each layer's best "
        "head on dev. Offset: the best fixed distance on train."
    )

    def missing(self, shown_records: ShownRecords) -> dict[str, str]:
        """Models without relations."""
        without = (m for m, x in shown_records.records.items() if not _relations(x.rows))
        return {**shown_records.missing, **dict.fromkeys(without, "it has no relations")}

    def chart(self, shown_records: ShownRecords, style: Style) -> Chart:
        """A panel for each model, whose first column is the best offset."""
        import pandas as pd

        from probes.tables import charts

        cells: list[tuple[Any, ...]] = []
        for model, record in shown_records.records.items():
            if not (relations := _relations(record.rows)):
                continue
            where = {"model": model, "baseline": None, "chosen": None, "split": ["dev", "test"]}
            heads = rows_where(shown_records.frame, ["relation"], where)
            axes = ["feature", "layer", "direction", "head"]
            scores = heads.pivot(index=axes, columns="split", values="value").astype(float)
            best = scores.loc[scores.groupby(["feature", "layer"])["dev"].idxmax(), "test"]
            for choice in relations:
                cells.append((model, choice.feature, "offset", choice.baseline.value))
                for (layer, *_), value in best[choice.feature].items():
                    cells.append((model, choice.feature, layer, value))
        frame = pd.DataFrame(cells, columns=["model", "row", "column", "value"])
        text = [decimals(value, 2) for value in frame["value"]]
        return charts.heat_map(
            frame.assign(panel=frame["model"], text=text),
            style,
            down="dependency relation",
            across="best fixed offset, then the best head of each layer",
            legend_title="how often the word attended to most is the right one",
            title=self.title,
            low=0.0,
            high=1.0,
        )


def _relations(rows: Rows) -> list[Choice]:
    """The most frequent relations, in ascending order."""
    chosen = choices(rows.along("chosen"))
    relations = [choice for choice in chosen if choice.test.metric == "relation"]
    return sorted(relations, key=lambda x: -(x.test.n or 0))[:MOST_RELATIONS][::-1]


GRIDS = (
    ("heads", "Entropy of attention", "entropy", None),
    ("first_token", "Attention to the first token", "first", None),
    ("separators", "Attention to separators", "separators", None),
    ("previous_token", "Attention to the previous token", "offset", -1),
    ("next_token", "Attention to the next token", "offset", 1),
)
"""Grids of layers and heads: name, title, metric and feature."""

CHARTS = (
    *(
        Cells(
            name,
            metric,
            across="head",
            title=title,
            note="As a share of the greatest possible, averaged over test texts."
            if metric == "entropy"
            else "Mean over tokens, averaged over test texts.",
            number="entropy, as a share" if metric == "entropy" else "share of attention",
            low=0.0,
            high=1.0,
            where={"head": ..., "feature": feature, "baseline": None, "chosen": None},
            more=tooltips,
        )
        for name, title, metric, feature in GRIDS
    ),
    Maps(
        "patterns",
        array="mean_maps",
        metric=CLASS,
        kind="feature",
        title="Attention patterns",
        note=f"Mean maps of texts of {TOKENS} tokens; rows attend to columns. "
        "Signs: class by rule.",
        absent=f"no text has {TOKENS} tokens",
        kinds=CLASSES,
    ),
    RelationsGrid(),
)
"""The charts of `attention`, in order."""
