"""Predicates on what a model says itself: hidden verbs, minimal pairs, contexts to complete."""

from __future__ import annotations

import math
from typing import Any

from probes.boards.behaviour import HEADLINES
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
from probes.boards.claims.intervals import with_ends
from probes.boards.claims.model_rows import ModelRows
from probes.measurements.verb_forms import TASK
from probes.records.row import Row
from probes.records.values import Interval

CHANCE: Ends = (0.5, 0.5)

LICENSORS = "only", "sentential_negation"
"""Words that allow a negative polarity item: BLiMP has paradigms of the word and of its scope."""


def fills_in(group: str | None = None) -> Predicate:
    """The predicate that hidden verbs are filled in better than by the commoner number.

    Supported if the interval of the model's accuracy lies above that of the baseline on the same
    verbs, contradicted if it lies below.

    Args:
        group: of verbs; None for all.
    """

    def predicate(model: ModelRows) -> Outcome:
        own, baseline = (
            _only(model, "cloze", "cloze_accuracy", TASK, group=group, baseline=name)
            for name in (None, "majority")
        )
        return ordered(
            [(_ends(baseline), _ends(own))],
            f"{own.n} verbs: {with_ends(own)}, the commoner number {with_ends(baseline)}",
            [_number("cloze_accuracy", own), _number("majority", baseline)],
        )

    return predicate


def scope_is_harder(model: ModelRows) -> Outcome:
    """Whether the words that allow negative polarity items are told better than their scope.

    Supported if the interval of each licensor's paradigm lies above that of its scope, contradicted
    if one lies below.
    """
    found = {
        name: [
            _pair_accuracy(model, paradigm=f"{name}_npi_{part}", phenomenon=...)
            for part in ("scope", "licensor_present")
        ]
        for name in LICENSORS
    }
    return ordered(
        [(_ends(scope), _ends(word)) for scope, word in found.values()],
        "; ".join(
            f"{name.replace('_', ' ')}: {with_ends(word)}, its scope {with_ends(scope)}"
            for name, (scope, word) in found.items()
        ),
        [_number(name, row) for name, rows in found.items() for row in rows],
    )


def acceptable_is_likelier(model: ModelRows) -> Outcome:
    """Whether more than half of BLiMP's pairs are right; contradicted if fewer than half are."""
    row = _pair_accuracy(model)
    why = f"{row.n:,} pairs: {with_ends(row)}"
    return ordered([(CHANCE, _ends(row))], why, [_number("pair_accuracy", row)])


def roles_are_told(model: ModelRows) -> Outcome:
    """Whether words fit their roles better than reversed ones in most contexts of ROLE-88.

    Supported if the interval of sensitivity lies above .5, contradicted if it lies below.
    """
    row = _sensitivity(model, phenomenon="ROLE-88")
    why = f"sensitivity on ROLE-88, {row.n} contexts: {with_ends(row)}"
    return ordered([(CHANCE, _ends(row))], why, [_number("ROLE-88", row)])


def negation_is_ignored(model: ModelRows) -> Outcome:
    """Whether the same words are likelier with a negation as without it.

    Supported if of NEG-136-SIMP more than half of the affirmative contexts are right and fewer than
    half of the negative ones; contradicted if more than half of both. By exact binomial tests.
    """
    affirmative, negative = (
        _sensitivity(model, paradigm=f"NEG-136-SIMP, {which}", phenomenon=...)
        for which in ("affirmative", "negative")
    )
    right = _p_most(affirmative)
    wrong = _p_most(negative._replace(value=1 - (negative.value or 0.0)))
    shares = (f"{100 * (row.value or 0.0):.1f} % of {row.n}" for row in (affirmative, negative))
    return decided(
        all_of([right, wrong]),
        all_of([right, _p_most(negative)]),
        "right of NEG-136-SIMP: {} affirmative contexts, {} negative ones".format(*shares),
        [_number("affirmative", affirmative), _number("negative", negative)],
    )


