"""Ranks on a board: for each model the places that it may have; the tables and rows of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from probes.boards.board import Board, Candidate
from probes.boards.paired import LayerScore, paired_differences, readable_layer_scores
from probes.measurements.cells import metric_name, n_of, score_cell
from probes.records.result import Result
from probes.records.values import Interval
from probes.statistics.metrics import label_of
from probes.statistics.significance import all_pairs, borderline, rank_ranges
from probes.tables.table import NOTHING, Cell, Table, TableRow


@dataclass(frozen=True)
class Place:
    """The places within a task that a candidate may have, from `first` to `last`.

    Attributes:
        borderline: whether other resamples may have led to others.
    """

    candidate: Candidate
    first: int
    last: int
    borderline: bool = False

    @property
    def rank(self) -> float:
        """The middle of the places."""
        return (self.first + self.last) / 2

    @property
    def text(self) -> str:
        """`3`, or `1–2` where it may have several."""
        return place_text(self.first, self.last, borderline=self.borderline)


@dataclass(frozen=True)
class Overall:
    """Models with every task of a board, by mean rank among themselves.

    Attributes:
        rows: model, mean rank, and places by task; the best first.
        missing: the other pretrained models, and the tasks in which each lacks a rank.
    """

    tasks: tuple[str, ...]
    rows: tuple[tuple[str, float, Mapping[str, Place]], ...]
    missing: Mapping[str, tuple[str, ...]]


@dataclass
class Ranking:
    """Ranks candidates by paired tests on their stored predictions.

    Attributes:
        untested: whether two candidates had to be compared by their intervals alone.
        unclear: whether a place is borderline.
    """

    untested: bool = False
    unclear: bool = False
    _known: dict[Path, LayerScore] = field(default_factory=dict)
    _ranked: dict[tuple[Path, ...], list[Place]] = field(default_factory=dict)

    def places(self, candidates: Sequence[Candidate]) -> list[Place]:
        """Places of pretrained models, by test score; not of scores that are not above their floor.

        All pairs are tested together; see `probes.statistics.significance.rank_ranges`.
        """
        ranked = sorted(
            (c for c in candidates if c.ranked),
            key=lambda c: (-(c.score or 0.0), c.name),
        )
        paths = tuple(candidate.path for candidate in ranked)
        if paths not in self._ranked:
            self._ranked[paths] = self._tested(ranked)
        return self._ranked[paths]

    def _tested(self, ranked: Sequence[Candidate]) -> list[Place]:
        pairs = all_pairs(len(ranked))
        differences = paired_differences([self._at_best_layer(c) for c in ranked], pairs)
        p_values = np.array(
            [
                self._without_test(ranked[one], ranked[other]) if d.p is None else d.p
                for d, (one, other) in zip(differences, pairs, strict=True)
            ]
        )
        ranges = rank_ranges(np.array([c.score or 0.0 for c in ranked]), pairs, p_values)
        unclear = {pairs[k][end] for k in np.flatnonzero(borderline(p_values)) for end in (0, 1)}
        self.unclear |= bool(unclear)
        return [
            Place(candidate, first, last, i in unclear)
            for i, (candidate, (first, last)) in enumerate(
                zip(ranked, ranges.tolist(), strict=True)
            )
        ]

    def overall(self, board: Board) -> Overall:
        """Mean ranks of the models that have every task, ranked among themselves."""
        by_task = {
            task: {c.name: c for c in candidates if c.ranked}
            for task, candidates in board.tasks.items()
        }
        names = sorted({c.name for found in board.tasks.values() for c in found if not c.random})
        missing = {
            name: lacking
            for name in names
            if (lacking := tuple(task for task, found in by_task.items() if name not in found))
        }
        complete = [name for name in names if name not in missing]
        places = {
            task: {p.candidate.name: p for p in self.places([found[name] for name in complete])}
            for task, found in by_task.items()
        }
        rows = []
        for name in complete:
            own = {task: found[name] for task, found in places.items()}
            rows.append((name, sum(place.rank for place in own.values()) / len(own), own))
        rows.sort(key=lambda row: (row[1], row[0]))
        return Overall(tuple(by_task), tuple(rows), missing)

    def _without_test(self, one: Candidate, other: Candidate) -> float:
        """What stands for p where there is no test: 0 if the intervals do not overlap, else 1."""
        self.untested = True
        found, others = interval_of(one), interval_of(other)
        if found is None or others is None:
            return 1.0
        return float(found[0] <= others[1] and others[0] <= found[1])

    def _at_best_layer(self, candidate: Candidate) -> LayerScore:
        path, result = candidate.path, candidate.result
        if path not in self._known:
            (self._known[path],) = readable_layer_scores(result, path, [result.best_layer])
        return self._known[path]


def place_text(first: int, last: int, *, borderline: bool = False) -> str:
    """`3`, or `1–2` where it may be several."""
    text = f"{first}" if first == last else f"{first}–{last}"
    return text + " (borderline)" * borderline


def interval_of(candidate: Candidate) -> Interval:
    """95 % interval of a candidate's score."""
    return candidate.result.interval(candidate.result.best_layer)


