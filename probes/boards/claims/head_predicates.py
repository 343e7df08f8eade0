"""Predicates on attention heads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np

from probes.boards.claims.claim import (
    ZERO,
    MissingError,
    Outcome,
    Predicate,
    all_of,
    decided,
    ordered,
    p_above,
    p_if,
    verdict,
)
from probes.boards.claims.intervals import with_ends
from probes.boards.claims.model_rows import ModelRows, listed
from probes.boards.head_boards import ATTENTION
from probes.common.wording import counted
from probes.measurements.head_patterns import BOUNDS, classes
from probes.measurements.head_rows import EVERY, NOT_PUNCTUATION, Choice, HeadNumbers, HeadRows

COMPLETE = 0.9
"""A UAS that counts as the whole tree: about that of a good parser."""

CORE = "nsubj", "obj", "ARG0", "ARG1"
"""Relations and roles of core arguments."""

_ABSENT = {
    "separators": "the model has no special tokens after a text",
    "special": "the corpus has no parts of speech, by which words are punctuation",
}

_BY = {"relation": ", by the word attended to most", "uas": ", by trees"}


def mostly_patterns(model: ModelRows) -> Outcome:
    """Whether fewer than half of all heads are heterogeneous, wherever the bound of classes is set.

    Supported if with every one of `BOUNDS` fewer than half may be, contradicted if with every one
    more than half are for certain. A head is the less heterogeneous the greater its masses, so that
    it may be if it is with all of them at the lower ends of their intervals, and is for certain if
    it is with all at the upper ends.
    """
    found = _found(model)
    for (name, _), mass in found.each("pattern").items():
        _require_intervals(mass, str(name))
    n = len(found.layers) * found.n_heads
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


def _heterogeneous(found: HeadRows, bound: float, end: Literal["values", "low", "high"]) -> int:
    return sum(row.count("heterogeneous") for row in classes(found, bound, end))


def to_special_tokens(model: ModelRows) -> Outcome:
    """Whether most heads attend to special tokens and punctuation more than uniform attention does.

    Supported if more than half do for certain, contradicted if fewer than half may.
    """
    found = _found(model)
    _numbers(found, "separators")
    share = _numbers(found, "special")
    _require_intervals(share, "special")
    if np.isnan(share.baseline).any():
        raise MissingError("special has no uniform baseline")
    n = share.values.size
    least, above, most = (
        int((x > share.baseline).sum()) for x in (share.low, share.values, share.high)
    )
    mean, mean_uniform = (float(x.mean()) for x in (share.values, share.baseline))
    return Outcome(
        verdict(for_it=2 * least > n, against=2 * most < n),
        f"{above} of {n} heads attend to special tokens and punctuation more than uniformly "
        f"[{least}, {most}]; mean {100 * mean:.1f} %, uniform {100 * mean_uniform:.1f} %",
        [{"heads": n, "above_uniform": above, "interval": [least, most], "mean": mean}],
    )


def some_above(measure: str) -> Predicate:
    """The predicate that for some features of a measure the chosen head exceeds its baseline.

    Supported if one is above it, with a p-value corrected for all features that are tested;
    contradicted if the intervals of all their differences lie below 0.
    """

    def predicate(model: ModelRows) -> Outcome:
        found = _found(model)
        if not found.choices:
            raise MissingError("the corpus has no relations, roles or trees to choose heads by")
        tested = [choice for choice in found.choices_of(measure) if _is_tested(choice)]
        if not tested:
            raise MissingError(f"no {measure} is frequent enough to be tested")
        above = sorted((x for x in tested if x.is_better), key=lambda x: -(x.difference.value or 0))
        why = f"of {counted(len(tested), measure)}, {len(above)} have a head above the baseline"
        return _one_positive(tested, "; ".join([why, *map(_named, above[:3])]))

    return predicate


def _one_positive(choices: Sequence[Choice], why: str) -> Outcome:
    """The outcome of a claim that one difference is above 0, by p-values corrected for all."""
    every = [(choice, choice.difference) for choice in choices]
    return decided(
        min(p_if((x.value or 0.0) > 0, 1.0 if x.p is None else x.p) for _, x in every),
        all_of(1.0 if x.interval is None else p_above(x.interval, ZERO) for _, x in every),
        why,
        [
            {
                "feature": choice.feature,
                "layer": choice.test.layer,
                "head": choice.test.axes["head"],
                "difference": x.value,
                "interval": x.interval,
                "p": x.p,
            }
            for choice, x in every
        ],
    )


def one_above(relation: str) -> Predicate:
    """The predicate that the head chosen for a relation exceeds its best fixed offset.

    Supported if the interval of the difference lies above 0, contradicted if it lies below.
    """

    def predicate(model: ModelRows) -> Outcome:
        choices = {x.feature: x for x in _found(model).choices_of("relation")}
        if relation not in choices:
            raise MissingError(f"{relation} is no relation of the corpus, or is too rare")
        choice = choices[relation]
        found = choice.difference
        if found.interval is None:
            raise MissingError("the difference has no interval")
        signed = f"{found.value:+.3f} [{found.low:+.3f}, {found.high:+.3f}]".replace("-", "−")
        return ordered(
            [(ZERO, found.interval)],
            f"{_named(choice)}; difference {signed}",
            [{"difference": found.value, "interval": found.interval}],
        )

    return predicate


def core_heads(model: ModelRows) -> dict[str, tuple[int, int]]:
    """Layer and number of the heads chosen for core arguments, by relation and role.

    Raises:
        MissingError: there are none.
    """
    found = {
        choice.feature: (choice.test.layer or 0, int(choice.test.axes["head"] or 0))
        for choice in _found(model).choices
        if choice.feature in CORE
    }
    if not found:
        raise MissingError("no head was chosen for a core relation or role")
    return found


def none_complete(model: ModelRows) -> Outcome:
    """Whether the best single head misses more than a tenth of the heads of words.

    The best by the word that is attended to most, and by trees, both chosen on dev. Supported if
    the intervals of both UAS lie below `COMPLETE`, contradicted if one lies above it.
    """
    singles = [
        choice
        for choice in _found(model).choices
        if (choice.test.metric, choice.feature) in (("relation", NOT_PUNCTUATION), ("uas", ""))
    ]
    ends = [choice.test.interval for choice in singles if choice.test.interval is not None]
    if len(ends) < 2:
        raise MissingError("single heads have no interval")
    named = [f"{choice.name}{_BY[choice.test.metric]}" for choice in singles]
    shown = (f"head {x} {with_ends(y.test)}" for x, y in zip(named, singles, strict=True))
    return ordered(
        [(each, (COMPLETE, COMPLETE)) for each in ends],
        f"UAS of {'; '.join(shown)}; limit: {COMPLETE:g}",
        [
            {"head": name, "uas": choice.test.value, "interval": choice.test.interval}
            for name, choice in zip(named, singles, strict=True)
        ],
    )


def _named(choice: Choice) -> str:
    """``obj by head 3–1: .719 (offset −2: .383)``."""
    score, base = (f"{x.value:.3f}".replace("0.", ".", 1) for x in (choice.test, choice.baseline))
    kind = choice.kind.replace("-", "−")
    return f"{choice.feature} by head {choice.name}: {score} ({kind}: {base})"


def _is_tested(choice: Choice) -> bool:
    return choice.difference.p is not None and choice.feature not in (EVERY, NOT_PUNCTUATION)


@lru_cache(maxsize=2)
def _found(model: ModelRows) -> HeadRows:
    """What was found of all heads.

    Raises:
        MissingError: there is no record, or not of all layers.
    """
    record = model.record(ATTENTION)
    found = HeadRows(record.rows)
    if absent := set(range(1, record.model.n_layers + 1)) - set(found.layers):
        raise MissingError(f"{ATTENTION} was not measured at layer {listed(absent)}")
    return found


def _numbers(found: HeadRows, measure: str) -> HeadNumbers:
    numbers = found.of(measure)
    if numbers is None:
        raise MissingError(_ABSENT[measure])
    return numbers


def _require_intervals(found: HeadNumbers, name: str) -> None:
    if np.isnan([found.low, found.high]).any():
        raise MissingError(f"{name} has no intervals")
