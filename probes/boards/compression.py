"""Compression: size and speed of models, and how much of the gain of another one they keep.

After table 1 of *A Primer in BERTology* (Rogers et al. 2020, section 7). There, students keep a
share of their teacher's score. Here, it is a share of the score above the floor, since a model
that knows nothing would keep what a rule scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from probes.boards.floors import resampled_floor
from probes.boards.paired import LayerScore, readable_score
from probes.boards.ranking_tables import size_cells
from probes.boards.rankings import Candidate
from probes.measurements.table_cells import score_cell, task_head
from probes.records.record_files import if_readable
from probes.records.result import Result
from probes.records.values import Estimate
from probes.statistics.bootstrap import bounds, interval, missing_estimate
from probes.tables.table import NOTHING, Cell, Table, TableRow

KEPT = "kept_gain"
"""The quantity: a share, below 0 for scores below the floor, above 1 for scores above the other."""

MACHINE = "platform", "processor", "cores", "memory", "device", "threads"
"""Facts of a machine in records that must be equal where speeds are compared."""


def kept_gains(
    teacher: Result, students: Mapping[str, Result], among: Iterable[Result] = ()
) -> dict[str, Estimate]:
    """Share of a model's gain over its floor that other models keep, by their labels.

    The share is (student − floor) / (teacher − floor). All three are test scores: of the layers
    that are best on dev, and of the teacher's floor. They are resampled together, with training
    variance where it was measured (Efron & Tibshirani 1993, chapter 13).

    Args:
        teacher, students: results on one task.
        among: results that may be of the teacher's random twins.
    """
    floor = if_readable(lambda: resampled_floor(teacher, among))
    best, *student_scores = map(readable_score, (teacher, *students.values()))
    if floor is None or best.value is None:
        return dict.fromkeys(students, missing_estimate("there is no score or no floor"))
    lowest, resampled_lowest = floor
    gain, resampled_gain = best.value - lowest, best.resampled - resampled_lowest

    def gain_share(student: LayerScore) -> Estimate:
        if student.value is None or not best.paired_with(student):
            return missing_estimate("scores cannot be resampled together")
        if not interval(resampled_gain)[0] > 0:
            return missing_estimate("the gain may be 0")
        shares = (student.resampled - resampled_lowest) / resampled_gain
        value = (student.value - lowest) / gain
        return Estimate(value=value, interval=bounds(interval(shares)))

    return dict(zip(students, map(gain_share, student_scores), strict=True))


def compression_tables(
    setting: str, shared: Mapping[str, Sequence[Candidate]], models: Sequence[str]
) -> Iterator[Table]:
    """Size, speed, and shares of the first model's gains; no table of models of one size.

    Args:
        shared: by task, the results that are compared, the first model's first.
        models: their names in this order.
    """
    by_model = {
        name: [c.result for candidates in shared.values() for c in candidates if c.name == name]
        for name in models
    }
    first, *_ = sizes = [results[0].model.parameters for results in by_model.values()]
    if len(set(sizes)) == 1 or not all(sizes):  # The size of a file of vectors is 0.
        return
    gains = {
        task: kept_gains(teacher.result, {c.name: c.result for c in students})
        for task, (teacher, *students) in shared.items()
    }
    speeds, rows = [*map(_speeds, by_model.values())], []
    for (name, results), n, rates in zip(by_model.items(), sizes, speeds, strict=True):
        faster = next((rates[x] / speed for x, speed in speeds[0].items() if x in rates), None)
        shares = [of_task.get(name) for of_task in gains.values()]
        cells = [score_cell(x.value, x.interval, KEPT) if x else Cell() for x in shares]
        ratios = _ratio_cell(first / n), _ratio_cell(faster)
        rows.append(TableRow.of(name, size_cells(results[0])[0], *ratios, *cells))
    heads = (task_head(x.result, x.result.task.metric) for x, *_ in shared.values())
    missing = ((task, share.missing) for task, of in gains.items() for share in of.values())
    reasons = dict.fromkeys(f"No share of {task}: {reason}." for task, reason in missing if reason)
    yield Table(
        f"{setting} · compression",
        ("model", "parameters", "times smaller", "times faster", *heads),
        tuple(rows),
        notes=(
            f"Share of {models[0]}'s gain over its floor that is kept, in %: of scores at the "
            "layers that are best on dev. Scores and floor are resampled together. Times faster: "
            "words per second of the fastest of these tasks' runs on the same machine; rough, as "
            "others may have used it.",
            *reasons,
        ),
    )


def _speeds(results: Sequence[Result]) -> dict[tuple[str, ...], float]:
    """Words per second in reading the corpus, by machine.

    Of several runs on a machine the fastest counts: others may have shared it.
    """
    run_facts = [x.provenance for x in results if "words_per_second" in x.provenance]
    runs = [(float(x["words_per_second"]), tuple(x.get(y, "") for y in MACHINE)) for x in run_facts]
    return {machine: speed for speed, machine in sorted(runs)}


def _ratio_cell(ratio: float | None) -> Cell:
    return Cell(NOTHING) if ratio is None else Cell(f"{ratio:.{1 + (ratio < 1)}f}", value=ratio)
