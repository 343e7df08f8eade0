"""Ranks of models: a frame of all candidates, and the tables and rows made from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from probes.boards.paired import LayerScore, paired_differences, readable_score
from probes.boards.rankings import Candidate, Ranking
from probes.common.arrays import Floats
from probes.measurements.table_cells import few_note, metric_name, n_of, score_cell
from probes.records.result import Result
from probes.records.values import Interval, ends
from probes.statistics.metrics import label_of
from probes.statistics.significance import all_pairs, borderline, rank_ranges
from probes.tables.table import NOTHING, Cell, Table, TableRow

CSV_HEADS = ["corpus", "probe", "encoders", "task", "model", "revision", "rank", "first", "last",
             "layer", "layers", "parameters", "metric", "score", "low", "high", "n", "flags",
             "apart"]  # fmt: skip


class RankRange(NamedTuple):
    """The places that a model may have, from `first` to `last`.

    Attributes:
        borderline: whether other resamples may have led to others.
    """

    first: int
    last: int
    borderline: bool

    def __str__(self) -> str:
        """`3`, or `1–2` where it may be several."""
        text = f"{self.first}" if self.first == self.last else f"{self.first}–{self.last}"
        return f"{text} (borderline)" if self.borderline else text


def ranks_of(scores: Sequence[float] | Floats, p_values: Sequence[float | None]) -> list[RankRange]:
    """The places of scores, by tests of `all_pairs` of them; see `rank_ranges`."""
    pairs, tested = all_pairs(len(scores)), np.array(p_values, dtype=np.float64)
    unclear = {pairs[k][end] for k in np.flatnonzero(borderline(tested)) for end in (0, 1)}
    ranges = rank_ranges(np.array(scores), pairs, tested).tolist()
    return [RankRange(first, last, i in unclear) for i, (first, last) in enumerate(ranges)]


def ranking_frame(ranking: Ranking) -> pd.DataFrame:
    """A ranking as a frame: a line for each candidate, by task and score; those apart come last.

    Random twins, and scores that are not significantly above their floor, have no place. Beside
    `CSV_HEADS`, the columns are:

    - candidate: the `Candidate`;
    - place: its `RankRange` in the task; None without one;
    - above: how many that have a place come before it;
    - overall: the place among the models that have one in every task; mean: their mean rank;
    - lacks: the tasks in which the model has no place; None for random twins and those apart;
    - untested: whether some two of the task had to be compared by their intervals alone.
    """
    pretrained = {c.name for cs in ranking.tasks.values() for c in cs if not c.random}
    ranked = {(c.name, task) for task, cs in ranking.tasks.items() for c in cs if c.ranked}
    lacks = {
        name: ", ".join(task for task in ranking.tasks if (name, task) not in ranked)
        for name in pretrained
    }
    lines = []
    for candidates in ranking.tasks.values():
        ordered = sorted(candidates, key=lambda c: (not c.ranked, -(c.score or 0.0), c.name))
        scored = [(c, readable_score(c.result)) for c in ordered if c.ranked]
        ranges, untested = _rank_ranges(scored)
        complete = [(c, score) for c, score in scored if not lacks[c.name]]
        overall = ranges if len(complete) == len(scored) else _rank_ranges(complete)[0]
        for i, c in enumerate(ordered):
            line = _candidate_line(ranking, c, ranges.get(c.name)) | {"above": min(i, len(scored))}
            line |= {"overall": overall.get(c.name), "lacks": lacks.get(c.name)}
            lines.append(line | {"untested": untested})
    nowhere = dict.fromkeys(("above", "overall", "lacks", "untested"))
    lines += [
        _candidate_line(ranking, c, None) | nowhere | {"apart": note} for c, note in ranking.apart
    ]
    frame = pd.DataFrame(lines, dtype=object)
    frame = frame.where(frame.notna(), None)
    ranks = frame["overall"].map(lambda x: None if x is None else (x.first + x.last) / 2)
    return frame.assign(mean=ranks.astype(float).groupby(frame["model"]).transform("mean"))


def _candidate_line(
    ranking: Ranking, candidate: Candidate, rank: RankRange | None
) -> dict[str, Any]:
    result = candidate.result
    low, high = ends(candidate.interval)
    return {
        "corpus": ranking.corpus,
        "probe": ranking.probe,
        "encoders": ranking.kind,
        "task": result.task.name,
        "model": candidate.name,
        "revision": result.model.revision,
        "rank": rank and (rank.first + rank.last) / 2,
        "first": rank and rank.first,
        "last": rank and rank.last,
        "layer": result.best_number,
        "layers": result.model.n_layers,
        "parameters": result.model.parameters,
        "metric": result.task.metric,
        "score": candidate.score,
        "low": low,
        "high": high,
        "n": result.examples.n["test"],
        "flags": ", ".join(candidate.flags),
        "apart": "",
        "candidate": candidate,
        "place": rank,
    }


def _rank_ranges(
    scored: Sequence[tuple[Candidate, LayerScore]],
) -> tuple[dict[str, RankRange], bool]:
    """The places by name, and whether some two could not be tested.

    Two without a test count as different if their intervals do not overlap.
    """
    pairs = all_pairs(len(scored))
    tests = [difference.p for difference in paired_differences([x for _, x in scored], pairs)]
    p_values = [
        float(_overlap(scored[one][0].interval, scored[other][0].interval)) if p is None else p
        for p, (one, other) in zip(tests, pairs, strict=True)
    ]
    ranks = ranks_of([c.score or 0.0 for c, _ in scored], p_values)
    return {c.name: rank for (c, _), rank in zip(scored, ranks, strict=True)}, None in tests


def _overlap(one: Interval, other: Interval) -> bool:
    """Whether two intervals overlap; they may if one is not known."""
    return not (one and other) or (one[0] <= other[1] and other[0] <= one[1])


_RULE = (
    "Best layer chosen on dev, score on test ± half the width, or both ends, of a 95 % interval "
    "over test documents or sentences. Ranks: best and worst rank that the data allow (paired "
    "bootstrap with the variance of training, max-T over all pairs, .05). A score that is not "
    "significantly above its floor (▽) has no rank."
)

_UNCLEAR = "Borderline: a p behind it is so near .05 that other resamples might decide otherwise."

_UNTESTED = (
    "Where training variance or predictions are missing, or examples differ, two models count as "
    "significantly different if their intervals do not overlap; training variation is not included "
    "in these."
)

MEAN = (
    "Mean rank over the tasks, among the models with a rank in all of them; several places count "
    "as their middle. Differences of mean ranks are not tested."
)


def ranking_tables(ranking: Ranking, frame: pd.DataFrame) -> Iterator[Table]:
    """A table per task, the last with the notes; the overall ranks; and what is listed apart.

    Args:
        frame: as of `ranking_frame`.
    """
    together = frame[frame["apart"] == ""]
    tables = [_task_table(ranking, lines) for _, lines in together.groupby("task", sort=False)]
    yield from (*tables[:-1], replace(tables[-1], notes=rules(frame)))
    if len(tables) > 1:
        yield _overall_table(ranking, frame)
    if ranking.apart:
        yield table_apart(ranking)


def table_apart(ranking: Ranking) -> Table:
    """The candidates that cannot be compared with the others, and why."""
    rows = [
        TableRow.of(
            c.result.task.name, c.name, _layer_cell(c), _headline_cell(c), ", ".join(c.flags), note
        )
        for c, note in sorted(
            ranking.apart, key=lambda x: (x[0].result.task.name, x[0].name, _layer_cell(x[0]), x[1])
        )
    ]
    heads = ("task", "model", "layer", "score", "flags", "why it is not compared")
    return Table(f"{ranking.setting} · listed apart", heads, tuple(rows), left=6, repeated=2)


def rules(frame: pd.DataFrame) -> tuple[str, ...]:
    """Notes on scores and ranks, on borderline ranks, and on pairs that were not tested."""
    ranks = [rank for column in ("place", "overall") for rank in frame[column] if rank]
    unclear, untested = any(rank.borderline for rank in ranks), any(frame["untested"])
    few = few_note([x.result for x in frame["candidate"]])
    return (_RULE, *[_UNCLEAR] * unclear, *[_UNTESTED] * untested, *few)


def table_of_all(ranking: Ranking, frame: pd.DataFrame) -> Table:
    """A row for each model: size, mean rank, and for each task the score with possible places.

    Models that have all tasks come first, by mean rank, then by scores; random twins come last.
    """
    several = len(ranking.tasks) > 1 and frame.loc[frame["mean"].notna(), "model"].nunique() > 1
    n_ranked = {task: sum(c.ranked for c in cs) for task, cs in ranking.tasks.items()}
    together = frame[frame["apart"] == ""].groupby("model", sort=False)
    by_model: dict[str, dict[str, Any]] = {
        str(model): {str(line.task): line for line in lines.itertuples()}
        for model, lines in together
    }

    def sort_key(model: str) -> tuple[Any, ...]:
        # All lines of a model have its mean rank; without one it comes after those that have one.
        task_lines = list(by_model[model].values())
        mean = np.nan_to_num(task_lines[0].mean, nan=np.inf)
        return task_lines[0].candidate.random, mean, sum(line.above for line in task_lines), model

    rows = []
    for model in sorted(by_model, key=sort_key):
        task_lines = by_model[model]
        last = list(task_lines.values())[-1]
        mean = Cell(NOTHING) if np.isnan(last.mean) else Cell(f"{last.mean:.2f}", value=last.mean)
        row = TableRow.of(
            model,
            *size_cells(last.candidate.result),
            *[mean] * several,
            *(
                _score_in_place(task_lines[x], n_ranked[x]) if x in task_lines else Cell(NOTHING)
                for x in ranking.tasks
            ),
            model=model,
            faint=last.candidate.random,
        )
        rows.append(row)
    heads = ["model", "parameters\nclaimed", "layers\nclaimed", *["mean rank"] * several]
    for task, candidates in ranking.tasks.items():
        n = n_of(c.result for c in candidates)
        heads.append(f"{task}\n{metric_name(candidates[0].result)}\nn = {n}")
    return Table(ranking.setting, tuple(heads), tuple(rows), notes=(MEAN,) * several)


def _score_in_place(line: Any, n_ranked: int) -> Cell:
    """The score of a line of `ranking_frame`, with its place and layer as a note."""
    candidate = line.candidate
    notes = [f"rank {line.place}"] if line.place and n_ranked > 1 else []
    notes += ["not significantly above the floor"] * candidate.floored
    note = ", ".join([*notes, f"layer {_layer_cell(candidate)}"])
    return replace(_headline_cell(candidate), note=note, value=candidate.score)


def _task_table(ranking: Ranking, lines: pd.DataFrame) -> Table:
    candidates = ranking.tasks[lines["task"].iloc[0]]
    task = candidates[0].result.task
    about = f"{label_of(task.metric)}, n = {n_of(c.result for c in candidates)}"
    rows = [
        TableRow.of(
            str(rank or NOTHING),
            c.name,
            _layer_cell(c),
            _headline_cell(c),
            size(c.result.model.parameters),
            ", ".join(c.flags),
            faint=rank is None,
        )
        for rank, c in zip(lines["place"], lines["candidate"], strict=True)
    ]
    return Table(
        f"{ranking.setting} · {task.name} v{task.version} · {about}",
        ("rank", "model", "layer", "score", "size", "flags"),
        tuple(rows),
        left=2,
        repeated=2,
    )


def _model_lines(frame: pd.DataFrame) -> list[Any]:
    """The first lines of pretrained models: by mean rank, then those that lack a rank."""
    pretrained_lines = frame[frame["lacks"].notna()]
    return [*pretrained_lines.drop_duplicates("model").sort_values(["mean", "model"]).itertuples()]


def _overall_table(ranking: Ranking, frame: pd.DataFrame) -> Table:
    ranks = frame[frame["overall"].notna()].groupby("model")["overall"].agg(list)
    rows, gaps = [], []
    for line in _model_lines(frame):
        if line.lacks:
            gaps.append(f"{line.model} lacks a rank in {line.lacks}.")
        else:
            rows.append(TableRow.of(f"{line.mean:.2f}", line.model, *map(str, ranks[line.model])))
    heads = ("mean rank", "model", *ranking.tasks)
    title = f"{ranking.setting} · overall, {len(ranking.tasks)} tasks"
    notes = (MEAN, f"Not ranked: {' '.join(gaps)}") if gaps else (MEAN,)
    return Table(title, heads, tuple(rows), left=2, notes=notes, repeated=2)


def _layer_cell(candidate: Candidate) -> str:
    """The best layer, and how many there are."""
    result = candidate.result
    number = NOTHING if result.best_number is None else result.best_number
    return f"{number}/{result.model.n_layers}"


def _headline_cell(candidate: Candidate) -> Cell:
    """The score with half its interval."""
    metric, floored = candidate.result.task.metric, candidate.floored
    return score_cell(candidate.score, candidate.interval, metric, floored=floored)


def size(parameters: int) -> str:
    """A number of parameters as people say it: 22.6M."""
    for unit, name in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if parameters >= unit:
            return f"{parameters / unit:.1f}{name}"
    return str(parameters)


def size_cells(result: Result) -> tuple[Cell, Cell]:
    """The numbers of parameters and of layers of a result's model."""
    model = result.model
    layers = Cell(str(model.n_layers), value=model.n_layers)
    return Cell(size(model.parameters), value=model.parameters), layers


def csv_rows(ranking: Ranking, frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of `CSV_HEADS`; overall ones have the mean rank, and in `apart` what is missing."""
    apart = frame["apart"] != ""
    task = f"overall {ranking.site}".strip()
    overall = [
        dict.fromkeys(CSV_HEADS)
        | {"corpus": ranking.corpus, "probe": ranking.probe, "encoders": ranking.kind, "task": task}
        | {"model": line.model, "rank": None if line.lacks else line.mean}
        | {"apart": f"lacks a rank in {line.lacks}" if line.lacks else None}
        for line in _model_lines(frame)
    ]
    together: list[Any] = frame.loc[~apart, CSV_HEADS].to_dict("records")
    apart_rows: list[Any] = frame.loc[apart, CSV_HEADS].to_dict("records")
    return [*together, *overall * (len(ranking.tasks) > 1), *apart_rows]
