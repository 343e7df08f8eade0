"""Scores, estimates and layers as the cells of tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from probes.common.errors import listed
from probes.records.record import task_marks
from probes.records.result import Result
from probes.records.row import Row
from probes.records.values import Interval
from probes.statistics.metrics import label_of, lower_is_better, metrics, printed_score
from probes.statistics.partition import FEWEST
from probes.statistics.significance import ALPHA, borderline, printed_p
from probes.tables.table import NOTHING, Cell


def score_cell(
    score: float | None, interval: Interval, metric: str, *, brackets: bool = False, **fields: Any
) -> Cell:
    """A score with half its interval, or with both ends if one side is a third shorter, or more.

    Args:
        brackets: show both ends in any case.
        fields: those of `Cell`.
    """
    half = "" if interval is None else printed_score((interval[1] - interval[0]) / 2, metric)
    if interval is not None and score is not None:
        shorter, longer = sorted((score - interval[0], interval[1] - score))
        if brackets or 3 * shorter < 2 * longer:
            half = f"[{', '.join(printed_score(end, metric) for end in interval)}]"
    fields = {"value": score, "interval": interval, **fields}
    return Cell(printed_score(score, metric), half, **fields)


def p_cell(p: float | None) -> Cell:
    """A p-value."""
    return Cell(NOTHING) if p is None else Cell(printed_p(p), value=p)


def layer_marks(p: float | None, *, best: bool, floored: bool = False) -> dict[str, bool]:
    """The marks of a layer's score, as fields of `Cell`.

    Args:
        p: of the test behind the confidence set of layers; None where nothing was tested.
        best: whether the layer is the best on dev.
        floored: whether the score is not above its floor. It has no other mark then: what is not
            shown to be decoded there cannot be decoded best.
    """
    if floored:
        best, p = False, None
    may_be_best = p is not None and p >= ALPHA
    return {
        "best": best,
        "tied": may_be_best and not best,
        "beaten": best and p is not None and not may_be_best,
        "floored": floored,
        "borderline": p is not None and bool(borderline(p)),
    }


def group_metric(result: Result) -> str:
    """The metric of a result's breakdown by groups."""
    return str(result.facts["group_metric"])


def group_cell(result: Result, layer: int, group: str) -> Cell:
    """The score of a layer's first fit within a group of examples."""
    metric = group_metric(result)
    row = result.at(metric, layer, group=group)
    return score_cell(row.value, row.interval, metric) if row else Cell(NOTHING)


def estimate_cell(row: Row | None) -> Cell:
    """A number with its interval in its text, or why there is none."""
    if row is None:
        return Cell(NOTHING)
    if row.value is None:
        return Cell(f"undefined: {row.why}")
    text = f"{row.value:z.2f}"
    if row.interval is not None:
        text += f" [{row.interval[0]:z.2f}, {row.interval[1]:z.2f}]"
    return Cell(text.replace("-", "−"), value=row.value, interval=row.interval)


def interval_note(results: Sequence[Result]) -> str:
    """A note on what intervals of scores resample, and on results without any."""
    units = dict.fromkeys(resampled_units(x) for x in results if x.examples.clusters >= FEWEST)
    note = (
        f"± half the width, or both ends, of a 95 % interval over test {' or '.join(units)}; "
        "training variation is not included."
    )
    return " ".join([note] * bool(units) + few_note(results))


def few_note(results: Sequence[Result]) -> list[str]:
    """A note on results without intervals and tests; none if there are none."""
    few = [result for result in results if why_not_resampled(result)]
    reasons = " or ".join(dict.fromkeys(map(why_not_resampled, few)))
    tasks = dict.fromkeys(result.task.name for result in few)
    of = f" of {listed(tasks, 'and')}" if 0 < len(few) < len(results) else ""
    return [f"No intervals and no tests{of}: {reasons}."] * bool(few)


def no_intervals(units: str) -> str:
    """A note on a test split with too few documents or sentences."""
    return f"No intervals and no tests: fewer than {FEWEST} test {units}."


def why_not_resampled(result: Result) -> str:
    """The reason why a result has neither intervals nor tests; empty if it has."""
    examples, metric = result.examples, result.task.metric
    if examples.clusters < FEWEST:
        return f"fewer than {FEWEST} test {resampled_units(result)}"
    if metric not in metrics or not metrics.get(metric).of_margins:
        return ""
    negatives, positives = (examples.labels[name][2] for name in examples.classes)
    return metrics.get(metric).too_few((negatives, positives))


def resampled_units(result: Result) -> str:
    """The plural name of what intervals and tests resample."""
    name, group = result.examples.resampled, result.corpus.group
    if name == "documents":
        return f"groups ({group})" if group else name
    return "texts" if result.task.shape == "text" else name


def starred(result: Result, layer: int) -> str:
    """A layer's number, with a star if it is the best on dev and above the floor."""
    best = layer == result.best_number and not result.is_floored(layer)
    return f"{layer}★" if best else f"{layer}"


def metric_name(result: Result) -> str:
    """The headline metric with the view and silver labels: ``balanced acc., masked``."""
    return ", ".join([label_of(result.task.metric), *task_marks(result)])


def ranking_name(result: Result) -> str:
    """The headline metric with the rate of the threshold: ``AUROC, threshold for 1 % FPR``."""
    name, fpr = metric_name(result), result.task.fpr
    return name if fpr is None else f"{name}, threshold for {100 * fpr:g} % FPR"


def task_head(result: Result, metric: str = "") -> str:
    """A task with a metric, the view and silver labels: ``agreement (balanced acc., masked)``."""
    words = [label_of(metric)] * bool(metric) + task_marks(result)
    return f"{result.task.name} ({', '.join(words)})" if words else result.task.name


def n_of(results: Iterable[Result]) -> str:
    """Number of test examples, or the range over several results: ``208–5,738``."""
    counts = sorted({result.examples.n["test"] for result in results})
    return "–".join(f"{n:,}" for n in dict.fromkeys((counts[0], counts[-1])))


def counted_head(result: Result) -> str:
    """A task with its metric and number of test examples: ``pos (accuracy), n = 5,738``."""
    return f"{task_head(result, result.task.metric)}, n = {n_of([result])}"


def group_metric_title(result: Result) -> str:
    """The name of a result's group metric, with a note if it is an error."""
    metric = group_metric(result)
    return label_of(metric) + (", lower is better" if lower_is_better(metric) else "")
