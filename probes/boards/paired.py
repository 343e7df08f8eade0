"""Differences between layers of two results, tested on the same resamples of the test split.

The one place where models are compared: the summary of a run, `compare` and the ranks of
`leaderboard` all ask `paired_differences`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

import numpy as np

from probes.boards.comparable import SAME_PAIR, differing, named
from probes.common.arrays import Floats
from probes.common.errors import UserError
from probes.measurements.cells import n_of, p_cell, score_cell, task_head
from probes.measurements.resampled import resampled
from probes.records.files import if_readable
from probes.records.record import limit_mark, model_title
from probes.records.result import Result
from probes.records.values import Interval
from probes.statistics.bootstrap import RESAMPLES, bounds, interval
from probes.statistics.metrics import shown
from probes.statistics.replicates import Replicates, p_values_of
from probes.statistics.significance import Pair, all_pairs, borderline
from probes.tables.table import NOTHING, Cell, Table, TableRow

_TESTED = (
    "p is corrected by max-T over all pairs of a task's models, and includes uncertainty from test "
    "data and from training."
)

_SOME_TESTED = "p needs the training variance of both models; measure it with --evidence standard."

NOT_TESTED = (
    "Differences are not tested: that takes training variance (--evidence standard) of both "
    "models, and 20 test documents or sentences. Their intervals are over test text alone."
)


@dataclass(frozen=True)
class LayerScore:
    """The test score of one layer, the first fit's, and its value in every resample.

    Attributes:
        replicates: of this layer alone; None if they cannot be computed.
    """

    result: Result
    layer: int
    replicates: Replicates | None = None

    @property
    def value(self) -> float | None:
        """The score itself."""
        return self.result.score(self.layer)

    @cached_property
    def resampled(self) -> Floats:
        """The replicates, with noise of training if it was measured. Shape (resamples,)."""
        if self.replicates is None:
            return np.full(RESAMPLES, np.nan)
        found: Floats = self.replicates.resampled[0]
        return found

    @property
    def testable(self) -> bool:
        """Whether there are replicates that know of training."""
        return self.replicates is not None and self.replicates.noise is not None

    def paired_with(self, other: LayerScore) -> bool:
        """Whether both have been resampled, and over the same examples."""
        both = self.replicates is not None and other.replicates is not None
        return both and self.result.examples.test_digest == other.result.examples.test_digest


@dataclass(frozen=True)
class Difference:
    """How much a layer scores above another.

    Attributes:
        value: the difference of the scores; None if either is undefined.
        interval: 95 % interval of the difference; it knows of training if there is p.
        p: two-sided, corrected by max-T over the differences that were computed together; None if
            they could not be resampled together, or if either has no training variance.
    """

    metric: str
    value: float | None
    interval: Interval = None
    p: float | None = None

    @property
    def cells(self) -> tuple[Cell, Cell]:
        """The difference with its interval, and p."""
        if self.value is None:
            return Cell(NOTHING), Cell(NOTHING)
        text = _signed(self.value, self.metric)
        if self.interval is not None:
            low, high = (_signed(bound, self.metric) for bound in self.interval)
            text += f" [{low}, {high}]"
        return Cell(text, value=self.value, interval=self.interval), p_cell(self.p)


def tested_note(differences: Iterable[Difference]) -> str:
    """What p is in a table of differences, why some lack it, and what borderline ones are."""
    p_values = [difference.p for difference in differences]
    notes = [_TESTED]
    if None in p_values:
        notes.append(_SOME_TESTED)
    if any(borderline(p) for p in p_values if p is not None):
        notes.append("Borderline: p is so near .05 that other resamples might decide otherwise.")
    return " ".join(notes)


def layer_scores(result: Result, path: Path, layers: Sequence[int]) -> list[LayerScore]:
    """Scores of some layers of the result at `path`, resampled if what that takes is there.

    Raises:
        UserError: the arrays beside it cannot be read, or are those of other scores.
    """
    found = resampled(result, path, layers)
    if found is None:
        return [LayerScore(result, layer) for layer in layers]
    return [LayerScore(result, layer, found.row(i)) for i, layer in enumerate(layers)]


def readable_layer_scores(result: Result, path: Path, layers: Sequence[int]) -> list[LayerScore]:
    """`layer_scores`, with a message and without replicates if they cannot be read."""
    found = if_readable(lambda: layer_scores(result, path, layers))
    return found or [LayerScore(result, layer) for layer in layers]


def paired_differences(scores: Sequence[LayerScore], pairs: Sequence[Pair]) -> list[Difference]:
    """For each pair of places in `scores`, the second score minus the first.

    The p-values are corrected over all pairs that can be tested.
    """
    values = np.array([np.nan if x.value is None else x.value for x in scores])
    replicates = np.array([x.resampled for x in scores]).reshape(-1, RESAMPLES)
    paired = [scores[one].paired_with(scores[other]) for one, other in pairs]
    tested = [
        both and scores[one].testable and scores[other].testable
        for both, (one, other) in zip(paired, pairs, strict=True)
    ]
    chosen = [pair for pair, is_tested in zip(pairs, tested, strict=True) if is_tested]
    p_values = _p_values(scores, chosen)
    differences = []
    for (one, other), both, is_tested in zip(pairs, paired, tested, strict=True):
        p = p_values[one, other] if is_tested else np.nan
        value = values[other] - values[one]
        differences.append(
            Difference(
                scores[one].result.task.metric,
                None if np.isnan(value) else float(value),
                bounds(interval(replicates[other] - replicates[one])) if both else None,
                None if np.isnan(p) else p,
            )
        )
    return differences


def _p_values(scores: Sequence[LayerScore], pairs: Sequence[Pair]) -> dict[Pair, float]:
    """Of pairs of scores that can all be tested, corrected over those on the same examples."""
    found: dict[Pair, float] = {}
    by_examples = defaultdict(list)
    for pair in pairs:
        by_examples[scores[pair[0]].result.examples.test_digest].append(pair)
    for chosen in by_examples.values():
        cells = sorted({cell for pair in chosen for cell in pair})
        known = [x for cell in cells if (x := scores[cell].replicates) is not None]
        places = [(cells.index(one), cells.index(other)) for one, other in chosen]
        found |= dict(zip(chosen, p_values_of(known, places), strict=True))
    return found


def _signed(value: float, metric: str) -> str:
    """A difference of scores: +1.2."""
    text = shown(abs(value), metric)
    zero = not text.strip("0.")
    return text if zero else ("−" if value < 0 else "+") + text


@dataclass(frozen=True)
class Standing:
    """One model in a comparison.

    Attributes:
        layer: its best layer on dev.
        score: the test score there.
        difference: its score minus the first model's; None for that model.
    """

    model: str
    layer: int
    score: float | None
    difference: Difference | None = None


@dataclass(frozen=True)
class Comparison:
    """All models on one task with one probe family, in the order given.

    Attributes:
        head: task and metric, with what sets the results apart.
        n: the number of test examples.
        limit: the suffix of the corpus's name if only a part of it was used.
        apart: models that cannot be compared with the others, and why.
    """

    task: str
    head: str
    probe: str
    metric: str
    n: str
    limit: str
    standings: tuple[Standing, ...]
    apart: dict[str, str]


def compare(
    results: Sequence[Result], score_of: Callable[[Result], LayerScore]
) -> list[Comparison]:
    """Compare models task by task; a task that only one model was probed on is left out.

    The first model is the reference in every task, so that signs mean the same in all of them.

    Args:
        score_of: gives the score of a result at its best layer (see
            `probes.boards.paired.layer_scores`); raises `UserError` if predictions cannot be read.
    """

    def unit(result: Result) -> tuple[str, str]:
        return result.probe.family, result.task.name

    places = {name: i for i, name in reversed(list(enumerate(map(unit, results))))}
    ordered = sorted(results, key=lambda r: places[unit(r)])
    groups = [list(group) for _, group in groupby(ordered, key=unit)]
    found = [_compared(group, score_of) for group in groups if len(group) > 1]
    return [comparison for comparison in found if comparison is not None]


def _compared(
    group: Sequence[Result], score_of: Callable[[Result], LayerScore]
) -> Comparison | None:
    """None if no result's predictions can be read."""
    apart: dict[str, str] = {}
    scores: list[LayerScore] = []
    for result in group:
        try:
            score = score_of(result)
        except UserError:
            apart[model_title(result)] = "predictions not readable"
            continue
        if scores and (why := _why_apart(scores[0], score)):
            apart[model_title(result)] = why
        else:
            scores.append(score)
    if not scores:
        return None
    # All pairs are tested, as in `leaderboard`, though only those with the first are shown.
    tested = paired_differences(scores, all_pairs(len(scores)))[: len(scores) - 1]
    first = scores[0].result
    return Comparison(
        first.task.name,
        task_head(first, first.task.metric),
        first.probe.family,
        first.task.metric,
        n_of([first]),
        limit_mark(first),
        tuple(
            Standing(model_title(score.result), score.layer, score.value, difference)
            for score, difference in zip(scores, (None, *tested), strict=True)
        ),
        apart,
    )


