"""Held-out genres: what a probe knows of a genre that it was not trained on.

Each genre of the corpus is held out in turn: at the best layer on dev a probe is trained on the
sentences of all other genres, and compared with the reported one, which is trained on everything,
on the test text of that genre. It has less to learn from, too: as a control, a third probe is
trained without as many examples, in sentences drawn at random from all genres.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Ints
from probes.examples.examples import NotServedError
from probes.measurements.measurement import Found, Level, Measurement, Request
from probes.measurements.pivots import Pivot
from probes.records.probe_spec import ProbeSpec
from probes.records.record import Extent
from probes.records.row import Row
from probes.records.values import Interval, ends
from probes.statistics.bootstrap import bounds, draws_of, interval, replicates
from probes.statistics.metrics import metrics
from probes.statistics.partition import FEWEST
from probes.tasks.task import Task
from probes.training.families import is_convex

if TYPE_CHECKING:
    from probes.measurements.context import Context


class HeldOutGenres(Measurement):
    """Scores on each genre of probes that are trained on the others, at the best layer on dev."""

    name = "held_out_genres"
    asks = ("scores",)
    summary = "scores on each genre of probes trained on the others"
    views = (
        Pivot("score of the probe trained on the others", ("held_out_score",), rows="genre"),
        Pivot(
            "drop from the reported probe",
            ("held_out_drop",),
            rows="genre",
            note="The score of the probe trained on everything minus that of the one above. ± half "
            "a 95 % interval over the test documents, or sentences, of the genre; with fewer than "
            f"{FEWEST} there is none.",
        ),
        Pivot(
            "drop without as many random examples",
            ("random_drop",),
            rows="genre",
            note="Drawn from all genres: what is lost because there is less to learn from.",
        ),
        Pivot(
            "examples",
            ("examples",),
            rows="genre",
            columns=("task", "split"),
            where={"split": ("train", "test")},
        ),
    )

    AT_ONCE = 5
    """Genres whose probes are fitted together, two for each."""

    def missing(self, task: Task, probe: ProbeSpec, level: Level) -> str:
        """Only convex probes are fitted without a genre."""
        return "" if is_convex(probe) else "only convex probes are fitted without a genre"

    def fits_at_once(self, probe: ProbeSpec, level: Level) -> int:
        """Two for each genre."""
        return 2 * self.AT_ONCE

    def extent(self, request: Request) -> Extent:
        """The best layer on dev."""
        return {request.scores.best: 1}

    def compute(self, context: Context) -> Found:
        """Fit all probes, and score them genre by genre.

        Rows of each genre: examples; the score of the probe trained on the others; its drop from
        the reported probe, and that of the control.

        Raises:
            NotServedError: the genres are not known, or none of them can be held out.
        """
        (layer,) = context.layers
        train, test = (context.examples.splits[split].genre for split in ("train", "test"))
        genres = sorted({*train.tolist(), *test.tolist()} - {""})
        if not genres:
            raise NotServedError("the corpus does not name the genres of its documents")
        chosen = [x for x in genres if {*train.tolist()} > {x} and x in test]
        if not chosen:
            raise NotServedError(
                f"no genre can be held out ({_named(train)} in train, {_named(test)} in test); one "
                "has to be in both, beside others in train"
            )
        refitted = dict(zip(chosen, self._predicted(context, layer, chosen), strict=True))
        rows = []
        for genre in genres:
            axes = {"genre": genre}
            for split, of_split in (("train", train), ("test", test)):
                n = int((of_split == genre).sum())
                rows.append(Row("examples", n, layer, split=split, axes=axes))
            if genre in refitted:
                rows += _compared(context, layer, test == genre, refitted[genre], axes)
        notes = [f"{context.task.name}: at layer {layer}, the best on dev."]
        if others := sorted({*genres} - {*chosen}):
            notes.append(
                f"{context.task.name}: not held out: {', '.join(others)}; a genre has to be in "
                "train and test, beside others in train."
            )
        return Found(rows, notes=notes)

    def _predicted(
        self, context: Context, layer: int, genres: Sequence[str]
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
    context: Context,
    layer: int,
    keep: NDArray[np.bool_],
    predicted: NDArray[Any],
    axes: Mapping[str, str],
) -> list[Row]:
    """The held-out probe and its control against the reported one, on the test examples to keep.

    Args:
        predicted: by both probes. Shape (2, n, …).
    """
    metric = metrics.get(context.task.metric)
    gold = context.scorers["test"].gold.part(keep)
    rows = np.concatenate([context.predicted([layer]), predicted])[:, keep]
    reported, *scores = metric(gold, rows)
    intervals: list[Interval] = [None, None]
    if (draws := draws_of(gold)) is not None:
        values = replicates(metric, gold, rows, draws)
        intervals = [bounds(pair) for pair in interval(values[:1] - values[1:])]
    drops = [
        Row(name, reported - score, layer, *ends(each), axes=axes)
        for name, score, each in zip(
            ("held_out_drop", "random_drop"), scores, intervals, strict=True
        )
    ]
    return [Row("held_out_score", scores[0], layer, axes=axes), *drops]


def _named(genres: NDArray[np.str_]) -> str:
    return ", ".join(sorted({*genres.tolist()} - {""})) or "none"
