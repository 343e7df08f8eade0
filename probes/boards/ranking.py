"""Ranks on a board; models that the data cannot tell apart share them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from probes.boards.board import Board, Candidate
from probes.boards.paired import LayerScore, paired_differences, readable_layer_scores
from probes.records.values import Interval


@dataclass(frozen=True)
class Place:
    """A candidate's places within a task: from `first` to `last`, shared by its group."""

    candidate: Candidate
    first: int
    last: int

    @property
    def rank(self) -> float:
        """The mean of the places (Demšar 2006 on ranks of tied systems)."""
        return (self.first + self.last) / 2

    @property
    def text(self) -> str:
        """`3`, or `1–2` where places are shared."""
        return f"{self.first}" if self.first == self.last else f"{self.first}–{self.last}"


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
    """

    untested: bool = False
    _known: dict[Path, LayerScore] = field(default_factory=dict)

    def places(self, candidates: Sequence[Candidate]) -> list[Place]:
        """Places of pretrained models by test score.

        The best leads a group: the candidates after it, up to the first that is separated from it
        at .05, share its places. That one leads the next group.
        """
        rest = sorted(
            (c for c in candidates if not c.random and c.score is not None),
            key=lambda c: (-(c.score or 0.0), c.name),
        )
        places: list[Place] = []
        while rest:
            apart = self._separated(rest[0], rest[1:])
            size = 1 + (apart.index(True) if True in apart else len(apart))
            n = len(places)
            places += [Place(candidate, n + 1, n + size) for candidate in rest[:size]]
            rest = rest[size:]
        return places

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

    def _separated(self, leader: Candidate, others: Sequence[Candidate]) -> list[bool]:
        """Which candidates the data tell from the leader, Holm-corrected over all of them."""
        lead = self._at_best_layer(leader)
        found = paired_differences([(lead, self._at_best_layer(other)) for other in others])
        return [
            difference.separated if difference.tested else self._no_overlap(leader, other)
            for difference, other in zip(found, others, strict=True)
        ]

    def _no_overlap(self, leader: Candidate, other: Candidate) -> bool:
        """Whether the intervals do not overlap: the cautious test without predictions."""
        self.untested = True
        lead, found = interval_of(leader), interval_of(other)
        return lead is not None and found is not None and found[1] < lead[0]

    def _at_best_layer(self, candidate: Candidate) -> LayerScore:
        path, result = candidate.path, candidate.result
        if path not in self._known:
            (self._known[path],) = readable_layer_scores(result, path, [result.best_layer])
        return self._known[path]


def interval_of(candidate: Candidate) -> Interval:
    """95 % interval of a candidate's score."""
    return candidate.result.best_layer.intervals.get(candidate.result.task.metric)
