"""The models of one run compared: each model's best layer against that of the best model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from probes.boards.comparable import SAME_PAIR, differences
from probes.boards.paired import (
    NOT_TESTED,
    Difference,
    LayerScore,
    paired_differences,
    tested_note,
)
from probes.common.errors import UserError
from probes.measurements.cells import n_of, score_cell, task_head
from probes.records.record import limit_mark, model_title
from probes.records.result import Result
from probes.records.table import Table, TableRow
from probes.statistics.significance import all_pairs


@dataclass(frozen=True)
class Standing:
    """One model in a comparison.

    Attributes:
        layer: its best layer on dev.
        score: the test score there.
        difference: its score minus the best model's; None for that model.
    """

    model: str
    layer: int
    score: float | None
    difference: Difference | None = None


@dataclass(frozen=True)
class Comparison:
    """All models on one task with one probe family, the best on dev first.

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

    The best model is chosen on dev, as the layers are.

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
    for result in sorted(group, key=lambda r: -_dev(r)):
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
    # All pairs are tested, though those with the first are shown: it was not known beforehand.
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


def _dev(result: Result) -> float:
    score = result.score(result.best_layer, "dev")
    return float("-inf") if score is None else score


def _why_apart(first: LayerScore, other: LayerScore) -> str:
    """Why two results cannot be compared; empty if they can."""
    for aspect in differences(other.result, first.result, SAME_PAIR):
        return f"another {aspect.name}"
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
                "Layers and the first model are chosen on dev. "
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
