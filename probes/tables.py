"""Layer × task tables of one model on one corpus: frame, Markdown, terminal, heat map."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from common.files import published
from probes import transferability
from probes.metrics import PERCENT
from probes.plan import is_current
from probes.results import Result, read_results
from tasks.builtin import tasks

METRIC_NAMES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced acc.",
    "span_f1": "span F1",
    "nspr": "NSpr",
    "macro_f1": "macro F1",
    "corpus_spearman": "Spearman",
}


def layer_table(results: Sequence[Result], probe: str) -> pd.DataFrame:
    """Headline test scores of one probe family: a row per layer, a column per task."""
    columns = {
        result.task.name: pd.Series(
            {layer.layer: result.score(layer) for layer in result.layers}, dtype=float
        )
        for result in results
        if result.probe.family == probe
    }
    return pd.DataFrame(columns).sort_index().rename_axis("layer")


def layer_tables(results: Sequence[Result]) -> dict[str, pd.DataFrame]:
    """`layer_table` by probe family."""
    families = dict.fromkeys(result.probe.family for result in results)
    return {family: layer_table(results, family) for family in families}


def comparable(folder: Path, results: Sequence[Result]) -> list[Result]:
    """Results of this run, and those in `folder` that may stand in one table with them.

    That is: of the same weights, text, pooling and precision, of a task and probe that this run
    has not got itself, and not made by an older version of either.
    """
    table = {(r.task.name, r.probe.family): r for r in results}
    first = results[0]
    for other in read_results(folder):
        alike = all(
            getattr(other, name) == getattr(first, name) for name in ("pooling", "dtype", "project")
        ) and (other.model.digest, other.corpus.digest) == (
            first.model.digest,
            first.corpus.digest,
        )
        if alike and is_current(other):
            table.setdefault((other.task.name, other.probe.family), other)
    known = list(tasks)
    order = [*known, *sorted({name for name, _ in table} - set(known))]
    return sorted(table.values(), key=lambda r: (r.probe.family, order.index(r.task.name)))


def with_twins(results: Sequence[Result], twins: Sequence[Result]) -> list[Result]:
    """The results with a baseline for each random twin: its score at its best layer on dev."""
    return [
        result.model_copy(
            update={
                "baselines": {
                    **result.baselines,
                    **{
                        _twin_name(twin): twin.best_layer.cells[0].test
                        for twin in twins
                        if (twin.task.name, twin.probe) == (result.task.name, result.probe)
                    },
                }
            }
        )
        for result in results
    ]


def _twin_name(twin: Result) -> str:
    return f"random twin {twin.model.random_seed or ''}".strip()


def shown(value: float | None, metric: str) -> str:
    """A score as tables print it: 94.7 for shares, .766 for correlations."""
    if value is None or np.isnan(value):
        return "–"
    return f"{100 * value:.1f}" if metric in PERCENT else f"{value:.3f}".replace("0.", ".", 1)


def shown_p(p: float) -> str:
    """A p-value as tables print it."""
    return "<.001" if p < 0.001 else f"{p:.3f}".replace("0.", ".", 1)


def write_tables(folder: Path, results: Sequence[Result]) -> list[Path]:
    """Write `layers.csv`, `layers.md`, `layers.png` and `transfer.csv` into `folder`."""
    names = ("layers.csv", "layers.md", "layers.png", "transfer.csv")
    paths = [folder / name for name in names]
    wide = pd.concat(
        [table.add_suffix(f" ({family})") for family, table in layer_tables(results).items()],
        axis=1,
    )
    with published(paths[0]) as temporary:
        wide.to_csv(temporary, float_format="%.6f", lineterminator="\n")
    with published(paths[3]) as temporary:
        found = transferability.csv_table(layer_tables(results))
        found.to_csv(temporary, float_format="%.6f", lineterminator="\n")
    text = markdown(results)
    if paths[1].is_file() and paths[2].is_file() and paths[1].read_text("utf-8") == text:
        return paths
    # The picture shows what the text says and takes a second; it is drawn first, so that the
    # text is never newer than the picture.
    from probes.heatmap import draw_heat_map

    with published(paths[2]) as temporary:
        draw_heat_map(temporary, results)
    with published(paths[1]) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return paths


def markdown(results: Sequence[Result]) -> str:
    """The tables as Markdown, with what they were computed on."""
    first = results[0]
    lines = [f"# {first.model.name} on {first.corpus.name} {first.corpus.version}", ""]
    for family in dict.fromkeys(result.probe.family for result in results):
        chosen = [result for result in results if result.probe.family == family]
        lines += [f"## {family} probe, test", ""]
        rows = table_rows(chosen)
        names = [r.task.name.replace("|", "\\|") for r in chosen]
        heads = [f"{n} ({metric_name(r)})" for n, r in zip(names, chosen, strict=True)]
        header = ["layer", *heads]
        lines.append("| " + " | ".join(header) + " |")
        lines.append("| --- |" + " ---: |" * len(chosen))
        for name, entries in rows.items():
            marked = [_marked(entry) for entry in entries]
            lines.append("| " + " | ".join([name, *marked]) + " |")
        lines.append("")
    lines += [
        "Bold: the best layer on dev. Starred: the test data cannot separate the layer from it "
        "(paired bootstrap over sentences, Holm-corrected, .05), which is not to say that they are "
        "equal. ± half a 95 % interval. Layer 0 is the embedding output. Decodable is not used.",
        "",
        "## Beside the headline, at the best layer",
        "",
        *(f"- {_details(result)}" for result in results),
        "",
        *transferability.markdown(layer_tables(results)),
        f"Corpus fingerprint `{first.corpus.fingerprint[:16]}`, model `{first.model.digest[:16]}`, "
        f"pooling {first.pooling}, {len(first.layers[0].cells)} seed(s); "
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
    parts += [
        f"{name} (n = {result.examples.groups[name]:,}): {shown(value, result.group_metric)}"
        for name, value in cell.groups.items()
    ]
    return f"{result.task.name}, {result.probe.family}, layer {best.layer}: " + "; ".join(parts)


class Entry(NamedTuple):
    """One score as tables show it.

    Attributes:
        text: the score.
        half: half the length of its 95 % interval, as text; empty if it has none.
        best: whether its layer is the best on dev.
        tied: whether the data cannot separate its layer from the best.
        place: 0 for the worst layer's test score of the task, 1 for the best; -1 for none.
    """

    text: str
    half: str = ""
    best: bool = False
    tied: bool = False
    place: float = -1.0


def layer_entries(results: Sequence[Result]) -> dict[int, list[Entry]]:
    """For each layer one entry per result."""
    layers = sorted({layer.layer for result in results for layer in result.layers})
    rows: dict[int, list[Entry]] = {}
    for number in layers:
        rows[number] = []
        for result in results:
            values = {layer.layer: result.score(layer) for layer in result.layers}
            known = [v for v in values.values() if v is not None]
            value = values.get(number)
            low, high = (min(known), max(known)) if known else (0.0, 1.0)
            place = 0.0 if value is None or high == low else (value - low) / (high - low)
            best = number == result.best_layer.layer
            tied = number in result.confidence_set and not best
            half = _half(result, number)
            rows[number].append(Entry(shown(value, result.task.metric), half, best, tied, place))
    return rows


def _half(result: Result, number: int) -> str:
    """Half the length of the interval of a layer's headline score."""
    bounds = [x.intervals.get(result.task.metric) for x in result.layers if x.layer == number]
    if not bounds or bounds[0] is None:
        return ""
    low, high = bounds[0]
    return shown((high - low) / 2, result.task.metric)


def _other_entries(results: Sequence[Result]) -> dict[str, list[Entry]]:
    """What context adds, baselines and references: name of the row, and one entry per result."""
    named = [{**result.baselines, **result.references} for result in results]
    gains = [Entry(shown(result.gain_over_embeddings, result.task.metric)) for result in results]
    others = {
        name: [
            Entry(shown(scores.get(name, {}).get(r.task.metric), r.task.metric))
            for r, scores in zip(results, named, strict=True)
        ]
        for name in dict.fromkeys(name for scores in named for name in scores)
    }
    return {"best less layer 0": gains, **others}


def table_rows(results: Sequence[Result]) -> dict[str, list[Entry]]:
    """All rows of a table: layers, what context adds, baselines, references."""
    layers = {str(number): entries for number, entries in layer_entries(results).items()}
    return {**layers, **_other_entries(results)}


def metric_name(result: Result) -> str:
    """The headline metric as column heads give it, and what sets it apart."""
    name = METRIC_NAMES.get(result.task.metric, result.task.metric)
    marks = [mark for mark in (result.view,) if mark != "plain"] + ["silver"] * result.silver
    return ", ".join([name, *marks])