def _why_apart(first: LayerScore, other: LayerScore) -> str:
    """Why two results cannot be compared; empty if they can."""
    for column in differing(other.result, first.result, SAME_PAIR):
        return f"another {named(column)}"
    same = first.result.examples.test_digest == other.result.examples.test_digest
    return "" if same else "other test examples"


def comparison_tables(comparisons: Iterable[Comparison]) -> Iterator[Table]:
    """One table per probe family: every model's best layer, and how it differs."""
    by_family: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        by_family.setdefault(comparison.probe, []).append(comparison)
    for family, own in by_family.items():
        differences_ = [s.difference for each in own for s in each.standings if s.difference]
        tested = any(difference.p is not None for difference in differences_)
        apart = (
            f"Not compared: {model} on {comparison.task} ({why})."
            for comparison in own
            for model, why in comparison.apart.items()
        )
        counts = "; ".join(f"{comparison.task} {comparison.n}" for comparison in own)
        yield Table(
            f"models at their best layers · {family} probe · test{own[0].limit}",
            ("task", "model", "layer", "score", "difference from the first model", *["p"] * tested),
            tuple(row for comparison in own for row in _rows(comparison, tested)),
            left=2,
            repeated=2,
            notes=(
                "Layers are chosen on dev. "
                + (tested_note(differences_) if tested else NOT_TESTED),
                f"n: {counts}.",
                *apart,
            ),
        )


def _rows(comparison: Comparison, tested: bool) -> Iterator[TableRow]:
    for place, standing in enumerate(comparison.standings):
        yield TableRow.of(
            "" if place else comparison.head,
            standing.model,
            str(standing.layer),
            score_cell(standing.score, None, comparison.metric),
            *(standing.difference.cells if standing.difference else ("", ""))[: 1 + tested],
            ends_section=standing is comparison.standings[-1],
        )
