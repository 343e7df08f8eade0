"""Model against model: each model's best layer, and what separates it from the best model's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats
from probes.measurements.plugin_keys import digests
from probes.records.arrays import Arrays
from probes.records.payload import Interval
from probes.records.result import ALPHA, Result
from probes.records.titles import limit_mark, task_head
from probes.statistics.bootstrap import MIN_SENTENCES, replicates, resample
from probes.statistics.metrics import metrics
from probes.statistics.resampled import gold_of
from probes.statistics.significance import paired_tests


@dataclass(frozen=True)
class Standing:
    """One model in a comparison.

    Attributes:
        layer: its best on dev.
        score: the test score there.
        difference: its score less the best model's; None for that model.
        interval: 95 % interval of the difference, the same test sentences resampled for both.
        p: two-sided, Holm-corrected over the comparisons of this task and probe.
    """

    model: str
    layer: int
    score: float | None
    difference: float | None = None
    interval: Interval = None
    p: float | None = None

    @property
    def separated(self) -> bool:
        """Whether the data tell it from the best model."""
        return self.p is not None and self.p < ALPHA


@dataclass(frozen=True)
class Comparison:
    """All models on one task with one probe family, the best on dev first.

    Attributes:
        head: task and metric, with what sets the results apart.
        apart: models that cannot be compared with the others, and why.
    """

    task: str
    head: str
    probe: str
    metric: str
    standings: tuple[Standing, ...]
    apart: Mapping[str, str]


def compare(
    results: Sequence[Result], arrays_of: Callable[[Result], Arrays | None]
) -> list[Comparison]:
    """Compare models task by task; a task that only one model was probed on is left out.

    The best model is chosen on dev, as the layers are. Scores are seed 0's.

    Args:
        arrays_of: gives the per-example arrays of a result (see `Outcome.arrays`); None where
            they cannot be read.
    """

    def unit(result: Result) -> tuple[str, str]:
        return result.probe.family, result.task.name

    places = {name: i for i, name in reversed(list(enumerate(map(unit, results))))}
    ordered = sorted(results, key=lambda r: places[unit(r)])
    groups = [list(group) for _, group in groupby(ordered, key=unit)]
    found = [_compared(group, arrays_of) for group in groups if len(group) > 1]
    return [comparison for comparison in found if comparison is not None]


def _compared(
    group: Sequence[Result], arrays_of: Callable[[Result], Arrays | None]
) -> Comparison | None:
    """None if no result's predictions can be read."""
    apart: dict[str, str] = {}

    def readable() -> Iterator[tuple[Result, Arrays]]:
        for result in sorted(group, key=lambda r: -_dev(r)):
            arrays = arrays_of(result)
            if arrays is None:
                apart[result.model.name] = "predictions not readable"
            else:
                yield result, arrays

    ranked = readable()
    best_read = next(ranked, None)
    if best_read is None:
        return None
    first, leading = best_read
    gold = gold_of(first, leading)
    enough = gold.n_sentences >= MIN_SENTENCES
    metric, draws = metrics.get(first.task.metric), resample(gold.n_sentences)
    best = replicates(metric, gold, _row(first, leading)[None], draws)
    standings = [_standing(first)]
    lead = standings[0].score
    differences: list[Floats] = []
    for result, arrays in ranked:
        if why := _unlike(result, arrays, first, leading):
            apart[result.model.name] = why
            continue
        standings.append(_standing(result))
        differences.append((replicates(metric, gold, _row(result, arrays)[None], draws) - best)[0])
    tests = paired_tests(differences if enough else [None] * len(differences))
    tested = [
        replace(standing, difference=_less(standing.score, lead), interval=between, p=p)
        for standing, (between, p) in zip(standings[1:], tests, strict=True)
    ]
    return Comparison(
        first.task.name,
        task_head(first, first.task.metric) + limit_mark(first),
        first.probe.family,
        first.task.metric,
        (standings[0], *tested),
        apart,
    )


def _standing(result: Result) -> Standing:
    best = result.best_layer
    return Standing(result.model.name, best.layer, result.score(best))


def _dev(result: Result) -> float:
    score = result.score(result.best_layer, "dev")
    return float("-inf") if score is None else score


def _row(result: Result, arrays: Arrays) -> NDArray[Any]:
    """Seed 0's test predictions at the best layer. Shape (n,)."""
    place = arrays["layers"].tolist().index(result.best_layer.layer)
    row: NDArray[Any] = arrays["predicted"][place, 0]
    return row


def _unlike(result: Result, arrays: Arrays, first: Result, leading: Arrays) -> str:
    """Why two results cannot be compared; empty if they can."""
    for what, one, other in (
        ("corpus", result.corpus.fingerprint, first.corpus.fingerprint),
        ("task version", result.task.version, first.task.version),
        ("probe specification", result.probe, first.probe),
        ("source of a plug-in", digests(result.plug_ins), digests(first.plug_ins)),
        ("projection", result.project, first.project),
        ("view", result.view, first.view),
    ):
        if one != other:
            return f"another {what}"
    alike = all(np.array_equal(arrays[name], leading[name]) for name in ("gold", "sentence"))
    return "" if alike else "other test examples"


def _less(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other
