"""Rules for testing claims on the rows of one model and corpus."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from typing import Any, Literal, NamedTuple

import numpy as np

from probes.common.errors import layer_ranges
from probes.measurements.measurement import get_measurement, measurements
from probes.records.record import Record
from probes.records.result import Result
from probes.records.row import Row
from probes.statistics.metrics import decimals, label_of, printed_score
from probes.statistics.significance import ALPHA, borderline, holm

Verdict = Literal[
    "supported", "not specific to training", "contradicted", "undecided", "not tested"
]

Ends = tuple[float, float]
"""The ends of a 95 % interval; equal for a constant."""

_OF = "feature", "labels", "group", "paradigm", "phenomenon", "baseline", "base", "predicts"
"""Axes that a reason names."""


@dataclass(frozen=True)
class Claim:
    """A statement, its source, the differences of our test from the study, and the test."""

    name: str
    statement: str
    source: str
    differs: str
    rule: partial[Any]


class MissingError(Exception):
    """The results lack something that a claim reads."""


class Reads:
    """The rows that a claim reads, from a task or from a measurement of the corpus.

    Args:
        layers: a part of the model (see `part_of`), all layers of which are needed. Empty for rows
            that are not compared by layer.
        among_all: whether its rows were chosen among those of all layers, all of which are needed.
        keep: a further condition on rows.
        axes: values of axes: one, several, or `...` for any; "@rank" is the reported rank and
            "@n_layers" the last layer.
    """

    def __init__(
        self,
        measurement: str,
        metric: str,
        task: str = "",
        layers: str = "",
        among_all: bool = False,
        keep: Callable[[ModelRows, Row], bool] = lambda model, row: True,
        **axes: Any,
    ) -> None:
        self.measurement, self.metric, self.task = measurement, metric, task
        self.layers, self.among_all = layers, among_all
        self.keep, self.axes = keep, axes
        self.name = task or measurement


class ModelRows:
    """The records of one model on one corpus: results by task, others by measurement.

    Methods raise MissingError for what is not there; a claim that needs it is not tested.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        all_records = list(records)
        self.results = {x.task.name: x for x in all_records if isinstance(x, Result)}
        self.corpus = {x.measurement: x for x in all_records if x.task is None}
        self.n_layers = all_records[0].model.n_layers

    def record(self, reads: Reads) -> Record:
        """The record that a claim reads."""
        result, name = self.results.get(reads.task), reads.measurement
        if reads.task and result is None:
            raise MissingError(f"{reads.task} was not run")
        by_measurement = result.evidence if result else self.corpus
        if name in by_measurement:
            return by_measurement[name]
        missing = f"{reads.task} has no" if reads.task else "there is no record of"
        needs = f"--evidence {name}" if reads.task else f"--measurements {name}"
        if name in measurements and (pair := get_measurement(name)).of == "pair":
            needs = f"--model BASE TUNED --measurements {pair.after}"
        raise MissingError(f"{missing} {name} ({needs})")

    def read(self, reads: Reads) -> list[Row]:
        """The rows that a claim reads, at all layers that it needs."""
        record = self.record(reads)
        facts = {"@rank": record.facts.get("rank"), "@n_layers": self.n_layers}
        axes = {axis: facts.get(x, x) for axis, x in reads.axes.items()}
        rows = [
            row
            for row in record.rows.matching(reads.metric, **axes)
            if row.split in ("test", "all") and reads.keep(self, row)
        ]
        if not rows:
            raise MissingError(f"{reads.name} has no {reads.metric} of this kind")
        if reads.layers or reads.among_all:
            part = part_of(reads.layers or "above 0", self.n_layers)
            rows = [row for row in rows if row.layer in part]
            there = {row.layer for row in rows} if reads.layers else set(record.extent)
            if absent := part - there:
                raise MissingError(f"{reads.name} was not measured at {layer_ranges(absent)}")
        return rows

    def intervals(self, reads: Reads) -> list[tuple[Row, Ends]]:
        """The rows that a claim reads, with their intervals."""
        rows = self.read(reads)
        intervals = [(row, ends) for row in rows if (ends := _ends(row))]
        if len(intervals) < len(rows):
            raise MissingError(f"{reads.metric} of {reads.name} has no interval")
        return intervals


def _ends(row: Row) -> Ends | None:
    """The interval of a number; exact for a share of few items (Clopper–Pearson)."""
    if row.interval is None and row.value is not None:
        # Constants do not vary over samples: no answer changed, or a baseline that reads nothing.
        unchanged = (row.metric, row.value) == ("ablation_drop", 0)
        if unchanged or row.axes.get("baseline") == "uniform":
            return row.value, row.value
        if row.metric == "sensitivity" and row.n:
            from scipy.stats import binomtest  # slow to import

            low, high = binomtest(round(row.value * row.n), row.n).proportion_ci()
            return float(low), float(high)
    return row.interval


