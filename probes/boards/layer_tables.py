"""Layer × task tables of one model on one corpus: frame, Markdown, terminal, heat map."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from probes.measurements.current import is_current
from probes.records.files import read_results
from probes.records.result import Result
from probes.statistics.formatting import shown
from probes.tasks.builtin import tasks


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

    See `stored_like`; of a task and probe that this run has got itself, its own.
    """
    known = list(tasks)
    table = stored_like(folder, results[0], results[0].model.digest)
    table |= {(r.task.name, r.probe.family): r for r in results}
    order = [*known, *sorted({name for name, _ in table} - set(known))]
    return sorted(table.values(), key=lambda r: (r.probe.family, order.index(r.task.name)))


def stored_like(folder: Path, like: Result, model: str) -> dict[tuple[str, str], Result]:
    """Results by task and probe that may stand in one table with `like`, but for the model.

    That is: of the same text, pooling and precision, and not made by an older version of task or
    probe. Of a plug-in that is not loaded and has results of several sources, none can be said to
    be the one.

    Args:
        model: the digest of theirs.
    """
    found: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for other in read_results(folder):
        alike = all(
            getattr(other, name) == getattr(like, name) for name in ("pooling", "dtype", "project")
        ) and (other.model.digest, other.corpus.digest) == (model, like.corpus.digest)
        if alike and is_current(other):
            found[other.task.name, other.probe.family].append(other)
    return {
        unit: others[0]
        for unit, others in found.items()
        if all(other.plug_ins == others[0].plug_ins for other in others)
    }


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
                        and {x.layer for x in twin.layers} >= {x.layer for x in result.layers}
                    },
                }
            }
        )
        for result in results
    ]


def _twin_name(twin: Result) -> str:
    return f"random twin {twin.model.random_seed or ''}".strip()


class Entry(NamedTuple):
    """One score as tables show it.

    Attributes:
        text: the score.
        half: half the length of its 95 % interval, as text; empty if it has none.
        best: whether its layer is the best on dev.
        tied: whether the data cannot separate its layer from the best.
        place: 0 for the worst layer's test score of the task, 1 for the best, of one model or of
            several that are shown together; -1 for none.
    """

    text: str
    half: str = ""
    best: bool = False
    tied: bool = False
    place: float = -1.0


def layer_entries(
    results: Sequence[Result], among: Sequence[Sequence[Result]] = ()
) -> dict[int, list[Entry]]:
    """For each layer one entry per result.

    Args:
        among: for each result those, itself among them, whose layers its places are among.
    """
    layers = sorted({layer.layer for result in results for layer in result.layers})
    rows: dict[int, list[Entry]] = {}
    for number in layers:
        rows[number] = []
        for result, others in zip(results, among or [[r] for r in results], strict=True):
            scores = [other.score(layer) for other in others for layer in other.layers]
            known = [score for score in scores if score is not None]
            value = {layer.layer: result.score(layer) for layer in result.layers}.get(number)
            low, high = (min(known), max(known)) if known else (0.0, 1.0)
            place = 0.0 if value is None or high == low else (value - low) / (high - low)
            best = number == result.best_number
            tied = not best and result.best_number is not None and number in result.confidence_set
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
