"""Predicates on attention heads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from probes.boards.claims.claim import Predicate
from probes.boards.claims.model_scores import ModelScores
from probes.boards.claims.outcome import MissingError, Outcome, verdict
from probes.common.wording import counted
from probes.measurements.attention.gold import EVERY, NOT_PUNCTUATION
from probes.measurements.attention.patterns import BOUNDS, classes
from probes.measurements.attention.payload import Choice, Findings, HeadNumbers
from probes.measurements.attention.tables import is_better
from probes.records.values import Estimate

ATTENTION = "attention"


def mostly_patterns(model: ModelScores) -> Outcome:
    """Whether fewer than half of all heads are heterogeneous, wherever the bound of classes is set.

    Supported if with every one of `BOUNDS` fewer than half may be, contradicted if with every one
    more than half are for certain. A head is the less heterogeneous the greater its masses, so that
    it may be if it is with all of them at the lower ends of their intervals, and is for certain if
    it is with all at the upper ends.
    """
    found = _found(model)
    for each in found.numbers:
        if each.measure == "pattern" and not each.low:
            raise MissingError(f"{each.feature} has no intervals")
    n = len(found.layers) * found.heads
    counts = [
        [_heterogeneous(found, bound, end) for end in ("high", "values", "low")] for bound in BOUNDS
    ]
    named = (
        f"{classed} [{least}, {most}] with a bound of {bound:.1f}".replace(" 0.", " .")
        for bound, (least, classed, most) in zip(BOUNDS, counts, strict=True)
    )
    return Outcome(
        verdict(
            for_it=all(2 * most < n for _, _, most in counts),
            against=all(2 * least > n for least, _, _ in counts),
        ),
        f"of {n} heads are heterogeneous: {', '.join(named)}",
        [
            {"heads": n, "bound": bound, "heterogeneous": classed, "interval": [least, most]}
            for bound, (least, classed, most) in zip(BOUNDS, counts, strict=True)
        ],
    )


def _heterogeneous(found: Findings, bound: float, end: Literal["values", "low", "high"]) -> int:
    return sum(row.count("heterogeneous") for row in classes(found.numbers, bound, end))


def to_special_tokens(model: ModelScores) -> Outcome:
    """Whether most heads attend to the first token and separators more than uniform attention does.

    Supported if more than half do for certain, contradicted if fewer than half may. Both shares
    are added up at the same ends of their intervals, which errs towards undecided.
    """
    found = _found(model)
    shares = [_numbers(found, "first"), _numbers(found, "separators")]
    n = len(list(_heads(found)))

    def of_heads(end: str) -> list[float]:
        return [sum(_end(each, end, *head) for each in shares) for head in _heads(found)]

    uniform = [sum(_uniform(each, *head) for each in shares) for head in _heads(found)]
    least, above, most = (
        sum(x > base for x, base in zip(of_heads(end), uniform, strict=True))
        for end in ("low", "values", "high")
    )
    mean, mean_uniform = (sum(x) / n for x in (of_heads("values"), uniform))
    return Outcome(
        verdict(for_it=2 * least > n, against=2 * most < n),
        f"{above} of {n} heads attend to the first token and separators more than uniformly "
        f"[{least}, {most}]; mean {100 * mean:.1f} %, uniform {100 * mean_uniform:.1f} %",
        [{"heads": n, "above_uniform": above, "interval": [least, most], "mean": mean}],
    )


def some_above(measure: str) -> Predicate:
    """The predicate that for some features of a measure the chosen head exceeds its baseline.

    Supported if one is above it, with a p-value corrected for all features that are tested;
    contradicted if the intervals of all their differences lie below 0.
    """

    def predicate(model: ModelScores) -> Outcome:
        found = _found(model)
        if not found.choices:
            raise MissingError("the corpus has no relations, roles or trees to choose heads by")
        tested = [choice for choice in found.choices_of(measure) if _is_tested(choice)]
        if not tested:
            raise MissingError(f"no {measure} is frequent enough to be tested")
        above = sorted(filter(is_better, tested), key=lambda x: -(x.difference.value or 0))
        why = f"of {counted(len(tested), measure)}, {len(above)} have a head above the baseline"
        return Outcome(
            verdict(for_it=bool(above), against=_all_below(x.difference for x in tested)),
            "; ".join([why, *map(_named, above[:3])]),
            [
                {
                    "feature": choice.feature,
                    "layer": choice.layer,
                    "head": choice.head,
                    "difference": choice.difference.value,
                    "interval": choice.difference.interval,
                    "p": choice.p,
                }
                for choice in tested
            ],
        )

    return predicate


def one_above(relation: str) -> Predicate:
    """The predicate that the head chosen for a relation exceeds its best fixed offset.

    Supported if the interval of the difference lies above 0, contradicted if it lies below.
    """

    def predicate(model: ModelScores) -> Outcome:
        choices = {x.feature: x for x in _found(model).choices_of("relation")}
        if relation not in choices:
            raise MissingError(f"{relation} is no relation of the corpus, or is too rare")
        return _of_difference(choices[relation].difference, _named(choices[relation]))

    return predicate


def all_heads_find_more(model: ModelScores) -> Outcome:
    """Whether all heads together find the heads of more words than the best single head does.

    Together they are read by the attention-only probe. The single heads are the best by the word
    that is attended to most and by spanning trees, chosen on dev. Supported if the interval of the
    probe's UAS lies above those of both, contradicted if it lies below one.
    """
    found = _found(model)
    if found.mixes is None or found.mixes.every.interval is None:
        raise MissingError("the attention-only probe has no interval")
    singles = [
        choice
        for choice in found.choices
        if (choice.measure, choice.feature) in (("relation", NOT_PUNCTUATION), ("uas", ""))
    ]
    ends = [choice.test.interval for choice in singles if choice.test.interval is not None]
    if len(ends) < 2:
        raise MissingError("single heads have no interval")
    low, high = found.mixes.every.interval
    named = [("all heads", found.mixes.every)]
    named += [(f"head {x.layer}–{x.head}{_BY[x.measure]}", x.test) for x in singles]
    return Outcome(
        verdict(
            for_it=all(low > end for _, end in ends), against=any(high < end for end, _ in ends)
        ),
        "UAS of " + "; ".join(f"{name} {_with_interval(x)}" for name, x in named),
        [{"heads": name, "uas": x.value, "interval": x.interval} for name, x in named],
    )


_BY = {"relation": ", by the word attended to most", "uas": ", by trees"}


def _with_interval(found: Estimate) -> str:
    assert found.interval is not None
    return f"{found.value:.3f} [{found.interval[0]:.3f}, {found.interval[1]:.3f}]"


def _of_difference(found: Estimate, why: str) -> Outcome:
    """The verdict that a difference is above 0."""
    if found.interval is None:
        raise MissingError("the difference has no interval")
    low, high = found.interval
    text = f"difference {found.value:+.3f} [{low:+.3f}, {high:+.3f}]".replace("-", "−")
    numbers: list[dict[str, Any]] = [{"difference": found.value, "interval": found.interval}]
    return Outcome(verdict(for_it=low > 0, against=high < 0), f"{why}; {text}", numbers)


def _named(choice: Choice) -> str:
    """``obj by head 3–1: .719 (offset −2: .383)``."""
    score, base = (f"{x.value:.3f}".replace("0.", ".", 1) for x in (choice.test, choice.baseline))
    kind = choice.baseline_kind.replace("-", "−")
    return f"{choice.feature} by head {choice.layer}–{choice.head}: {score} ({kind}: {base})"


def _is_tested(choice: Choice) -> bool:
    return choice.p is not None and choice.feature not in (EVERY, NOT_PUNCTUATION)


def _all_below(differences: Iterable[Estimate]) -> bool:
    return all(x.interval is not None and x.interval[1] < 0 for x in differences)


def _found(model: ModelScores) -> Findings:
    """What was found of all heads.

    Raises:
        MissingError: there is no record, or not of all layers.
    """
    record = model.record(ATTENTION)
    found: Findings = record.payload
    if absent := sorted(set(range(1, record.model.n_layers + 1)) - set(found.layers)):
        raise MissingError(f"{ATTENTION} was not measured at layer {', '.join(map(str, absent))}")
    return found


def _numbers(found: Findings, measure: str) -> HeadNumbers:
    numbers = found.of(measure)
    if numbers is None:
        raise MissingError(f"the model has no tokens for {measure}")
    return numbers


def _heads(found: Findings) -> Iterable[tuple[int, int]]:
    """The place of every head: among layers, and in its layer."""
    return ((layer, head) for layer in range(len(found.layers)) for head in range(found.heads))


def _end(numbers: HeadNumbers, end: str, layer: int, head: int) -> float:
    """A head's number, or an end of its interval: "values", "low" or "high"."""
    grid = getattr(numbers, end)
    if not grid or grid[layer][head] is None:
        raise MissingError(f"{numbers.feature or numbers.measure} has no intervals")
    value: float = grid[layer][head]
    return value


def _uniform(numbers: HeadNumbers, layer: int, head: int) -> float:
    value = numbers.baseline_of(layer, head)
    if value is None:
        raise MissingError(f"{numbers.feature or numbers.measure} has no uniform baseline")
    return value