def part_of(name: str, n_layers: int) -> set[int]:
    """The layers of a part of a model.

    The Primer gives layers of BERT-base (12) and BERT-large (24). Other models use relative depth:
    that of BERT-base below 12 layers, of BERT-large above 24, interpolated between.

    Raises:
        MissingError: the model has no such layer.
    """
    first, end = (np.interp(n_layers, (12, 24), x) for x in ((6 / 12, 14 / 24), (9 / 12, 19 / 24)))
    inside: dict[str, Callable[[int], Any]] = {
        "all": lambda layer: True,
        "above 0": lambda layer: layer > 0,
        "lower": lambda layer: 3 * layer <= n_layers,  # up to 4 of 12, where word order declines
        "middle": lambda layer: first <= layer / n_layers <= end,  # 6–9 of 12, 14–19 of 24
        "late middle": lambda layer: 7.5 * n_layers <= 12 * layer <= 9.5 * n_layers,  # 8–9 of 12
        "higher": lambda layer: layer / n_layers > end,
        "last": lambda layer: layer == n_layers,
        "last two": lambda layer: layer > max(n_layers - 2, 0),
        "below the last two": lambda layer: 0 < layer <= n_layers - 2,
    }
    if layers := {layer for layer in range(n_layers + 1) if inside[name](layer)}:
        return layers
    raise MissingError(f"a model of {n_layers} layers has no layers that count as {name}")


class Outcome(NamedTuple):
    """A verdict with reason, numbers, and p of the claim or its contrary."""

    verdict: Verdict
    why: str
    numbers: list[dict[str, Any]]
    p: float | None = None


def decided(p_for: float, p_against: float, reason: str, numbers: list[dict[str, Any]]) -> Outcome:
    """The outcome of tests of a claim and of its contrary."""
    sides: dict[Verdict, float] = {"supported": p_for, "contradicted": p_against, "undecided": 0.0}
    verdict = next(side for side, p in sides.items() if p < ALPHA)
    return Outcome(verdict, reason, numbers, min(p_for, p_against))


def any_of(p_values: Iterable[float]) -> float:
    """The p-value for at least one of several statements (Bonferroni)."""
    all_p = list(p_values)
    return min(1.0, len(all_p) * min(all_p))


def most_of(p_values: Iterable[float]) -> float:
    """The p-value for more than half of several statements (Benjamini & Heller 2008)."""
    sorted_p = sorted(p_values)
    needed = len(sorted_p) // 2 + 1
    return min(1.0, (len(sorted_p) - needed + 1) * sorted_p[needed - 1])


def p_above(high: Ends, low: Ends) -> float:
    """The p-value for one number above another, from their intervals, assumed normal.

    It is below .05 if the intervals do not overlap, which errs towards undecided.
    """
    distance, width = sum(high) - sum(low), high[1] - high[0] + low[1] - low[0]
    if distance <= 0:
        return 1.0
    return math.erfc(1.959964 * distance / width / math.sqrt(2)) if width > 0 else 0.0


def greater(*pairs: tuple[Any, Any], model: ModelRows, needed: Any = max) -> Outcome:
    """The first of each pair is greater than the second, at all layers.

    Supported if all comparisons agree, or most if `needed` is `most_of`. Contradicted if most
    comparisons of one pair say the opposite, corrected for the numbers of comparisons and pairs.
    """
    p_for, p_against, texts, numbers = [], [], [], []
    for pair in pairs:
        ends: list[list[Ends]] = []
        for side in pair:
            if isinstance(side, Reads):
                intervals = model.intervals(side)
                ends.append([interval for _, interval in intervals])
                texts.append(_values_text(side, [row for row, _ in intervals]))
                numbers += [row._asdict() for row, _ in intervals]
            else:
                ends.append([(side, side)])
                metric = next(x.metric for x in pair if isinstance(x, Reads))
                texts.append(f"limit: {printed_score(side, metric) if side else 0}")
        p_for.append(needed(p_above(high, low) for high, low in product(*ends)))
        p_against.append(most_of(p_above(low, high) for high, low in product(*ends)))
    return decided(max(p_for), any_of(p_against), "; ".join(dict.fromkeys(texts)), numbers)


