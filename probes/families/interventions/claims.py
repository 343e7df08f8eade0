"""Claims of the literature about heads that a model needs, or does not, with their tests."""

from __future__ import annotations

from functools import partial

from probes.boards.claims.rules import Claim, ModelRows, Reads, greater, somewhere
from probes.records.row import Row

_drop = partial(Reads, "ablation", "ablation_drop", at="@n_layers", predicts=...)

_CORE = Reads(
    "attention",
    "above_baseline",
    among_all=True,
    chosen=...,
    head=...,
    direction=...,
    measure="relation",
    feature=("nsubj", "obj"),
)
"""The heads that are best for core relations."""


def _is_core(model: ModelRows, row: Row) -> bool:
    """Whether the disabled head is the best for a core relation."""
    best = {(x.layer, x.axes["head"]) for x in model.read(_CORE)}
    return (row.layer, row.axes["head"]) in best


CLAIMS = (
    Claim(
        "core-heads-unused",
        "Heads that track core relations need not contribute to tasks",
        "Primer 5.1; Kovaleva et al. 2019, 4.6",
        "disabling the heads of nsubj and obj costs frozen probes under a point (ours)",
        partial(greater, (0.01, _drop(disabled="head", head=..., keep=_is_core))),
    ),
    Claim(
        "some-heads-hurt",
        "Some heads hurt: disabling them improves performance",
        "Primer 7.1; Kovaleva et al. 2019, 4.6",
        "frozen probes of the last layer, corrected over heads; the study fine-tunes, untested",
        partial(somewhere, "below 0", _drop(disabled="head", head=...)),
    ),
)
