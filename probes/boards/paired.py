"""Differences between layers of two results, tested on the same resamples of the test split.

The one place where models are compared: the summary of a run, `compare` and the ranks of
`leaderboard` all ask `paired_differences`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from probes.boards.comparable import SAME_PAIR, column_name, columns_apart
from probes.common.arrays import Floats
from probes.common.errors import UserError
from probes.common.grouping import grouped
from probes.measurements.table_cells import counted_head, p_cell, score_cell
from probes.probing.resampled_scores import resampled_scores
from probes.records.record import limit_mark, model_title
from probes.records.record_files import if_readable
from probes.records.result import Result
from probes.records.values import Interval
from probes.statistics.bootstrap import RESAMPLES, bounds, interval
from probes.statistics.metrics import printed_score, quantity
from probes.statistics.replicates import Replicates, p_values_of
from probes.statistics.significance import Pair, all_pairs, borderline
from probes.tables.table import NOTHING, Cell, Table, TableRow

_TESTED = (
    "p is corrected by max-T over all pairs of a task's trained models (pairs with random twins "
    "among themselves), and includes uncertainty from test data and from training."
)

_SOME_TESTED = (
    "p needs the training variance of both models (measure it with --evidence standard), and 20 "
    "test documents or sentences."
)

_NOT_TESTED = (
    "Differences are not tested: that takes training variance (--evidence standard) of both "
    "models, and 20 test documents or sentences. Intervals, if any, are over test text alone."
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
        scores: Floats = self.replicates.resampled[0]
        return scores

    @property
    def testable(self) -> bool:
        """Whether there are replicates that include training variance."""
        return self.replicates is not None and self.replicates.noise is not None

    def paired_with(self, other: LayerScore) -> bool:
        """Whether both have been resampled, and over the same examples."""
        resampled = self.replicates is not None and other.replicates is not None
        return resampled and self.result.examples.test_digest == other.result.examples.test_digest


@dataclass(frozen=True)
class Difference:
    """Difference between the scores of two layers.

    Attributes:
        value: the difference of the scores; None if either is undefined.
        interval: 95 % interval of the difference; it knows of training if there is p.
        p: two-sided, corrected by max-T over the differences of its family; None if
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
    """A note on p in a table of differences: its meaning, missing values, borderline ones."""
    p_values = [difference.p for difference in differences]
    notes = [_TESTED]
    if None in p_values:
        notes.append(_SOME_TESTED)
    if any(borderline(p) for p in p_values if p is not None):
        notes.append("Borderline: p is so near .05 that other resamples might decide otherwise.")
    return " ".join(notes)


def best_layer_score(result: Result) -> LayerScore:
    """Score of the layer that is best on dev, resampled if what that takes is there.

    Raises:
        UserError: the arrays beside it cannot be read, or are those of other scores.
    """
    layer = result.best_layer
    return LayerScore(result, layer, resampled_scores(result, [layer]))


def readable_score(result: Result) -> LayerScore:
    """`best_layer_score`; if arrays cannot be read, a message, and the score without resamples."""
    score = if_readable(lambda: best_layer_score(result))
    return score or LayerScore(result, result.best_layer)


def paired_differences(scores: Sequence[LayerScore], pairs: Sequence[Pair]) -> list[Difference]:
    """For each pair of places in `scores`, the second score minus the first.

    The p-values are corrected over all pairs that can be tested: those of trained models, and those
    with a random twin, apart. So twins do not change what is found of trained models.
    """
    values = np.array([np.nan if x.value is None else x.value for x in scores])
    replicates = np.array([x.resampled for x in scores]).reshape(-1, RESAMPLES)
    paired = [scores[one].paired_with(scores[other]) for one, other in pairs]
    tested = [
        is_paired and scores[one].testable and scores[other].testable
        for is_paired, (one, other) in zip(paired, pairs, strict=True)
    ]
    tested_pairs = [pair for pair, is_tested in zip(pairs, tested, strict=True) if is_tested]
    p_values = _p_values_of_pairs(scores, tested_pairs)
    differences = []
    for (one, other), is_paired, is_tested in zip(pairs, paired, tested, strict=True):
        p = p_values[one, other] if is_tested else np.nan
        value, metric = values[other] - values[one], scores[one].result.task.metric
        apart, limits = replicates[other] - replicates[one], quantity(metric).differences
        differences.append(
            Difference(
                metric,
                None if np.isnan(value) else float(value),
                bounds(interval(apart, limits)) if is_paired else None,
                None if np.isnan(p) else p,
            )
        )
    return differences