def somewhere(side: Literal["above 0", "below 0"], reads: Reads, *, model: ModelRows) -> Outcome:
    """At least one number is on a side of 0.

    Supported by the record's p-values, which are corrected for all numbers of a task. Contradicted
    if all intervals are on the other side.
    """
    sign = 1 if side == "above 0" else -1
    rows = model.read(reads)
    p_values: dict[Any, list[float]] = defaultdict(list)
    against = []
    for row in rows:
        is_there = row.p is not None and sign * (row.value or 0.0) > 0
        p_values[row.axes.get("predicts")].append(row.p or 0.0 if is_there else 1.0)
        other_side = ((0.0, 0.0), row.interval or (0.0, 0.0))[::sign]
        against.append(p_above(*other_side))
    n = sum(p < ALPHA for p_list in p_values.values() for p in p_list)
    farthest = max(rows, key=lambda row: sign * (row.value or 0.0))
    reason = f"{n} of {len(rows)} are {side}; farthest: {_values_text(reads, [farthest])}"
    p_for = any_of(min(p_list) for p_list in p_values.values())
    return decided(p_for, max(against), reason, [row._asdict() for row in rows])


def peak_in(*parts: tuple[Reads, str], model: ModelRows) -> Outcome:
    """Each task is best in a part of the model, by the p-values of layers for being the best.

    Supported if all layers that may be the best lie in that part. Contradicted if none does, for
    one task.
    """
    inside, outside, texts, numbers = [], [], [], []
    for reads, part in parts:
        rows, layers = model.read(reads), part_of(part, model.n_layers)
        if all(row.value is None for row in rows):
            raise MissingError(f"{reads.metric} of {reads.name}: layers could not be tested")
        p_best = {row.layer or 0: row.value or 0.0 for row in rows}
        inside.append(max((p for layer, p in p_best.items() if layer in layers), default=0.0))
        outside.append(max((p for layer, p in p_best.items() if layer not in layers), default=0.0))
        best = layer_ranges((layer for layer, p in p_best.items() if p >= ALPHA), [*p_best])
        name = reads.task or label_of(reads.metric.removesuffix("_p_best"))
        expected = layer_ranges(layers)
        texts.append(f"{name} is best at {best} of {model.n_layers}; {part}: {expected}")
        numbers.append({"of": name, "p_best": p_best})
    return decided(max(outside), any_of(inside), "; ".join(texts), numbers)


def corrected(outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """The outcomes with p corrected for the number of claims (Holm 1979)."""
    p_values = {name: outcome.p for name, outcome in outcomes.items() if outcome.p is not None}
    verdicts = dict(outcomes)
    for name, p in zip(p_values, holm(list(p_values.values())), strict=True):
        before = outcomes[name]
        if before.verdict != "undecided" and p >= ALPHA:
            of_one, of_all = decimals(p_values[name], 3), decimals(p, 3)
            reason = f"{before.why}; p = {of_one}, corrected for {len(p_values)} claims {of_all}"
            verdicts[name] = before._replace(verdict="undecided", why=reason)
        if borderline(p):
            verdicts[name] = verdicts[name]._replace(why=f"{verdicts[name].why}; p is borderline")
    return verdicts


def beside_twin(outcome: Outcome, twin: Outcome) -> Outcome:
    """A model's outcome beside the random twin's: a shared verdict is not due to training."""
    if "not tested" in (outcome.verdict, twin.verdict):
        return outcome
    shared = outcome.verdict == twin.verdict != "undecided"
    return outcome._replace(
        verdict="not specific to training" if shared else outcome.verdict,
        why=f"{outcome.why}; random twin: {twin.verdict}",
    )


def _values_text(reads: Reads, rows: Sequence[Row]) -> str:
    """Least and greatest value: ``anisotropy at lower layers: .061 to .183 [.059, .185]``."""
    first = rows[0]
    shared = {axis: {str(row.axes.get(axis)) for row in rows} for axis in _OF if axis in first.axes}
    of = [reads.task, *(min(places) for places in shared.values() if len(places) == 1)]
    text = " of ".join(filter(None, [label_of(first.metric), ", ".join(filter(None, of))]))
    if reads.layers and len(rows) > 1:
        text += f" at layers {first.layer}–{rows[-1].layer}"
    elif first.layer is not None and len(rows) == 1:
        text += f" at layer {first.layer}"
        text += f", head {first.axes['head']}" if "head" in first.axes else ""
    number = partial(printed_score, metric=first.metric)
    values = [row.value or 0.0 for row in rows]
    text += ": " + " to ".join(dict.fromkeys(map(number, (min(values), max(values)))))
    if ends := list(chain(*(row.interval or () for row in rows))):
        text += f" [{number(min(ends))}, {number(max(ends))}]"
    return text
