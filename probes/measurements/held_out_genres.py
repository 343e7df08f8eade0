"""Held-out genres: what a probe knows of a genre that it was not trained on.

Each genre of the corpus is held out in turn: at the best layer on dev a probe is trained on the
sentences of all other genres, and compared with the reported one, which is trained on everything,
on the test text of that genre. It has less to learn from, too: as a control, a third probe is
trained without as many examples, in sentences drawn at random from all genres.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Ints
from probes.examples.examples import NotServedError
from probes.examples.scoring import number
from probes.measurements.cells import score_cell, task_head
from probes.measurements.measurement import Found, Level, ProbeMeasurement, Request
from probes.records.base import Frozen
from probes.records.probe_spec import ProbeSpec
from probes.records.record import Extent, Record
from probes.records.result import Result
from probes.records.row import Row
from probes.records.table import NOTHING, Cell, Table, TableRow
from probes.records.values import Interval
from probes.statistics.bootstrap import bounds, draws_of, interval, replicates
from probes.statistics.formatting import shown
from probes.statistics.metrics import metrics
from probes.statistics.partition import FEWEST
from probes.tasks.task import Task
from probes.training.families import is_convex

if TYPE_CHECKING:
    from probes.measurements.probe_context import ProbeContext


class Refit(Frozen):
    """A probe that is trained on fewer sentences than the reported one."""

    score: float | None
    """Headline score on the test sentences of the genre."""
    drop: float | None
    """The score of the reported probe there, less this one."""
    interval: Interval
    """95 % interval of the drop over test documents or sentences of the genre."""


class GenreScores(Frozen):
    """What was found for one genre."""

    genre: str
    train: int
    """Training examples."""
    test: int
    """Test examples."""
    held_out: Refit | None
    """Trained on the other genres; None for a genre that train, its rest or test lacks."""
    random: Refit | None
    """Trained without as many examples as the genre has, in sentences drawn from all genres."""


class HeldOut(Frozen):
    """What `HeldOutGenres` finds."""

    layer: int
    genres: tuple[GenreScores, ...]

    def of(self, genre: str) -> GenreScores | None:
        """Of one genre; None if the task has no example of it."""
        return next((x for x in self.genres if x.genre == genre), None)


class HeldOutGenres(ProbeMeasurement[HeldOut]):
    """Scores on each genre of probes that are trained on the others, at the best layer on dev."""

    name = "held_out_genres"
    summary = "scores on each genre of probes trained on the others"
    payload: ClassVar[type[HeldOut]] = HeldOut

    AT_ONCE = 5
    """Genres whose probes are fitted together, two for each."""

    def missing(self, task: Task, probe: ProbeSpec, level: Level) -> str:
        """Only convex probes are fitted without a genre."""
        return "" if is_convex(probe) else "only convex probes are fitted without a genre"

    def fits_at_once(self, probe: ProbeSpec, level: Level) -> int:
        """Two for each genre."""
        return 2 * self.AT_ONCE

    def cost(self, probe: ProbeSpec) -> float:
        """That of five genres."""
        return 5.0

    def extent(self, request: Request) -> Extent:
        """The best layer on dev."""
        return {request.scores.best: 1}

    def compute(self, context: ProbeContext) -> Found[HeldOut]:
        """Fit all probes, and score them genre by genre.

        Raises:
            NotServedError: the genres are not known, or none of them can be held out.
        """
        (layer,) = context.layers
        train, test = (context.examples.splits[split].genre for split in ("train", "test"))
        genres = sorted({*train.tolist(), *test.tolist()} - {""})
        if not genres:
            raise NotServedError("the corpus does not tell the genres of its documents")
        chosen = [x for x in genres if {*train.tolist()} > {x} and x in test]
        if not chosen:
            raise NotServedError(
                f"no genre can be held out ({_named(train)} in train, {_named(test)} in test); one "
                "has to be in both, beside others in train"
            )
        refitted = dict(zip(chosen, self._predicted(context, layer, chosen), strict=True))
        found = []
        for genre in genres:
            n = {"train": int((train == genre).sum()), "test": int((test == genre).sum())}
            held_out = random = None
            if genre in refitted:
                held_out, random = _compared(context, layer, test == genre, refitted[genre])
            found.append(GenreScores(genre=genre, **n, held_out=held_out, random=random))
        return Found(payload=HeldOut(layer=layer, genres=tuple(found)))

    def _predicted(
        self, context: ProbeContext, layer: int, genres: Sequence[str]
    ) -> Iterator[NDArray[Any]]:
        """For each genre, what its two probes predict on test. Each (2, n, …)."""
        from probes.training.fit import Draw

        train = context.examples.splits["train"]
        for first in range(0, len(genres), self.AT_ONCE):
            some = genres[first : first + self.AT_ONCE]
            kept = np.stack([kept_without(train.genre == x, train.sentence) for x in some])
            rows = kept.reshape(2 * len(some), -1)
            fits = context.fits([layer], [Draw()] * len(rows), kept=rows)
            predicted = fits.predicted["test"][0]
            yield from predicted.reshape(len(some), 2, *predicted.shape[1:])

    def numbers(self, record: Record[HeldOut]) -> Iterator[Row]:
        """Of each genre its examples, the score of the held-out probe, and both drops."""
        layer = record.payload.layer
        for each in record.payload.genres:
            axes = {"genre": each.genre}
            yield Row("examples", each.train, layer, split="train", axes=axes)
            yield Row("examples", each.test, layer, axes=axes)
            if each.held_out and each.random:
                yield Row("held_out_score", each.held_out.score, layer, axes=axes)
                for name, refit in (("held_out", each.held_out), ("random", each.random)):
                    low, high = refit.interval or (None, None)
                    yield Row(f"{name}_drop", refit.drop, layer, low, high, axes=axes)

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Genre × task: scores, drops, those of the control, and numbers of examples."""
        every: list[tuple[Result, HeldOut]] = [(r, r.found(self.name)) for r in results]
        genres = sorted({x.genre for _, found in every for x in found.genres})

        def table(
            title: str,
            cell: Callable[[GenreScores, str], Cell | str],
            note: str,
            scored: bool = True,
        ) -> Table:
            heads = (task_head(r, r.task.metric if scored else "") for r in results)
            rows = []
            for genre in genres:
                of = [(found.of(genre), r.task.metric) for r, found in every]
                rows.append(TableRow.of(genre, *(cell(x, m) if x else NOTHING for x, m in of)))
            return Table(title, ("genre", *heads), tuple(rows), notes=(note,))

        def score(found: GenreScores, metric: str) -> str:
            return shown(found.held_out.score, metric) if found.held_out else NOTHING

        def drop(refit: Refit | None, metric: str) -> Cell | str:
            return score_cell(refit.drop, refit.interval, metric) if refit else NOTHING

        layers = ", ".join(f"{r.task.name} {found.layer}" for r, found in every)
        return [
            table(
                "held-out genres: score of the probe trained on the others",
                score,
                f"On the test sentences of the genre, at the best layer on dev: {layers}.",
            ),
            table(
                "held-out genres: drop from the reported probe",
                lambda found, metric: drop(found.held_out, metric),
                "The score of the probe trained on everything, less that of the one above. ± half "
                "a 95 % interval over the test documents, or sentences, of the genre; with fewer "
                f"than {FEWEST} there is none.",
            ),
            table(
                "held-out genres: drop without as many random examples",
                lambda found, metric: drop(found.random, metric),
                "Drawn from all genres: what is lost because there is less to learn from.",
            ),
            table(
                "held-out genres: examples in train / test",
                lambda found, metric: f"{found.train:,} / {found.test:,}",
                _not_held_out(found for _, found in every),
                scored=False,
            ),
        ]


