"""Predicates on what disabling heads costs the tasks whose probes were applied again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from probes.boards.claims.claim import (
    ZERO,
    Ends,
    MissingError,
    Outcome,
    Predicate,
    all_of,
    any_of,
    decided,
    ordered,
    p_above,
    p_if,
)
from probes.boards.claims.head_predicates import core_heads
from probes.boards.claims.intervals import with_ends
from probes.boards.claims.model_rows import ModelRows
from probes.records.row import Row

POINT = 0.01
"""A drop that is noticeable: one point of a score."""


def some_heads_hurt(model: ModelRows) -> Outcome:
    """Whether disabling a head improves the score of a task.

    Supported if one does with p corrected over heads, and over tasks by Bonferroni; contradicted
    if every head of every task costs something.
    """
    found = _drops(model, "head")
    least = {task: min(rows, key=lambda row: row.value or 0.0) for task, rows in found.items()}
    helped = (
        min(p_if((x.value or 0.0) < 0, 1.0 if x.p is None else x.p) for x in rows)
        for rows in found.values()
    )
    every = [x.interval for rows in found.values() for x in rows]
    return decided(
        any_of(helped),
        all_of(1.0 if ends is None else p_above(ZERO, ends) for ends in every),
        "; ".join(f"{task}: least drop, by head {_named(x)}" for task, x in least.items()),
        [_number(task, row) for task, row in least.items()],
    )


def core_heads_not_essential(model: ModelRows) -> Outcome:
    """Whether no head of a core relation costs more than the median head and a point.

    Supported if the intervals of what disabling them costs lie below that in all tasks,
    contradicted if one lies above.
    """
    found, chosen = _drops(model, "head"), core_heads(model)
    pairs, shown, numbers = [], [], []
    for task, rows in found.items():
        values = sorted(row.value or 0.0 for row in rows)
        limit = values[len(values) // 2] + POINT
        for relation, head in chosen.items():
            (row,) = (x for x in rows if (x.layer, x.axes["head"]) == head)
            pairs.append((_ends(row), (limit, limit)))
            shown.append(f"{relation} of {task}, by head {_named(row)}, limit {limit:.3f}")
            numbers.append({"relation": relation, **_number(task, row)})
    return ordered(pairs, "; ".join(shown), numbers)


def prunable(share: int, most: Callable[[Ends], Ends]) -> Predicate:
    """The predicate that a share of heads, pruned by importance, costs less than a limit.

    Supported if the intervals of all tasks lie below it, contradicted if one lies above.

    Args:
        share: in per cent.
        most: gives the limit from what pruning all heads costs.
    """

    def predicate(model: ModelRows) -> Outcome:
        pairs, shown, numbers = [], [], []
        for task, rows in _drops(model, "heads").items():
            some, every = _pruned(rows, share), _pruned(rows, 100)
            pairs.append((_ends(some), most(_ends(every))))
            shown.append(f"{task}: drop {_shown(some)}, without any head {_shown(every)}")
            numbers += [_number(task, some), _number(task, every)]
        return ordered(pairs, "; ".join(shown), numbers)

    return predicate


many_can_be_pruned = prunable(40, lambda every: (POINT, POINT))
"""That of Michel et al.: of BERT's heads, 40 % without a noticeable drop."""

few_do_the_work = prunable(80, lambda every: (every[0] / 2, every[1] / 2))
"""That a fifth keeps half of what all give: Voita et al. leave 10 of 48 heads."""


def _drops(model: ModelRows, disabled: str) -> Mapping[str, list[Row]]:
    """The drops at the last layer, by task."""
    record = model.record("ablation")
    found: dict[str, list[Row]] = {}
    for row in record.rows.along("disabled"):
        last = row.axes.get("at") == record.model.n_layers
        if row.metric == "ablation_drop" and row.axes["disabled"] == disabled and last:
            found.setdefault(str(row.axes["predicts"]), []).append(row)
    if not found:
        raise MissingError("no probe of the last layer was applied with heads disabled")
    return found


def _pruned(rows: Sequence[Row], share: int) -> Row:
    for row in rows:
        if (row.axes["by"], row.axes["pruned"]) == ("importance", share):
            return row
    raise MissingError(f"no step of pruning is at {share} % of the heads")


def _ends(row: Row) -> Ends:
    """An interval, which has no width where pruning changed no prediction at all."""
    if row.interval is None:
        if row.value == 0:
            return ZERO
        raise MissingError("a drop has no interval")
    return row.interval


def _named(row: Row) -> str:
    return f"{row.layer}–{row.axes['head']}: {_shown(row)}"


def _shown(row: Row) -> str:
    text = f"{row.value:.3f}" if row.interval is None else with_ends(row)
    return text.replace("-", "−")


def _number(task: str, row: Row) -> dict[str, Any]:
    places = {name: row.axes[name] for name in ("head", "pruned") if name in row.axes}
    number = {"layer": row.layer, "drop": row.value, "interval": row.interval, "p": row.p}
    return {"task": task, **places, **number}
