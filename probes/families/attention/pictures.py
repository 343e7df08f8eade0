"""Charts of heads: grids with tooltips, mean maps and relations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from probes.families.attention.heads import (
    CLASS,
    CLASSES,
    TOKENS,
    Choice,
    choices,
    head_frame,
    numbers,
)
from probes.measurements.chart_views import Cells, Maps
from probes.measurements.row_filters import chosen
from probes.records.row import Place, Row
from probes.statistics.metrics import shown

if TYPE_CHECKING:
    from probes.measurements.long_frame import Findings
    from probes.tables.charts import Chart, Look

DESCRIBED: dict[str, tuple[str, Place]] = {
    "entropy": ("entropy", None),
    "to the first token": ("first", None),
    "to separators": ("separators", None),
    "to punctuation": ("feature", "punctuation"),
    "to the previous token": ("offset", -1),
    "to itself": ("offset", 0),
    "to the next token": ("offset", 1),
}
"""Lines of every head's tooltip."""

MOST_RELATIONS = 20
"""Number of relations in the chart, the most frequent ones."""

MOST_DESCRIBED = 5
"""Number of relations in a tooltip, those in which a head exceeds the offset most."""

PATTERNS = Maps(
    "patterns",
    array="mean_maps",
    metric=CLASS,
    kind="feature",
    title="Attention patterns",
    note=f"Mean maps of texts of {TOKENS} tokens; rows attend to columns. Signs: class by rule.",
    absent=f"no text has {TOKENS} tokens",
    kinds=CLASSES,
)


def heads_grid(name: str, title: str, metric: str, feature: Place, note: str) -> Cells:
    """A grid of layers and heads whose tooltips describe each head."""
    return Cells(
        name,
        metric,
        across="head",
        title=title,
        note=f"{note}, averaged over test texts.",
        low=0.0,
        high=1.0,
        where={"head": ..., "feature": feature, "baseline": None, "chosen": None},
        more=about_heads,
    )


@lru_cache(maxsize=8)
def about_heads(found: Findings, model: str) -> dict[tuple[int, int], dict[str, str]]:
    """Tooltips by layer and head."""
    rows = found.records[model].rows
    best_for: dict[str, list[str]] = {}
    for choice in choices(rows):
        best_for.setdefault(choice.name, []).append(choice.feature or choice.test.metric.upper())
    of_heads: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for line in numbers(rows):
        if line["head"] is not None and line["split"] == "test":
            of_heads.setdefault((line["layer"], line["head"]), []).append(line)
    return {
        (layer, head): _about(layer, head, lines, best_for.get(f"{layer}–{head}", []))
        for (layer, head), lines in of_heads.items()
    }


def _about(
    layer: int, head: int, lines: Sequence[Mapping[str, Any]], best_for: Sequence[str]
) -> dict[str, str]:
    """The tooltip of a head."""
    by_measure = {(x["metric"], x["feature"]): x for x in lines}
    (name,) = (feature for metric, feature in by_measure if metric == CLASS)
    texts = {"head": f"layer {layer}, head {head}: {name}"}
    texts |= {label: _beside(by_measure[of]) for label, of in DESCRIBED.items() if of in by_measure}
    known = [x for x in lines if x["metric"] == "relation" and x["value"] is not None]
    for x in sorted(known, key=lambda x: x["baseline"] - x["value"])[:MOST_DESCRIBED]:
        texts[f"{x['feature']}, {x['direction']}"] = _beside(x)
    if best_for:
        texts["best on dev for"] = ", ".join(best_for)
    return texts


def _beside(line: Mapping[str, Any]) -> str:
    """The number of a head with its baseline."""
    value, baseline = (shown(line[name], "entropy") for name in ("value", "baseline"))
    return f"{value} ({line['baseline_kind']}: {baseline})"


class RelationsGrid:
    """The best head of each layer on dev, scored on test, for every relation."""

    name = "relations"
    title = "Relations"
    note = (
        "How often the word attended to most is the right one: test scores of each layer's best "
        "head on dev. Offset: the best fixed distance on train."
    )

    def missing(self, found: Findings) -> dict[str, str]:
        """Models without relations."""
        without = (m for m, x in found.records.items() if not _relations(x.rows))
        return {**found.lacking, **dict.fromkeys(without, "it has no relations")}

    def draw(self, found: Findings, look: Look) -> Chart:
        """A panel for each model, whose first column is the best offset."""
        import pandas as pd

        from probes.tables import charts

        cells: list[tuple[Any, ...]] = []
        for model, record in found.records.items():
            relations = _relations(record.rows)
            best = _best_by_layer(record.rows) if relations else {}
            for choice in relations:
                cells.append((model, choice.feature, "offset", choice.baseline.value))
                cells += [(model, choice.feature, *x) for x in best[choice.feature].items()]
        frame = pd.DataFrame(cells, columns=["model", "row", "column", "value"])
        text = frame["value"].map("{:.2f}".format).str.replace("0.", ".", 1)
        return charts.heat_map(
            frame.assign(panel=frame["model"], text=text),
            look,
            down="relation",
            across="layer",
            bar="attended to most: how often right",
            title=self.title,
            low=0.0,
            high=1.0,
        )


def _relations(rows: Iterable[Row]) -> list[Choice]:
    """The most frequent relations, in ascending order."""
    found = [choice for choice in choices(rows) if choice.test.metric == "relation"]
    return sorted(found, key=lambda x: -(x.test.n or 0))[:MOST_RELATIONS][::-1]


def _best_by_layer(rows: Iterable[Row]) -> dict[str, dict[int, float]]:
    """Test scores of the head and direction that are best on dev, by relation and layer."""
    every = chosen(head_frame(rows), ["relation"], {"split": ["dev", "test"]})
    cells = every.pivot(
        index=["feature", "layer", "direction", "head"], columns="split", values="value"
    ).astype(float)
    best = cells.loc[cells.groupby(["feature", "layer"])["dev"].idxmax(), "test"]
    found: dict[str, dict[int, float]] = {}
    for (relation, layer, *_), value in best.items():
        found.setdefault(relation, {})[layer] = value
    return found


OF_TOKENS = "Mean over tokens"

VIEWS = (
    heads_grid(
        "heads", "Entropy of attention", "entropy", None, "As a share of the greatest possible"
    ),
    heads_grid("first_token", "Attention to the first token", "first", None, OF_TOKENS),
    heads_grid("separators", "Attention to separators", "separators", None, OF_TOKENS),
    heads_grid("previous_token", "Attention to the previous token", "offset", -1, OF_TOKENS),
    heads_grid("next_token", "Attention to the next token", "offset", 1, OF_TOKENS),
    PATTERNS,
    RelationsGrid(),
)
"""The charts of `attention`, in order."""