def differences_from_first(scores: Sequence[LayerScore]) -> list[Difference]:
    """The other scores minus the first; p-values are those of all pairs, as in `leaderboard`."""
    return paired_differences(scores, all_pairs(len(scores)))[: len(scores) - 1]


def _p_values_of_pairs(scores: Sequence[LayerScore], pairs: Sequence[Pair]) -> dict[Pair, float]:
    """p-values of pairs of scores, corrected over pairs on the same examples, with twins or not."""

    def family(pair: Pair) -> tuple[str, bool]:
        one, other = (scores[i].result for i in pair)
        with_twin = any(x.model.random_seed is not None for x in (one, other))
        return one.examples.test_digest, with_twin

    p_values: dict[Pair, float] = {}
    for family_pairs in grouped(pairs, family).values():
        cells = sorted({cell for pair in family_pairs for cell in pair})
        replicates = [x for cell in cells if (x := scores[cell].replicates) is not None]
        pair_indices = [(cells.index(one), cells.index(other)) for one, other in family_pairs]
        p_values |= dict(zip(family_pairs, p_values_of(replicates, pair_indices), strict=True))
    return p_values


def _signed(value: float, metric: str) -> str:
    """A difference of scores: +1.2."""
    text = printed_score(abs(value), metric)
    zero = not text.strip("0.")
    return text if zero else ("−" if value < 0 else "+") + text


def closing_tables(
    results: Iterable[Result], score_of: Callable[[Result], LayerScore]
) -> list[Table]:
    """One table per probe family: every model's best layer, and how it differs from the first's.

    A task that only one model was probed on is left out. The first model is the reference in every
    task, so that signs mean the same in all of them.

    Args:
        score_of: gives the score of a result at its best layer, as `best_layer_score` does; raises
            `UserError` if predictions cannot be read.
    """
    tables = []
    for family, family_results in grouped(results, lambda x: x.probe.family).items():
        by_task = grouped(family_results, lambda x: x.task.name)
        several = [group for group in by_task.values() if len(group) > 1]
        tables.append(_closing_table(family, several, score_of))
    return [table for table in tables if table is not None]


def _closing_table(
    family: str, groups: Sequence[Sequence[Result]], score_of: Callable[[Result], LayerScore]
) -> Table | None:
    """None if there is nothing to compare, or no predictions can be read."""
    rows: list[TableRow] = []
    differences: list[Difference] = []
    counts, apart, limit = [], [], ""
    for group in groups:
        scores, reasons = _comparable(group, score_of)
        if not scores:
            continue
        first = scores[0].result
        limit = limit_mark(first)
        counts.append(counted_head(first))
        apart += [f"Not compared: {x} on {first.task.name} ({y})." for x, y in reasons.items()]
        group_differences = differences_from_first(scores)
        differences += group_differences
        compared: list[tuple[str | Cell, ...]] = [("", ""), *(x.cells for x in group_differences)]
        for score, cells in zip(scores, compared, strict=True):
            head = "" if score is not scores[0] else first.task.name
            value = score_cell(score.value, None, first.task.metric)
            name, layer = model_title(score.result), str(score.layer)
            ends_section = score is scores[-1]
            rows.append(TableRow.of(head, name, layer, value, *cells, ends_section=ends_section))
    if not rows:
        return None
    tested = any(difference.p is not None for difference in differences)
    note = tested_note(differences) if tested else _NOT_TESTED
    table = Table(
        f"models at their best layers · {family} probe · test{limit}",
        ("task", "model", "layer", "score", "difference", "p"),
        tuple(rows),
        left=2,
        repeated=2,
        notes=(
            f"Layers are chosen on dev; differences are from the first model. {note}",
            f"{'; '.join(counts)}.",
            *apart,
        ),
    )
    return table if tested else table.with_columns(range(5))


def _comparable(
    group: Sequence[Result], score_of: Callable[[Result], LayerScore]
) -> tuple[list[LayerScore], dict[str, str]]:
    """The scores that can be compared with the first; by model, why others cannot."""
    scores: list[LayerScore] = []
    apart: dict[str, str] = {}
    for result in group:
        try:
            score = score_of(result)
        except UserError:
            apart[model_title(result)] = "predictions not readable"
            continue
        first = scores[0].result if scores else result
        different = [f"another {column_name(x)}" for x in columns_apart(result, first, SAME_PAIR)]
        if first.examples.test_digest != result.examples.test_digest:
            different.append("other test examples")
        if different:
            apart[model_title(result)] = different[0]
        else:
            scores.append(score)
    return scores, apart