CSV_HEADS = (
    "corpus",
    "probe",
    "encoders",
    "task",
    "model",
    "revision",
    "rank",
    "first",
    "last",
    "layer",
    "layers",
    "parameters",
    "metric",
    "score",
    "low",
    "high",
    "n",
    "flags",
    "apart",
)

_RULE = (
    "Best layer chosen on dev, score on test ± half a 95 % interval over test documents or "
    "sentences. Ranks: best and worst rank that the data allow (paired bootstrap with the variance "
    "of training, max-T over all pairs, .05). A score that is not above its floor (▽) has no rank."
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


def ranking_tables(board: Board, ranking: Ranking) -> Iterator[Table]:
    """A table per task, the last with the notes; the overall ranks; and what is listed apart."""
    tables = [_of_task(board, *item, ranking) for item in board.tasks.items()]
    overall = [_of_all(board, ranking.overall(board))] if len(board.tasks) > 1 else []
    yield from (*tables[:-1], replace(tables[-1], notes=rules(ranking)), *overall)
    if board.apart:
        yield table_apart(board)


def table_apart(board: Board) -> Table:
    """The candidates that cannot be compared with the others, and why."""
    rows = [
        TableRow.of(c.result.task.name, c.name, _layer(c), _score(c), ", ".join(c.flags), why)
        for c, why in sorted(
            board.apart, key=lambda x: (x[0].result.task.name, x[0].name, _layer(x[0]), x[1])
        )
    ]
    heads = ("task", "model", "layer", "score", "flags", "why it is not compared")
    return Table(f"{board.setting} · listed apart", heads, tuple(rows), left=6, repeated=2)


def rules(ranking: Ranking) -> tuple[str, ...]:
    """What scores and ranks are, what is borderline, and what stood in for tests."""
    return (_RULE, *[_UNCLEAR] * ranking.unclear, *[_UNTESTED] * ranking.untested)


def table_of_all(board: Board, ranking: Ranking) -> Table:
    """A row for each model: size, mean rank, and for each task the score with possible places.

    Models that have all tasks come first, by mean rank, then by scores; random twins come last.
    """
    several = len(board.tasks) > 1
    means = {name: mean for name, mean, _ in ranking.overall(board).rows}
    heads, columns = [], []
    below: Counter[str] = Counter()  # how many score higher, over all tasks
    twins = set()
    facts: dict[str, tuple[Cell, Cell]] = {}
    for task, candidates in board.tasks.items():
        places = {place.candidate.path: place for place in ranking.places(candidates)}
        below.update({place.candidate.name: n for n, place in enumerate(places.values())})
        twins |= {c.name for c in candidates if c.random}
        facts |= {c.name: size_cells(c.result) for c in candidates}
        n = n_of(c.result for c in candidates)
        heads.append(f"{task}\n{metric_name(candidates[0].result)}, n = {n}")
        columns.append({c.name: _score_in_place(c, places.get(c.path)) for c in candidates})
    names = {name for cells in columns for name in cells}
    order = sorted(names, key=lambda x: (x in twins, means.get(x, len(names)), below[x], x))
    rows = (
        TableRow.of(
            name,
            *facts[name],
            *[_mean_rank(means.get(name))] * several,
            *(cells.get(name, Cell(NOTHING)) for cells in columns),
            model=name,
            faint=name in twins,
        )
        for name in order
    )
    heads = ["model", "parameters\nclaimed", "layers\nclaimed", *["mean rank"] * several, *heads]
    return Table(board.setting, tuple(heads), tuple(rows), notes=(MEAN,) * several)


def _mean_rank(mean: float | None) -> Cell:
    return Cell(NOTHING) if mean is None else Cell(f"{mean:.2f}", value=mean)


def _score_in_place(candidate: Candidate, place: Place | None) -> Cell:
    ranked = [f"rank {place.text}"] if place else ["not above the floor"] * candidate.floored
    note = ", ".join([*ranked, f"layer {_layer(candidate)}"])
    return replace(_score(candidate), note=note, value=candidate.score)


def _of_task(board: Board, task: str, candidates: tuple[Candidate, ...], ranking: Ranking) -> Table:
    places = ranking.places(candidates)
    others = _unranked(candidates, places)
    first = candidates[0].result
    about = f"{label_of(first.task.metric)}, n = {n_of(c.result for c in candidates)}"
    rows = [(p.text, p.candidate) for p in places] + [(NOTHING, other) for other in others]
    return Table(
        f"{board.setting} · {task} v{first.task.version} · {about}",
        ("rank", "model", "layer", "score", "size", "flags"),
        tuple(
            TableRow.of(
                rank,
                c.name,
                _layer(c),
                _score(c),
                size(c.result.model.parameters),
                ", ".join(c.flags),
                faint=place >= len(places),
            )
            for place, (rank, c) in enumerate(rows)
        ),
        left=2,
        repeated=2,
    )


def _unranked(candidates: tuple[Candidate, ...], places: list[Place]) -> list[Candidate]:
    """Random twins, and models without a score above the floor."""
    ranked = {place.candidate.path for place in places}
    others = [c for c in candidates if c.path not in ranked]
    return sorted(others, key=lambda c: (-(c.score or 0.0), c.name))


def _of_all(board: Board, overall: Overall) -> Table:
    rows = [
        TableRow.of(f"{mean:.2f}", name, *(places[task].text for task in overall.tasks))
        for name, mean, places in overall.rows
    ]
    gaps = tuple(
        f"Not ranked: {name} lacks a rank in {', '.join(tasks)}."
        for name, tasks in overall.missing.items()
    )
    heads = ("mean rank", "model", *overall.tasks)
    title = f"{board.setting} · overall, {len(overall.tasks)} tasks"
    return Table(title, heads, tuple(rows), left=2, notes=(MEAN, *gaps), repeated=2)


def _layer(candidate: Candidate) -> str:
    """The best layer, and how many there are."""
    result = candidate.result
    number = NOTHING if result.best_number is None else result.best_number
    return f"{number}/{result.model.n_layers}"


def _score(candidate: Candidate) -> Cell:
    """The score with half its interval."""
    metric, floored = candidate.result.task.metric, candidate.floored
    return score_cell(candidate.score, interval_of(candidate), metric, floored=floored)


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


def csv_rows(board: Board, ranking: Ranking) -> Iterator[tuple[Any, ...]]:
    """Rows of `CSV_HEADS`; overall ones have the mean rank, and in `apart` what is missing."""
    for task, candidates in board.tasks.items():
        places = ranking.places(candidates)
        for place in places:
            yield _csv_row(board, task, place.candidate, place, "")
        for other in _unranked(candidates, places):
            yield _csv_row(board, task, other, None, "")
    if len(board.tasks) > 1:
        overall = ranking.overall(board)
        head = (
            board.corpus,
            board.probe,
            board.kind,
            " ".join(filter(None, ("overall", board.site))),
        )
        blank = (None,) * 11
        for name, mean, _ in overall.rows:
            yield *head, name, None, mean, *blank, None
        for name, tasks in overall.missing.items():
            yield *head, name, None, None, *blank, f"lacks a rank in {', '.join(tasks)}"
    for candidate, why in board.apart:
        yield _csv_row(board, candidate.result.task.name, candidate, None, why)


def _csv_row(
    board: Board, task: str, candidate: Candidate, place: Place | None, why: str
) -> tuple[Any, ...]:
    result = candidate.result
    return (
        board.corpus,
        board.probe,
        board.kind,
        task,
        candidate.name,
        result.model.revision,
        *((place.rank, place.first, place.last) if place else (None, None, None)),
        result.best_number,
        result.model.n_layers,
        result.model.parameters,
        result.task.metric,
        candidate.score,
        *(interval_of(candidate) or (None, None)),
        result.examples.n["test"],
        ", ".join(candidate.flags),
        why,
    )