def decodable_not_used(model: ModelRows) -> Outcome:
    """Whether at some layer the probe is right about more hidden verbs than the model itself.

    Supported if the difference is above 0 at a layer, with p corrected over layers; contradicted if
    the intervals of all lie below 0.
    """
    found = _by_layer(model, "cloze", "decodable_less_used")
    best = max(found, key=lambda layer: found[layer].value or -1.0)
    return decided(
        min(p_if((x.value or 0.0) > 0, 1.0 if x.p is None else x.p) for x in found.values()),
        all_of(_p_above(x.interval, ZERO) for x in found.values()),
        f"decodable less used, greatest at layer {best}: {with_ends(found[best])}",
        [_number("decodable_less_used", row) for row in found.values()],
    )


def readable_later(model: ModelRows) -> Outcome:
    """Whether at some layer more is decodable than readable, and more is readable above it.

    Supported if there is a layer where the interval of the probe lies above that of the lens, which
    lies below one of the lens at a later layer (Bonferroni over layers); contradicted if at every
    layer that of the lens lies above.
    """
    probe, lens = (_by_layer(model, "lens", x) for x in ("decodable", "readable"))
    ends = {layer: (probe[layer].interval, row.interval) for layer, row in lens.items()}
    p_values = [
        all_of(
            [
                _p_above(readable, decodable),
                any_of(_p_above(readable, ends[later][1]) for later in ends if later > layer),
            ]
        )
        for layer, (decodable, readable) in ends.items()
        if layer < max(ends)
    ]
    shown = (f"{x}: {probe[x].value:.2f}, {lens[x].value:.2f}" for x in lens)
    return decided(
        any_of(p_values),
        all_of(_p_above(decodable, readable) for decodable, readable in ends.values()),
        f"by layer, decodable and readable: {'; '.join(shown).replace('0.', '.')}",
        [_number(row.metric, row) for found in (probe, lens) for row in found.values()],
    )


def _by_layer(model: ModelRows, measurement: str, metric: str) -> dict[int, Row]:
    if found := model.by_layer(measurement, metric, TASK):
        return found
    raise MissingError(f"{TASK} has no {measurement} (--evidence {measurement})")


def _pair_accuracy(model: ModelRows, **where: Any) -> Row:
    if model.record("pairs").corpus.name != "blimp":
        raise MissingError("the corpus is not blimp")
    scoring = [x["scoring"] for x in HEADLINES["pairs"]["pair_accuracy"]]
    return _only(model, "pairs", "pair_accuracy", scoring=scoring, per="text", **where)


def _sensitivity(model: ModelRows, **where: Any) -> Row:
    model.record("completion")
    return _only(model, "completion", "sensitivity", threshold=0.0, **where)


def _only(
    model: ModelRows, measurement: str, metric: str, task: str | None = None, **where: Any
) -> Row:
    if model.frame(measurement).empty:
        raise MissingError(f"{task} has no {measurement} (--evidence {measurement})")
    if found := model.rows(measurement, metric, task, **where):
        return found[0]
    raise MissingError(f"{measurement} has none of these")


def _ends(row: Row) -> Ends:
    if row.interval is None:
        raise MissingError(f"no interval can be given: {row.why or 'too few examples'}")
    return row.interval


def _p_above(low: Interval, high: Interval) -> float:
    return 1.0 if low is None or high is None else p_above(low, high)


def _p_most(row: Row) -> float:
    """The two-sided p-value of more than half being right; of ties, half count as wrong."""
    from scipy.stats import binom  # slow to import

    right = math.floor((row.value or 0.0) * (row.n or 0) + 1e-6)
    return min(1.0, 2 * float(binom.sf(right - 1, row.n, 0.5)))


def _number(name: str, row: Row) -> dict[str, Any]:
    return {"name": name, "layer": row.layer, "value": row.value, "interval": row.interval}
