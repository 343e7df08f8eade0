"""Ranks on a board: for each model the places that it may have, given what the data separate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from probes.boards.board import Board, Candidate
from probes.boards.paired import LayerScore, paired_differences, readable_layer_scores
from probes.records.values import Interval
from probes.statistics.significance import all_pairs, borderline, rank_ranges


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
        missing: the other pretrained models, and the tasks that each lacks.
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
        """Places of pretrained models, by test score.

        All pairs are tested together; see `probes.statistics.significance.rank_ranges`.
        """
        ranked = sorted(
            (c for c in candidates if not c.random and c.score is not None),
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
            task: {c.name: c for c in candidates if not c.random and c.score is not None}
            for task, candidates in board.tasks.items()
        }
        names = sorted({name for found in by_task.values() for name in found})
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