def kept_without(left_out: NDArray[np.bool_], sentence: Ints) -> NDArray[np.bool_]:
    """The training examples of the probe that lacks a genre, and of its control.

    Args:
        left_out: which examples belong to the genre. Shape (n,).
        sentence: number of each example's sentence. Shape (n,).

    Returns:
        the examples of other genres; those without as many (or a sentence more) of all genres.
        Shape (2, n).
    """
    numbers, sizes = np.unique(sentence, return_counts=True)
    order = np.random.default_rng(0).permutation(len(numbers))
    before = np.cumsum(sizes[order]) - sizes[order]
    as_many = numbers[order[before < left_out.sum()]]
    return np.stack([~left_out, ~np.isin(sentence, as_many)])


def _compared(
    context: ProbeContext, layer: int, keep: NDArray[np.bool_], predicted: NDArray[Any]
) -> list[Refit]:
    """Further probes (k, n, …) against the reported one, on the test examples to keep."""
    metric = metrics.get(context.task.metric)
    gold = context.scorers["test"].gold.part(keep)
    rows = np.concatenate([context.predicted([layer]), predicted])[:, keep]
    scores = metric(gold, rows)
    intervals: list[Interval] = [None] * len(predicted)
    if (draws := draws_of(gold)) is not None:
        values = replicates(metric, gold, rows, draws)
        intervals = [bounds(pair) for pair in interval(values[:1] - values[1:])]
    return [
        Refit(score=number(score), drop=number(scores[0] - score), interval=each)
        for score, each in zip(scores[1:], intervals, strict=True)
    ]


def _named(genres: NDArray[np.str_]) -> str:
    return ", ".join(sorted({*genres.tolist()} - {""})) or "none"


def _not_held_out(every: Iterator[HeldOut]) -> str:
    """Names the genres without scores."""
    names = sorted({x.genre for found in every for x in found.genres if x.held_out is None})
    if not names:
        return "Every genre was held out."
    return (
        f"Not held out in every task: {', '.join(names)}; a genre has to be in train and test, "
        "beside others in train."
    )
